"""ORBIT: how long a file takes over TCP at every channel rate, and 1 GB at one, one flow against two slices.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from airloom.errors import RunError
from airloom.experiments import orbit
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found
from airloom.experiments.orbit import Grid, Platform
from airloom.experiments.repetitions import LEAST, Repetitions
from airloom.report.figures import Figure
from airloom.results import Result, RunReader

OCTETS, QUICK_OCTETS, SMOKE_OCTETS = 20_000_000, 8_000_000, 1_000_000
WHOLE, WHOLE_RATE = 10**9, 54
"""Octets of the published file, and the channel rate at which the full extent sends all of it: 334 s."""
PORT = 4000
PROGRAM = "/opt/transfer.py"
SEGMENT = 1448


def run(
    folder: Path, *, extent: Extent, progress: Callable[[str], None], kinds: Sequence[str] = ("netns",)
) -> Result:
    """Sends a part of the file at every channel rate, and the whole file at the highest."""
    rates = extent.choose(full=orbit.RATES, quick=(6, 54), smoke=(6, 54))
    octets = extent.choose(full=OCTETS, quick=QUICK_OCTETS, smoke=SMOKE_OCTETS)
    platforms = orbit.platforms(kinds, theirs=extent)
    with orbit.campaign(__file__, folder, progress=progress, kinds=orbit.kinds_of(platforms)) as campaign:
        cases = [_case(platform, rate, octets) for rate in rates for platform in platforms]
        found = campaign.measure(cases, _figures, extent.repetitions("time", most=3))
        if extent is Extent.FULL:
            # The last platform is the papers' own where this machine has it.
            whole = [_case(one, WHOLE_RATE, WHOLE) for one in (platforms[0], platforms[-1])]
            campaign.measure(whole, _figures, Repetitions.fixed(LEAST, "time-whole"))
            _whole_claim(campaign, found, platforms[-1])
        for platform in platforms[1:]:
            _claims(campaign, found, platform, rates, octets)
        campaign.draw(
            orbit.figure(
                found, platforms, "time", f"Time of a file of {octets / 1e6:g} MB", "time", "rate", rates,
                x_label="channel rate, Mbit/s", y_label="time", unit="s", scale=1e9,
                ideal={rate: 8 * octets / orbit.tcp_estimate(rate) for rate in rates}, octets=octets,
            )
        )  # fmt: skip
        campaign.draw(_extra(found, platforms, rates, octets))
        return campaign.finish()


def _case(platform: Platform, rate: int, octets: int) -> Case:
    buffers, queue = orbit.SHORT_QUEUE
    grid = Grid(platform, rate=rate, buffers=buffers, queue=queue)
    text = Path(__file__).with_name("transfer.py").read_text(encoding="utf-8")
    programs: list[dict[str, Any]] = []
    for slice in platform.flows:
        receive, send = f"n2-{slice}", f"n1-{slice}"
        programs.append(
            {
                "node": receive,
                "name": f"receive-{slice}",
                "run": ["python3", PROGRAM, "receive", str(PORT)],
                "until_end": True,
                "ready": {"port": PORT, "within": "30 s"},
            }
        )
        programs.append(
            {
                "node": send,
                "name": f"send-{slice}",
                "run": ["python3", PROGRAM, "send", receive, str(PORT), str(octets)],
                "at": f"{orbit.WARM_UP} s",
                "after": [f"receive-{slice}"],
            }
        )
    seconds = 8 * octets / orbit.tcp_estimate(rate)
    files = {PROGRAM: text}
    return orbit.case(grid, "orbit-file-transfer", [], seconds, programs, files, rate=rate, octets=octets)


def _figures(case: Case, reader: RunReader) -> Figures:
    times = []
    for slice in orbit.SLICES:
        path = reader.folder / "nodes" / f"n1-{slice}" / f"send-{slice}.log"
        if path.exists():
            lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
            if not lines:
                raise RunError("experiment.unmeasured", "the transfer did not end", where=str(path))
            times.append(float(json.loads(lines[-1])["seconds"]))
    name = "time-whole" if case.labels["octets"] == WHOLE else "time"
    return {name: (1e9 * sum(times) / len(times), "ns")}


def _whole_claim(campaign: Campaign, found: Found, platform: Platform) -> None:
    campaign.claim(
        f"whole-{WHOLE_RATE}-{platform.name}",
        f"At {WHOLE_RATE} Mbit/s {platform.label} take 5 s longer for the whole 1 GB.",
        "sliver - native within 20 % of 5 s",
        says="five-54",
        **orbit.sides(found, "time-whole", platform, rate=WHOLE_RATE, octets=WHOLE),
    )


def _claims(campaign: Campaign, found: Found, platform: Platform, rates: Sequence[int], octets: int) -> None:
    who, label = platform.name, platform.label
    least, most = rates[0], rates[-1]
    # What was 5 s for 1 GB is as much less for a smaller file.
    five = 5e3 * octets / WHOLE
    low = orbit.sides(found, "time", platform, rate=least, octets=octets)
    high = orbit.sides(found, "time", platform, rate=most, octets=octets)
    for rate, both, says in ((least, low, "five"), (most, high, "five-54")):
        campaign.claim(
            f"five-{rate}-{who}",
            f"At {rate} Mbit/s {label} take 5 s longer for 1 GB ({five:g} ms for this file).",
            f"sliver - native within 20 % of {five:g} ms",
            says=says,
            **both,
        )
    campaign.claim(
        f"share-{who}",
        f"At {most} Mbit/s {label} take about 2 % longer.",
        "sliver / native >= 1.01 and sliver / native <= 1.03",
        says="share",
        **high,
    )
    apart = "abs(high.sliver - high.native - (low.sliver - low.native))"
    campaign.claim(
        f"constant-{who}", f"{label} take the same extra time at {least} and {most} Mbit/s, if any.",
        f"{apart} <= 0.5 % * low.native", says="constant", shape=f"{apart} <= 2 % * low.native",
        **{f"{size}.{side}": value for size, pair in (("low", low), ("high", high))
           for side, value in pair.items()},
    )  # fmt: skip


def _extra(found: Found, platforms: Sequence[Platform], rates: Sequence[int], octets: int) -> Figure:
    def extra(platform: Platform, rate: int) -> float | None:
        sides = [
            found.mean("time", platform=name, rate=rate, octets=octets) for name in ("native", platform.name)
        ]
        if sides[0] is None or sides[1] is None:
            return None
        return (sides[1] - sides[0]) / 1e9 * WHOLE / octets

    return Figure(
        name="extra",
        title="Seconds that slices take longer than native for 1 GB",
        x_label="channel rate, Mbit/s",
        y_label="extra time",
        unit="s",
        lines=orbit.sliver_lines(platforms, rates, extra),
        caption=f"Measured with {octets / 1e6:g} MB. A segment carries {SEGMENT} octets.",
    )
