"""Virtual WiFi: what scans of two guests cost a third one on the same radio.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from airloom.errors import RunError
from airloom.experiments import orbit, vwifi
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found
from airloom.report.figures import Figure
from airloom.results import Result, RunReader

SCANNERS = ("mail", "maps")
OTHERS = (40, 44, 48)
"""Channels of the access points that the scans look for."""
SETTINGS: tuple[dict[str, Any], ...] = (
    {"scan_age": "0 s", "merge_scans": False},
    {"scan_age": "0 s", "merge_scans": True},
    {"scan_age": "2 s", "merge_scans": True},
)
"""Of the card, by the number of the label ``setting``."""
NONE, MERGED, CACHED = range(len(SETTINGS))
INTERVAL = 2
"""Milliseconds between packets of the guest that does not scan."""
SCAN = """iw reg set US; sleep 0.5; i=0
while [ $i -lt {scans} ]; do
  i=$((i + 1)); begin=$(date +%s%N)
  iw dev wlan0 scan freq {channels} > /tmp/scan && end=$(date +%s%N) &&
    echo scanned $((end - begin)) $(grep -c ^BSS /tmp/scan)
  sleep 0.5
done"""
LONGEST = 1.5
"""Seconds that are left for a scan and the pause after it."""


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """Measures scans of two guests, and the gaps in a third one's traffic, under each setting."""
    scans = extent.choose(full=8, quick=4, smoke=2)
    vwifi.need_programs()
    with Campaign.of(__file__, folder, progress=progress, kinds=("uml", "netns")) as campaign:
        every = range(len(SETTINGS))
        settings = extent.choose(full=every, quick=every, smoke=(NONE, CACHED))
        cases = [_case(setting, scans) for setting in settings]
        found = campaign.measure(cases, _figures, extent.repetitions("visits"))
        campaign.judge(lambda: _claims(campaign, found))
        for metric, title, unit, scale in (
            ("visits", "Visits of the radio to other channels for each scan of a guest", "1", 1.0),
            ("gap", "Longest gap in the traffic of a guest that does not scan", "ms", 1e6),
            ("scan-time", "Mean time of a scan", "ms", 1e6),
        ):
            line = found.line("card", "measured", metric, "setting", settings, scale)
            campaign.draw(
                Figure(
                    name=metric,
                    title=title,
                    x_label="scans of the guests",
                    categories=("each its own", "merged", "merged and cached"),
                    y_label=metric,
                    unit=unit,
                    lines=(line,),
                )
            )
        return campaign.finish()


def _case(setting: int, scans: int) -> Case:
    seconds = 1 + scans * LONGEST
    nodes = {f"ap{channel}": vwifi.access_point(f"net{channel}", channel) for channel in OTHERS}
    nodes["office"] = vwifi.access_point("office")
    nodes["work"] = vwifi.guest("office", card=True)
    channels = " ".join(str(vwifi.mhz(channel)) for channel in OTHERS)
    programs = vwifi.joins("work")
    for name in SCANNERS:
        nodes[name] = vwifi.guest("office", card=True)
        run = ["sh", "-c", SCAN.format(scans=scans, channels=channels)]
        programs.append({"name": f"scan-{name}", "node": name, "run": run, "at": f"{vwifi.WARM_UP + 1} s"})
    flow = {"from": "work", "to": "office", "interval": f"{INTERVAL} ms", "size": "200 B"}
    flow |= {"duration": f"{seconds + 1:g} s", "at": f"{vwifi.WARM_UP} s"}
    scenario = vwifi.scenario(
        f"vwifi-scan-{setting}", nodes, [{"name": "work", "traffic": flow}], programs, card=SETTINGS[setting]
    )
    return Case(f"setting-{setting}", {"setting": setting}, scenario, vwifi.WARM_UP + seconds + 1)


def _figures(case: Case, reader: RunReader) -> Figures:
    scans = []
    for program in reader.details.programs:
        if program.name.startswith("scan-") and program.log is not None:
            text = (reader.folder / program.log).read_text(encoding="utf-8", errors="replace")
            scans += [(int(time), int(count)) for time, count in re.findall(r"scanned (\d+) (\d+)", text)]
    if not scans:
        raise RunError("experiment.unmeasured", "no scan has ended", where=str(reader.folder))
    [card] = reader.details.cards
    times = orbit.arrivals(reader, "work")
    found = {
        "scan-time": (float(np.mean([time for time, _ in scans])), "ns"),
        "found": (float(np.mean([count for _, count in scans])), "1"),
        "scans": (float(len(scans)), "1"),
        "gap": (float(np.diff(times).max()), "ns"),
        "asked": (card.scans_asked / len(scans), "1"),
        "merged": (card.scans_merged / len(scans), "1"),
        "cached": (card.scans_cached / len(scans), "1"),
        "visits": (card.visits / len(scans), "1"),
        "oldest": (float(card.scan_oldest_ns), "ns"),
    }
    if card.scan_results:
        found["age"] = (card.scan_age_ns / card.scan_results, "ns")
    return found


def _claims(campaign: Campaign, found: Found) -> None:
    def of(name: str, setting: int) -> Any:
        return found.sample(name, setting=setting)

    campaign.claim(
        "cached-visits",
        "Stored results answer requests: the radio leaves its channel less often.",
        "cached / none <= 70 %",
        says="consolidated",
        shape="cached / none < 100 %",
        none=of("visits", NONE),
        cached=of("visits", CACHED),
    )
    campaign.claim(
        "merged-visits",
        "Merging alone takes no more visits.",
        "merged / none <= 110 %",
        says="consolidated",
        none=of("visits", NONE),
        merged=of("visits", MERGED),
    )
    campaign.claim(
        "complete",
        "A consolidated scan finds as many networks as one that the guest makes itself.",
        "cached / none >= 95 %",
        says="cached",
        none=of("found", NONE),
        cached=of("found", CACHED),
    )
    campaign.claim(
        "age",
        "No result is older than the limit of 2 s.",
        "oldest <= 2 s",
        says="cached",
        oldest=of("oldest", CACHED),
    )
    campaign.claim(
        "gap",
        "A guest's scan interrupts another guest's traffic for one dwell time and two changes at most.",
        "cached <= 60 ms",
        says="consolidated",
        shape="cached <= 100 ms",
        cached=of("gap", CACHED),
    )
