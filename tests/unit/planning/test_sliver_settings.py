"""Whose setting of a sliver's radio holds: the shared node's radio, then the slice, then the medium."""

from __future__ import annotations

from typing import Any

from airloom.planning.gate import check
from airloom.scenario.model import Scenario


def radios(of_node: dict[str, Any], of_slice: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings of the radios of a slice of two nodes; those of the first node's radio are given."""
    nodes = {
        name: {"position": [f"{x} m", "0 m"], "radios": {"wlan0": said}}
        for name, x, said in (("n1", 0, of_node), ("n2", 1, {}))
    }
    slices = {"one": {"grant": {"nodes": ["n1", "n2"], "channels": [36, 40]}, "radio": of_slice}}
    media = {"air": {"radio": {"rate": "6 Mbit/s", "mode": "ad-hoc"}}}
    said = {"name": "s", "duration": "1 s", "media": media, "nodes": nodes, "slices": slices}
    plan = check(Scenario.model_validate(said)).plans[0]
    return {radio.node: radio.settings for radio in plan.media["air"].radios}


def test_a_node_is_the_access_point_of_stations_of_the_slice() -> None:
    found = radios({"mode": "ap"}, {"mode": "station"})
    assert [next(iter(one["membership"])) for one in found.values()] == ["access-point", "station"]


def test_the_slice_overrides_the_medium_and_the_node_the_slice() -> None:
    found = radios({"rate": "54 Mbit/s", "channel": 40}, {"rate": "24 Mbit/s", "channel": 36})
    assert [one["rate"]["constant"] for one in found.values()] == [54_000_000, 24_000_000]
    assert [one["channel"] for one in found.values()] == [40, 36]
