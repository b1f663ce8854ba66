"""Digests of the files that a scenario uses; they show whether two runs had the same inputs.

Inputs are the paths that the model marks as :class:`~airloom.scenario.model.base.Input`, and the
programs and scripts that command lines name by a path. The digest covers:

* a file: the SHA-256 of its content;
* an image of a container: the digests of its layers and its configuration;
* a folder, such as a guest's files: the names, sizes, modes and times of its entries, because it
  may be a whole root file system.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from airloom.errors import ScenarioError
from airloom.images import read
from airloom.scenario.command_line import needs_shell, words_of
from airloom.scenario.model import Program, Scenario
from airloom.scenario.model.base import BUILT, Input

CHUNK = 1 << 20
MISSING = "missing"
"""Digest of a file that does not exist or cannot be read."""


def digests(scenarios: Iterable[Scenario]) -> dict[str, str]:
    """Returns the digest of every input of these scenarios, by path, sorted."""
    found: dict[str, str] = {}
    for scenario in scenarios:
        for path in (*_marked(scenario), *_of_programs(scenario.programs)):
            if path not in found:
                found[path] = digest(path)
    return dict(sorted(found.items()))


def digest(path: str) -> str:
    """Returns the present digest of a file, folder or image."""
    try:
        if Path(path).is_file():
            return _of_file(path)
        image = _of_image(path)
        if image is not None:
            return image
        return _of_folder(Path(path)) if Path(path).is_dir() else MISSING
    except (OSError, ValueError):
        return MISSING


def _of_file(path: str) -> str:
    state = os.stat(path)
    return _content(path, state.st_ino, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=4096)
def _content(path: str, inode: int, size: int, mtime_ns: int) -> str:
    """Cached: an experiment hashes the same files before each of its runs."""
    total = hashlib.sha256()
    with open(path, "rb") as source:
        while chunk := source.read(CHUNK):
            total.update(chunk)
    return f"sha256:{total.hexdigest()}"


def _of_image(path: str) -> str | None:
    try:
        image = read(path, os.uname().machine)
    except ScenarioError:
        return None
    said = (image.key, image.env, image.command, image.folder, image.user)
    return f"image:{hashlib.sha256(repr(said).encode()).hexdigest()}"


def _of_folder(folder: Path) -> str:
    total = hashlib.sha256()
    for place, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted((*folders, *files)):
            path = os.path.join(place, name)
            state = os.lstat(path)
            kept = [os.path.relpath(path, folder), state.st_mode]
            if stat.S_ISLNK(state.st_mode):
                kept.append(os.readlink(path))
            elif not stat.S_ISDIR(state.st_mode):
                kept += [state.st_size, state.st_mtime_ns]
            total.update(repr(kept).encode("utf-8", "surrogateescape"))
    return f"folder:{total.hexdigest()}"


def _marked(model: BaseModel) -> Iterator[str]:
    for name, field in type(model).model_fields.items():
        marked = any(isinstance(one, Input) for one in field.metadata)
        yield from _within(getattr(model, name), marked or _says_input(field.annotation))


def _within(value: Any, marked: bool) -> Iterator[str]:
    if isinstance(value, BaseModel):
        yield from _marked(value)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _within(one, marked)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _within(one, marked)
    elif marked and isinstance(value, str) and value != BUILT:
        yield value


def _says_input(annotation: Any) -> bool:
    return isinstance(annotation, Input) or any(
        _says_input(part) for part in (*get_args(annotation), *getattr(annotation, "__metadata__", ()))
    )


def _of_programs(programs: Iterable[Program]) -> Iterator[str]:
    """Yields programs of the experimenter's own, and scripts given to an interpreter."""
    for program in programs:
        if isinstance(program.run, str) and needs_shell(program.run):
            continue
        try:
            words = words_of(program.run)
        except ValueError:  # reported by the gate
            continue
        for position, word in enumerate(words[:2]):
            if position == 0 and "/" not in word:
                continue  # found by the search path of the system
            path = os.path.normpath(os.path.join(program.folder or "/", word))
            if os.path.isfile(path):
                yield path
