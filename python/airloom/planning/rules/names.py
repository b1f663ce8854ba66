"""Rules of names: valid interface names, and unique names in a list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_

_INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}", re.ASCII)
_TAKEN = ("lo", "all", "default")
"""The loopback interface, and entries of the kernel's sysctl tree that are not interfaces."""


def interface(name: str, path: Path_, *, key: bool = False) -> Iterator[Problem]:
    """Refuses names that are not valid for a new interface."""
    if not _INTERFACE.fullmatch(name) or name in _TAKEN:
        yield Problem(
            "interface.name",
            f"{name!r} cannot be an interface's name",
            path,
            f"at most 15 letters, digits, '-', '_' and '.', and not {', '.join(_TAKEN[:-1])} or {_TAKEN[-1]}",
            key=key,
        )


def unique(section: str, names: Iterable[str | None], key: str = "name") -> Iterator[Problem]:
    """Refuses names that an earlier element of the section has; None is an unnamed element."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name is None:
            continue
        if name in seen:
            yield Problem(
                "name.duplicate",
                f"two {section} are called {name!r}",
                (section, index, key),
                f"give one another {key}",
            )
        seen.add(name)
