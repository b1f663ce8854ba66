"""Virtual WiFi: processor time of a native, a passed-through and a virtual radio at equal throughput.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from airloom.experiments import capacity_search, orbit, vwifi
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found
from airloom.report.figures import Figure
from airloom.results import Result, RunReader

LOAD = 10
"""Mbit/s, less than the channel carries: all groups deliver the same."""


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """Measures each group while the station transmits."""
    seconds = extent.choose(full=20.0, quick=8.0, smoke=1.5)
    vwifi.need_programs()
    with Campaign.of(__file__, folder, progress=progress, kinds=("uml", "netns")) as campaign:
        cases = [_case(group, seconds) for group in vwifi.GROUPS]
        found = campaign.measure(cases, _figures, extent.repetitions("all"))
        campaign.judge(lambda: _claims(campaign, found))
        campaign.note(
            "native: the guest's kernel counts the node's processor time by ticks, without its interrupts; "
            "the other groups' is counted by the host"
        )
        groups = range(len(vwifi.GROUPS))
        campaign.draw(
            Figure(
                name="processors",
                title=f"Processor time at {LOAD} Mbit/s from the station",
                x_label="radio",
                categories=vwifi.GROUPS,
                y_label="busy processors",
                unit="1",
                lines=tuple(
                    found.line(name, "measured", name, "group", groups, 1.0)
                    for name in ("all", *vwifi.COMPONENTS)
                ),
            )
        )
        return campaign.finish()


def _claims(campaign: Campaign, found: Found) -> None:
    native, passed, virtual, _ = vwifi.by_group(found, "all")
    campaign.claim(
        "native",
        "Virtual WiFi takes less than 9 % more processor time than native.",
        "virtual / native <= 109 %",
        says="cpu",
        virtual=virtual,
        native=native,
    )
    campaign.claim(
        "pass-through",
        "Virtual WiFi takes at most 10 % more processor time than pass-through.",
        "virtual / passed <= 110 %",
        says="cpu",
        virtual=virtual,
        passed=passed,
    )
    native, _, virtual, _ = vwifi.by_group(found, "throughput")
    campaign.claim(
        "same-throughput",
        "The groups are compared at the same throughput.",
        "abs(virtual / native - 1) <= 2 %",
        says="whole-system",
        virtual=virtual,
        native=native,
    )


def _case(group: str, seconds: float) -> Case:
    flow = {"from": "station", "to": "ap", "rate": f"{LOAD} Mbit/s", "size": f"{orbit.PAYLOAD} B"}
    flow |= {"duration": f"{seconds:g} s", "at": f"{vwifi.WARM_UP} s"}
    scenario = vwifi.one_station(group, f"vwifi-cpu-{group}", [{"name": "flow", "traffic": flow}])
    return Case(group, {"group": vwifi.GROUPS.index(group)}, scenario, vwifi.WARM_UP + seconds)


def _figures(case: Case, reader: RunReader) -> Figures:
    used = vwifi.processors(reader)
    rate = capacity_search.value(reader, "flow", "throughput")
    stations = [one for one in reader.details.nodes if one.node in ("station", "laptop")]
    return {
        "all": (sum(used.values()), "1"),
        **{name: (value, "1") for name, value in used.items()},
        "station": (sum(one.user_s + one.system_s for one in stations), "s"),
        "per-megabit": (sum(used.values()) / (rate / 1e6), "1"),
        "throughput": (rate, "bit/s"),
    }
