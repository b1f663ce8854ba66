"""What belongs into a pack: the results, and the files that their runs used."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from airloom.compare.machines import origin, runs_of
from airloom.errors import ScenarioError
from airloom.experiments import record, registry
from airloom.images import Image, read
from airloom.packs import archive
from airloom.packs.manifest import Class, Experiment, Manifest, Origin, Source
from airloom.planning import inputs
from airloom.results import RunReader
from airloom.results.folder import Lock
from airloom.results.writer import RESERVE

RESULTS, INPUTS, EXPERIMENT = "results", "inputs", "experiment"
"""Folders of the archive."""
_OF_THE_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib32/", "/lib64/", "/opt/", "/snap/", "/nix/")
"""Programs there belong to the machine: their digests are stated, and the other machine has its own."""
_UNWANTED = {"__pycache__", ".git", ".mypy_cache", ".pytest_cache", ".ruff_cache"}


@dataclass(frozen=True, slots=True)
class Packed:
    """A finished pack."""

    path: Path
    manifest: Manifest
    left_out: tuple[str, ...]
    """Inputs that another machine must have itself."""


def pack(results: Path, path: Path, *, images: bool = False, more: Sequence[Path] = ()) -> Packed:
    """Packs finished results of a run, a sweep or an experiment into an archive.

    ``images`` includes images of containers, which are otherwise named with their digests. ``more``
    are files and folders that no key of the scenario names, such as modules that a program imports.
    Raises :class:`ScenarioError` for results that are incomplete or being written, for inputs that have
    changed since the run, and for files that a pack cannot hold; then nothing is written.
    """
    reader = RunReader(results)
    if not reader.complete:
        raise ScenarioError(
            "pack.incomplete", "these results are incomplete", where=str(results), cure="run it to its end"
        )
    _refuse_inside(results, path)
    lock = Lock(results)
    try:
        made = record.read(results)
        files = {f"{RESULTS}/{name}": place for name, place in _files(results)}
        sources, extra = _inputs(reader, images)
        for name, place in _more(more):
            sources[name] = Source(digest=inputs.digest(name), included=True)
            extra[f"{INPUTS}{name}"] = place
        experiment = None
        if made is not None:
            experiment = _experiment(made, results)
            source = registry.find(made.experiment).path.parent
            inside = f"{EXPERIMENT}/{made.experiment}"
            extra |= {f"{inside}/{name}": place for name, place in _files(source)}
        files |= extra
        for name, place in files.items():
            fault = archive.fault_of(name)
            if fault:
                raise ScenarioError(
                    "pack.name", f"the name {fault}", where=repr(str(place)), cure="rename it and run again"
                )
        machine, versions = origin(reader)
        manifest = Manifest(
            of=_class(reader, experiment),
            scenario=reader.result.scenario,
            experiment=experiment,
            origin=Origin(machine=machine, versions=versions),
            inputs=sources,
        )
        manifest = archive.write(path, manifest, files)
    finally:
        lock.release()
    left = tuple(name for name, one in sources.items() if not one.included and not is_of_system(name))
    return Packed(path, manifest, left if experiment is None else ())


def _class(reader: RunReader, experiment: Experiment | None) -> Class:
    if experiment is not None:
        return "experiment"
    return "sweep" if reader.is_sweep else "run"


def _experiment(made: record.Record, results: Path) -> Experiment:
    try:
        return Experiment.model_validate(
            {"name": made.experiment, "extent": made.extent, "kinds": made.kinds}
        )
    except ValidationError as error:
        said = f"this record of an experiment is wrong: {error.errors()[0]['msg']}"
        raise ScenarioError("pack.experiment", said, where=str(results / record.FILE)) from None


def _refuse_inside(results: Path, path: Path) -> None:
    parent = path.absolute().parent
    if not parent.is_dir():
        raise ScenarioError("pack.place", "there is no such folder", where=str(parent), cure="make it first")
    if results.resolve() in (parent.resolve(), *parent.resolve().parents):
        raise ScenarioError(
            "pack.place", "the pack would lie in the folder that it packs", where=str(path),
            cure="name a place outside with -o",
        )  # fmt: skip


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yields relative name and path of every regular file; refuses what an archive cannot hold."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _UNWANTED)
        for name in sorted((*names, *(one for one in folders if (Path(place) / one).is_symlink()))):
            path = Path(place) / name
            if name == RESERVE:
                continue
            if not stat.S_ISREG(path.lstat().st_mode):
                raise ScenarioError(
                    "pack.kind", "a pack holds regular files only", where=str(path),
                    cure="replace it by a copy, or remove it",
                )  # fmt: skip
            yield path.relative_to(folder).as_posix(), path


def _more(paths: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Yields absolute name and path of each regular file."""
    for given in paths:
        path = given.resolve()
        if path.is_dir():
            yield from ((str(place), place) for _, place in _files(path))
        elif path.is_file():
            yield str(path), path
        else:
            raise ScenarioError("file.missing", "there is no such file or folder", where=str(given))


def _inputs(reader: RunReader, images: bool) -> tuple[dict[str, Source], dict[str, Path]]:
    """Returns all inputs with the digests that the runs noted, and the files of the included ones."""
    noted: dict[str, str] = {}
    for run in runs_of(reader):
        noted |= run.details.inputs or {}
    if reader.is_sweep:
        noted |= reader.index.inputs or {}
    sources: dict[str, Source] = {}
    files: dict[str, Path] = {}
    for path, digest in sorted(noted.items()):
        found = _of_input(path, digest, images)
        if found:
            now = inputs.digest(path)
            if now != digest:
                gone = "is missing" if now == inputs.MISSING else "has changed since the run"
                raise ScenarioError("pack.changed", f"this input {gone}", where=path, cure="run it again")
        sources[path] = Source(digest=digest, included=bool(found))
        files |= found
    return sources, files


def _of_input(path: str, digest: str, images: bool) -> Mapping[str, Path]:
    """Returns the files of an input by their names in the archive; empty if it is not included."""
    if is_of_system(path) or not path.startswith("/"):
        return {}
    base = f"{INPUTS}{path}"
    if digest.startswith("sha256:"):
        return {base: Path(path)} if images or not _is_image(path) else {}
    if digest.startswith("tree:"):
        return {f"{base}/{name}": place for name, place in inputs.tree(path) or ()}
    if digest.startswith("image:") and images:
        image = _image(path)
        if image is not None and image.path.is_dir():
            return {f"{INPUTS}{image.path}/{name}": place for name, place in _files(image.path)}
        return {f"{INPUTS}{image.path}": image.path} if image is not None else {}
    return {}


def is_of_system(path: str) -> bool:
    """True for programs and files that belong to the machine, not to the experimenter."""
    return path.startswith(_OF_THE_SYSTEM)


def _is_image(path: str) -> bool:
    return _image(path) is not None


def _image(path: str) -> Image | None:
    try:
        return read(path, os.uname().machine)
    except (ScenarioError, OSError):
        return None
