"""Sets of processors: mapped to the machine, exclusive or shared, for every element of a scenario."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from airloom.errors import ScenarioError
from airloom.planning.gate import check
from airloom.planning.machine import cpus
from airloom.planning.plan import CpusPlan, Plan
from airloom.scenario.model import Scenario

HERE = {"position": ["0 m", "0 m"]}
RADIOS = {"wlan0": {}, "wlan1": {}}


@pytest.fixture(autouse=True)
def _four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "available", lambda: (0, 1, 2, 3))
    monkeypatch.setattr(cpus, "_may", lambda act: True)


def plan(nodes: dict[str, Any], **more: Any) -> Plan:
    links = [] if "media" in more else [{"ends": list(nodes)[:2]}]
    described = {"name": "test", "nodes": nodes, "links": links} | more
    return check(Scenario.model_validate(described)).plans[0]


def processors(found: Plan) -> dict[str, tuple[int, ...]]:
    return {name: node.cpus.processors if node.cpus else () for name, node in found.nodes.items()}


def test_without_the_word_nothing_is_set() -> None:
    found = plan({"a": {}, "b": {}})
    assert [node.cpus for node in found.nodes.values()] == [None, None]
    assert found.engine_processors == ()


def test_names_share_one_processor_each_and_own_ones_are_theirs_alone() -> None:
    found = plan(
        {"a": {"cpus": {"shared": "pair"}}, "b": {"cpus": {"shared": "pair"}}, "c": {"cpus": "one"}, "d": {}},
        engine={"cpus": {"shared": "rest"}},
        links=[{"ends": ["a", "b"]}, {"ends": ["c", "d"]}],
    )
    assert found.engine_processors == (3,)
    # The exclusive one is withheld from a node without a set.
    assert processors(found) == {"a": (2,), "b": (2,), "c": (1,), "d": (0, 2, 3)}


def test_numbers_are_taken_as_they_are_and_no_name_gets_them() -> None:
    found = plan({"a": {"cpus": [3, 1]}, "b": {"cpus": {"shared": "x"}}}, engine={"cpus": 2})
    assert processors(found) == {"a": (1, 3), "b": (0,)}
    assert found.engine_processors == (2,)


def test_one_word_puts_everything_on_one_processor_or_each_on_its_own() -> None:
    together = plan({"a": {}, "b": {}}, cpus={"shared": "all"})
    assert (processors(together), together.engine_processors) == ({"a": (3,), "b": (3,)}, (3,))
    apart = plan({"a": {}, "b": {}}, cpus="one")
    assert (processors(apart), apart.engine_processors) == ({"a": (2,), "b": (1,)}, (3,))


def test_exclusive_numbers_of_one_place_are_one_set() -> None:
    found = plan({"a": {}, "b": {}}, cpus={"processors": [0, 1], "exclusive": True})
    assert processors(found) == {"a": (0, 1), "b": (0, 1)}


def test_slivers_and_shared_guests_have_sets_too() -> None:
    found = plan(
        {"n1": {"radios": RADIOS, **HERE}, "n2": {"radios": RADIOS, **HERE}},
        media={"air": {"radio": {}}},
        slices={
            "one": {
                "grant": {"nodes": ["n1", "n2"], "channels": [36]},
                "node": {"cpus": {"shared": "one", "nice": 2}},
            },
            "two": {"grant": {"nodes": ["n1", "n2"], "channels": [64]}},
        },
    )
    assert processors(found) == {"n1-one": (3,), "n2-one": (3,), "n1-two": (), "n2-two": ()}
    assert found.nodes["n1-one"].cpus == CpusPlan((3,), nice=2)
    box = plan({"a": {"inside": "g"}, "b": {}}, guests={"g": {"kind": "uml", "cpus": 1}})
    assert box.nodes["a"].cpus is None
    assert box.nodes["a"].guest is not None
    assert box.nodes["a"].guest.cpus == CpusPlan((1,))


def test_the_keys_of_a_guest_still_mean_the_same() -> None:
    said = {"processors": [2], "nice": 4, "policy": "batch"}
    found = plan({"a": {"kind": "uml", "guest": said}, "b": {}})
    assert found.nodes["a"].cpus == CpusPlan((2,), "batch", nice=4)
    assert found.nodes["b"].cpus is None


def test_with_one_share_every_node_has_a_weight() -> None:
    found = plan({"a": {"cpus": {"share": 3}}, "b": {}})
    a, b = (found.nodes[name].cpus for name in "ab")
    assert (a, b) == (CpusPlan(share=3.0), CpusPlan(share=1.0, share_as_nice=5))


@pytest.mark.parametrize("ratio", [1.0, 1.3, 3.0, 10.0, 69.0])
def test_nice_values_hold_a_ratio_within_an_eighth(ratio: float) -> None:
    # Linux, sched_prio_to_weight: 1024 at nice 0, 335 at 5, 110 at 10, 15 at 19.
    weights = [1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15]
    nice = cpus.nice_of(1.0, ratio)
    assert abs(math.log(1024 / weights[nice] / ratio)) < math.log(1.125)


def test_two_mistakes_of_one_place_are_one_error(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        plan({"a": {}, "b": {}}, cpus={"share": 2, "nice": 3})
    assert caught.value.code == "cpus.share"
    assert caught.value.further == ()


def test_the_short_forms_survive_yaml() -> None:
    scenario = Scenario.from_yaml(
        "name: t\ncpus: one\nengine: {cpus: 0}\nnodes: {a: {cpus: [0, 1]}, b: {cpus: {shared: x}}}\n"
        "links: [{ends: [a, b]}]\n"
    )
    assert Scenario.from_yaml(scenario.to_yaml()) == scenario


def test_rights_are_found_by_trying(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    def refuse() -> None:
        raise PermissionError

    assert cpus._may(lambda: None)
    assert not cpus._may(refuse)
