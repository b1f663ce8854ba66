"""Stations that roam between access points with a wire: whom the LAN behind them reaches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom import Scenario
from airloom.nodes.all_nodes import KINDS

pytestmark = [pytest.mark.world, pytest.mark.timeout(180)]

AIR = {
    "propagation": {"model": "log-distance", "exponent": 3.5},
    "radio": {"phy": "802.11g", "ssid": "campus"},
}
ROAMING = {"mode": "station", "channel": 1, "scan": [1, 6, 11], "probe": True, "leave": "-70 dBm"}


def point(metres: int, channel: int, **more: Any) -> dict[str, Any]:
    """A node with an access point."""
    return {
        "position": [f"{metres} m", "0 m"],
        "radios": {"wlan0": {"mode": "ap", "channel": channel}},
        **more,
    }


def walker(end: int, until: int) -> dict[str, Any]:
    """A node with a station that walks from 5 m to an end, from 2 s on."""
    points = [(0, 5), (2, 5), (until, end)]
    path = [{"at": f"{at} s", "position": [f"{metres} m", "0 m"]} for at, metres in points]
    return {"radios": {"wlan0": ROAMING}, "mobility": {"model": "path", "points": path}}


def losses(out: Path, **parts: Any) -> dict[str, float]:
    """Runs a scenario; returns the loss of each measurement."""
    scenario = Scenario.model_validate({"name": "roam", "media": {"air": AIR}, **parts})
    result = airloom.run(scenario, out=out).result
    return {one.name: float(one.mean or 0.0) for one in result.measurements if one.metric == "loss"}


def echoes(name: str, source: str, to: str, at: int) -> dict[str, Any]:
    return {
        "name": name,
        "ping": {"at": f"{at} s", "from": source, "to": to, "count": 10, "interval": "100 ms"},
    }


@pytest.mark.parametrize("kind", ["netns", "uml"])
def test_echoes_go_on_at_the_second_access_point(kind: str, tmp_path: Path) -> None:
    for lacking in KINDS[kind].lacks():
        pytest.skip(f"{lacking.message}: {lacking.cure}")
    found = losses(
        tmp_path / "out",
        nodes={
            "server": {},
            "ap1": point(0, 1, kind=kind),
            "ap2": point(60, 6, kind=kind),
            "sta": walker(58, 6),
        },
        switches={"lan": {}},
        links=[{"ends": [name, "lan"], "rate": "100 Mbit/s"} for name in ("server", "ap1", "ap2")],
        measurements=[echoes("before", "server", "sta", 1), echoes("after", "server", "sta", 9)],
    )
    assert found["before"] <= 0.1
    assert found["after"] <= 0.1


def test_a_station_that_only_receives_is_found_at_the_third_access_point(tmp_path: Path) -> None:
    # The server is behind a router. From 2 s on the station sends nothing by itself: the switch learns
    # where it is from the announcements of its access points.
    load = {"from": "server", "to": "sta", "rate": "200 kbit/s", "duration": "2 s", "at": "14 s"}
    found = losses(
        tmp_path / "out",
        nodes={
            "server": {},
            "router": {"forwarding": True},
            "ap1": point(0, 1),
            "ap2": point(60, 6),
            "ap3": point(120, 11),
            "sta": walker(118, 12),
        },
        switches={"lan": {}},
        links=[
            {"ends": ["server", "router"], "rate": "100 Mbit/s"},
            *({"ends": [name, "lan"], "rate": "100 Mbit/s"} for name in ("router", "ap1", "ap2", "ap3")),
        ],
        measurements=[echoes("before", "server", "sta", 1), {"name": "late", "traffic": load}],
    )
    assert found["before"] <= 0.1
    assert found["late"] <= 0.05
