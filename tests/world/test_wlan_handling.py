"""Notifications and translation of addresses of guests' wireless devices, with real kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom.experiments import vwifi
from airloom.experiments.capacity_search import value
from airloom.results import RunReader
from airloom.results.details import DeviceUse
from helpers.kernels import needs_built
from helpers.wlan import needs

pytestmark = [pytest.mark.world, pytest.mark.timeout(180), needs_built]

SIZE = 1400
COUNT = 300


def devices(folder: Path, machines: dict[str, dict[str, Any]]) -> dict[str, DeviceUse]:
    """The devices of stations on one card after packets to and from the first one."""
    needs("iw", "wpa_supplicant")
    nodes = {"ap": vwifi.access_point("cell")}
    programs: list[dict[str, Any]] = []
    for name, machine in machines.items():
        nodes[name] = vwifi.guest("cell", card=True, machine=machine)
        programs += vwifi.joins(name)
    first = next(iter(machines))
    # Without a time of their own they wait until every station has joined.
    packets = {"interval": "2 ms", "size": f"{SIZE} B", "duration": f"{2 * COUNT} ms"}
    flows = [
        {"name": "up", "traffic": {"from": first, "to": "ap", **packets}},
        {"name": "down", "traffic": {"from": "ap", "to": first, **packets}},
    ]
    scenario = vwifi.scenario("handling", nodes, flows, programs, card={"virtual_macs": len(machines)})
    airloom.run(scenario, out=folder)
    reader = RunReader(folder)
    for flow in ("up", "down"):
        assert value(reader, flow, "received") == COUNT
    return {one.name.partition(":")[0]: one for one in reader.details.devices}


def test_coalesced_notifications_are_fewer_than_buffers(tmp_path: Path) -> None:
    time = {"mode": "time", "time": "20 ms"}
    found = devices(tmp_path / "out", {"work": {"notifications": time}, "personal": {}})
    work, personal = found["work"], found["personal"]
    assert (work.notifications, work.frames, work.time_ns) == ("time", None, 20_000_000)
    assert (personal.notifications, personal.frames, personal.time_ns) == ("off", None, None)
    # Ten buffers arrive within the time in each direction.
    assert work.calls + work.spared < (work.taken + work.put) / 3
    assert work.longest_hold_ns >= 20_000_000
    assert personal.longest_hold_ns == 0


def test_a_frame_is_copied_once_and_a_bounce_buffer_counts_it(tmp_path: Path) -> None:
    found = devices(tmp_path / "out", {"work": {"translation": {"mode": "bounce"}}})["work"]
    assert found.translation == "bounce"
    # Each packet once on its way out and once on its way in, its headers and attributes, and a status.
    assert SIZE < found.bounced_octets / (2 * COUNT) < 1.25 * SIZE
    assert (found.mapped, found.cache_hits, found.cache_misses) == (0, 0, 0)


def test_each_buffer_is_mapped_or_found_in_the_cache(tmp_path: Path) -> None:
    merged = {"translation": {"mode": "merged", "entries": 1024}}
    machines = {"work": merged, "personal": merged, "strict": {"translation": {"mode": "strict"}}}
    found = devices(tmp_path / "out", machines)
    for name in ("work", "personal"):
        one = found[name]
        assert (one.translation, one.entries) == ("merged", 1024)
        # A buffer is in one page, or in two.
        assert one.taken + one.put <= one.cache_hits + one.cache_misses <= 2 * (one.taken + one.put)
        assert one.mapped == one.cache_misses
    assert found["work"].cache_hits > found["work"].cache_misses
    assert found["strict"].mapped >= found["strict"].taken + found["strict"].put > 0
    assert found["strict"].cache_hits == 0
