"""ORBIT: the driver's default queues of 40 and 50 against 1000, where bursts of waiting guests are lost.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from airloom.experiments import orbit
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found
from airloom.experiments.orbit import Grid, Platform
from airloom.report.figures import Figure, Line
from airloom.results import Result, RunReader

QUEUES = {40: orbit.SHORT_QUEUE, 200: (200, 200), 1000: (1000, 1000)}
"""Frames that wait at most: transmit buffers and tail-drop limit."""
TURN = 100
"""ms."""
MOST = orbit.LOADS[-1]
BELOW = orbit.LOADS[0]
"""Mbit/s below saturation: what is lost there is lost by the slices, and not because it is too much."""


def run(
    folder: Path, *, extent: Extent, progress: Callable[[str], None], kinds: Sequence[str] = ("netns",)
) -> Result:
    """Sweeps load and queue for native, for slices, and for slices in turns of the processor."""
    loads = extent.choose(full=(5, *orbit.LOADS), quick=(10, MOST), smoke=(MOST,))
    queues = extent.choose(full=tuple(QUEUES), quick=(40, 1000), smoke=(40,))
    # 30 turns of the processor; with 11 s, intervals were within 0.2 % of the mean (orbit-udp-rate).
    seconds = extent.choose(full=6, quick=3, smoke=2)
    platforms = orbit.platforms(kinds, turns=(TURN,), theirs=extent)
    with orbit.campaign(__file__, folder, progress=progress, kinds=orbit.kinds_of(platforms)) as campaign:
        cases = [
            _case(platform, queue, load, seconds)
            for queue in queues
            for load in loads
            for platform in platforms
        ]
        found = campaign.measure(cases, _figures, extent.repetitions("throughput"))
        campaign.judge(lambda: _claims(campaign, found, platforms, queues))
        for queue in queues:
            campaign.draw(_against_load(found, platforms, queue, loads))
        campaign.draw(_against_queue(found, platforms, queues))
        return campaign.finish()


def _case(platform: Platform, queue: int, load: int, seconds: int) -> Case:
    buffers, tail = QUEUES[queue]
    grid = Grid(platform, buffers=buffers, queue=tail)
    flows = [grid.flow(slice, load, seconds) for slice in platform.flows]
    return orbit.case(grid, "orbit-queues", flows, seconds, load=load, queue=queue)


def _figures(_: Case, reader: RunReader) -> Figures:
    flows = orbit.flows_of(reader)
    lost = sum(orbit.value(reader, [flow], "lost") for flow in flows)
    in_queue = orbit.dropped(reader, "radio-queue-full")
    found = {
        "throughput": (orbit.value(reader, flows, "throughput_steady"), "bit/s"),
        "lost": (lost, "packets"),
        "lost-in-queue": (float(in_queue), "frames"),
    }
    if lost:
        # Not clipped: more drops there than packets lost would be as wrong as fewer. Each flow's five end
        # marks may be lost there as well, among thousands of packets.
        found["share-in-queue"] = (in_queue / lost, "1")
    return found


def _claims(campaign: Campaign, found: Found, platforms: Sequence[Platform], queues: Sequence[int]) -> None:
    for platform in platforms[1:]:
        _against_native(campaign, found, platform, queues)


def _against_native(campaign: Campaign, found: Found, platform: Platform, queues: Sequence[int]) -> None:
    who, label = platform.name, platform.label
    short = orbit.sides(found, "throughput", platform, load=MOST, queue=queues[0])
    campaign.claim(
        f"drop-{who}",
        f"With the default queues {label} get 9.2 Mbit/s less at saturation.",
        "native - sliver within 10 % of 9.2 Mbit/s",
        says="drop",
        shape="native - sliver >= 1 Mbit/s",
        **short,
    )
    campaign.claim(
        f"onset-{who}",
        f"With the default queues {label} lose at {BELOW} Mbit/s already.",
        "sliver <= 0.98 * native",
        says="onset",
        **orbit.sides(found, "throughput", platform, load=BELOW, queue=queues[0]),
    )
    campaign.claim(
        f"place-{who}",
        f"What {label} lose at {BELOW} Mbit/s, which native carries, they lose in the radio's queue.",
        "lost >= 100 and native <= 0.01 * lost and queue >= 0.99 * lost and queue <= 1.01 * lost",
        says="place",
        lost=found.sample("lost", platform=who, load=BELOW, queue=queues[0]),
        native=found.sample("lost", platform=orbit.NATIVE.name, load=BELOW, queue=queues[0]),
        queue=found.sample("lost-in-queue", platform=who, load=BELOW, queue=queues[0]),
    )
    campaign.claim(
        f"gone-{who}", f"With queues of 1000 {label} get what native gets.",
        "sliver within 1 % of native", says="gone", shape="sliver within 3 % of native",
        **orbit.sides(found, "throughput", platform, load=MOST, queue=1000),
    )  # fmt: skip
    if platform.turns and len(queues) > 2:
        campaign.claim(
            f"buffers-{who}", "Buffers of 40 frames explain the loss of 9.2 Mbit/s, those of 200 do not.",
            "native - forty within 10 % of 9.2 Mbit/s and native - more <= 1 Mbit/s", says="buffers",
            native=short["native"], forty=short["sliver"],
            more=found.sample("throughput", platform=who, load=MOST, queue=queues[1]),
        )  # fmt: skip
    for queue in queues if platform.turns else ():
        model = orbit.shared_queue(queue, platform.turns / 1000) / 1e6
        campaign.claim(
            f"model-{queue}-{who}",
            f"In turns of {platform.turns} ms a queue of {queue} lets {model:.2f} Mbit/s through.",
            f"sliver within 10 % of {model:.4f} Mbit/s", says="model",
            sliver=found.sample("throughput", platform=who, load=MOST, queue=queue),
        )  # fmt: skip


def _against_load(found: Found, platforms: Sequence[Platform], queue: int, loads: Sequence[int]) -> Figure:
    buffers, tail = QUEUES[queue]
    return orbit.figure(
        found, platforms, "saturation" if queue == 40 else f"saturation-{queue}",
        f"UDP throughput with {buffers} buffers and tail drop at {tail}", "throughput", "load", loads,
        x_label="offered load, Mbit/s", y_label="throughput", unit="Mbit/s", scale=1e6, queue=queue,
    )  # fmt: skip


def _against_queue(found: Found, platforms: Sequence[Platform], queues: Sequence[int]) -> Figure:
    drawn = orbit.figure(
        found, platforms, "queues", f"UDP throughput at {MOST} Mbit/s offered", "throughput", "queue", queues,
        x_label="frames in the driver's queue", y_label="throughput", unit="Mbit/s", scale=1e6, load=MOST,
    )  # fmt: skip
    model = tuple(orbit.shared_queue(queue, TURN / 1000) / 1e6 for queue in queues)
    x = tuple(float(queue) for queue in queues)
    ideal = Line(label="S min(1, (q + N T) / 2 q)", role="ideal", x=x, y=model)
    return drawn.model_copy(update={"lines": (ideal, *drawn.lines), "log_x": True})
