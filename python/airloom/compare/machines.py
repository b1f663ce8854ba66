"""Where results were made: machine and versions of all their runs, and how two of them differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airloom.results import RunReader
from airloom.units.figures import readable

Facts = dict[str, list[str]]
"""Values by property; several if the runs differ."""

MEMORY = "memory_octets"


def runs_of(reader: RunReader) -> list[RunReader]:
    """Returns the single runs of results: of a sweep, of an experiment, or the run itself."""
    if reader.is_sweep:
        return reader.points
    below = sorted((reader.folder / "points").glob("*/result.json"))
    return [RunReader(path.parent) for path in below] or [reader]


def origin(reader: RunReader) -> tuple[Facts, Facts]:
    """Returns properties of the machine, its name left out, and versions of the software."""
    machine: dict[str, set[str]] = {}
    versions: dict[str, set[str]] = {}
    for run in runs_of(reader):
        for name, value in run.details.machine.items():
            machine.setdefault(name, set()).add(readable(float(value), "B") if name == MEMORY else str(value))
        for name, version in run.details.versions.items():
            versions.setdefault(name, set()).add(version)
    machine.pop("name", None)
    return _listed(machine), _listed(versions)


def differences(first: RunReader, second: RunReader) -> dict[str, tuple[str, str]]:
    """Returns properties and versions that differ between two results: both values, ``-`` for none."""
    found = {}
    for one, other in zip(origin(first), origin(second), strict=True):
        for name, here, there in _pairs(one, other):
            if here != there:
                found[name.removesuffix("_octets")] = (here, there)
    return found


def _pairs(one: Mapping[str, list[str]], other: Mapping[str, list[str]]) -> Iterator[tuple[str, str, str]]:
    for name in dict.fromkeys([*one, *other]):
        yield name, _joined(one, name), _joined(other, name)


def _joined(facts: Mapping[str, list[str]], name: str) -> str:
    return " / ".join(facts[name]) if name in facts else "-"


def _listed(found: Mapping[str, set[str]]) -> Facts:
    return {name: sorted(values) for name, values in found.items()}
