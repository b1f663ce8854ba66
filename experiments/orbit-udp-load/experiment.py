"""ORBIT: UDP throughput, its variance, delay and jitter against offered load, one flow against two slices.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from airloom.experiments import orbit
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found, Sample
from airloom.experiments.orbit import Grid, Platform
from airloom.experiments.round_robin import Passed, Turn, passed
from airloom.report.figures import Figure, Line
from airloom.results import Result, RunReader

QUEUES = {"long": (orbit.LONG_QUEUE, orbit.LONG_QUEUE), "short": orbit.SHORT_QUEUE}
"""Transmit buffers and tail-drop limit."""
WINDOWS = {"10-ms": 10_000_000, "100-ms": 100_000_000, "1-s": 1_000_000_000}
TURN = 100
"""ms of processor in turn: the slice of the Linux 2.6 scheduler, as P-4 takes it."""
PHASES = (50, 100, 150)
"""ms by which the turns of the receiving node are later: the papers' nodes ran in no step."""
MOST = orbit.LOADS[-1]


def run(
    folder: Path, *, extent: Extent, progress: Callable[[str], None], kinds: Sequence[str] = ("netns",)
) -> Result:
    """Sweeps the load for each platform with long and with short queues."""
    loads = extent.choose(full=orbit.LOADS, quick=(20, MOST), smoke=(20,))
    seconds = extent.choose(full=11, quick=3, smoke=2)
    platforms = orbit.platforms(kinds, turns=(TURN,), theirs=extent)
    guests = [one for one in platforms if one.turns and one.kind == orbit.THEIRS.kind]
    phases = extent.choose(full=PHASES, quick=(), smoke=())
    shifted = [replace(one, phase=phase) for one in guests for phase in phases]
    with orbit.campaign(__file__, folder, progress=progress, kinds=orbit.kinds_of(platforms)) as campaign:
        cases = [
            _case(platform, queue, load, seconds)
            for queue in QUEUES
            for load in loads
            for platform in platforms
        ]
        cases += [_case(platform, "short", MOST, seconds) for platform in shifted]
        found = campaign.measure(cases, _figures, extent.repetitions("throughput"))

        def claims() -> None:
            _claims(campaign, found, platforms, loads)
            for platform in guests:
                _by_arithmetic(campaign, found, platform, shifted)

        campaign.judge(claims)
        for figure in _drawn(found, platforms, loads):
            campaign.draw(figure)
        if shifted:
            campaign.draw(_by_phase(found, [*guests, *shifted]))
        return campaign.finish()


def _case(platform: Platform, queue: str, load: int, seconds: int) -> Case:
    buffers, tail = QUEUES[queue]
    grid = Grid(platform, buffers=buffers, queue=tail)
    flows = [grid.flow(slice, load, seconds) for slice in platform.flows]
    return orbit.case(grid, "orbit-udp-load", flows, seconds, load=load, queue=queue)


def _figures(case: Case, reader: RunReader) -> Figures:
    flows = orbit.flows_of(reader)
    found = {
        **orbit.steady(reader, flows),
        "lost-in-queue": (float(orbit.dropped(reader, "radio-queue-full")), "frames"),
    }
    for flow in flows:
        found[f"throughput-{flow}"] = (orbit.value(reader, [flow], "throughput_steady"), "bit/s")
    for name, length in WINDOWS.items():
        rates = [orbit.windows(orbit.arrivals(reader, flow), orbit.PAYLOAD, length) / 1e6 for flow in flows]
        if all(one.size > 1 for one in rates):
            # (Mbit/s)^2: the square of a rate has no unit of its own in results.
            found[f"variance-{name}"] = (sum(float(one.var(ddof=1)) for one in rates) / len(rates), "1")
    return found


def _claims(campaign: Campaign, found: Found, platforms: Sequence[Platform], loads: Sequence[int]) -> None:
    _of_native(campaign, found, loads)
    for platform in platforms[1:]:
        _against_native(campaign, found, platform, loads[0])


