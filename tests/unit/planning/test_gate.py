"""The gate: overrides, sweeps, seeds, events and the Python API."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import airloom
from airloom.errors import ScenarioError
from airloom.planning.gate import check
from airloom.planning.links import encoding
from airloom.planning.links.link_settings import LinkSettings, QueueSettings
from airloom.scenario import read
from airloom.scenario.model import (
    Direction,
    Event,
    Link,
    Measurement,
    Node,
    Ping,
    Program,
    Queue,
    Scenario,
)
from airloom.scenario.topology import builders
from airloom.units.quantities import Duration, Rate
from helpers import REPOSITORY

NEEDS_IMAGE = "containers"
"""An example whose image has to be made first; tests/e2e/test_cookbook.py checks it."""
EXAMPLES = sorted(
    path
    for path in (REPOSITORY / "examples").rglob("*.yaml")
    if path.stem != NEEDS_IMAGE and path.parent.name != "grid"
)
"""All scenarios; the files of examples/grid are inventories."""

NET = """\
name: net
nodes: {h1: {}, h2: {}, h3: {}}
links:
  - {ends: [h1, h2], rate: 10 Mbit/s}
  - {ends: [h2, h3], name: far}
"""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.yaml"
    path.write_text(NET, encoding="utf-8")
    return path


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_passes_and_comes_back_from_its_own_yaml(path: Path) -> None:
    for plan in check(path).plans:
        assert read(plan.scenario.to_yaml()) == plan.scenario


@pytest.mark.parametrize(
    ("option", "look"),
    [
        (
            "links[0].rate=5 Mbit/s",
            lambda plan: plan.links["h1-h2"].forward.rate == 5_000_000,
        ),
        ("links[h1-h2].delay=7 ms", lambda plan: plan.links["h1-h2"].backward.delay == 7_000_000),
        (
            "links[far].loss=1 %",
            lambda plan: plan.links["far"].forward.loss == 0.01,
        ),
        ("links[*].mtu=9000", lambda plan: all(link.forward.mtu == 9000 for link in plan.links.values())),
        ("nodes.h1.cpu=50 %", lambda plan: plan.nodes["h1"].cpu == 0.5),
        ("nodes.h4={}", lambda plan: "h4" in plan.nodes),
        ("seed=7", lambda plan: plan.seed == 7),
        ("addresses.ipv4=192.168.0.0/16", lambda plan: plan.hosts["h1"] == "192.168.0.1"),
    ],
)
def test_an_option_changes_one_value(net: Path, option: str, look: Any) -> None:
    (plan,) = check(net, [option]).plans
    assert look(plan)


def test_options_can_be_a_mapping_and_the_last_one_wins(net: Path) -> None:
    (plan,) = check(net, {"links[0].rate": "5 Mbit/s", "seed": 3}, seed=4).plans
    assert plan.links["h1-h2"].forward.rate == 5_000_000
    assert plan.seed == 4


def test_a_direction_differs_from_its_link_where_it_says_so() -> None:
    link = Link(
        ends=("a", "b"),
        rate="10 Mbit/s",
        delay="2 ms",
        backward=Direction(rate="1 Mbit/s", queue=Queue(packets=5)),
    )
    (plan,) = check(Scenario(name="x", nodes={"a": Node(), "b": Node()}, links=[link])).plans
    there, back = plan.links["a-b"].forward, plan.links["a-b"].backward
    assert there == LinkSettings(rate=10_000_000, delay=2_000_000)
    assert back == LinkSettings(rate=1_000_000, delay=2_000_000, queue=QueueSettings(packets=5))


def test_a_change_replaces_what_it_names_and_keeps_the_rest() -> None:
    before = encoding.link(Direction(rate="10 Mbit/s", delay="2 ms", loss=0.5, jitter={"normal": "1 ms"}))
    after = encoding.changed(before, Direction(rate="unlimited", loss=0, jitter="none"))
    assert after == LinkSettings(delay=2_000_000)
    assert before.rate == 10_000_000


def test_a_queue_limited_by_size_or_time_has_no_other_limit() -> None:
    assert encoding.link(Direction(queue=Queue(time="5 ms"))).engine()["queue"] == {
        "packets": None,
        "octets": None,
        "time_ns": 5_000_000,
        "discipline": "drop-tail",
        "ecn": False,
    }
    assert encoding.link(Direction(queue=Queue(discipline="codel"))).engine()["queue"]["packets"] == 1000


def test_a_sweep_is_a_grid_of_points_with_seeds_of_their_own() -> None:
    scenario = Scenario(
        name="x",
        topology=builders.chain(2),
        sweep={"topology.nodes": [2, 3], "topology.link.delay": ["1 ms", "2 ms"]},
        repetitions=2,
    )
    plans = check(scenario).plans
    assert [(*plan.point.values(), plan.repetition) for plan in plans] == [
        (nodes, delay, repetition) for nodes in (2, 3) for delay in ("1 ms", "2 ms") for repetition in (0, 1)
    ]
    assert [len(plan.nodes) for plan in plans] == [2, 2, 2, 2, 3, 3, 3, 3]
    assert plans[2].links["n1-n2"].forward.delay == 2_000_000
    assert len({plan.seed for plan in plans}) == len(plans)


def test_a_labelled_path_sweeps_the_same_points() -> None:
    shape = builders.chain(2)
    plain = Scenario(name="x", topology=shape, sweep={"topology.nodes": [2, 3]})
    labelled = {"topology.nodes": {"label": "nodes", "values": [2, 3]}}
    made = Scenario.from_yaml(Scenario(name="x", topology=shape, sweep=labelled).to_yaml())
    assert made.swept["topology.nodes"].label == "nodes"
    seeds = [[plan.seed for plan in check(one).plans] for one in (plain, made)]
    assert seeds[0] == seeds[1]


def test_a_point_keeps_its_seed_when_the_sweep_grows_and_differs_by_base_seed() -> None:
    def seeds(values: list[int], seed: int) -> dict[int, int]:
        scenario = Scenario(name="x", seed=seed, topology=builders.chain(2), sweep={"topology.nodes": values})
        return {plan.point["topology.nodes"]: plan.seed for plan in check(scenario).plans}

    assert seeds([2, 5], 1) == {key: value for key, value in seeds([5, 4, 3, 2], 1).items() if key in (2, 5)}
    assert seeds([2], 1) != seeds([2], 2)
    # Fixed for ever: results name their seed, and others must be able to derive it.
    assert seeds([2], 1) == {2: 6446882486376304482}


@pytest.mark.parametrize("shape", [builders.random(9, 0.3), builders.chain(3)])
def test_a_run_can_be_repeated_from_its_own_scenario(shape: Any) -> None:
    scenario = Scenario(
        name="x", topology=shape, sweep={"topology.link.delay": ["1 ms", "2 ms"]}, repetitions=2
    )
    for plan in check(scenario).plans:
        (again,) = check(read(plan.scenario.to_yaml())).plans
        assert (again.seed, again.nodes, again.links) == (plan.seed, plan.nodes, plan.links)


def test_the_random_topology_is_the_same_at_all_points() -> None:
    scenario = Scenario(
        name="x", topology=builders.random(9, 0.3), sweep={"limits.steal": [0.1, 0.2]}, repetitions=3
    )
    assert len({tuple(plan.links) for plan in check(scenario).plans}) == 1


def test_the_ends_of_a_swept_topology_have_names() -> None:
    scenario = Scenario(
        name="x",
        topology=builders.chain(2),
        programs=[Program(node="$last", run="iperf3 -s")],
        events=[Event(at="1 s", node="$first", action="stop")],
        measurements=[Measurement(name="rtt", ping=Ping(source="$first", to="$last"))],
        sweep={"topology.nodes": [2, 5]},
    )
    plans = check(scenario).plans
    assert [
        (plan.scenario.measurements[0].tool.source, plan.scenario.measurements[0].tool.to) for plan in plans
    ] == [
        ("n1", "n2"),
        ("n1", "n5"),
    ]
    assert [(plan.scenario.programs[0].node, plan.scenario.programs[0].name) for plan in plans] == [
        ("n2", "n2-iperf3"),
        ("n5", "n5-iperf3"),
    ]
    assert [plan.scenario.events[0].node for plan in plans] == ["n1", "n1"]


def test_programs_get_names_by_which_events_can_speak_of_them() -> None:
    scenario = Scenario(
        name="x",
        nodes={"h1": Node(), "h2": Node()},
        links=[Link(ends=("h1", "h2"))],
        programs=[
            Program(node="h1", run="/usr/sbin/babeld eth0"),
            Program(node="h1", run=["babeld"]),
            Program(node="h2", run="sh -c 'exit 0'", name="shell"),
        ],
        events=[Event(at="1 s", program="h1-babeld", action="stop")],
    )
    (plan,) = check(scenario).plans
    assert [program.name for program in plan.scenario.programs] == ["h1-babeld", "h1-babeld-2", "shell"]


def test_files_are_found_beside_the_scenario_and_named_absolutely(tmp_path: Path) -> None:
    (tmp_path / "link.trace").write_text("# opportunities\n1\n2\n2\n", encoding="ascii")
    (tmp_path / "net.yaml").write_text(
        "name: x\nnodes: {a: {}, b: {}}\nlinks: [{ends: [a, b], trace: link.trace}]\n", encoding="utf-8"
    )
    (plan,) = check(tmp_path / "net.yaml").plans
    link = plan.links["a-b"].forward
    assert (link.engine()["counts"], link.engine()["overhead"]) == ("packet", 4)
    assert link.mean_rate == 3 * 1500 * 8 * 500, "in check and reports, packets of 1500 octets"
    assert link.engine()["rate"] == {
        "trace": {
            "opportunities_ns": [1_000_000, 2_000_000, 2_000_000],
            "period_ns": 2_000_000,
            "octets": 1504,
        }
    }
    assert plan.scenario.links[0].trace == str(tmp_path / "link.trace")


def test_a_table_of_delays_may_be_negative_and_is_sorted(tmp_path: Path) -> None:
    (tmp_path / "delays").write_text("0.2 ms\n-0.1 ms # early\n", encoding="ascii")
    (tmp_path / "net.yaml").write_text(
        "name: x\nnodes: {a: {}, b: {}}\nlinks: [{ends: [a, b], jitter: {table: delays}}]\n", encoding="utf-8"
    )
    (plan,) = check(tmp_path / "net.yaml").plans
    assert plan.links["a-b"].forward.engine()["jitter"] == {"table": {"values_ns": [-100_000, 200_000]}}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Link(ends=("a", "b"), dealy="5 ms"),
        lambda: Link(ends=("a", "b"), delay=5),
        lambda: Ping(to="b"),
        lambda: Scenario(name="x", nodes={"a b": Node()}),
        lambda: builders.chain("3"),
        lambda: Duration("5"),
        lambda: read("name: [x"),
    ],
)
def test_python_meets_the_same_errors(make: Any) -> None:
    with pytest.raises(ScenarioError):
        make()


def test_a_scenario_in_python_is_the_one_in_yaml() -> None:
    made = Scenario(
        name="net",
        nodes={"h1": Node(), "h2": Node(cpu="50 %")},
        links=[Link(ends=("h1", "h2"), rate=Rate(10_000_000), addresses=(["10.0.0.1/24"], []))],
        measurements=[Measurement(name="rtt", ping=Ping(source="h1", to="h2", interval="10 ms"))],
    )
    said = read(
        "name: net\n"
        "nodes: {h1: , h2: {cpu: 50 %}}\n"
        "links: [{ends: [h1, h2], rate: 10 Mbit/s, addresses: [[10.0.0.1/24], ]}]\n".replace(", ]", ", []]")
        + "measurements: [{name: rtt, ping: {from: h1, to: h2, interval: 10 ms}}]\n"
    )
    assert made == said
    assert read(made.to_yaml()) == made
    assert "from: h1" in made.to_yaml()


@given(st.integers(2, 6), st.integers(1, 3), st.sampled_from(["1 ms", "2 ms"]), st.booleans())
def test_scenarios_come_back_from_yaml(nodes: int, repetitions: int, delay: str, switched: bool) -> None:
    scenario = Scenario(
        name="x",
        topology=builders.chain(
            nodes, switched=switched, delay=delay, loss={"good_to_bad": 0.1, "bad_to_good": "5 %"}
        ),
        repetitions=repetitions,
        sweep={"topology.link.delay": [delay]},
    )
    assert read(scenario.to_yaml()) == scenario


def test_a_networkx_graph_becomes_nodes_and_links(tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_node("core", kind="switch")
    graph.add_edge("a 1", "core", rate="10 Mbit/s", weight=3)
    graph.add_edge("b", "core")
    (plan,) = check(Scenario(name="x", **builders.from_networkx(graph, delay="1 ms"))).plans
    assert set(plan.nodes) == {"a-1", "b"}
    assert set(plan.switches) == {"core"}
    assert [(link.forward.rate, link.forward.delay) for link in plan.links.values()] == [
        (10_000_000, 1_000_000),
        (None, 1_000_000),
    ]
    networkx.write_graphml(graph, tmp_path / "graph.graphml")
    (same,) = check(
        Scenario(name="x", topology=builders.graphml(str(tmp_path / "graph.graphml"), delay="1 ms"))
    ).plans
    assert same.links == plan.links
    graph.add_edge("b", "b")
    with pytest.warns(UserWarning, match="to themselves"):
        kept = builders.from_networkx(graph)["links"]
    assert {frozenset(link.ends) for link in kept} == {frozenset({"a-1", "core"}), frozenset({"b", "core"})}


def test_importing_scenarios_loads_nothing_heavy() -> None:
    heavy = "'pandas', 'matplotlib', 'scipy', 'numpy', 'networkx', 'pyarrow', 'rich'"
    ours = "airloom.planning.gate, airloom.scenario.topology.builders"
    code = f"import sys, {ours}; print([m for m in ({heavy},) if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_package_exports_the_gate() -> None:
    assert airloom.Scenario is Scenario
    assert airloom.check is check
