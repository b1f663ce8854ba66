"""Numbers of radios of this machine's kernel, and their place in the description of a node."""

from __future__ import annotations

from typing import Any

import pytest

from airloom.errors import RunError
from airloom.nodes import kernel_radios
from airloom.nodes.kernel_radios import KernelRadios
from airloom.nodes.spec import spec_of
from airloom.planning.gate import check
from airloom.planning.plan import NodePlan, Plan
from airloom.scenario.model import Scenario


class Device:
    """Radios to which the kernel gives numbers from 7 on."""

    made: int = 0

    @classmethod
    def of_kernel(cls, count: int) -> Device:
        cls.made = count
        return cls()

    def numbers(self) -> list[int]:
        return list(range(7, 7 + self.made))


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setattr(kernel_radios._engine, "WlanDevice", Device)
    kinds = {"a": "netns", "b": "uml", "c": "netns", "d": "netns"}
    nodes: dict[str, dict[str, Any]] = {
        name: {"kind": kind, "position": ["0 m", "0 m"], "radios": {"wlan0": {}}}
        for name, kind in kinds.items()
    }
    nodes["d"]["radios"] = {"wlan0": {"device": "ethernet"}, "wlan1": {}}
    media = {"air": {"radio": {"device": "wlan"}}}
    return check(Scenario.model_validate({"name": "x", "media": media, "nodes": nodes})).plans[0]


def test_nodes_on_this_kernel_share_its_numbers(plan: Plan) -> None:
    numbers = {
        (name, one.name): one.wlan.number
        for name, node in plan.nodes.items()
        for one in node.interfaces
        if one.wlan is not None
    }
    assert numbers == {("a", "wlan0"): 0, ("b", "wlan0"): 0, ("c", "wlan0"): 1, ("d", "wlan1"): 2}
    assert plan.has_taps, "d has an Ethernet radio"


def test_the_description_has_the_kernels_numbers_and_no_tap(plan: Plan) -> None:
    radios = KernelRadios(plan.nodes.values())

    def described(node: NodePlan) -> list[tuple[int | None, bool]]:
        interfaces = spec_of(node, set(), radios.numbers([node]))["interfaces"]
        return [(one["radio"], one["tap"]) for one in interfaces]

    assert described(plan.nodes["a"]) == [(7, False)]
    assert described(plan.nodes["d"]) == [(None, True), (9, False)]
    assert Device.made == 3, "that of the guest is not one of them"


def test_no_radio_is_made_that_no_node_needs(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Device, "of_kernel", lambda count: pytest.fail("not needed"))
    radios = KernelRadios([plan.nodes["b"]])
    assert radios.device is None
    assert radios.numbers([]) == []


def test_a_running_laboratory_gets_no_more_of_them(plan: Plan) -> None:
    radios = KernelRadios([plan.nodes["a"]])
    with pytest.raises(RunError, match="d cannot be added: a running laboratory gets no more wireless"):
        radios.numbers([plan.nodes["d"]])