def _of_native(campaign: Campaign, found: Found, loads: Sequence[int]) -> None:
    def native(name: str, load: int, queue: str = "long") -> Sample | None:
        return found.sample(name, platform="native", load=load, queue=queue)

    campaign.claim(
        "plateau",
        "One flow saturates at what DCF gives for 36 Mbit/s and 1470 octets: 23.08 Mbit/s.",
        "native within 3 % of 23.08 Mbit/s",
        says="dcf",
        native=native("throughput", MOST),
    )
    campaign.claim(
        "thirty",
        "The link carries the 30 Mbit/s at which it is said to saturate.",
        "native >= 28 Mbit/s",
        says="saturation",
        native=native("throughput", MOST),
    )
    for queue in QUEUES:
        ideal = orbit.full_queue_jitter(MOST) * 1e6
        campaign.claim(
            f"jitter-floor-{queue}",
            f"Native jitter at saturation is a full queue's behind DCF: {ideal:.1f} us ({queue} queue).",
            f"native within 15 % of {ideal:.1f} us",
            says="jitter-floor",
            native=native("jitter", MOST, queue),
        )
    if len(loads) > 3:
        campaign.claim(
            "knee", "30 Mbit/s is the first of the loads at which it is saturated.",
            "native.20 within 1 % of 20 Mbit/s and native.30 within 2 % of native.50", says="saturation",
            **{f"native.{load}": native("throughput", load) for load in (20, 30, 50)},
        )  # fmt: skip
        campaign.claim(
            "delay-flat", "Delay rises with load and is flat at saturation.",
            "native.50 within 20 % of native.30 and native.30 >= 3 * native.10", says="delay-flat",
            **{f"native.{load}": native("delay", load, "short") for load in (10, 30, 50)},
        )  # fmt: skip


def _against_native(campaign: Campaign, found: Found, platform: Platform, least: int) -> None:
    def of(name: str, load: int, queue: str) -> dict[str, Sample | None]:
        return orbit.sides(found, name, platform, load=load, queue=queue)

    who, label = platform.name, platform.label
    campaign.claim(
        f"below-{who}",
        f"Below saturation ({least} Mbit/s) {label} coincide with native.",
        "sliver within 1 % of native",
        says="drop",
        **of("throughput", least, "long"),
    )
    campaign.claim(
        f"drop-{who}",
        f"At {MOST} Mbit/s offered {label} differ by under 0.25 Mbit/s.",
        "abs(native - sliver) <= 0.25 Mbit/s",
        says="drop",
        shape="sliver within 2 % of native",
        **of("throughput", MOST, "long"),
    )
    campaign.claim(
        f"drop-star-{who}",
        f"At {MOST} Mbit/s offered {label} lose 3.4 %, as the section on stars says.",
        "1 - sliver / native within 25 % of 3.4 %",
        says="drop-star",
        **of("throughput", MOST, "long"),
    )
    for window in ("10-ms", "100-ms"):
        campaign.claim(
            f"variance-{window}-{who}",
            f"At saturation the throughput of {label} varies about ten times as much (windows of {window}).",
            "sliver / native >= 5 and sliver / native <= 20",
            says="variance",
            shape="sliver / native >= 2",
            **of(f"variance-{window}", MOST, "long"),
        )
    campaign.claim(
        f"delay-{who}",
        f"At saturation the delay of {label} is about twice native (queue of 40).",
        "sliver / native >= 1.5 and sliver / native <= 3",
        says="delay-ratio",
        shape="sliver > 1.1 * native",
        **of("delay", MOST, "short"),
    )
    campaign.claim(
        f"delay-increase-{who}",
        f"At saturation {label} add 10.2 ms of delay (queue of 40).",
        "sliver - native within 20 % of 10.2 ms",
        says="delay-50",
        shape="sliver - native >= 2 ms",
        **of("delay", MOST, "short"),
    )
    campaign.claim(
        f"delay-low-{who}",
        f"At {least} Mbit/s {label} add 4.7 ms of delay (queue of 40).",
        "sliver - native within 20 % of 4.7 ms",
        says="delay-10",
        **of("delay", least, "short"),
    )
    for queue in QUEUES:
        campaign.claim(
            f"jitter-{queue}-{who}",
            f"Jitter of {label} is about four times native ({queue} queue).",
            "sliver / native >= 2 and sliver / native <= 5",
            says="jitter-ratio",
            shape="sliver > 1.2 * native",
            **of("jitter", MOST, queue),
        )
        at_least, at_most = of("jitter", least, queue), of("jitter", MOST, queue)
        campaign.claim(
            f"jitter-difference-{queue}-{who}",
            f"What {label} add to jitter is about 0.18 ms at every load ({queue} queue).",
            "low - native.low within 30 % of 0.18 ms and high - native.high within 30 % of 0.18 ms",
            says="jitter-difference",
            shape="low - native.low > 20 us and high - native.high within 50 % of (low - native.low)",
            **{"low": at_least["sliver"], "native.low": at_least["native"],
               "high": at_most["sliver"], "native.high": at_most["native"]},
        )  # fmt: skip


