"""ORBIT: how one and two guests that send as fast as they can share one processor.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from airloom.errors import RunError
from airloom.experiments import orbit
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found
from airloom.experiments.orbit import Grid, Platform
from airloom.report.figures import Figure
from airloom.results import Result, RunReader

TOLERANCE = 0.05
"""Of claims about shares; the interval of a point is as narrow."""
MACHINE = (("memory", "resident memory", "MB", 1e6), ("switches", "context switches", "1/s", 1.0))
"""Figures of a guest's machine: name, words, unit, scale."""
SETTLING = 1.0
"""Seconds after a flow has begun that no figure includes."""
BEYOND = 250
"""Mbit/s of 64 octets: more than a sender can make, so that it never rests."""


def run(
    folder: Path, *, extent: Extent, progress: Callable[[str], None], kinds: Sequence[str] = ("netns",)
) -> Result:
    """Measures the shares of processor of the sending slivers, with one slice and with two."""
    orbit.check_kinds(kinds)
    seconds = extent.choose(full=20, quick=5, smoke=2)
    if extent is not Extent.SMOKE and orbit.has_theirs():
        kinds = tuple(dict.fromkeys((*kinds, orbit.THEIRS.kind)))
    with Campaign.of(__file__, folder, progress=progress, kinds=kinds) as campaign:
        cases = [
            _case(Platform(kind, guests, one_processor=True), seconds) for kind in kinds for guests in (1, 2)
        ]
        read = partial(_figures, settling=extent.choose(full=SETTLING, quick=SETTLING, smoke=0.0))
        found = campaign.measure(cases, read, extent.repetitions("first", within=TOLERANCE))
        campaign.judge(lambda: _claims(campaign, found, kinds))
        for name, y_label, unit, scale in MACHINE:
            campaign.draw(_of_machines(found, kinds, name, y_label, unit, scale))
        campaign.draw(
            Figure(
                name="shares",
                title="Shares of one processor that sending slivers take",
                x_label="slivers that send",
                y_label="share of a processor",
                unit="%",
                lines=tuple(
                    found.line(f"{kind}, {which}", "measured", which, "guests", (1, 2), 0.01, kind=kind)
                    for kind in kinds
                    for which in ("first", "second")
                ),
            )
        )
        return campaign.finish()


def _claims(campaign: Campaign, found: Found, kinds: Sequence[str]) -> None:
    for kind in kinds:
        one = {"kind": kind, "guests": 1}
        two = {"kind": kind, "guests": 2}
        campaign.claim(
            f"one-{kind}",
            f"One busy sliver of {kind} takes all of the processor that it may have.",
            "share >= 95 %",
            says="one",
            floods=True,
            shape="ready >= 95 %",
            share=found.sample("first", **one),
            ready=found.sample("ready-first", **one),
        )
        campaign.claim(
            f"equal-{kind}",
            f"Two busy slivers of {kind} split one processor equally.",
            "abs(first / (first + second) - 50 %) <= 5 %",
            says="two-first",
            floods=True,
            shape="abs(first / (first + second) - 50 %) <= 10 %",
            first=found.sample("first", **two),
            second=found.sample("second", **two),
        )
        campaign.claim(
            f"sum-{kind}", f"Together two slivers of {kind} take one processor.",
            "first + second >= 95 % and first + second <= 110 %", says="sum", floods=True,
            shape="first + second >= 80 % and first + second <= 125 %",
            first=found.sample("first", **two), second=found.sample("second", **two),
        )  # fmt: skip


def _of_machines(
    found: Found, kinds: Sequence[str], name: str, y_label: str, unit: str, scale: float
) -> Figure:
    """What the machine of each sending guest takes, over the number of guests."""
    return Figure(
        name=name,
        title=f"The machine of a sending guest: {y_label}",
        x_label="slivers that send",
        y_label=y_label,
        unit=unit,
        lines=tuple(
            found.line(f"{kind}, {which}", "measured", f"{name}-{which}", "guests", (1, 2), scale, kind=kind)
            for kind in kinds
            for which in ("first", "second")
        ),
    )


def _case(platform: Platform, seconds: int) -> Case:
    grid = Grid(platform)
    flows = [grid.flow(slice, BEYOND, seconds, payload=64) for slice in platform.flows]
    words = f"{platform.kind}-{platform.slices}"
    scenario = grid.scenario(f"orbit-cpu-{words}", flows)
    labels = {"kind": platform.kind, "guests": platform.slices}
    return Case(words, labels, scenario, orbit.WARM_UP + seconds)


def _figures(case: Case, reader: RunReader, *, settling: float) -> Figures:
    found = {}
    uses = {one.node: one for one in reader.details.nodes}
    for name, slice in zip(("first", "second"), orbit.flows_of(reader), strict=False):
        begin = orbit.WARM_UP + settling
        used = _mean(reader, "cpu", f"n1-{slice}", begin, case.seconds)
        found[name] = (used, "1")
        # Ran or waited to run: what it would have taken of a machine with nothing else to do.
        found[f"ready-{name}"] = (used + _mean(reader, "wait", f"n1-{slice}", begin, case.seconds), "1")
        use = uses.get(f"n1-{slice}")
        if use is not None and use.resident_octets is not None and use.switches is not None:
            found[f"memory-{name}"] = (float(use.resident_octets), "B")
            found[f"switches-{name}"] = (use.switches / (reader.details.length_ns / 1e9), "1/s")
    return found


def _mean(reader: RunReader, metric: str, node: str, begin: float, end: float) -> float:
    """Mean share of a processor in the intervals that end between two times, in seconds."""
    rows = reader.samples("node", metric, node)
    shares = rows[(rows.t_ns > begin * 1e9) & (rows.t_ns <= end * 1e9)].value
    if shares.empty:
        raise RunError("experiment.unmeasured", "no processor time was counted", where=str(reader.folder))
    return float(shares.mean())
