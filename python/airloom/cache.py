"""The folder in which Airloom keeps what is long to make and may be deleted while nothing runs."""

from __future__ import annotations

import os
from pathlib import Path


def folder(*parts: str) -> Path:
    """A folder below ``airloom`` in ``$XDG_CACHE_HOME`` (by default ``~/.cache``), which may not be there."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "airloom", *parts)
