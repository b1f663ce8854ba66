"""Digests of the files that a scenario uses; they show whether two runs had the same inputs.

Inputs are the paths that the model marks as :class:`~airloom.scenario.model.base.Input`, and the
programs and scripts that command lines name by a path. The digest covers:

* a file: the SHA-256 of its content;
* an image of a container: the digests of its layers and its configuration;
* a folder of regular files, at most 10,000 with 256 MiB: their names and contents;
* another folder, such as a guest's root file system: the names, sizes, modes and times of its entries.

A mount that programs of the node may write to is no input: the run itself changes it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from airloom.errors import ScenarioError
from airloom.host import files
from airloom.images import read
from airloom.scenario.command_line import needs_shell, words_of
from airloom.scenario.model import Program, Scenario
from airloom.scenario.model.base import BUILT, Input
from airloom.scenario.model.nodes import Mount
from airloom.scenario.model.swept import Swept

CHUNK = 1 << 20
MISSING = "missing"
"""Digest of a file that does not exist or cannot be read."""
_MOST_FILES, _LARGEST = 10_000, 256 << 20
"""Files and octets of a folder whose contents are digested."""
_MOST_ENTRIES = 200_000
"""Entries of a folder of which the names are; what a larger one contains is not compared."""


def digests(scenarios: Iterable[Scenario]) -> dict[str, str]:
    """Returns the digest of every input of these scenarios, by path, sorted."""
    found: dict[str, str] = {}
    for scenario in scenarios:
        for path in (*_marked(scenario), *_of_programs(scenario.programs)):
            if path not in found:
                found[path] = digest(path)
    return dict(sorted(found.items()))


def moved(scenario: Scenario, where: Callable[[str], str]) -> Scenario:
    """Returns the scenario with every input at ``where(path)``, absolute paths among swept values too.

    Programs' folders are changed if ``where`` changes them. Of command lines, the program and the
    script of an interpreter are changed, as :func:`digests` finds them.
    """
    found: Scenario = _moved(scenario, where)
    programs = [_program_moved(program, where) for program in found.programs]
    sweep = {
        path: one.model_copy(update={"values": _within_moved(one.values, where, True)})
        if isinstance(one, Swept)
        else _within_moved(one, where, True)
        for path, one in found.sweep.items()
    }
    return found.model_copy(update={"programs": programs, "sweep": sweep})


def digest(path: str) -> str:
    """Returns the present digest of a file, folder or image."""
    try:
        if Path(path).is_file():
            return _of_file(path)
        image = _of_image(path)
        if image is not None:
            return image
        if Path(path).is_dir():
            return _of_tree(path) or _of_folder(path)
        kind = stat.S_IFMT(os.stat(path).st_mode)
        return f"special:{_KINDS.get(kind, 'file')}"
    except (OSError, ValueError):
        return MISSING


_KINDS = {stat.S_IFSOCK: "socket", stat.S_IFIFO: "pipe", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}


def tree(path: str) -> list[tuple[str, Path]] | None:
    """Returns name and path of every file of a folder; None if it has other entries, or too many."""
    found: list[tuple[str, Path]] = []
    octets = 0
    for name, place, state in _entries(path):
        if stat.S_ISREG(state.st_mode):
            found.append((name, Path(place)))
            octets += state.st_size
        elif not stat.S_ISDIR(state.st_mode):
            return None
        if len(found) > _MOST_FILES or octets > _LARGEST:
            return None
    return found


def _entries(folder: str) -> Iterator[tuple[str, str, os.stat_result]]:
    """Yields name, path and state of the entries of a folder, on its own file system, sorted."""
    device = os.stat(folder).st_dev
    for place, folders, names in os.walk(folder):
        states = {name: os.lstat(os.path.join(place, name)) for name in (*folders, *names)}
        folders[:] = sorted(name for name in folders if states[name].st_dev == device)
        for name in sorted(states):
            path = os.path.join(place, name)
            yield os.path.relpath(path, folder), path, states[name]


def _of_tree(path: str) -> str | None:
    listed = tree(path)
    if listed is None:
        return None
    total = hashlib.sha256()
    for name, place in listed:
        executable = bool(os.stat(place).st_mode & stat.S_IXUSR)
        total.update(repr((name, executable, _of_file(str(place)))).encode("utf-8", "surrogateescape"))
    return f"tree:{total.hexdigest()}"


def _of_file(path: str) -> str:
    state = os.stat(path)
    return _content(path, state.st_ino, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=4096)
def _content(path: str, inode: int, size: int, mtime_ns: int) -> str:
    """Cached: an experiment hashes the same files before each of its runs."""
    total = hashlib.sha256()
    with files.reader(path) as source:
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


def _of_folder(folder: str) -> str:
    total = hashlib.sha256()
    for number, (name, path, state) in enumerate(_entries(folder)):
        if number == _MOST_ENTRIES:
            return "folder:large"
        kept: list[str | int] = [name, state.st_mode]
        if stat.S_ISLNK(state.st_mode):
            kept.append(os.readlink(path))
        elif not stat.S_ISDIR(state.st_mode):
            kept += [state.st_size, state.st_mtime_ns]
        total.update(repr(kept).encode("utf-8", "surrogateescape"))
    return f"folder:{total.hexdigest()}"


def _marked(model: BaseModel) -> Iterator[str]:
    if isinstance(model, Mount) and model.mode == "rw":
        return
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


def _moved(model: Any, where: Callable[[str], str]) -> Any:
    changed = {}
    for name, field in type(model).model_fields.items():
        marked = any(isinstance(one, Input) for one in field.metadata)
        value = getattr(model, name)
        new = _within_moved(value, where, marked or _says_input(field.annotation))
        if new is not value:
            changed[name] = new
    return model.model_copy(update=changed) if changed else model


def _within_moved(value: Any, where: Callable[[str], str], marked: bool) -> Any:
    """Returns the value itself if nothing in it is an input: defaults stay defaults."""
    if isinstance(value, BaseModel):
        return _moved(value, where)
    if isinstance(value, list | tuple):
        listed = [_within_moved(one, where, marked) for one in value]
        same = all(new is old for new, old in zip(listed, value, strict=True))
        return value if same else type(value)(listed)
    if isinstance(value, dict):
        mapped = {name: _within_moved(one, where, marked) for name, one in value.items()}
        return value if all(mapped[name] is one for name, one in value.items()) else mapped
    if marked and isinstance(value, str) and value != BUILT:
        new = where(value)
        return value if new == value else new
    return value


def _program_moved(program: Program, where: Callable[[str], str]) -> Program:
    changed: dict[str, Any] = {}
    words = _words(program)
    begin = [where(os.path.normpath(word)) if word.startswith("/") else word for word in words[:2]]
    if any(where(os.path.normpath(word)) != os.path.normpath(word) for word in words[:2]):
        changed["run"] = [*begin, *words[2:]]
    if program.folder is not None and where(program.folder) != program.folder:
        changed["folder"] = where(program.folder)
    return program.model_copy(update=changed) if changed else program


def _says_input(annotation: Any) -> bool:
    return isinstance(annotation, Input) or any(
        _says_input(part) for part in (*get_args(annotation), *getattr(annotation, "__metadata__", ()))
    )


def _of_programs(programs: Iterable[Program]) -> Iterator[str]:
    """Yields programs of the experimenter's own, and scripts given to an interpreter."""
    for program in programs:
        for position, word in enumerate(_words(program)[:2]):
            if position == 0 and "/" not in word:
                continue  # found by the search path of the system
            path = os.path.normpath(os.path.join(program.folder or "/", word))
            if os.path.isfile(path):
                yield path


def _words(program: Program) -> list[str]:
    """Returns the words of a command line; none if a shell reads it."""
    if isinstance(program.run, str) and needs_shell(program.run):
        return []
    try:
        return words_of(program.run)
    except ValueError:  # reported by the gate
        return []
