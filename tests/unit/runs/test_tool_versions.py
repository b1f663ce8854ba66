from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airloom import check
from airloom.errors import RunError
from airloom.measure.tool import Step
from airloom.nodes.kind import Completed, Exit
from airloom.runs import tool_versions as versions
from airloom.runs.tool_versions import platform_versions, tool_versions
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


def test_guests_of_one_kind_are_asked_for_their_kernel_once():
    nodes: Any = {name: Node(f"6.12.{name}") for name in "abc"}
    planned = plans(a="uml", b="uml", c="netns")
    assert platform_versions(planned, nodes) == {"uml kernel": "6.12.a"}
    assert nodes["a"].asked == [["uname", "-r"]]
    assert not nodes["b"].asked
    assert not nodes["c"].asked, "it has the kernel of the machine"


def test_programs_of_the_machine_behind_nodes_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "qemu"
    program.write_text("#!/bin/sh\necho 'QEMU emulator version 9.9'; echo copyright\n")
    program.chmod(0o755)
    monkeypatch.setattr(versions, "QEMU", str(program))
    nodes: Any = {"a": Node("6.12")}
    found = platform_versions(plans(a="qemu"), nodes)
    assert found == {"qemu kernel": "6.12", str(program): "QEMU emulator version 9.9"}
    monkeypatch.setattr(versions, "QEMU", str(tmp_path / "missing"))
    assert platform_versions(plans(a="qemu"), nodes) == {"qemu kernel": "6.12"}
