"""ORBIT: what a second experiment that starts and stops does to the first: coupling coefficient and dip.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from airloom.experiments import orbit
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found, Sample
from airloom.experiments.orbit import Grid, Platform
from airloom.report.figures import Figure, Line
from airloom.results import RunReader
from airloom.results.result import Result

OTHERS = (10, 25)
"""Mbit/s of the second experiment: the reading of text and plots."""
BURSTS = (5, 10, 20, 30)
"""Mbit/s of the second experiment beside the first at 20: the plot over time."""
FIRSTS, SWEPT = (10, 25), (5, 10, 15, 20, 25, 30, 35, 40)
"""Mbit/s of the first and of the second experiment: the reading of the tables (D-6)."""
ADJACENT = {"one": "5.18 GHz", "two": "5.2 GHz"}
LEAKING = {"leakage": {}, "antenna_isolation": "40 dB"}
"""Receivers that just conform to the standard, and 40 dB between the antennas of a node."""
RADIOS: dict[str, dict[str, Any]] = {
    "adjacent": {"channels": ADJACENT},
    "leakage": {"medium": LEAKING},
    "adjacent-leakage": {"channels": ADJACENT, "medium": LEAKING},
}
"""What may couple slices by radio; the other runs have the papers' channels and no leakage."""
ON = 2
"""Seconds that the second experiment is on, and then off."""
BEGIN = orbit.WARM_UP + 1 + ON
"""Seconds from the start of a run to the second experiment."""
WINDOW = 100_000_000
"""ns over which the first experiment's throughput is looked at for a dip."""
DIPPED = 200_000_000
"""ns after a start of the second experiment in which a dip is its doing."""
DIP_LOAD = 20
CARRIED = 20
"""Mbit/s that the radio carries: above it the first experiment sends more than 23.08."""
TURN = 100
TOLERANCE = 0.002
"""Of claims about C, a share of the throughput; the interval of a point is as narrow."""


def run(
    folder: Path, *, extent: Extent, progress: Callable[[str], None], kinds: Sequence[str] = ("netns",)
) -> Result:
    """Sweeps the first experiment's load, with the second one on and off in turns."""
    loads = extent.choose(
        full=(5, 10, 15, DIP_LOAD, 25, 30, 35, 40), quick=(5, DIP_LOAD, 40), smoke=(DIP_LOAD,)
    )
    periods = extent.choose(full=3, quick=2, smoke=1)
    platforms = orbit.platforms(kinds, turns=(TURN,), theirs=extent)[1:]
    with orbit.campaign(__file__, folder, progress=progress, kinds=orbit.kinds_of(platforms)) as campaign:
        others = extent.choose(full=OTHERS, quick=OTHERS[:1], smoke=OTHERS[:1])
        cases = [
            _case(platform, load, other, periods)
            for load in loads
            for platform in platforms
            for other in others
        ]
        # The last platform is the papers' own where this machine has it.
        bursts = extent.choose(full=BURSTS, quick=(), smoke=())
        swept = extent.choose(full=SWEPT, quick=(), smoke=())
        more = [_case(platforms[-1], DIP_LOAD, other, periods) for other in bursts]
        more += [_case(platforms[-1], load, other, periods) for load in FIRSTS for other in swept]
        radios = extent.choose(full=tuple(RADIOS), quick=(), smoke=())
        more += [_case(platforms[0], DIP_LOAD, OTHERS[-1], periods, radio) for radio in radios]
        cases = list({case.name: case for case in (*cases, *more)}.values())
        found = campaign.measure(cases, _figures, extent.repetitions("together", within=TOLERANCE))

        def claims() -> None:
            for platform in platforms:
                _claims(campaign, found, platform, loads, others)
            _more_claims(campaign, found, platforms[-1], bursts, swept)
            if radios:
                _radio_claims(campaign, found, platforms[0])

        campaign.judge(claims)
        campaign.draw(_coupling(found, platforms, loads, others))
        if swept:
            campaign.draw(_coupling_by_table(found, platforms[-1], swept))
        for case in cases:
            at = case.labels
            if at["load"] == DIP_LOAD and at["other"] == others[0] and "radio" not in at:
                campaign.draw(_over_time(campaign, case))
        return campaign.finish()


def _case(platform: Platform, load: int, other: int, periods: int, radio: str = "") -> Case:
    # Off first, so that every start is seen; the first second of the first experiment counts nowhere.
    seconds = 2 * ON * periods
    # A guest that sends nothing leaves the processor to the other.
    grid = Grid(platform, together=_bursts(periods), **RADIOS.get(radio, {}))
    first = grid.flow("one", load, seconds + 1)
    second = grid.flow("two", other, seconds - ON, pattern="on-off", on=f"{ON} s", off=f"{ON} s")
    second["traffic"]["at"] = f"{BEGIN} s"
    more = {"radio": radio} if radio else {}
    return orbit.case(grid, "orbit-coupling", [first, second], seconds + 1, load=load, other=other, **more)


