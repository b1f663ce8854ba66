"""Virtual WiFi: TCP and UDP throughput of a station whose radio is native, passed through or virtual.

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

PROTOCOLS = ("udp", "tcp")
WAYS = ("up", "down")
"""From the station to the access point, and back."""
LOAD = 30
"""Mbit/s of UDP, more than the channel carries."""


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """Measures each group with both protocols in both directions."""
    seconds = extent.choose(full=10.0, quick=5.0, smoke=1.2)
    protocols = extent.choose(full=PROTOCOLS, quick=PROTOCOLS, smoke=PROTOCOLS[:1])
    vwifi.need_programs()
    with Campaign.of(__file__, folder, progress=progress, kinds=("uml", "netns")) as campaign:
        cases = [_case(group, protocols, seconds) for group in vwifi.GROUPS]
        found = campaign.measure(cases, _figures, extent.repetitions("udp-up"))

        def claims() -> None:
            for protocol in protocols:
                for way in WAYS:
                    _claim(campaign, found, protocol, way)

        campaign.judge(claims)
        campaign.draw(
            Figure(
                name="throughput",
                title=f"Throughput of a station at {vwifi.RATE} Mbit/s",
                x_label="radio",
                categories=vwifi.GROUPS,
                y_label="throughput",
                unit="Mbit/s",
                lines=tuple(
                    found.line(
                        f"{protocol.upper()} {way}", "measured", f"{protocol}-{way}", "group",
                        range(len(vwifi.GROUPS)), 1e6,
                    )
                    for protocol in protocols
                    for way in WAYS
                ),
            )
        )  # fmt: skip
        return campaign.finish()


def _case(group: str, protocols: tuple[str, ...], seconds: float) -> Case:
    measurements: list[dict[str, Any]] = []
    at = float(vwifi.WARM_UP)
    for protocol in protocols:
        for way in WAYS:
            ends = ("station", "ap") if way == "up" else ("ap", "station")
            said = {"from": ends[0], "to": ends[1], "duration": f"{seconds:g} s", "at": f"{at:g} s"}
            if protocol == "udp":
                flow = {"traffic": said | {"rate": f"{LOAD} Mbit/s", "size": f"{orbit.PAYLOAD} B"}}
            else:
                flow = {"iperf3": said}
            measurements.append({"name": f"{protocol}-{way}", **flow})
            at += seconds + 1
    scenario = vwifi.one_station(group, f"vwifi-throughput-{group}", measurements)
    return Case(group, {"group": vwifi.GROUPS.index(group)}, scenario, at)


def _figures(case: Case, reader: RunReader) -> Figures:
    names = [one.name for one in case.scenario.measurements]
    return {name: (capacity_search.value(reader, name, "throughput"), "bit/s") for name in names}


def _claim(campaign: Campaign, found: Found, protocol: str, way: str) -> None:
    native, passed, virtual, baseline = vwifi.by_group(found, f"{protocol}-{way}")
    words = f"{protocol.upper()} {'to' if way == 'up' else 'from'} the access point"
    for name, other in (("native", native), ("pass-through", passed), ("baseline", baseline)):
        campaign.claim(
            f"{name}-{protocol}-{way}",
            f"{words}: virtual WiFi has the throughput of the group {name}.",
            "virtual / other >= 98 %",
            says=protocol,
            shape="virtual / other >= 90 %",
            floods=protocol == "udp",
            virtual=virtual,
            other=other,
        )
