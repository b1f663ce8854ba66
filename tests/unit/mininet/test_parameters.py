"""The table of parameters: complete against the constructors, and the same in the documentation."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airloom.mininet import controllers, hosts, link, net, nodelib, switches, traffic_control
from airloom.mininet.parameters import PARAMETERS

DOCUMENT = Path(__file__).parents[3] / "docs/guide/mininet.md"
NOT_OF_USERS = {"self", "name", "node1", "node2", "args", "kwargs", "_kwargs", "params", "_params"}

CALLS: list[tuple[str, Callable[..., Any]]] = [
    ("Link, addLink", link.Link.__init__),
    ("Link, addLink", net.Mininet.addLink),
    ("Intf.config", link.Intf.config),
    ("TCLink, TCIntf.config", traffic_control.direction),
    ("Node, addHost", hosts.Node.__init__),
    ("Node, addHost", hosts.Node.config),
    ("Node, addHost", net.Mininet.addHost),
    ("CPULimitedHost", hosts.CPULimitedHost.__init__),
    ("CPULimitedHost", hosts.CPULimitedHost.config),
    ("Switch, addSwitch", switches.Switch.__init__),
    ("Switch, addSwitch", net.Mininet.addSwitch),
    ("OVSSwitch", switches.OVSSwitch.__init__),
    ("UserSwitch", switches.UserSwitch.__init__),
    ("Controller", controllers.Controller.__init__),
    ("NAT, addNAT", nodelib.NAT.__init__),
    ("Mininet", net.Mininet.__init__),
]


@pytest.mark.parametrize(("call", "function"), CALLS)
def test_no_parameter_is_left_out(call, function):
    known = {one.name for one in PARAMETERS if one.call in (call, "Switch, addSwitch")}
    assert set(inspect.signature(function).parameters) - NOT_OF_USERS <= known


def test_the_table_of_the_documentation_is_that_of_the_code():
    text = DOCUMENT.read_text()
    start = text.index("| call | parameter | outcome | |\n| --- | --- | --- | --- |\n")
    rows = text[start:].split("\n\n")[0].splitlines()[2:]
    assert rows == [f"| {one.call} | `{one.name}` | {one.outcome} | {one.how} |" for one in PARAMETERS]


def test_every_parameter_is_there_once():
    named = [(one.call, one.name) for one in PARAMETERS if one.name not in ("sched", "protocol")]
    assert len(named) == len(set(named))