def _bursts(periods: int) -> list[tuple[int, int]]:
    """From when to when the second experiment is on, in s."""
    return [(BEGIN + 2 * ON * number, BEGIN + 2 * ON * number + ON) for number in range(periods)]


def _starts(reader: RunReader) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """When the second experiment began to send, and when it paused: by what it really sent, ns.

    Guests take turns by the plan, also if the second one's program needs a moment to begin.
    """
    rows = reader.samples("two", "pacing_error")
    sent = np.sort(rows.t_ns.to_numpy(dtype=np.int64))
    edges = np.flatnonzero(np.diff(sent) > ON * 1_000_000_000 // 2)
    if reader.scenario.get("turns"):
        begins, ends = np.array(_bursts(edges.size + 1), np.int64).T * 1_000_000_000
        return begins, ends
    return np.concatenate([sent[:1], sent[edges + 1]]), np.concatenate([sent[edges], sent[-1:]])


def _figures(_: Case, reader: RunReader) -> Figures:
    times = orbit.arrivals(reader, "one")
    starts, ends = _starts(reader)
    bits = orbit.PAYLOAD * 8e9

    def rate(spans: list[tuple[int, int]]) -> float:
        packets = sum(
            int(np.searchsorted(times, end) - np.searchsorted(times, begin)) for begin, end in spans
        )
        return packets * bits / sum(end - begin for begin, end in spans)

    on = [(int(begin), int(end)) for begin, end in zip(starts, ends, strict=True)]
    off = list(zip([int(times[0]), *(end for _, end in on[:-1])], [begin for begin, _ in on], strict=True))
    alone, together = rate(off), rate(on)
    dips = [_least(times, begin) / alone for begin, _ in on]
    calm = [_least(times, begin + ON * 500_000_000) / alone for begin, _ in off]
    return {
        "alone": (alone, "bit/s"),
        "together": (together, "bit/s"),
        "coupling": ((alone - together) / alone, "1"),
        "dip": (float(np.mean(dips)), "1"),
        "calm": (float(np.mean(calm)), "1"),
        "variance-alone": (_variance(times, off), "1"),
        "variance-together": (_variance(times, on), "1"),
    }


def _least(times: npt.NDArray[np.int64], begin: int) -> float:
    """The least throughput of a window of 100 ms that begins soon after a moment: bit/s."""
    rates = []
    for start in range(begin, begin + DIPPED + 1, WINDOW // 10):
        packets = np.searchsorted(times, start + WINDOW) - np.searchsorted(times, start)
        rates.append(int(packets) * orbit.PAYLOAD * 8e9 / WINDOW)
    return min(rates)


def _variance(times: npt.NDArray[np.int64], spans: list[tuple[int, int]]) -> float:
    """Variance of the throughput in windows of 100 ms inside the spans: (Mbit/s)^2."""
    rates = [
        orbit.windows(times[(times >= begin) & (times < end)], orbit.PAYLOAD, WINDOW) / 1e6
        for begin, end in spans
    ]
    return float(np.var(np.concatenate(rates), ddof=1))


def _claims(
    campaign: Campaign, found: Found, platform: Platform, loads: Sequence[int], others: Sequence[int]
) -> None:
    who, label = platform.name, platform.label

    def of(name: str, load: int, other: int = others[0]) -> Sample | None:
        return found.sample(name, platform=who, load=load, other=other)

    campaign.claim(
        f"dip-{who}",
        f"{label}: a start of the second takes the first ({DIP_LOAD} Mbit/s) to zero for a moment (100 ms).",
        "dip <= 10 %",
        says="dip",
        shape="dip <= 0.75 * calm",
        dip=of("dip", DIP_LOAD),
        calm=of("calm", DIP_LOAD),
    )
    campaign.claim(
        f"variance-{who}",
        f"{label}: the first varies more while both run.",
        "together >= 2 * alone",
        says="dip",
        shape="together > alone",
        together=of("variance-together", DIP_LOAD),
        alone=of("variance-alone", DIP_LOAD),
    )
    campaign.claim(
        f"low-{who}",
        f"{label}: C is 0 at 5 Mbit/s.",
        "abs(c) <= 0.002",
        says="low",
        shape="abs(c) <= 0.01",
        c=of("coupling", loads[0]),
    )
    campaign.claim(
        f"high-{who}",
        f"{label}: C is 0.0065 at 40 Mbit/s.",
        "c >= 0.004 and c <= 0.009",
        says="high",
        c=of("coupling", loads[-1]),
    )
    carried = [load for load in loads if load <= CARRIED]
    campaign.claim(
        f"grows-{who}",
        f"{label}: C grows with the load of the first, from {carried[0]} to {carried[-1]} Mbit/s, which the "
        "radio carries.",
        "high > low + 0.001",
        says="grows",
        low=of("coupling", carried[0]),
        high=of("coupling", carried[-1]) if len(carried) > 1 else None,
    )
    campaign.claim(
        f"grows-to-{loads[-1]}-{who}",
        f"{label}: C grows with the load of the first, from {loads[0]} to {loads[-1]} Mbit/s.",
        "high > low + 0.002",
        says="grows",
        low=of("coupling", loads[0]),
        high=of("coupling", loads[-1]) if len(loads) > 1 else None,
    )
    if len(others) > 1:
        campaign.claim(
            f"independent-{who}", f"{label}: C hardly depends on the load of the second.",
            "abs(one - other) <= 0.002", says="independent", shape="abs(one - other) <= 0.01",
            one=of("coupling", loads[-1]), other=of("coupling", loads[-1], others[-1]),
        )  # fmt: skip


def _more_claims(
    campaign: Campaign, found: Found, platform: Platform, bursts: Sequence[int], swept: Sequence[int]
) -> None:
    """Claims of the plot over time, and of the tables as they are printed."""
    who, label = platform.name, platform.label
    for other in bursts:
        at = {"platform": who, "load": DIP_LOAD, "other": other}
        campaign.claim(
            f"dip-{other}-{who}",
            f"{label}: bursts of {other} Mbit/s take the first ({DIP_LOAD} Mbit/s) to zero (100 ms).",
            "dip <= 10 %", says="dip", shape="dip <= 0.75 * calm",
            dip=found.sample("dip", **at), calm=found.sample("calm", **at),
        )  # fmt: skip
    for load in FIRSTS if swept else ():
        least, most = (
            found.sample("coupling", platform=who, load=load, other=other) for other in (swept[0], swept[-1])
        )
        campaign.claim(
            f"table-{load}-{who}",
            f"{label}: with the first at {load} Mbit/s, C hardly depends on the second (5 to 40 Mbit/s).",
            "abs(least - most) <= 0.002", says="independent", shape="abs(least - most) <= 0.01",
            least=least, most=most,
        )  # fmt: skip


def _radio_claims(campaign: Campaign, found: Found, platform: Platform) -> None:
    """Claims that tell coupling by radio from coupling by the host: only the radio differs."""
    at = {"platform": platform.name, "load": DIP_LOAD, "other": OTHERS[-1]}
    host = found.sample("coupling", **at)
    for radio, words in (
        ("adjacent", "on adjacent channels without leakage"),
        ("leakage", "on the papers' channels with leakage"),
    ):
        campaign.claim(
            f"radio-{radio}",
            f"{platform.label} {words}: the radio adds nothing to the coupling by the host.",
            "abs(c - host) <= 0.005", says="residual", shape="abs(c - host) <= 0.02",
            c=found.sample("coupling", radio=radio, **at), host=host,
        )  # fmt: skip
    campaign.claim(
        "radio-adjacent-leakage",
        f"{platform.label} on adjacent channels with leakage: the radio couples them, not the host.",
        "c - host >= 0.2", says="residual", shape="c - host >= 0.02",
        c=found.sample("coupling", radio="adjacent-leakage", **at), host=host,
    )  # fmt: skip


def _coupling_by_table(found: Found, platform: Platform, swept: Sequence[int]) -> Figure:
    """C as the tables are printed: the load of the second experiment is swept."""
    lines = [
        found.line(
            f"{platform.label}, the first at {load} Mbit/s", "measured", "coupling", "other", swept, 1.0,
            platform=platform.name, load=load,
        )
        for load in FIRSTS
    ]  # fmt: skip
    return Figure(
        name="coupling-table",
        title="Coupling coefficient, the tables' reading",
        x_label="load of the second experiment, Mbit/s",
        y_label="C",
        lines=tuple(lines),
        caption="The papers' tables and plots exchange the loads of the two experiments (D-6).",
    )


def _coupling(
    found: Found, platforms: Sequence[Platform], loads: Sequence[int], others: Sequence[int]
) -> Figure:
    lines = [
        found.line(
            f"{one.label}, the second at {other} Mbit/s", "measured", "coupling", "load", loads, 1.0,
            platform=one.name, other=other,
        )
        for one in platforms
        for other in others
    ]  # fmt: skip
    return Figure(
        name="coupling",
        title="Coupling coefficient C = (R - R') / R",
        x_label="load of the first experiment, Mbit/s",
        y_label="C",
        lines=tuple(lines),
        caption=f"R, R': means over all times in which the second is off and on, {ON} s each.",
    )


def _over_time(campaign: Campaign, case: Case) -> Figure:
    """Both experiments in windows of 100 ms, the first repetition."""
    reader = campaign.reader(case)
    lines = []
    for flow in orbit.SLICES if reader is not None else ():
        assert reader is not None
        times = orbit.arrivals(reader, flow)
        rates = orbit.windows(times, orbit.PAYLOAD, WINDOW)
        ends = times[0] + WINDOW * (1 + np.arange(rates.size))
        lines.append(
            Line(
                label=f"experiment {1 + list(orbit.SLICES).index(flow)}",
                role="measured",
                x=tuple(float(one) / 1e9 for one in ends),
                y=tuple(float(one) / 1e6 for one in rates),
            )
        )
    return Figure(
        name=f"time-{case.labels['platform']}",
        title=f"Throughput in windows of 100 ms, {case.labels['platform']}",
        x_label="time, s",
        y_label="throughput",
        unit="Mbit/s",
        lines=tuple(lines),
    )
