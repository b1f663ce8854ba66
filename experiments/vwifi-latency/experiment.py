"""Virtual WiFi: round trip and transmit delay of a native, a passed-through and a virtual radio.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from airloom.experiments import capacity_search, vwifi
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found
from airloom.report.figures import Figure
from airloom.results import Result, RunReader

INTERVAL = 20
"""Milliseconds between echo requests, and between packets."""
SIZE = 1000
"""Octets of payload of each packet."""


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """Measures each group."""
    seconds = extent.choose(full=20.0, quick=5.0, smoke=2.0)
    vwifi.need_programs()
    with Campaign.of(__file__, folder, progress=progress, kinds=("uml", "netns")) as campaign:
        cases = [_case(group, seconds) for group in vwifi.GROUPS]
        found = campaign.measure(cases, _figures, extent.repetitions("rtt"))
        campaign.judge(lambda: _claims(campaign, found))
        for metric, title in (
            ("rtt", "Mean round trip of an echo request"),
            ("transmit", "Mean delay from the station to the access point"),
        ):
            groups = range(len(vwifi.GROUPS))
            campaign.draw(
                Figure(
                    name=metric,
                    title=title,
                    x_label="radio",
                    categories=vwifi.GROUPS,
                    y_label=metric,
                    unit="ms",
                    lines=(found.line("groups", "measured", metric, "group", groups, 1e6),),
                )
            )
        return campaign.finish()


def _claims(campaign: Campaign, found: Found) -> None:
    native, passed, virtual, _ = vwifi.by_group(found, "rtt")
    campaign.claim(
        "rtt-native",
        "The round trip of virtual WiFi is about 7 % longer than native.",
        "virtual / native >= 100 % and virtual / native <= 110 %",
        says="latency",
        virtual=virtual,
        native=native,
    )
    campaign.claim(
        "rtt-pass-through",
        "The round trip of virtual WiFi is within 10 % of that of pass-through.",
        "virtual / passed >= 90 % and virtual / passed <= 110 %",
        says="latency",
        virtual=virtual,
        passed=passed,
    )
    native, _, virtual, _ = vwifi.by_group(found, "transmit")
    campaign.claim(
        "transmit-native",
        "The delay that virtual WiFi adds when it transmits is within 10 % of the native delay.",
        "virtual / native >= 90 % and virtual / native <= 110 %",
        says="transmit",
        virtual=virtual,
        native=native,
    )


def _case(group: str, seconds: float) -> Case:
    count = int(seconds * 1000 / INTERVAL)
    begin = vwifi.WARM_UP + seconds + 1
    ping = {"from": "station", "to": "ap", "count": count, "interval": f"{INTERVAL} ms"}
    flow = {"from": "station", "to": "ap", "interval": f"{INTERVAL} ms", "size": f"{SIZE} B"}
    flow |= {"duration": f"{seconds:g} s", "at": f"{begin:g} s"}
    measurements = [
        {"name": "ping", "ping": ping | {"at": f"{vwifi.WARM_UP} s"}},
        {"name": "flow", "traffic": flow},
    ]
    scenario = vwifi.one_station(group, f"vwifi-latency-{group}", measurements)
    return Case(group, {"group": vwifi.GROUPS.index(group)}, scenario, begin + seconds)


def _figures(case: Case, reader: RunReader) -> Figures:
    return {
        "rtt": (capacity_search.value(reader, "ping", "rtt_mean"), "ns"),
        "rtt-least": (capacity_search.value(reader, "ping", "rtt_min"), "ns"),
        "transmit": (capacity_search.value(reader, "flow", "delay_mean"), "ns"),
    }
