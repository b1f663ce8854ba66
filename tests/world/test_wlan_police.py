"""Slices whose guests' own 802.11 stacks leave the grant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom import Scenario
from helpers.kernels import needs_built
from helpers.wlan import needs, said, until

pytestmark = [pytest.mark.world, pytest.mark.timeout(240), needs_built]

SCENARIO = """
name: police
kind: uml
guests: {box: {kind: uml}}
media: {air: {radio: {device: wlan}}}
nodes:
  n1: {position: [0 m, 0 m], radios: {wlan0: , wlan1: }}
  n2: {position: [9 m, 0 m], radios: {wlan0: , wlan1: }}
slices:
  one: {grant: {nodes: [n1, n2], channels: [36]}, police: enforce, node: {inside: box}}
  two: {grant: {nodes: [n1], channels: [44]}, police: enforce, node: {inside: box}}
"""


def cell(node: Any, name: str, mhz: int) -> None:
    """Makes the only wireless interface of a node a member of an independent cell."""
    device = said(node, "ls /sys/class/net | grep wlan").strip()
    for command in (
        f"ip link set {device} down",
        f"iw dev {device} set type ibss",
        f"ip link set {device} up",
        f"iw dev {device} ibss join {name} {mhz} fixed-freq 02:ca:ff:ee:ba:{mhz % 256:02x}",
    ):
        said(node, command)


def test_a_guest_that_leaves_its_grant_is_not_heard(tmp_path: Path) -> None:
    """``iw`` may set any channel and name; the medium transmits only what is granted."""
    needs("iw")
    scenario = Scenario.from_yaml(SCENARIO)
    with airloom.Lab(scenario, out=tmp_path / "out") as up:
        first, second, other = up["n1-one"], up["n2-one"], up["n1-two"]
        said(first, "iw reg set US")
        for node in (first, second):
            cell(node, "one", 5180)
        until(lambda: bool(first.run("ping -c 1 -W 1 n2-one").ok), "the granted cell works")
        assert up._one.world.violations()["found"] == []

        def seen(what: str, slice: str) -> bool:
            found = up._one.world.violations()["found"]
            return any((one["what"], one["slice"]) == (what, slice) for one in found)

        for node in (first, second):
            cell(node, "one", 5240)
        until(lambda: seen("channel", "one"), "beacons on a channel not granted are found")
        assert not first.run("ping -c 2 -i 0.2 -W 1 n2-one", timeout=30).ok
        cell(other, "one", 5220)
        until(lambda: seen("ssid", "two"), "the name of another slice is found")
    result = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))
    channel = next(one for one in result["violations"] if one["what"] == "channel")
    assert (channel["slice"], channel["amount"], channel["unit"]) == ("one", 60.0, "MHz")
    name = next(one for one in result["violations"] if one["what"] == "ssid")
    assert (name["node"], name["concerned"]) == ("n1-two", ["one"])
    assert result["ledger"]["dropped"]["outside-grant"] > 0
