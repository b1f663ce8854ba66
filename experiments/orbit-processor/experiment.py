"""ORBIT: what a processor does to slices that share it, in virtual time: by its turns, and by its prices.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from airloom.experiments import orbit
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found, Sample
from airloom.experiments.orbit import Grid, Platform
from airloom.experiments.round_robin import Turn, passed
from airloom.report.figures import Figure, Line, Role
from airloom.results import Result, RunReader
from airloom.scenario.model import Scenario

KIND = "uml"
"""The kind whose kernel is in virtual time."""
QUANTA = (2, 10, 20, 50, 100, 200)
"""Lengths of a turn in ms."""
QUEUE = orbit.SHORT_QUEUE
WINDOWS = {"10-ms": 10_000_000, "100-ms": 100_000_000}
SATURATED = 50
"""Offered load in Mbit/s, above saturation."""
NATIVE = Platform(KIND, 1)
OFFERED = 50_000_000
"""Offered load of each flow in bit/s where packets have a price."""
PRICED = {"priced-native": ("orbit-native", 1), "priced-2": ("orbit-uml", 2), "priced-4": ("orbit-uml", 4)}
"""Platform: the prices of its sending processor, and how many guests share it."""
SKIPPED, COUNTED = 100_000_000, 300_000_000
"""The first ns of a flow, in which it settles, and those in which its packets are counted."""


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """Sweeps the turn of both nodes, in step and half a turn apart, at a low load and above saturation; then
    the payload on a wire between processors with prices.
    """
    quanta = extent.choose(full=QUANTA, quick=(10, 100), smoke=(100,))
    loads = extent.choose(full=(4, SATURATED), quick=(4,), smoke=(4,))
    seconds = extent.choose(full=5, quick=3, smoke=2)
    payloads = extent.choose(full=orbit.PAYLOADS, quick=(64, 128, 256), smoke=(64, 128))
    shared = extent.choose(full=tuple(PRICED), quick=tuple(PRICED), smoke=tuple(PRICED)[:2])
    turns = [Platform(KIND, 2, quantum, phase) for quantum in quanta for phase in (0, quantum // 2)]
    platforms = [NATIVE, Platform(KIND, 2), *turns]
    with Campaign.of(__file__, folder, progress=progress, kinds=(KIND,)) as campaign:
        cases = [_case(platform, load, seconds) for load in loads for platform in platforms]
        priced = [_priced(name, payload) for payload in payloads for name in shared]
        campaign.announce([*cases, *priced], extent.repetitions("throughput", "packets"))
        campaign.repeat(cases, _figures, extent.repetitions("throughput"))
        found = campaign.repeat(priced, _packets, extent.repetitions("packets"))
        campaign.judge(lambda: _claims(campaign, found, platforms[1:], loads, seconds))
        for load in loads:
            for figure in _drawn(found, quanta, load, seconds):
                campaign.draw(figure)
        campaign.judge(lambda: _ceilings(campaign, found, shared, payloads))
        campaign.draw(_ceiling_figure(found, shared, payloads))
        return campaign.finish()


def _case(platform: Platform, load: int, seconds: int) -> Case:
    buffers, tail = QUEUE
    grid = Grid(platform, buffers=buffers, queue=tail, virtual=True)
    flows = [grid.flow(slice, load, seconds) for slice in platform.flows]
    return orbit.case(grid, "orbit-processor", flows, seconds, load=load)


def _figures(_: Case, reader: RunReader) -> Figures:
    flows = orbit.flows_of(reader)
    found = orbit.steady(reader, flows)
    for name, length in WINDOWS.items():
        rates = [orbit.windows(orbit.arrivals(reader, flow), orbit.PAYLOAD, length) / 1e6 for flow in flows]
        if all(one.size > 1 for one in rates):
            # (Mbit/s)^2: the square of a rate has no unit of its own in results.
            found[f"variance-{name}"] = (sum(float(one.var(ddof=1)) for one in rates) / len(rates), "1")
    return found


def _priced(name: str, payload: int) -> Case:
    """Returns senders that share a processor with prices, each with a wire of its own to one receiver."""
    preset, count = PRICED[name]
    senders = [f"s{number}" for number in range(1, count + 1)]
    load = {"to": "r", "rate": f"{OFFERED} bit/s", "size": f"{payload} B", "at": f"{orbit.WARM_UP} s"}
    said = {
        "name": f"orbit-processor-{name}-{payload}",
        "time": "virtual",
        "kind": KIND,
        "guest": {"kernel": "built"},
        "nodes": {node: {} for node in (*senders, "r")},
        "links": [{"ends": [node, "r"], "rate": "1 Gbit/s", "delay": "100 us"} for node in senders],
        "processors": {"host": {"nodes": senders, "preset": preset}},
        "measurements": [
            {"name": node, "traffic": {**load, "from": node, "duration": "500 ms"}} for node in senders
        ],
    }
    labels = {"platform": name, "payload": payload}
    return Case(f"{name}_payload-{payload}", labels, Scenario.model_validate(said), orbit.WARM_UP + 1)


def _packets(case: Case, reader: RunReader) -> Figures:
    """Returns the packets a second of each flow on average, and of all together."""
    rates = []
    for one in case.scenario.measurements:
        times = reader.samples(one.name, "delay").t_ns.to_numpy()
        first = int(times.min()) + SKIPPED
        rates.append(float(((times >= first) & (times < first + COUNTED)).sum()) * 1e9 / COUNTED)
    total = sum(rates)
    return {"packets": (total / len(rates), "packets/s"), "total": (total, "packets/s")}


def _ceilings(campaign: Campaign, found: Found, shared: Sequence[str], payloads: Sequence[int]) -> None:
    """The packet ceiling of a processor: a price for each packet, whoever sends it and however long it is."""

    def sample(metric: str, platform: str, payload: int) -> Sample | None:
        return found.sample(metric, platform=platform, payload=payload)

    two, least = "priced-2", payloads[0]
    campaign.claim(
        "ceiling-native",
        f"A native node sends about 80,000 packets/s of {least} octets.",
        "native within 3 % of 80000 packets/s",
        says="native-pps",
        native=sample("packets", "priced-native", least),
    )
    campaign.claim(
        "ceiling-total",
        f"Two slivers together send about 65,000 packets/s of {least} octets.",
        "total within 3 % of 65000 packets/s",
        says="total-pps",
        total=sample("total", two, least),
    )
    campaign.claim(
        "ceiling-half",
        "A sliver of two sends less than half of what a native node sends.",
        "sliver < 0.5 * native",
        says="half",
        sliver=sample("packets", two, least),
        native=sample("packets", "priced-native", least),
    )
    campaign.claim(
        "ceiling-flat",
        f"A sliver of two sends as many packets of {payloads[1]} octets as of {least}.",
        "abs(longer / shorter - 1) <= 0.02",
        says="flat",
        longer=sample("packets", two, payloads[1]),
        shorter=sample("packets", two, least),
    )
    for platform in shared[2:]:
        campaign.claim(
            f"ceiling-{platform}",
            "A sliver of four sends half as many packets as one of two.",
            "abs(2 * four / two - 1) <= 0.05",
            says="falls",
            four=sample("packets", platform, least),
            two=sample("packets", two, least),
        )


def _ceiling_figure(found: Found, shared: Sequence[str], payloads: Sequence[int]) -> Figure:
    x = tuple(float(payload) for payload in payloads)
    offered = tuple(OFFERED / 8 / payload for payload in payloads)
    lines = [Line(label="offered: 50 Mbit/s", role="ideal", x=x, y=offered)]
    for name in shared:
        preset, count = PRICED[name]
        label = f"native: one flow, {preset}" if count == 1 else f"a sliver of {count}, {preset}"
        role: Role = "reference" if count == 1 else "measured"
        lines.append(found.line(label, role, "packets", "payload", payloads, 1.0, platform=name))
    return Figure(
        name="ceiling",
        title="Packets a second of a flow whose sender shares a processor",
        x_label="payload, octets",
        y_label="packets a second",
        unit="packets/s",
        lines=tuple(lines),
        caption="1 Gbit/s wires; each packet has a price on the sending processor; virtual time",
    )


def _claims(
    campaign: Campaign, found: Found, platforms: Sequence[Platform], loads: Sequence[int], seconds: int
) -> None:
    for load in loads:
        for platform in platforms:
            _of(campaign, found, platform, load)
            if platform.turns:
                _by_arithmetic(campaign, found, platform, load, seconds)


def _of(campaign: Campaign, found: Found, platform: Platform, load: int) -> None:
    """The published effects, each wherever it may appear: where it does not, the claim fails and says so."""
    which, label = f"{platform.name}-{load}", f"{platform.label} at {load} Mbit/s"
    campaign.claim(
        f"throughput-{which}",
        f"{label} get what native gets, less 0.25 Mbit/s at most.",
        "abs(native - sliver) <= 0.25 Mbit/s",
        says="drop",
        **orbit.sides(found, "throughput", platform, load=load),
    )
    for window in WINDOWS:
        campaign.claim(
            f"variance-{window}-{which}",
            f"The throughput of {label} varies about ten times as much as native (windows of {window}).",
            "sliver / native >= 5 and sliver / native <= 20",
            says="variance",
            shape="sliver / native >= 2",
            **orbit.sides(found, f"variance-{window}", platform, load=load),
        )
    campaign.claim(
        f"delay-{which}",
        f"The delay of {label} is about twice native.",
        "sliver / native >= 1.5 and sliver / native <= 3",
        says="delay-ratio",
        shape="sliver > 1.1 * native",
        **orbit.sides(found, "delay", platform, load=load),
    )
    campaign.claim(
        f"jitter-{which}",
        f"The jitter of {label} is about four times native.",
        "sliver / native >= 2 and sliver / native <= 5",
        says="jitter-ratio",
        shape="sliver > 1.2 * native",
        **orbit.sides(found, "jitter", platform, load=load),
    )


def _ideal(platform: Platform, load: int, seconds: int) -> float:
    """The mean delay in ms between guests in turns, by arithmetic, without the first second."""
    turn = platform.turns / 1000
    sender, receiver = Turn(turn), Turn(turn, platform.phase / 1000)
    interval = 8 * orbit.PAYLOAD / (load * 1e6)
    return passed(interval, orbit.cycle(), QUEUE[0], sender, receiver, seconds).after(1).delay * 1e3


def _by_arithmetic(campaign: Campaign, found: Found, platform: Platform, load: int, seconds: int) -> None:
    ideal = _ideal(platform, load, seconds)
    campaign.claim(
        f"round-robin-{platform.name}-{load}",
        f"The delay of {platform.label} at {load} Mbit/s is a round robin's: {ideal:.1f} ms.",
        f"sliver within 15 % of {ideal:.2f} ms",
        says="round-robin",
        sliver=found.sample("delay", platform=platform.name, load=load),
    )


def _drawn(found: Found, quanta: Sequence[int], load: int, seconds: int) -> list[Figure]:
    figures = {
        "throughput": ("UDP throughput", "Mbit/s", 1e6),
        "delay": ("One-way delay", "ms", 1e6),
        "jitter": ("Jitter", "us", 1e3),
        "variance-10-ms": ("Variance of throughput in windows of 10 ms", "(Mbit/s)^2", 1.0),
        "variance-100-ms": ("Variance of throughput in windows of 100 ms", "(Mbit/s)^2", 1.0),
    }
    return [_figure(found, quanta, load, seconds, metric, *rest) for metric, rest in figures.items()]


def _figure(
    found: Found,
    quanta: Sequence[int],
    load: int,
    seconds: int,
    metric: str,
    title: str,
    unit: str,
    scale: float,
) -> Figure:
    x = tuple(float(one) for one in quanta)

    def measured(platform: Platform) -> float | None:
        mean = found.mean(metric, platform=platform.name, load=load)
        return None if mean is None else mean / scale

    lines = [Line(label="native: one flow", role="reference", x=x, y=(measured(NATIVE),) * len(x))]
    for words, half in (("in step", 0), ("half a turn later at the receiver", 1)):
        ones = [Platform(KIND, 2, quantum, half * quantum // 2) for quantum in quanta]
        label = f"two slices in turns, {words}"
        lines.append(Line(label=label, role="measured", x=x, y=tuple(map(measured, ones))))
        if metric == "delay":
            ideal = tuple(_ideal(one, load, seconds) for one in ones)
            lines.append(Line(label=f"round robin, {words}", role="ideal", x=x, y=ideal))
    return Figure(
        name=f"{metric}-{load}",
        title=f"{title} at {load} Mbit/s offered",
        x_label="length of a turn, ms",
        y_label=title.lower() if metric.startswith("variance") else metric,
        unit=unit,
        lines=tuple(lines),
        caption=f"36 Mbit/s, 1470 octets; {QUEUE[0]} buffers, tail drop at {QUEUE[1]}, virtual time",
    )
