"""The rules of names: of interfaces, and in a list, where each is given once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_

_INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}", re.ASCII)
_TAKEN = ("lo", "all", "default")
"""An interface that every node has, and what the kernel's settings have beside interfaces."""


def interface(name: str, path: Path_, *, key: bool = False) -> Iterator[Problem]:
    """Refuses what the kernel takes for no interface's name, or for another's."""
    if not _INTERFACE.fullmatch(name) or name in _TAKEN:
        yield Problem(
            "interface.name",
            f"{name!r} cannot be an interface's name",
            path,
            f"at most 15 letters, digits, '-', '_' and '.', and not {', '.join(_TAKEN[:-1])} or {_TAKEN[-1]}",
            key=key,
        )


def unique(section: str, names: Iterable[str | None], key: str = "name") -> Iterator[Problem]:
    """Refuses names that an earlier part of the section has; None for a part that has none."""
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
