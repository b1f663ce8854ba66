"""Paths of values, as in ``--set links[0].rate='10 Mbit/s'`` and in sweeps.

A path consists of keys joined by dots. An element of a list is selected by its number (``links[0]``) or
its name (``links[h1-s1]``, ``measurements[rtt]``); ``links[*]`` selects all elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from airloom.errors import ScenarioError
from airloom.scenario.source import Path_, Source, show
from airloom.scenario.suggest import nearest

_PART = re.compile(r"(?:^|\.)([A-Za-z0-9_-]+)|\[([^\[\]]*)\]")


def split(path: str, where: str) -> list[tuple[str, bool]]:
    """Returns the parts of a path; the flag is True for parts in brackets."""
    parts: list[tuple[str, bool]] = []
    at = 0
    while at < len(path):
        found = _PART.match(path, at)
        if found is None:
            break
        parts.append((found[1], False) if found[1] is not None else (found[2].strip(), True))
        at = found.end()
    if at < len(path) or not parts or parts[0][1]:
        raise ScenarioError(
            "path.syntax",
            f"{path!r} is not a path",
            where=where,
            cure="write it like links[0].rate, links[h1-s1].delay or nodes.h1.cpu",
        )
    return parts


def names(item: Any) -> list[str]:
    """Returns the names that select an element of a list."""
    if not isinstance(item, dict):
        return []
    found = [item[key] for key in ("name", "id") if isinstance(item.get(key), str)]
    ends = item.get("ends")
    if not found and isinstance(ends, list) and len(ends) == 2:
        found.append("-".join(str(end).split(":")[0] for end in ends))
    return found


def resolve(data: Any, path: str, where: str) -> list[Path_]:
    """Returns the locations that a path selects; the last key need not exist."""
    parts = split(path, where)
    places: list[tuple[Path_, Any]] = [((), data)]
    for word, bracket in parts:
        places = [found for here, value in places for found in _step(here, value, word, bracket, path, where)]
    return [here for here, _ in places]


def _step(
    here: Path_, value: Any, word: str, bracket: bool, path: str, where: str
) -> Iterable[tuple[Path_, Any]]:
    if not bracket:
        if value is None or isinstance(value, dict):
            return [((*here, word), (value or {}).get(word))]
        raise ScenarioError("path.unknown", f"{path!r}: {show(here)} has no key {word!r}", where=where)
    if not isinstance(value, list):
        what = "is not a list" if value is not None else "is not there"
        raise ScenarioError("path.unknown", f"{path!r}: {show(here)} {what}", where=where)
    if word == "*":
        return [((*here, index), item) for index, item in enumerate(value)]
    if word.isascii() and word.isdigit() and len(word) < 10:
        if int(word) >= len(value):
            raise ScenarioError(
                "path.unknown",
                f"{path!r}: {show(here)} has {len(value)} elements, counted from 0",
                where=where,
            )
        return [((*here, int(word)), value[int(word)])]
    found = [((*here, index), item) for index, item in enumerate(value) if word in names(item)]
    if not found:
        known = [name for item in value for name in names(item)]
        raise ScenarioError(
            "path.unknown", f"{path!r}: no {word!r} in {show(here)}", where=where, cure=nearest(word, known)
        )
    return found[:1]


def put(source: Source, path: str, value: Any, origin: str | Path_, where: str) -> Source:
    """Returns a copy of the source with another value at a path."""
    result = source.copy(source.data)
    for place in resolve(source.data, path, where):
        result.data = _put(result.data, place, value)
        result.replaced(place, origin)
    return result


def _put(data: Any, path: Path_, value: Any) -> Any:
    if not path:
        return value
    if isinstance(data, list):
        index = path[0]
        assert isinstance(index, int)
        return [_put(item, path[1:], value) if at == index else item for at, item in enumerate(data)]
    return {**(data or {}), path[0]: _put((data or {}).get(path[0]), path[1:], value)}
