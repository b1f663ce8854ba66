"""Graph files in the form of the Topology Zoo and of SNDlib: names, rates and delays of the plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx
import pytest

from airloom.errors import ScenarioError
from airloom.planning.gate import check
from airloom.planning.plan import Plan
from airloom.scenario.model import Scenario
from airloom.scenario.topology import builders
from airloom.scenario.topology.geography import fibre_delay, great_circle
from helpers import REPOSITORY

GRAPHS = REPOSITORY / "tests" / "data" / "graphs"


def plan(file: str, attributes: dict[str, Any] | None = None, **link: Any) -> Plan:
    topology = {
        "generator": "graphml",
        "file": str(GRAPHS / file),
        "link": link,
        **({} if attributes is None else {"attributes": attributes}),
    }
    return check(Scenario(name="x", topology=topology)).plans[0]  # type: ignore[arg-type]


def test_a_quarter_of_the_equator_is_ten_thousand_kilometres() -> None:
    assert great_circle((0, 0), (0, 90)) == pytest.approx(10_007_557, abs=1)
    assert great_circle((90, 0), (-90, 123)) == pytest.approx(20_015_115, abs=1)
    assert great_circle((10, 179), (10, -179)) == pytest.approx(great_circle((10, 0), (10, 2)))


def test_light_in_fibre_takes_5_us_for_a_kilometre() -> None:
    degree = great_circle((0, 0), (1, 0)) / 1000
    assert fibre_delay((0, 0), (1, 0)) / degree == pytest.approx(5003.46, abs=0.01)
    assert fibre_delay((12.5, 7), (12.5, 7)) == 0


def test_the_topology_zoo_gives_names_rates_and_delays() -> None:
    found = plan("zoo.graphml")
    assert list(found.nodes) == ["Zurich", "Geneva-CERN", "Zurich-2", "3"]
    links = {name: (link.forward.rate, link.forward.delay) for name, link in found.links.items()}
    # 224.3 km of great circle
    assert links == {
        "Zurich-Geneva-CERN": (10_000_000_000, pytest.approx(1_122_000, abs=2_000)),
        "Zurich-Zurich-2": (None, 0),
        "Geneva-CERN-3": (155_000_000, 0),
    }
    assert all(link.forward == link.backward for link in found.links.values())


def test_what_is_not_read_is_said() -> None:
    assert plan("zoo.graphml").notes == (
        "attributes of the graph that are not read: node Country, Internal; "
        "edge LinkLabel, LinkSpeed, LinkSpeedUnits",
        "edges without a delay, because an end has no coordinates: Geneva-CERN-3",
    )
    assert plan("sndlib.graphml").notes == (
        "attributes of the graph that are not read: node x, y; edge capacity",
    )


def test_the_scenario_chooses_what_is_read() -> None:
    found = plan("zoo.graphml", {"name": None, "latitude": None, "rate": None}, rate="1 Mbit/s", delay="7 ms")
    assert list(found.nodes) == ["0", "1", "2", "3"]
    assert {(link.forward.rate, link.forward.delay) for link in found.links.values()} == {
        (1_000_000, 7_000_000)
    }


def test_sndlib_gives_capacities_and_coordinates() -> None:
    found = plan(
        "sndlib.graphml",
        {"latitude": "y", "longitude": "x", "rate": "capacity", "rate_unit": "1 Mbit/s"},
    )
    links = {name: (link.forward.rate, link.forward.delay) for name, link in found.links.items()}
    assert links == {
        "Berlin-Hamburg": (622_080_000, fibre_delay((52.52, 13.48), (53.55, 10.0))),
        "Berlin-Leipzig": (2_488_320_000, fibre_delay((52.52, 13.48), (51.34, 12.38))),
    }
    assert found.notes == ()


def test_an_edges_own_properties_take_precedence() -> None:
    graph = networkx.Graph()
    graph.add_node("a", Latitude=1.0, Longitude=2.0, label="north")
    graph.add_node("b", Latitude=0.0, Longitude=2.0)
    graph.add_edge("a", "b", LinkSpeedRaw=2e6, rate="1 Mbit/s", delay="3 ms")
    scenario = Scenario(name="x", **builders.from_networkx(graph, delay="9 ms"))
    (found,) = check(scenario).plans
    assert list(found.nodes) == ["a", "b"], "names are the graph's keys"
    assert [(link.forward.rate, link.forward.delay) for link in found.links.values()] == [
        (1_000_000, 3_000_000)
    ]


@pytest.mark.parametrize(
    ("node", "edge", "message"),
    [
        ({"Latitude": 91.0, "Longitude": 0.0}, {}, "node a: Latitude: 91.0 is not a number from -90 to 90"),
        ({"Latitude": "here", "Longitude": 0.0}, {}, "node a: Latitude: 'here' is not a number"),
        ({"Longitude": 0.0}, {}, "node a: it has Longitude, and no Latitude"),
        ({}, {"LinkSpeedRaw": 0.0}, "edge a-b: LinkSpeedRaw: 0.0 is not a number from 1 to 1e"),
        ({}, {"LinkSpeedRaw": float("nan")}, "edge a-b: LinkSpeedRaw: nan is not a number from 1 to 1e"),
    ],
)
def test_a_value_that_means_nothing_is_refused(
    node: dict[str, Any], edge: dict[str, Any], message: str
) -> None:
    graph = networkx.Graph()
    graph.add_node("a", **node)
    graph.add_edge("a", "b", **edge)
    with pytest.raises(ScenarioError) as caught:
        builders.from_networkx(graph)
    assert caught.value.code == "topology.attribute"
    assert caught.value.message.startswith(message)


def links_of(found: Plan) -> dict[str, tuple[int | None, int]]:
    return {name: (link.forward.rate, link.forward.delay) for name, link in found.links.items()}


def test_gml_of_the_topology_zoo_is_read_as_its_graphml_is() -> None:
    found = plan("zoo.gml")
    assert list(found.nodes) == ["Brasilia", "Sao-Paulo", "Sao-Paulo-2"]
    apart = fibre_delay((-15.77972, -47.92972), (-23.5475, -46.63611))
    assert links_of(found) == {
        "Brasilia-Sao-Paulo": (10_000_000_000, apart),
        "Brasilia-Sao-Paulo-2": (2_500_000_000, apart),
        "Sao-Paulo-Sao-Paulo-2": (None, 0),
    }
    assert "edges from a node to itself, which are left out: Sao-Paulo-2" in found.notes


def test_a_graph_of_shadow_gives_each_direction_its_own_properties() -> None:
    found = plan("shadow.gml")
    (link,) = found.links.values()
    assert (link.forward.rate, link.forward.delay, link.forward.loss) == (2_000_000, 30_000_000, 0.02)
    assert link.forward.engine()["jitter"] == {"uniform": {"spread_ns": 3_000_000}}
    assert (link.backward.rate, link.backward.delay, link.backward.loss) == (20_000_000, 10_000_000, 0.0)
    assert link.backward.jitter is None
    assert any("host_bandwidth_up" in note for note in found.notes)


def test_a_latency_without_a_unit_is_in_milliseconds_and_says_so() -> None:
    found = plan("numeric.gml")
    assert links_of(found) == {"a-b": (None, 12_500_000)}
    assert any(note.startswith("'latency' is taken as multiples of 1 ms") for note in found.notes)
    chosen = plan("numeric.gml", {"delay_unit": "1 us"})
    assert links_of(chosen) == {"a-b": (None, 12_500)}
    assert not any("latency" in note for note in chosen.notes)


@pytest.mark.parametrize("file", ["sndlib.xml", "sndlib.txt"])
def test_both_forms_of_sndlib_are_read_as_they_are(file: str) -> None:
    found = plan(file)
    assert links_of(found) == {
        "Berlin-Hamburg": (622_080_000, fibre_delay((52.52, 13.48), (53.55, 10.0))),
        "Berlin-Leipzig": (40_000_000, fibre_delay((52.52, 13.48), (51.34, 12.38))),
    }
    assert found.notes == (
        "capacities are taken as multiples of 1 Mbit/s ('rate_unit')",
        "parts of the file that are not read: demands",
    )
    faster = plan(file, {"rate_unit": "10 Mbit/s"})
    assert faster.links["Berlin-Leipzig"].forward.rate == 400_000_000


def test_edges_of_a_node_to_itself_are_left_out_and_parallel_ones_kept() -> None:
    found = plan("loops.graphml")
    assert [link.forward.rate for link in found.links.values()] == [1_000_000_000, 155_000_000]
    assert found.notes == ("edges from a node to itself, which are left out: Dubai",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph [ node [ id 1 ] edge [ source 1 target 2 ] ]", "line 1: an edge ends at the node 2"),
        ("graph [\n node [ label 1 ]\n]", "line 2: a node has no id"),
        ("graph [\n node [ id 1 ]\n node [ id 1 ]\n]", "line 3: two nodes have the id 1"),
        ("graph [\n node [ id 1 ]", "line 1: the list that begins here has no ']'"),
        ("graph [ ] ]", "line 1: a ']' that closes nothing"),
        ("graph [\n node [ id ; ]", "line 2: ';"),
    ],
)
def test_what_is_wrong_in_gml_has_its_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.gml").write_text(text)
    with pytest.raises(ScenarioError) as caught:
        plan(str(tmp_path / "x.gml"))
    assert caught.value.message.startswith(f"not a valid GML file: {message}")


@pytest.mark.parametrize(
    ("text", "name", "cure"),
    [
        ("digraph net {\n a -> b;\n}", "Graphviz DOT", "gv2gml"),
        ("<gexf version='1.3'></gexf>", "GEXF", "read_gexf"),
        ("<fcd-export></fcd-export>", "a SUMO floating-car trace", "mobility"),
        ("name: x\ntopology:\n  nodes:\n    a: {kind: linux}\n    kind: linux\n", "containerlab", "import"),
        ('router[0]="A"\nrouter[image]="kathara/frr"\n', "a Kathara lab.conf", "import"),
        ("$node_(0) set X_ 1.0\n", "an ns-2 movement", "mobility"),
        ("name: x\nnodes: {a: {}}\n", "a scenario of Airloom", "airloom run"),
    ],
)
def test_a_file_of_another_kind_is_named_with_its_cure(
    text: str, name: str, cure: str, tmp_path: Path
) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(ScenarioError) as caught:
        plan(str(tmp_path / "x"))
    assert caught.value.message == f"the file is {name}, which is not read here"
    assert cure in (caught.value.cure or "")
