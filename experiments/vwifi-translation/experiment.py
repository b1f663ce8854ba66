"""Virtual WiFi: copies, mappings and processor time of each translation of two guests' addresses.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from airloom.experiments import capacity_search, orbit, vwifi
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found
from airloom.report.figures import Figure
from airloom.results import Result, RunReader

SMALL, LARGE = 64, 1024
"""Pages in a cache: fewer, and more, than the 256 receive buffers of each guest."""
SETTINGS: tuple[dict[str, Any], ...] = (
    {"mode": "direct"},
    {"mode": "bounce"},
    {"mode": "strict"},
    {"mode": "cached", "entries": SMALL},
    {"mode": "cached", "entries": LARGE},
    {"mode": "merged", "entries": LARGE},
)
"""Of both machines, by the number of the label ``setting``."""
DIRECT, BOUNCE, STRICT, THRASHED, CACHED, MERGED = range(len(SETTINGS))
STATIONS = ("work", "personal")
LOAD = 5
"""Mbit/s that each station sends: the channel carries both."""
PAUSE = 20
"""Milliseconds between echo requests."""


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """Measures two guests on one card under each translation."""
    seconds = extent.choose(full=10.0, quick=4.0, smoke=1.5)
    vwifi.need_programs()
    with Campaign.of(__file__, folder, progress=progress, kinds=("uml", "netns")) as campaign:
        every = range(len(SETTINGS))
        settings = extent.choose(full=every, quick=every, smoke=(DIRECT, BOUNCE, CACHED))
        cases = [_case(setting, seconds) for setting in settings]
        found = campaign.measure(cases, _figures, extent.repetitions("all"))
        campaign.judge(lambda: _claims(campaign, found))
        for metric, title, unit, scale in (
            ("mapped", "Mappings for each buffer", "1", 1.0),
            ("hits", "Share of pages found in the cache", "%", 0.01),
            ("rtt", "Mean round trip of an echo request", "ms", 1e6),
            ("all", "Busy processors", "1", 1.0),
        ):
            line = found.line("stations", "measured", metric, "setting", settings, scale)
            campaign.draw(
                Figure(
                    name=metric,
                    title=title,
                    x_label="translation",
                    categories=(
                        "direct",
                        "bounce",
                        "strict",
                        f"cached ({SMALL})",
                        f"cached ({LARGE})",
                        "merged",
                    ),
                    y_label=metric,
                    unit=unit,
                    lines=(line,),
                )
            )
        return campaign.finish()


def _case(setting: int, seconds: float) -> Case:
    nodes = {"ap": vwifi.access_point("cell")}
    programs, measurements = [], []
    begin = vwifi.WARM_UP + seconds
    for station in STATIONS:
        nodes[station] = vwifi.guest("cell", card=True, machine={"translation": SETTINGS[setting]})
        programs += vwifi.joins(station)
        flow = {"from": station, "to": "ap", "rate": f"{LOAD} Mbit/s", "size": f"{orbit.PAYLOAD} B"}
        flow |= {"duration": f"{seconds:g} s", "at": f"{vwifi.WARM_UP} s"}
        measurements.append({"name": station, "traffic": flow})
    count = int(seconds * 1000 / PAUSE)
    ping = {"from": STATIONS[0], "to": "ap", "count": count, "interval": f"{PAUSE} ms"}
    measurements.append({"name": "ping", "ping": ping | {"at": f"{begin + 0.5:g} s"}})
    name = f"setting-{setting}"
    card = {"virtual_macs": len(STATIONS)}
    scenario = vwifi.scenario(f"vwifi-translation-{name}", nodes, measurements, programs, card=card)
    return Case(name, {"setting": setting}, scenario, begin + 0.5 + seconds)


def _figures(case: Case, reader: RunReader) -> Figures:
    devices = [vwifi.device(reader, station) for station in STATIONS]
    buffers = sum(device.taken + device.put for device in devices)
    looked = sum(device.cache_hits + device.cache_misses for device in devices)
    used = vwifi.processors(reader)
    found = {
        "all": (sum(used.values()), "1"),
        **{name: (value, "1") for name, value in used.items()},
        "throughput": (
            sum(capacity_search.value(reader, station, "throughput") for station in STATIONS),
            "bit/s",
        ),
        "rtt": (capacity_search.value(reader, "ping", "rtt_mean"), "ns"),
        "mapped": (sum(device.mapped for device in devices) / buffers, "1"),
        "copied": (sum(device.bounced_octets for device in devices) / buffers, "B"),
    }
    if looked:
        found["hits"] = (sum(device.cache_hits for device in devices) / looked, "1")
    return found


def _claims(campaign: Campaign, found: Found) -> None:
    def of(name: str, setting: int) -> Any:
        return found.sample(name, setting=setting)

    for setting, mode in ((BOUNCE, "bounce"), (STRICT, "strict"), (CACHED, "cached"), (MERGED, "merged")):
        campaign.claim(
            f"{mode}-throughput",
            f"With mode {mode} the same throughput arrives.",
            "abs(other / direct - 1) <= 2 %",
            says="iommu",
            other=of("throughput", setting),
            direct=of("throughput", DIRECT),
        )
    campaign.claim(
        "copy",
        "Translation of addresses in place of an extra copy of each buffer takes less processor time.",
        "direct / bounce < 100 %",
        says="no-copy",
        direct=of("all", DIRECT),
        bounce=of("all", BOUNCE),
    )
    campaign.claim(
        "strict",
        "A mapping for each buffer takes more processor time than a translation that stays.",
        "strict / direct > 100 %",
        says="before-after",
        strict=of("all", STRICT),
        direct=of("all", DIRECT),
    )
    campaign.claim(
        "cached",
        "A cache of translations takes less processor time than a mapping for each buffer.",
        "cached / strict < 100 %",
        says="before-after",
        cached=of("all", CACHED),
        strict=of("all", STRICT),
    )
    campaign.claim(
        "size",
        "A cache of more pages than a guest has receive buffers keeps them: half of the misses or fewer.",
        "(1 - large) / (1 - small) <= 50 %",
        says="iommu",
        large=of("hits", CACHED),
        small=of("hits", THRASHED),
    )
    campaign.claim(
        "merged",
        "One cache serves two guests nearly as well as one of that size for each.",
        "merged / cached >= 90 %",
        says="merged",
        merged=of("hits", MERGED),
        cached=of("hits", CACHED),
    )
