"""Networks of the MTU study: their ideals, what flows carry together, and their form on Mininet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from airloom.bench.peers import mininet_scenario
from airloom.bench.peers.mininet_scenario import Shaping
from airloom.errors import ScenarioError
from airloom.experiments import mtu
from airloom.experiments.registry import find
from airloom.measure.flow import FlowReading
from airloom.planning.gate import check
from airloom.scenario.model import Scenario

pytest.importorskip("airloom._engine")

SHAPES = {one.name: one for one in mtu.SHAPES}


def _reading(arrivals: np.ndarray, octets: int) -> FlowReading:
    none = np.empty(0, np.int64)
    return FlowReading(
        protocol="tcp", sent=arrivals.size, not_sent=0, received=arrivals.size, duplicates=0, reordered=0,
        extents=none, host_lost=0, complete=True, sent_at=none, arrived_at=arrivals, delays=none, jitter=none,
        jitter_rtp=none, lateness=none, lateness_at=none, arrivals=arrivals,
        arrival_octets=np.full(arrivals.size, octets, np.int64), departures=none, departure_octets=none,
    )  # fmt: skip


def test_ideals_are_those_of_the_wire() -> None:
    assert [round(mtu.ideal_frames(frame, 100, 100), 2) for frame in mtu.FRAMES] == [98.7, 99.54, 99.75]
    assert mtu.ideal_frames(1518, 100, 10) == 10
    # 1448 octets of 1538: the well-known 94.15 Mbit/s of TCP over Fast Ethernet.
    assert mtu.ideal_tcp(1518, 100) == pytest.approx(94.15, abs=0.005)
    assert mtu.on_wire(1518, 100) == pytest.approx(123_040)


def test_paths_have_their_links() -> None:
    assert {name: one.hops() for name, one in SHAPES.items()} == {
        "one-switch": 2, "two-switches": 3, "tree": 4,
    }  # fmt: skip


def test_flows_count_in_the_time_that_they_share() -> None:
    second = 10**9
    early = _reading(np.arange(0, 3 * second + 1, second // 1000), 1000)
    late = _reading(np.arange(second, 5 * second + 1, second // 1000), 500)
    # From 2 s, after the warm-up of the later one, to 3 s: 8 and 4 Mbit/s. The first arrival starts the time,
    # that of the other flow in the same instant counts.
    assert mtu.together([early, late], None) == pytest.approx(12e6 + 8 * 500)
    assert mtu.together([early, late], 100) == pytest.approx(1.6e6 + 8 * 100 / 2), (
        "frames count from the first on"
    )


def test_a_flow_that_gets_nothing_at_first_counts_as_such() -> None:
    second = 10**9
    steady = _reading(np.arange(0, 5 * second + 1, second // 1000), 1000)
    pause = np.concatenate([[0], np.arange(3 * second, 5 * second + 1, second // 1000)])
    # From 1 to 5 s: 8 Mbit/s, and 8 Mbit/s for half of the time, of which the first arrival counts too.
    assert mtu.together([steady, _reading(pause, 1000)], None) == pytest.approx(12e6 + 8 * 1000 / 4)


@pytest.mark.parametrize("shape", mtu.SHAPES, ids=lambda shape: shape.name)
def test_a_shape_is_a_scenario_here_and_a_network_there(shape: mtu.Shape, tmp_path: Path) -> None:
    flow = {"from": "h1", "to": shape.flows[0][1], "frame": "1518 B", "rate": "5 Mbit/s", "duration": "1 s"}
    host = mtu.receiving(300_000)
    scenario = shape.scenario("one", 10, 1500, [{"name": "flow", "traffic": flow}], host=host)
    assert check(scenario).plans
    there = mininet_scenario.describe(scenario, tmp_path, [Shaping("s1", "s2", "tc -s class show dev {eth}")])
    assert [tuple(link[:2]) for link in there["links"]] == list(shape.links)
    assert {link[2] for link in there["links"]} == {10.0}
    assert there["mtu"] == 1500
    assert there["sysctl"] == {one: {"net.ipv4.tcp_rmem": "4096 65536 300000"} for one in there["hosts"]}
    assert sorted([*there["hosts"], *there["switches"]]) == shape.names
    receiver, sender = there["programs"]
    assert (receiver["host"], sender["host"]) == (shape.flows[0][1], "h1")
    assert receiver["service"]
    assert not sender["service"]
    assert there["hosts"][shape.flows[0][1]] in sender["run"]


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ({"rate": "1 Mbit/s", "delay": "1 ms"}, "`delay` cannot be had of Mininet here"),
        ({"mtu": 1500}, "a link without a rate cannot be had of Mininet here"),
    ],
)
def test_what_mininet_lacks_is_refused(link: dict[str, object], message: str, tmp_path: Path) -> None:
    raw = {"name": "x", "nodes": {"h1": {}, "h2": {}}, "links": [{"ends": ["h1", "h2"], **link}]}
    with pytest.raises(ScenarioError, match=message):
        mininet_scenario.describe(Scenario.model_validate(raw), tmp_path)


def test_a_guarantee_is_a_class_of_what_the_wire_carries(tmp_path: Path) -> None:
    cell = find("mtu-guarantee").load().__globals__["Cell"]
    here, there = cell("airloom", 1518, 100, "udp", True), cell("mininet", 1518, 100, "udp", True)
    # 0.95 of 1514 octets of each 1538 on the wire, 0.6 of that, and 0.95 of this offered with check sequence.
    assert here.passed == pytest.approx(0.95 * 98.4395e6, rel=1e-4)
    own = here.scenario(5).measurements[-1].traffic
    assert own is not None
    assert own.rate == pytest.approx(0.95 * 0.6 * here.passed * 1518 / 1514, rel=1e-6)
    assert check(here.scenario(5)).plans
    classes = [one.run for one in there.shaping() if "class" in one.run]
    [program] = here.scenario(5).programs
    assert program.run is not None
    for number, share in (("5:10", 0.4), ("5:20", 0.6)):
        wanted = f"classid {number} htb rate {round(share * here.passed)}bit ceil {round(here.passed)}bit"
        assert any(wanted in one for one in classes)
        assert wanted in program.run[-1]
    without = cell("mininet", 1518, 100, "udp", False)
    assert [one.run for one in without.shaping()] == ["tc qdisc add dev {eth} parent 5:1 pfifo limit 100"]
    assert not cell("airloom", 1518, 100, "udp", False).scenario(5).programs
