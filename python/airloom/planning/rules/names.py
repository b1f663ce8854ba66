"""The rule of names in a list: each is given once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airloom.scenario.problems import Problem


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
