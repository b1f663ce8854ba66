"""``python -m airloom`` is the command ``airloom``."""

from __future__ import annotations

from airloom.cli import main

if __name__ == "__main__":
    main()
