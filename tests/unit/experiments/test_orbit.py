"""ORBIT's platforms: where the slivers of each run."""

from __future__ import annotations

import pytest

from airloom.experiments import orbit
from airloom.experiments.extent import Extent
from airloom.experiments.orbit import Grid, Platform
from airloom.planning import cpus
from airloom.planning.gate import check
from airloom.planning.plan import Plan


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
