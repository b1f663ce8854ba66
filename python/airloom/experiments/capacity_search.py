"""Common code of capacity experiments: the largest network that one machine emulates faithfully.

Such an experiment runs one scenario in several sizes, compares each run with an ideal, and searches
the largest size within tolerance. Every run is stored in a folder below ``points/``, so a stopped
experiment resumes after its last finished run::

    reader = capacity_search.point(folder, "netns-010", scenario)
    largest = capacity_search.search((2, 4, 8, 16), lambda n: within(n), halve=True)
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from airloom.errors import RunError
from airloom.planning import inputs
from airloom.planning.capture import Capture
from airloom.planning.machine import default_image
from airloom.planning.machine.virtual_time import in_guests
from airloom.report.figures import Line, Role
from airloom.results import Ledger, RunReader, Verdict, sweep
from airloom.runs import batch
from airloom.scenario.model import Scenario

if TYPE_CHECKING:
    import pandas as pd

POINTS = "points"
"""Folder of the individual runs."""
SETTLING = 1_000_000_000
"""Time in ns until TCP reaches its steady rate."""


def search(ladder: Sequence[int], good: Callable[[int], bool], *, halve: bool, least: int = 1) -> int:
    """Returns the largest good size: up the ladder, then by bisection if ``halve``.

    ``least`` counts as good without a trial.
    """
    last_good, first_bad = least, None
    for size in ladder:
        if good(size):
            last_good = size
        else:
            first_bad = size
            break
    while halve and first_bad is not None and first_bad - last_good > 1:
        middle = (last_good + first_bad) // 2
        if good(middle):
            last_good = middle
        else:
            first_bad = middle
    return last_good


def kept(folder: Path, name: str, scenario: Scenario) -> RunReader | None:
    """Returns the finished run of that name, if its scenario and files are the same; else None.

    A quick run does not count for a full sweep, which uses the same names. A run with containers
    does not count after a change of this machine's programs, since the containers contain them.
    """
    place = folder / POINTS / name
    if not (place / "result.json").exists():
        return None
    reader = RunReader(place)
    scenario = default_image.provided(scenario)
    # As the check makes it of this scenario, and the run stores it.
    if not reader.complete or reader.scenario_text != in_guests(scenario).to_yaml():
        return None
    return reader if (reader.details.inputs or {}) == inputs.digests([scenario]) else None


def point(
    folder: Path, name: str, scenario: Scenario, *, capture: bool | Capture = False, tries: int = 1
) -> RunReader:
    """Returns the run of that name: the stored one (:func:`kept`) or a new one (:func:`made`)."""
    done = kept(folder, name, scenario)
    if done is not None:
        return done
    return made(folder, name, scenario, capture=capture, tries=tries)


def made(
    folder: Path, name: str, scenario: Scenario, *, capture: bool | Capture = False, tries: int = 1
) -> RunReader:
    """Makes the run of that name, optionally with a capture, and replaces a stored one.

    A run that the machine made ``invalid`` is made again, until ``tries`` were made. Containers without
    an image contain this machine's programs.
    """
    scenario = default_image.provided(scenario)
    place = folder / POINTS / name
    if place.exists():
        shutil.rmtree(place)
    return batch.run(scenario, out=place, capture=capture, tries=batch.Tries(tries, accept="degraded"))


def readers(folder: Path, names: Collection[str] | None = None) -> list[RunReader]:
    """Returns the runs of these names below ``folder``; all runs without names."""
    found = (path.parent for path in sorted((folder / POINTS).glob("*/result.json")))
    return [RunReader(path) for path in found if names is None or path.name in names]


def whole(
    folder: Path, names: Collection[str] | None = None, *, flooded: Collection[str] = ()
) -> tuple[Verdict, Ledger]:
    """Returns the worst verdict and the sum of the ledgers of :func:`readers`.

    A run of ``flooded`` offers a node more than it can handle, on purpose: that frames are lost is what
    it measures, so that it counts as ``degraded`` at worst.
    """
    found = readers(folder, names)
    verdict = sweep.worst([(one.name, _counted(one.result.verdict, one.name in flooded)) for one in found])
    return verdict, sweep.total([one.result.ledger for one in found])


def _counted(verdict: Verdict, flooded: bool) -> Verdict:
    if flooded and verdict.status == "invalid":
        return verdict.model_copy(update={"status": "degraded"})
    return verdict


def believable(readers: Iterable[RunReader | None]) -> bool:
    """True if no run has the verdict ``invalid``."""
    return all(one.result.verdict.status != "invalid" for one in readers if one is not None)


def value(reader: RunReader, name: str, metric: str) -> float:
    """Returns a figure of a run, in its own unit."""
    found = [one.mean for one in reader.result.measurements if (one.name, one.metric) == (name, metric)]
    if not found or found[0] is None:
        raise RunError("experiment.unmeasured", f"{name}.{metric} is missing", where=str(reader.folder))
    return found[0]


def steady(reader: RunReader, name: str) -> float:
    """Returns the throughput of a flow in bit/s, as of :func:`settled`."""
    rate = settled(reader.samples(name))
    if rate is None:
        raise RunError("experiment.unmeasured", f"{name} lasted too short", where=str(reader.folder))
    return rate


def settled(samples: pd.DataFrame) -> float | None:
    """Returns the throughput in bit/s without the first second, TCP's start-up phase; None if it is shorter.

    Intervals count by their lengths. iperf3's last interval is shorter than the others: if it is 25 ms, a
    super-frame that comes just before or after it changes its rate by a third.
    """
    rates = samples[samples.metric == "throughput"].sort_values("t_ns")
    kept = rates.t_ns >= rates.t_ns.min() + SETTLING
    lengths = rates.t_ns.diff()[kept]
    return float((rates.value[kept] * lengths).sum() / lengths.sum()) if kept.any() else None


def flow(source: str, to: str, seconds: int) -> dict[str, str]:
    """Returns the settings of one TCP flow by iperf3 with cubic."""
    return {"from": source, "to": to, "duration": f"{seconds} s", "congestion": "cubic"}


def line(label: str, role: Role, x: Sequence[int], y: Sequence[float | None], scale: float) -> Line:
    """Returns a line of a figure, its values divided by ``scale``."""
    values = tuple(None if one is None else one / scale for one in y)
    return Line(label=label, role=role, x=tuple(float(one) for one in x), y=values)
