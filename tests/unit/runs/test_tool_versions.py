from __future__ import annotations

from typing import Any

from airloom import check
from airloom.errors import RunError
from airloom.measure.tool import Step
from airloom.nodes.kind import Completed, Exit
from airloom.runs.tool_versions import tool_versions
from airloom.scenario.model import Scenario


class Node:
    """A node whose programs print one text each."""

    def __init__(self, stdout: str = "", stderr: str = "", ended: bool = False) -> None:
        self.completed = Completed(stdout, stderr, Exit(0))
        self.ended = ended
        self.asked: list[list[str]] = []

    def exec(self, argv: Any, **_: Any) -> Completed:
        self.asked.append(list(argv))
        if self.ended:
            raise RunError("node.gone", "the node has ended")
        return self.completed


def plans(**kinds: str) -> Any:
    nodes = {name: {"kind": kind} for name, kind in kinds.items()}
    links = [{"ends": [name, "s1"]} for name in kinds]
    scenario = {"name": "t", "nodes": nodes, "links": links, "switches": {"s1": {}}}
    return check(Scenario.model_validate(scenario)).plans[0].nodes


def ping(node: str) -> Step:
    return Step("client", node, ("ping", "10.0.0.1"), version=("-V",))


def test_the_first_line_is_the_version_and_nodes_of_one_kind_are_asked_once():
    nodes: Any = {"a": Node("ping 1\nlibcap: yes"), "b": Node("ping 2")}
    assert tool_versions([ping("a"), ping("b")], plans(a="netns", b="netns"), nodes) == {"ping": "ping 1"}
    assert nodes["a"].asked == [["ping", "-V"]]
    assert not nodes["b"].asked


def test_different_versions_name_their_nodes():
    nodes: Any = {"a": Node("ping 1"), "b": Node("", "BusyBox v1.36\nUsage: ping"), "c": Node("ping 1")}
    planned = plans(a="netns", b="uml", c="netns")
    found = tool_versions([ping("a"), ping("b"), ping("c")], planned, nodes)
    assert found == {"ping (nodes a, c)": "ping 1", "ping (node b)": "BusyBox v1.36"}


def test_a_node_that_has_ended_is_replaced_by_another_one():
    nodes: Any = {"a": Node(ended=True), "b": Node("ping 1")}
    planned = plans(a="netns", b="netns")
    assert tool_versions([ping("a"), ping("b")], planned, nodes) == {"ping": "ping 1"}
    assert tool_versions([ping("a")], planned, nodes) == {}


def test_airlooms_own_programs_are_not_asked():
    nodes: Any = {"a": Node("airloom-traffic 1")}
    assert tool_versions([Step("sender", "a", ("airloom-traffic",))], plans(a="netns"), nodes) == {}
    assert not nodes["a"].asked
