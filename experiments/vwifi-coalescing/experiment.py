"""Virtual WiFi: notifications, round trip and processor time with and without interrupt coalescing.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from airloom.experiments import capacity_search, vwifi
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found
from airloom.report.figures import Figure
from airloom.results import Result, RunReader

TIME = 2
"""Milliseconds that a buffer may wait for its notification."""
SETTINGS: tuple[dict[str, Any], ...] = (
    {"mode": "off"},
    {"mode": "count", "frames": 8, "time": f"{TIME} ms"},
    {"mode": "time", "time": f"{TIME} ms"},
    {"mode": "adaptive", "frames": 32, "time": f"{TIME} ms"},
)
"""Of the station's machine, by the number of the label ``setting``."""
OFF, COUNT, BY_TIME, ADAPTIVE = range(len(SETTINGS))
PASSED = len(SETTINGS)
"""The setting that stands for a radio passed through, without coalescing."""
LOAD, ECHO = 2500, 0
"""Packets to the station in a second, half of what the channel carries; or echo requests alone."""
SIZE = 100
"""Octets of payload of each packet."""
PAUSE = 20
"""Milliseconds between echo requests."""


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """Measures each setting, first with echo requests, then with packets to the station."""
    seconds = extent.choose(full=10.0, quick=4.0, smoke=1.5)
    vwifi.need_programs()
    with Campaign.of(__file__, folder, progress=progress, kinds=("uml", "netns")) as campaign:
        every = range(PASSED + 1)
        settings = extent.choose(full=every, quick=every, smoke=(OFF, ADAPTIVE, PASSED))
        cases = [_case(setting, load, seconds) for load in (LOAD, ECHO) for setting in settings]
        found = campaign.measure(cases, _figures, extent.repetitions("all", "rtt"))
        campaign.judge(lambda: _claims(campaign, found))
        for metric, load, title, unit, scale in (
            ("notifications", LOAD, "Notifications for each returned buffer", "1", 1.0),
            ("rtt", ECHO, "Mean round trip of an echo request", "ms", 1e6),
            ("all", LOAD, "Busy processors at 2500 packets per second", "1", 1.0),
        ):
            line = found.line("station", "measured", metric, "setting", settings, scale, load=load)
            campaign.draw(
                Figure(
                    name=metric,
                    title=title,
                    x_label="coalescing",
                    categories=("off", "count", "time", "adaptive", "passed through, off"),
                    y_label=metric,
                    unit=unit,
                    lines=(line,),
                )
            )
        return campaign.finish()


def _case(setting: int, load: int, seconds: float) -> Case:
    ways: dict[str, Any] = {"from": "ap", "to": "station", "at": f"{vwifi.WARM_UP} s"}
    if load == LOAD:
        flow = ways | {
            "interval": f"{1_000_000 // LOAD} us",
            "size": f"{SIZE} B",
            "duration": f"{seconds:g} s",
        }
        measurement = {"name": "flow", "traffic": flow}
    else:
        count = int(seconds * 1000 / PAUSE)
        measurement = {"name": "ping", "ping": ways | {"count": count, "interval": f"{PAUSE} ms"}}
    group = "pass-through" if setting == PASSED else "virtual"
    machine = {"notifications": SETTINGS[OFF if setting == PASSED else setting]}
    name = f"setting-{setting}-{measurement['name']}"
    scenario = vwifi.one_station(group, f"vwifi-coalescing-{name}", [measurement], machine)
    return Case(name, {"setting": setting, "load": load}, scenario, vwifi.WARM_UP + seconds)


def _figures(case: Case, reader: RunReader) -> Figures:
    device = vwifi.device(reader, "station")
    hold = (float(device.longest_hold_ns), "ns")
    if case.labels["load"] == ECHO:
        return {"rtt": (capacity_search.value(reader, "ping", "rtt_mean"), "ns"), "hold": hold}
    used = vwifi.processors(reader)
    return {
        "all": (sum(used.values()), "1"),
        **{name: (value, "1") for name, value in used.items()},
        "packets": (capacity_search.value(reader, "flow", "received"), "packets"),
        "notifications": ((device.calls + device.again) / (device.taken + device.put), "1"),
        "unwanted": (device.spared / (device.taken + device.put), "1"),
        "hold": hold,
    }


def _claims(campaign: Campaign, found: Found) -> None:
    def of(name: str, setting: int, load: int = LOAD) -> Any:
        return found.sample(name, setting=setting, load=load)

    for setting, name in ((COUNT, "count"), (BY_TIME, "time"), (ADAPTIVE, "adaptive")):
        campaign.claim(
            f"{name}-notifications",
            f"With mode {name} one notification stands for several buffers.",
            "coalesced / off <= 50 %",
            says="coalesced",
            shape="coalesced / off < 100 %",
            coalesced=of("notifications", setting),
            off=of("notifications", OFF),
        )
        campaign.claim(
            f"{name}-cpu",
            f"Mode {name} takes less processor time than none.",
            "coalesced / off < 100 %",
            says="before-after",
            coalesced=of("all", setting),
            off=of("all", OFF),
        )
        campaign.claim(
            f"{name}-packets",
            f"With mode {name} the same packets arrive.",
            "abs(coalesced / off - 1) <= 2 %",
            says="switched",
            coalesced=of("packets", setting),
            off=of("packets", OFF),
        )
    for setting, name in ((COUNT, "count"), (BY_TIME, "time")):
        campaign.claim(
            f"{name}-rtt",
            f"Mode {name} lengthens the round trip by its time, and by no more than 10 % of it besides.",
            f"coalesced - off >= {0.9 * TIME:g} ms and coalesced - off <= {1.1 * TIME:g} ms",
            says="switched",
            coalesced=of("rtt", setting, ECHO),
            off=of("rtt", OFF, ECHO),
        )
    campaign.claim(
        "adaptive-rtt",
        "Mode adaptive lengthens the round trip of single packets by at most 10 %.",
        "coalesced / off <= 110 %",
        says="switched",
        coalesced=of("rtt", ADAPTIVE, ECHO),
        off=of("rtt", OFF, ECHO),
    )
    campaign.claim(
        "pass-through",
        "With coalescing, virtual WiFi takes at most 10 % more processor time than pass-through.",
        "virtual / passed <= 110 %",
        says="cpu",
        virtual=of("all", ADAPTIVE),
        passed=of("all", PASSED),
    )
