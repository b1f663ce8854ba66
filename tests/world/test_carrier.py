"""The carrier of interfaces while their link is down."""

from __future__ import annotations

from typing import Any

import pytest

import airloom
from airloom import Scenario
from helpers.nodes import eventually

pytestmark = pytest.mark.world


def pair(tmp_path, *, kind: str = "netns", **more: Any) -> airloom.Lab:
    scenario = {
        "name": "carrier",
        "nodes": {"a": {"kind": kind}, "b": {}},
        "links": [{"ends": ["a", "b"]}],
        **more,
    }
    return airloom.Lab(Scenario.model_validate(scenario), out=tmp_path / "out")


def carrier(node: airloom.LiveNode, interface: str = "eth0") -> str:
    return node.run(f"cat /sys/class/net/{interface}/carrier", timeout=30, check=True).stdout.strip()


def becomes(node: airloom.LiveNode, wanted: str) -> None:
    eventually(lambda: carrier(node) == wanted, f"carrier {wanted} of {node.name}")


@pytest.mark.quick
def test_programs_are_told_when_a_link_goes_down_and_comes_up(tmp_path):
    with pair(tmp_path) as lab:
        monitor = lab["b"].start("ip monitor link")
        eventually(lambda: lab["b"].run("ss -f netlink | grep -q ip/").ok, "ip listens")
        lab.link("a", "b").down()
        becomes(lab["a"], "0")
        becomes(lab["b"], "0")
        eventually(lambda: "NO-CARRIER" in monitor.output, "news of the lost carrier")
        lab.link("a", "b").up()
        becomes(lab["a"], "1")
        eventually(lambda: "LOWER_UP" in monitor.output.rpartition("NO-CARRIER")[2], "news of the carrier")
        assert lab["a"].run("ping -c 3 -i 0.3 -W 2 b").ok


def test_an_event_takes_the_carrier_of_the_end_that_does_not_keep_it(tmp_path):
    link = {"ends": ["a", "b"], "backward": {"carrier": "keep"}}
    with pair(tmp_path, links=[link], events=[{"at": "200 ms", "link": "a-b", "action": "down"}]) as lab:
        becomes(lab["b"], "0")
        assert carrier(lab["a"]) == "1"
        assert not lab["a"].run("ping -c 1 -W 0.3 b").ok


def test_the_neighbour_of_a_node_that_is_killed_loses_its_carrier_until_the_node_starts(tmp_path):
    with pair(tmp_path) as lab:
        lab["a"].kill()
        becomes(lab["b"], "0")
        lab.link("a", "b").down()
        lab["a"].restart()
        # The link was taken down meanwhile: it stays down, and the new interface has no carrier.
        becomes(lab["a"], "0")
        lab.link("a", "b").up()
        becomes(lab["a"], "1")
        becomes(lab["b"], "1")


def test_the_kernel_of_a_guest_is_told_by_its_device(tmp_path):
    from airloom.nodes.all_nodes import KINDS

    for lacking in KINDS["uml"].lacks():
        pytest.skip(f"{lacking.message}: {lacking.cure}")
    with pair(tmp_path, kind="uml") as lab:
        assert carrier(lab["a"]) == "1"
        lab.link("a", "b").down()
        becomes(lab["a"], "0")
        lab["a"].kill()
        lab["a"].restart()
        assert carrier(lab["a"]) == "0"
        lab.link("a", "b").up()
        becomes(lab["a"], "1")
        assert lab["a"].run("ping -c 5 -i 0.5 -W 5 b", timeout=60).ok