def _ideal(platform: Platform, queue: str, seconds: float = 11) -> Passed:
    """What arrives of the highest load between guests in turns, by arithmetic."""
    turn = platform.turns / 1000
    sender, receiver = Turn(turn), Turn(turn, platform.phase / 1000)
    interval, places = 8 * orbit.PAYLOAD / (MOST * 1e6), QUEUES[queue][0]
    return passed(interval, orbit.cycle(), places, sender, receiver, seconds).after(1)


def _by_arithmetic(campaign: Campaign, found: Found, platform: Platform, shifted: Sequence[Platform]) -> None:
    """Claims that compare whole guests in turns with a round robin."""
    who, label = platform.name, platform.label
    for one in (platform, *shifted):
        ideal = _ideal(one, "short").delay * 1e3
        campaign.claim(
            f"round-robin-{one.name}",
            f"At saturation the delay of {one.label} is a round robin's: {ideal:.1f} ms (queue of 40).",
            f"sliver within 15 % of {ideal:.2f} ms",
            says="round-robin",
            sliver=found.sample("delay", platform=one.name, load=MOST, queue="short"),
        )
    campaign.claim(
        f"variance-1-s-{who}",
        f"At saturation the throughput of {label} varies about ten times as much (windows of 1 s).",
        "sliver / native >= 5 and sliver / native <= 20",
        says="variance",
        shape="sliver / native >= 2",
        **orbit.sides(found, "variance-1-s", platform, load=MOST, queue="long"),
    )
    if shifted:
        every = {
            f"at.{one.phase}": found.sample("delay", platform=one.name, load=MOST, queue="short")
            for one in (platform, *shifted)
        }
        mean = " + ".join(every)
        campaign.claim(
            f"phases-{who}",
            f"At saturation {label} have about twice native's delay, averaged over the phases of both nodes.",
            f"({mean}) / {len(every)} / native >= 1.5 and ({mean}) / {len(every)} / native <= 3",
            says="delay-ratio",
            native=found.sample("delay", platform=orbit.NATIVE.name, load=MOST, queue="short"),
            **every,
        )


def _by_phase(found: Found, platforms: Sequence[Platform]) -> Figure:
    """Delay at saturation over the phase of both nodes."""
    x = tuple(float(one.phase) for one in platforms)
    measured = [found.mean("delay", platform=one.name, load=MOST, queue="short") for one in platforms]
    lines = (
        Line(
            label="round robin by its arithmetic", role="ideal", x=x,
            y=tuple(_ideal(one, "short").delay * 1e3 for one in platforms),
        ),
        Line(
            label=platforms[0].label, role="measured", x=x,
            y=tuple(None if one is None else one / 1e6 for one in measured),
        ),
    )  # fmt: skip
    return Figure(
        name="delay-phase",
        title=f"One-way delay at {MOST} Mbit/s offered, short queue",
        x_label="turns of the receiving node later than those of the sending one, ms",
        y_label="delay",
        unit="ms",
        lines=lines,
        caption=f"Whole guests of both nodes in turns of {TURN} ms.",
    )


def _drawn(found: Found, platforms: Sequence[Platform], loads: Sequence[int]) -> list[Figure]:
    def figure(name: str, title: str, metric: str, queue: str, unit: str, scale: float) -> Figure:
        buffers, tail = QUEUES[queue]
        return orbit.figure(
            found, platforms, name, title, metric, "load", loads, queue=queue,
            x_label="offered load, Mbit/s", y_label=metric, unit=unit, scale=scale,
            caption=f"802.11a, 36 Mbit/s, 1470 octets; {buffers} buffers, tail drop at {tail}.",
        )  # fmt: skip

    drawn = [figure("throughput", "UDP throughput", "throughput", "long", "Mbit/s", 1e6)]
    for window in WINDOWS:
        title = f"Variance of throughput in windows of {window.replace('-', ' ')}"
        drawn.append(figure(f"variance-{window}", title, f"variance-{window}", "long", "(Mbit/s)^2", 1.0))
    for queue in QUEUES:
        drawn.append(figure(f"delay-{queue}", f"One-way delay, {queue} queue", "delay", queue, "ms", 1e6))
        drawn.append(figure(f"jitter-{queue}", f"Jitter, {queue} queue", "jitter", queue, "us", 1e3))
    variants = {f"{queue} queue": {"queue": queue} for queue in QUEUES}
    drawn += [orbit.increase_figure(found, platforms, one, loads, variants) for one in ("delay", "jitter")]
    return drawn
