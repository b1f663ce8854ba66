"""Interfaces without offloads: raw sockets in nodes of all kinds see the frames of the wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom import Scenario
from airloom.images import own
from airloom.nodes.all_nodes import KINDS
from helpers import wire_frames
from helpers.nodes import PYTHON

pytestmark = [pytest.mark.world, pytest.mark.timeout(240)]

PROGRAM = Path(wire_frames.__file__).read_text()


def counted(nodes: dict[str, Any], tmp_path: Path, **parts: Any) -> dict[str, dict[str, int]]:
    """Transfers 2 MB from a to b; returns what raw sockets at both saw."""
    links = parts.pop("links", [{"ends": ["a", "b"], "rate": "100 Mbit/s"}])
    scenario = Scenario.model_validate({"name": "raw", "nodes": nodes, "links": links, **parts})
    with airloom.Lab(scenario, out=tmp_path / "out") as lab:
        receiver = lab["b"].start([PYTHON, "-c", PROGRAM, "eth0"], ready={"port": 5001, "within": "60 s"})
        sent = lab["a"].run([PYTHON, "-c", PROGRAM, "eth0", str(lab["b"].address)], timeout=100, check=True)
        assert receiver.wait(60) == 0
        found = {"a": json.loads(sent.stdout), "b": json.loads(receiver.log.read_text())}
    for counts in found.values():
        assert counts["frames"] > 100
    return found


def made(kind: str, tmp_path: Path, **more: Any) -> dict[str, Any]:
    for lacking in KINDS[kind].lacks():
        pytest.skip(f"{lacking.message}: {lacking.cure}")
    if kind == "container":
        own.make(tmp_path / "image", [PYTHON])
        more["image"] = str(tmp_path / "image")
    return {"kind": kind, **more}


@pytest.mark.parametrize("kind", ["netns", "container", "native", "uml", "qemu"])
def test_a_raw_socket_sees_no_long_frame_and_no_wrong_checksum(kind: str, tmp_path: Path) -> None:
    node = made(kind, tmp_path, offloads=False)
    found = counted({"a": node, "b": node}, tmp_path)
    assert [(counts["long"], counts["wrong"]) for counts in found.values()] == [(0, 0), (0, 0)]


@pytest.mark.quick
def test_each_interface_has_its_own(tmp_path: Path) -> None:
    # The sender leaves all to its device; the receiver gets the frames of the wire all the same.
    found = counted({"a": {}, "b": {"interfaces": {"eth0": {"offloads": {"receive": False}}}}}, tmp_path)
    # How many depends on how much a super-frame carries.
    assert found["a"]["long"] > 0
    assert found["a"]["wrong"] > 0
    assert found["b"]["long"] == 0
    # Its own acknowledgments are unfinished when they leave.
    assert 0 < found["b"]["wrong"] < found["b"]["frames"]


def test_frames_pass_an_open_switch_as_on_the_wire(tmp_path: Path) -> None:
    made("openvswitch", tmp_path)
    switch = {"kind": "openvswitch", "offloads": False}
    links = [{"ends": [name, "s1"], "rate": "100 Mbit/s"} for name in ("a", "b")]
    nodes = {name: {"offloads": False} for name in ("a", "b")}
    found = counted(nodes, tmp_path, links=links, switches={"s1": switch})
    assert [(counts["long"], counts["wrong"]) for counts in found.values()] == [(0, 0), (0, 0)]
