"""How the engine's devices treat a machine's guest: defaults, and what overrides what."""

from __future__ import annotations

from typing import Any

from airloom.planning.gate import check
from airloom.planning.plan import HandlingPlan
from airloom.scenario.model import Scenario


def handling(nodes: dict[str, Any], **more: Any) -> dict[str, HandlingPlan]:
    described = {"name": "test", "kind": "uml", "nodes": nodes, "links": [{"ends": list(nodes)}]} | more
    plan = check(Scenario.model_validate(described)).plans[0]
    return {name: node.guest.handling for name, node in plan.nodes.items() if node.guest is not None}


def test_each_mode_has_its_defaults() -> None:
    def said(**machine: Any) -> HandlingPlan:
        return handling({"a": {"guest": machine}, "b": {}})["a"]

    assert said() == HandlingPlan("off", None, None, "direct", None)
    for mode, frames, time in (("count", 8, 1_000_000), ("time", None, 200_000), ("adaptive", 32, 200_000)):
        assert said(notifications={"mode": mode}) == HandlingPlan(mode, frames, time)
    given = said(notifications={"mode": "adaptive", "frames": 4, "time": "3 ms"})
    assert given == HandlingPlan("adaptive", 4, 3_000_000)
    for mode, entries in (("bounce", None), ("strict", None), ("cached", 64), ("merged", 64)):
        assert said(translation={"mode": mode}) == HandlingPlan(translation=mode, entries=entries)
    assert said(translation={"mode": "cached", "entries": 128}).entries == 128


def test_a_machine_overrides_the_scenario_and_shared_guests_have_their_own() -> None:
    found = handling(
        {"a": {"guest": {"notifications": {"mode": "off"}}}, "b": {"inside": "box"}},
        guest={"notifications": {"mode": "time"}, "translation": {"mode": "strict"}},
        guests={"box": {"translation": {"mode": "cached", "entries": 8}}},
    )
    assert found["a"] == HandlingPlan(translation="strict")
    assert found["b"] == HandlingPlan("time", None, 200_000, "cached", 8)


def test_a_default_of_the_scenario_leaves_nodes_without_a_machine_alone() -> None:
    found = handling({"a": {}, "b": {"kind": "netns"}}, guest={"notifications": {"mode": "count"}})
    assert found == {"a": HandlingPlan("count", 8, 1_000_000)}
