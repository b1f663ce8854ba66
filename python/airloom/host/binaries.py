"""Finds Airloom's own programs and folders.

The programs ``airloom-init`` and ``airloom-traffic`` are searched for, in this order, in the folder
``AIRLOOM_BIN_DIR``, in the package (from a wheel), beside the Python interpreter (from ``make
setup``), in a source tree's ``target/release`` and ``target/debug``, and on ``PATH``. The first
executable file is used.

The folders ``examples`` and ``experiments`` are in the source tree or in the package of a wheel.
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
"""Files that a wheel ships beside the code; a source tree has no such folder."""
TREE = PACKAGE.parents[1]
"""The root of the source tree, unless Airloom was installed from a wheel."""

OWN_PROGRAMS = ("airloom-init", "airloom-traffic")

HIDDEN = frozenset(map(Path, ("/tmp", "/run", "/var/tmp", "/dev/shm")))
"""Paths of the host that every node covers with its own file system."""


def folders() -> list[Path]:
    """Returns the folders that are searched, in order, without those of ``PATH``."""
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
    """Returns the path of one of Airloom's programs; raises :class:`HostError` if there is none."""
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
    """Returns a shipped folder such as ``examples``, from a wheel or the source tree."""
    packed = SHIPPED / name
    return packed if packed.is_dir() else TREE / name


def is_hidden(path: Path) -> bool:
    """True if a node cannot see the path unless it is bind-mounted."""
    return not HIDDEN.isdisjoint(path.parents)


def hidden_folders() -> list[Path]:
    """Returns the folders of Airloom, its interpreter and programs that nodes would not see."""
    found = {Path(sys.prefix), Path(__file__).parents[2]}
    with contextlib.suppress(HostError):  # reported when the program is used
        found.add(find("airloom-traffic"))
    return sorted(filter(is_hidden, found))
