"""ORBIT's platforms: where the slivers of each run."""

from __future__ import annotations

import random
from collections import deque
from itertools import pairwise

import pytest

from airloom.experiments import orbit
from airloom.experiments.extent import Extent
from airloom.experiments.orbit import Grid, Platform
from airloom.planning.gate import check
from airloom.planning.machine import cpus
from airloom.planning.plan import Plan


def queued(load: float, places: int, packets: int) -> float:
    """Mean difference of transit times in s, of packets that pass a queue of so many places: a simulation."""
    dice, apart = random.Random(1), 8 * orbit.PAYLOAD / (load * 1e6)
    least = orbit.cycle() - 7.5 * 9e-6
    leaving: deque[float] = deque()
    transits: list[float] = []
    sent = left = 0.0
    while len(transits) < packets:
        while leaving and leaving[0] <= sent:
            leaving.popleft()
        if len(leaving) < places:
            left = max(sent, left) + least + 9e-6 * dice.randint(0, 15)
            leaving.append(left)
            transits.append(left - sent)
        sent += apart
    steady = transits[packets // 10 :]
    return sum(abs(later - one) for one, later in pairwise(steady)) / (len(steady) - 1)


@pytest.mark.parametrize("places", [40, 200])
@pytest.mark.parametrize("load", [30, 50])
def test_the_jitter_behind_a_full_queue_is_that_of_a_simulation(load: float, places: int) -> None:
    expected = orbit.full_queue_jitter(load)
    assert queued(load, places, 40_000) == pytest.approx(expected, rel=0.02)
    assert queued(20, places, 40_000) == pytest.approx(47.8e-6, rel=0.02), "below saturation"


def test_the_jitter_at_50_mbit_s_is_77_us() -> None:
    assert orbit.full_queue_jitter(50) == pytest.approx(77.4e-6, abs=0.1e-6)


def plan(platform: Platform) -> Plan:
    return check(Grid(platform).scenario("test", [])).plans[0]


def test_the_guests_of_the_papers_node_share_its_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "available", lambda: (0, 1))
    made = plan(orbit.THEIRS)
    sets = {name: node.cpus.processors for name, node in made.nodes.items() if node.cpus is not None}
    client, server = sets["n1-one"], sets["n2-one"]
    assert sets == {"n1-one": client, "n1-two": client, "n2-one": server, "n2-two": server}
    assert (len(client), len(server)) == (1, 1)
    assert client != server == made.engine_processors


def test_a_machine_with_one_processor_shares_it_between_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "available", lambda: (5,))
    made = plan(Platform("netns", 2, one_processor=True))
    assert {node.cpus.processors for node in made.nodes.values() if node.cpus} == {(5,)}
    assert made.engine_processors == (5,)


@pytest.mark.parametrize(
    ("extent", "there"), [(Extent.FULL, True), (Extent.QUICK, True), (Extent.SMOKE, False)]
)
def test_the_papers_platform_is_compared_by_default(
    monkeypatch: pytest.MonkeyPatch, extent: Extent, there: bool
) -> None:
    monkeypatch.setattr(orbit, "has_theirs", lambda: True)
    assert (orbit.THEIRS in orbit.platforms(["netns"], theirs=extent)) == there
    monkeypatch.setattr(orbit, "has_theirs", lambda: False)
    assert orbit.THEIRS not in orbit.platforms(["netns"], theirs=extent)


def test_other_platforms_are_left_to_the_kernel() -> None:
    made = plan(Platform("netns", 2))
    assert {node.cpus for node in made.nodes.values()} == {None}
    assert made.engine_processors == ()


def test_clients_on_two_nodes_are_two_slivers_of_a_slice_on_each() -> None:
    grid = Grid(Platform("netns", 2, client_nodes=2), clients=4)
    flows = [grid.flow("one", 1, 1, client=client) for client in range(1, 5)]
    made = check(grid.scenario("test", flows)).plans[0]
    slivers = {"n1-one", "n1-one-2", "n2-one", "n2-one-2", "n3-one"}
    assert {name for name in made.nodes if "one" in name} == slivers
    assert {flow["traffic"]["from"] for flow in flows} == slivers - {grid.server + "-one"}
    assert len(made.nodes) == 10


def test_guests_take_turns_at_both_ends_the_later_slice_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "available", lambda: (0, 1))
    made = plan(Platform("uml", 2, turns=100, phase=50))
    taken = {one.name: (one.guests, one.quantum, one.phase, one.spans) for one in made.turns}
    always = ((0, None),)
    assert taken == {
        "n1": (("n1-two", "n1-one"), 100_000_000, 0, always),
        "n2": (("n2-two", "n2-one"), 100_000_000, 50_000_000, always),
    }
    assert made.scenario.programs == []
    assert made.engine_processors == (1,)
    assert {node.cpus.processors for node in made.nodes.values() if node.cpus} == {(0,)}


def test_guests_take_turns_only_while_both_are_busy() -> None:
    grid = Grid(Platform("uml", 2, turns=100), together=[(2, 4), (6, 8)])
    spans = {one.spans for one in check(grid.scenario("test", [])).plans[0].turns}
    assert spans == {((2_000_000_000, 4_000_000_000), (6_000_000_000, 8_000_000_000))}


def test_of_slivers_on_the_hosts_kernel_only_the_senders_are_stopped() -> None:
    grid = Grid(Platform("netns", 2, turns=100), clients=2)
    made = check(grid.scenario("test", [grid.flow("one", 1, 1)])).plans[0]
    assert made.turns == ()
    nodes = [program.node for program in made.scenario.programs]
    assert nodes == ["n1-one", "n1-two", "n2-one", "n2-two"]
    numbers = [program.run[-2] for program in made.scenario.programs]
    assert numbers == ["0", "1", "0", "1"]


@pytest.mark.parametrize(
    ("extent", "expected"),
    [
        (Extent.FULL, ["netns-turns-100", "uml-turns-100", "uml-one-processor"]),
        (Extent.QUICK, ["uml-turns-100", "uml-one-processor"]),
        (Extent.SMOKE, ["netns-turns-100"]),
    ],
)
def test_whole_guests_take_turns_wherever_the_machine_has_them(
    monkeypatch: pytest.MonkeyPatch, extent: Extent, expected: list[str]
) -> None:
    monkeypatch.setattr(orbit, "has_theirs", lambda: True)
    found = [one.name for one in orbit.platforms(["netns"], turns=(100,), theirs=extent)]
    assert found == ["native", "netns", *expected]
    monkeypatch.setattr(orbit, "has_theirs", lambda: False)
    assert orbit.platforms(["netns"], turns=(100,), theirs=extent)[-1].name == "netns-turns-100"


def test_platforms_with_turns_have_names_of_their_own() -> None:
    names = [Platform(kind, 2, turns=100).name for kind in ("netns", "uml")]
    assert names == ["netns-turns-100", "uml-turns-100"]
    shifted = Platform("uml", 2, turns=100, phase=50)
    assert shifted.name == "uml-turns-100-phase-50"
    assert shifted.label == "two slices of uml, guests in turns of 100 ms, 50 ms later at the receiver"
