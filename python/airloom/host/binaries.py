"""Where Airloom's own programs and folders are.

The programs ``airloom-init`` and ``airloom-traffic`` are looked for in the folder that
``AIRLOOM_BIN_DIR`` names, in the package (where a wheel has them), beside the Python interpreter
(where ``make setup`` puts them), in a source tree's ``target/release`` and ``target/debug``, and
on ``PATH``; the first that can be executed is taken.

The folders ``examples`` and ``experiments`` are in a source tree, or in the package of a wheel.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path

import airloom
from airloom.errors import HostError

PACKAGE = Path(airloom.__file__).resolve().parent
SHIPPED = PACKAGE / "shipped"
"""What a wheel has beside the code; a source tree has no such folder."""
TREE = PACKAGE.parents[1]
"""The source tree, unless Airloom was installed from a wheel."""

OWN_PROGRAMS = ("airloom-init", "airloom-traffic")

HIDDEN = frozenset(map(Path, ("/tmp", "/run", "/var/tmp", "/dev/shm")))
"""Places of this machine of which every node has its own."""


def folders() -> list[Path]:
    """The folders that are searched, in order, without those of ``PATH``."""
    found: list[Path] = []
    named = os.environ.get("AIRLOOM_BIN_DIR")
    if named:
        found.append(Path(named))
    found += [SHIPPED / "bin", Path(sys.executable).parent]
    if (TREE / "Cargo.toml").is_file():
        target = Path(os.environ.get("CARGO_TARGET_DIR", TREE / "target"))
        found += [target / "release", target / "debug"]
    return found


def find(name: str) -> Path:
    """The path of one of Airloom's programs; :class:`HostError` if it is nowhere."""
    for folder in folders():
        path = folder / name
        if path.is_file() and os.access(path, os.X_OK):
            return path
    on_path = shutil.which(name)
    if on_path:
        return Path(on_path)
    searched = ", ".join(str(folder) for folder in folders())
    raise HostError(
        "host.program.missing",
        f"Airloom's own program {name} is not installed (searched {searched} and PATH)",
        cure="run `make setup`, or set AIRLOOM_BIN_DIR to the folder it is in",
    )


def shipped(name: str) -> Path:
    """A folder of Airloom's such as ``examples``: in the package of a wheel, else in the source tree."""
    packed = SHIPPED / name
    return packed if packed.is_dir() else TREE / name


def is_hidden(path: Path) -> bool:
    """Whether a node does not see it unless it is shown."""
    return not HIDDEN.isdisjoint(path.parents)


def hidden_places() -> list[Path]:
    """Where Airloom itself is, interpreter and programs, if nodes would not see it there."""
    found = {Path(sys.prefix), Path(__file__).parents[2]}
    with contextlib.suppress(HostError):  # who needs it is told when it is used
        found.add(find("airloom-traffic"))
    return sorted(filter(is_hidden, found))
