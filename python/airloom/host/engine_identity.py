"""Which engine made a result: a digest of what the engine is built from.

Versions do not tell: many engines have one version. In a source tree it is a digest of the Rust sources
that take part in a run and of the lock of their dependencies, so that it is the same on every machine;
elsewhere one of the compiled module.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from collections.abc import Iterable
from pathlib import Path

_CRATES = ("engine", "ports", "bridge", "netns", "traffic", "init")
_DIGITS = 12


@functools.cache
def identity() -> str:
    """Returns the digest; ``module-`` and a digest without a source tree; empty without an engine."""
    root = Path(__file__).resolve().parents[3]
    sources = sorted(path for crate in _CRATES for path in (root / crate / "src").rglob("*.rs"))
    if sources:
        return digest(root, [*sources, root / "Cargo.lock"])
    found = importlib.util.find_spec("airloom._engine")
    module = Path(found.origin) if found is not None and found.origin else None
    return f"module-{digest(module.parent, [module])}" if module is not None else ""


def digest(root: Path, files: Iterable[Path]) -> str:
    """Returns the first digits of the SHA-256 of names, relative to ``root``, and contents of files."""
    found = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        found.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        found.update(content)
    return found.hexdigest()[:_DIGITS]
