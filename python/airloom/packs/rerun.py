"""Unpacks a pack and runs it again, for a comparison with the results in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from airloom.errors import ScenarioError
from airloom.experiments import record, registry
from airloom.experiments.extent import Extent
from airloom.packs.archive import Pack, fault_of
from airloom.packs.contents import EXPERIMENT, INPUTS, RESULTS, is_of_system
from airloom.packs.manifest import Experiment, Manifest
from airloom.planning import inputs
from airloom.results import stored
from airloom.results.folder import disk
from airloom.results.writer import write_atomically
from airloom.runs import batch
from airloom.runs.progress import Watcher
from airloom.scenario.model import Scenario
from airloom.scenario.source import Source

SCENARIO = "scenario.yaml"


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A folder with the content of a pack."""

    folder: Path
    manifest: Manifest

    @property
    def results(self) -> Path:
        """The results in the pack."""
        return self.folder / RESULTS

    @property
    def command(self) -> str:
        """Returns the command that runs it again; empty for an experiment, which the pack itself runs."""
        return "" if self.manifest.experiment is not None else f"airloom run {self.scenario}"

    @property
    def scenario(self) -> Path:
        """The scenario with its inputs at their new places."""
        return Path(_base(self.folder, self.manifest, _raw(self.results / SCENARIO))) / SCENARIO


def unpack(path: Path, folder: Path) -> Unpacked:
    """Verifies an archive and unpacks it into a new folder, with a scenario that runs from there.

    Raises :class:`ScenarioError` before anything is written, for every fault of the archive.
    """
    with Pack(path) as pack:
        manifest = pack.manifest
        for name, one in manifest.inputs.items():
            if one.included and name.startswith("/") and (fault := fault_of(f"{INPUTS}{name}")):
                raise ScenarioError("pack.name", f"the input {name!r} {fault}", where=str(path))
        raw = None
        if manifest.experiment is None:
            raw = _checked(path, pack.read(f"{RESULTS}/{SCENARIO}"))
        elif _code(manifest.experiment) not in manifest.members:
            raise ScenarioError("pack.members", f"it has no {_code(manifest.experiment)}", where=str(path))
        pack.unpack(folder)
    unpacked = Unpacked(folder.absolute(), manifest)
    if raw is not None:
        scenario = inputs.moved(raw, lambda one: _place(unpacked.folder, manifest, one))
        with disk(folder):
            unpacked.scenario.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(unpacked.scenario, scenario.to_yaml())
    return unpacked


def rerun(unpacked: Unpacked, out: Path, *, watcher: Watcher, progress: Callable[[str], None]) -> None:
    """Runs an unpacked pack again, with results in ``out``."""
    made = unpacked.manifest.experiment
    if made is None:
        batch.run(unpacked.scenario, out=out, watcher=watcher)
        return
    experiment = registry.Experiment(made.name, unpacked.folder / _code(made))
    run = experiment.load()
    extent = Extent[made.extent.upper()]
    run(out, extent=extent, progress=progress, **experiment.choices(run, made.kinds))
    record.write(out, made.name, extent, made.kinds)


def _code(experiment: Experiment) -> str:
    """Its folder has its name, as in ``experiments/``: figures are named after it."""
    return f"{EXPERIMENT}/{experiment.name}/experiment.py"


def require_inputs(path: Path, manifest: Manifest) -> None:
    """Raises :class:`ScenarioError` for an input that the pack names and this machine has not, or other.

    Programs of the system may be other: their versions are compared with the results. So may folders,
    whose digests contain times.
    """
    if manifest.experiment is not None:
        return
    for name, one in manifest.inputs.items():
        if one.included or not name.startswith("/"):
            continue
        here = inputs.digest(name)
        fault = None
        if here == inputs.MISSING:
            fault = "this machine has no such file"
        elif here != one.digest and not is_of_system(name) and not one.digest.startswith("folder:"):
            fault = f"this machine's has another digest, {here}"
        if fault is not None:
            raise ScenarioError(
                "pack.missing",
                f"the pack does not include {name} ({one.digest}), and {fault}",
                where=str(path),
                cure="copy it to that place, or ask for a pack made with --images or --with",
            )


def _checked(path: Path, text: bytes) -> Scenario:
    source = Source.of_text(text, f"{path}: {RESULTS}/{SCENARIO}")
    if not isinstance(source.data, dict):
        raise ScenarioError("pack.members", f"{RESULTS}/{SCENARIO} is no scenario", where=str(path))
    try:
        return Scenario.model_validate(source.data)
    except ValueError as error:
        raise ScenarioError(
            "pack.members", f"{RESULTS}/{SCENARIO} is no scenario: {error}", where=str(path)
        ) from None


def _raw(path: Path) -> Scenario:
    return _checked(path, stored.text(path).encode())


def _place(folder: Path, manifest: Manifest, path: str) -> str:
    """Returns where an input is now; the folder of an input moves with it."""
    source = manifest.inputs.get(path)
    inside = path.rstrip("/") + "/"
    if (source is not None and source.included) or (
        inside != "/"
        and any(one.included and name.startswith(inside) for name, one in manifest.inputs.items())
    ):
        return f"{folder}/{INPUTS}{path}"
    return path


def _base(folder: Path, manifest: Manifest, scenario: Scenario) -> str:
    """Returns the folder from which the relative paths among the swept values start."""
    values = [value for one in scenario.swept.values() for value in one.values if isinstance(value, str)]
    for value in values:
        ending = f"/{value.removeprefix('./')}"
        for name, one in manifest.inputs.items():
            if one.included and name.endswith(ending):
                return f"{folder}/{INPUTS}{name.removesuffix(ending)}"
    return str(folder)
