"""ORBIT: UDP throughput and packets/s against payload, and each kind's packet-rate ceiling beside the radio.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from airloom.experiments import capacity_search, orbit
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found
from airloom.experiments.orbit import Grid, Platform
from airloom.report.figures import Figure
from airloom.results import Result, RunReader
from airloom.scenario.model import Scenario

TOLERANCE = 0.0025
"""Of the claim about 1470 octets; the interval of a point on the air is as narrow."""
CEILING_PAYLOAD = 64
BEYOND = 250
"""Mbit/s: 488,000 packets/s of 64 octets, more than a node can send."""
LEAST, MOST = orbit.PAYLOADS[0], orbit.PAYLOADS[-1]


def run(
    folder: Path, *, extent: Extent, progress: Callable[[str], None], kinds: Sequence[str] = ("netns",)
) -> Result:
    """Sweeps the payload over the radio, then finds what each kind can send over a link without a limit."""
    payloads = extent.choose(full=orbit.PAYLOADS, quick=(64, 512, 1470), smoke=(1470,))
    seconds = extent.choose(full=11, quick=3, smoke=1.3)
    platforms = orbit.platforms(kinds, theirs=extent)
    with orbit.campaign(__file__, folder, progress=progress, kinds=orbit.kinds_of(platforms)) as campaign:
        cases = [_on_air(platform, payload, seconds) for payload in payloads for platform in platforms]
        senders = extent.choose(full=(1, 2), quick=(1, 2), smoke=(1,))
        bare = [_bare(kind, flows, seconds) for kind in ("netns", *kinds) for flows in senders]
        cases += {case.name: case for case in bare}.values()
        repetitions = extent.repetitions("throughput", "ceiling", within={"throughput": TOLERANCE})
        found = campaign.measure(cases, _figures, repetitions)
        campaign.judge(lambda: _claims(campaign, found, platforms, payloads, kinds))
        for figure in _drawn(found, platforms, payloads):
            campaign.draw(figure)
        return campaign.finish()


def _on_air(platform: Platform, payload: int, seconds: float) -> Case:
    grid = Grid(platform)
    # Half as much again as the air can carry: the papers' 50 Mbit/s would be 97,656 packets/s of 64 octets.
    load = min(50.0, 1.5 * orbit.saturation(payload) / 1e6)
    flows = [grid.flow(slice, load, seconds, payload=payload) for slice in platform.flows]
    return orbit.case(grid, "orbit-udp-payload", flows, seconds, payload=payload)


def _figures(case: Case, reader: RunReader) -> Figures:
    return _carried(case, reader) if "payload" in case.labels else _sent(reader)


def _carried(case: Case, reader: RunReader) -> Figures:
    throughput = orbit.value(reader, orbit.flows_of(reader), "throughput_steady")
    packets = throughput / (8 * int(case.labels["payload"]))
    return {"throughput": (throughput, "bit/s"), "packets": (packets, "packets/s")}


def _bare(kind: str, flows: int, seconds: float) -> Case:
    """Flows as fast as nodes can over links without rate, delay or queue to wait in."""
    names = list(orbit.SLICES)[:flows]
    described: dict[str, Any] = {
        "name": f"orbit-udp-payload-bare-{kind}-{flows}",
        "kind": kind,
        "nodes": {f"n{end}-{name}": {} for name in names for end in (1, 2)},
        "links": [{"ends": [f"n1-{name}", f"n2-{name}"]} for name in names],
        "measurements": [
            {
                "name": name,
                "traffic": {
                    "from": f"n1-{name}", "to": f"n2-{name}", "size": f"{CEILING_PAYLOAD} B",
                    "rate": f"{BEYOND} Mbit/s", "duration": f"{seconds} s", "at": "1 s",
                },
            }
            for name in names
        ],
    }  # fmt: skip
    labels = {"kind": kind, "flows": flows}
    return Case(f"bare-{kind}-{flows}", labels, Scenario.model_validate(described), 1 + seconds)


def _sent(reader: RunReader) -> Figures:
    rates = [
        capacity_search.value(reader, name, "throughput_steady") / (8 * CEILING_PAYLOAD)
        for name in orbit.flows_of(reader)
    ]
    return {"ceiling": (sum(rates) / len(rates), "packets/s"), "ceiling-total": (sum(rates), "packets/s")}


def _claims(
    campaign: Campaign,
    found: Found,
    platforms: Sequence[Platform],
    payloads: Sequence[int],
    kinds: Sequence[str],
) -> None:
    for payload in (LEAST, MOST):
        dcf = orbit.saturation(payload) / 1e6
        campaign.claim(
            f"dcf-{payload}", f"Native, {payload} octets saturate at DCF's {dcf:.2f} Mbit/s.",
            f"native within 3 % of {dcf:.4f} Mbit/s", says="dcf",
            native=found.sample("throughput", platform="native", payload=payload),
        )  # fmt: skip
    campaign.claim(
        "native-80000", "One native flow puts 80,000 packets/s of 64 octets on the air.",
        "native >= 72000 packets/s", says="native-pps",
        native=found.sample("packets", platform="native", payload=LEAST),
    )  # fmt: skip
    compared = dict.fromkeys((LEAST, MOST, *payloads))
    for one in platforms[1:]:
        sides = {payload: orbit.sides(found, "throughput", one, payload=payload) for payload in compared}
        campaign.claim(
            f"large-{one.name}",
            f"At 1470 octets {one.label} differ by at most 0.25 %.",
            "sliver within 0.25 % of native",
            says="drop-1470",
            shape="sliver within 2 % of native",
            **sides[MOST],
        )
        # Half as much again as the air can carry is more than guests on one processor can handle.
        floods = one.one_processor
        campaign.claim(
            f"small-{one.name}",
            f"At 64 octets {one.label} lose 34 %.",
            "sliver within 10 % of 0.66 * native",
            says="drop-64",
            floods=floods,
            **sides[LEAST],
        )
        campaign.claim(
            f"faster-{one.name}",
            f"The loss of {one.label} grows as packets shrink.",
            _grows(compared),
            says="falls",
            floods=floods,
            **{
                f"octets{payload}.{who}": value
                for payload, pair in sides.items()
                for who, value in pair.items()
            },
        )
        campaign.claim(
            f"air-32000-{one.name}", f"{one.label} put 32,000 packets/s of 64 octets on the air, each.",
            "sliver >= 28800 packets/s", says="sliver-pps", floods=floods,
            sliver=found.sample("packets", platform=one.name, payload=LEAST),
        )  # fmt: skip
    for kind in kinds:
        alone = found.sample("ceiling", kind="netns", flows=1)
        campaign.claim(
            f"ceiling-{kind}",
            f"Beside the radio, two slivers of {kind} can send less than half of native each.",
            "sliver < 0.5 * native",
            says="half",
            floods=True,
            shape="sliver < 0.75 * native",
            native=alone,
            sliver=found.sample("ceiling", kind=kind, flows=2),
        )
        campaign.claim(
            f"ceiling-total-{kind}", f"Together they come near native's: 65,000 to 80,000 ({kind}).",
            "total / native >= 0.7 and total / native <= 0.95", says="total-pps",
            floods=True,
            shape="total > 0.5 * native",
            native=alone, total=found.sample("ceiling-total", kind=kind, flows=2),
        )  # fmt: skip


def _grows(payloads: Iterable[int]) -> str:
    """Returns the check that the first payload, the smallest, loses a larger share than the second, the
    largest, and none of the others a smaller one; 2 % of what native carries are within the error."""
    least, most, *others = (f"1 - octets{one}.sliver / octets{one}.native" for one in payloads)
    return " and ".join([f"{least} > {most} + 0.02", *(f"{one} > {most} - 0.02" for one in others)])


def _drawn(found: Found, platforms: Sequence[Platform], payloads: Sequence[int]) -> list[Figure]:
    ideal = {payload: orbit.saturation(payload) / 1e6 for payload in payloads}
    packets = {payload: 1 / orbit.cycle(payload) for payload in payloads}
    return [
        orbit.figure(
            found, platforms, "throughput", "UDP throughput", "throughput", "payload", payloads,
            x_label="payload, octets", y_label="throughput", unit="Mbit/s", scale=1e6, ideal=ideal,
        ),
        orbit.figure(
            found, platforms, "packets", "Packets/s against payload", "packets", "payload", payloads,
            x_label="payload, octets", y_label="packets", unit="packets/s", scale=1.0, ideal=packets,
            caption="Published: what cannot have been on the air (P-1).",
        ).model_copy(update={"log_y": True}),
        Figure(
            name="ceiling",
            title="What two nodes can send each other without a radio, 64 octets",
            x_label="flows at once",
            y_label="packets of all",
            unit="packets/s",
            lines=tuple(
                found.line(kind, "measured", "ceiling-total", "flows", (1, 2), 1.0, kind=kind)
                for kind in dict.fromkeys(["netns", *(one.kind for one in platforms)])
            ),
        ),
    ]  # fmt: skip
