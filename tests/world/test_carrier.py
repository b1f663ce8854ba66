"""The carrier of interfaces while their link is down."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import airloom
from airloom import Scenario
from helpers.nodes import PYTHON, eventually

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


SEND = """
import socket
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(300):
    out.sendto(bytes(100), ("10.0.0.2", 9))
"""


@pytest.mark.parametrize("returns", [True, False], ids=["until the carrier is back", "until the end"])
@pytest.mark.parametrize("kind", ["netns", "uml"])
def test_what_a_kernel_drops_without_carrier_is_lost_at_the_link_and_not_by_the_host(tmp_path, kind, returns):
    from airloom.nodes.all_nodes import KINDS

    for lacking in KINDS[kind].lacks():
        pytest.skip(f"{lacking.message}: {lacking.cure}")
    with pair(tmp_path, kind=kind) as lab:
        lab["a"].run("ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev eth0 nud permanent", check=True)
        lab.link("a", "b").down()
        eventually(
            lambda: "down" in lab["a"].run("cat /sys/class/net/eth0/operstate", check=True).stdout,
            "the kernel takes notice of the lost carrier",
        )
        lab["a"].run([PYTHON, "-c", SEND], check=True)
        # Linux before 6.11 drops them without counting.
        dropped = int(lab["a"].run("cat /sys/class/net/eth0/statistics/tx_dropped", check=True).stdout)
        assert dropped in (0, 300)
        if returns:
            lab.link("a", "b").up()
            becomes(lab["a"], "1")
            assert lab["b"].run("ping -c 2 -i 0.3 -W 2 a").ok
    ledger = lab.result.result.ledger
    assert ledger.dropped.get("link-down", 0) >= dropped
    assert ledger.host_lost == 0, lab.result.verdict.reasons


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


def test_a_bond_fails_over_by_the_carrier_alone(tmp_path):
    """The kernel's bonding driver asks its interfaces for their carrier (``miimon``)."""
    from airloom.nodes.all_nodes import KINDS
    from airloom.nodes.kinds.uml import PROGRAM, kernel_of

    for lacking in KINDS["uml"].lacks():
        pytest.skip(f"{lacking.message}: {lacking.cure}")
    if kernel_of(None).name != PROGRAM:
        pytest.skip(f"only the distribution's kernel {PROGRAM} has the module bonding")
    links = [{"name": name, "ends": ["a", "s1"]} for name in ("first", "second")]
    links.append({"ends": ["b", "s1"]})
    with pair(tmp_path, kind="uml", switches={"s1": {}}, links=links) as lab:
        a, address = lab["a"], lab.addresses["a"]
        a.run(
            f"""set -e
            modprobe bonding max_bonds=0
            ip link add bond0 type bond mode active-backup miimon 50
            for port in eth0 eth1; do
                ip address flush dev $port
                ip link set $port down
                ip link set $port master bond0
            done
            ip address add {address}/24 dev bond0
            ip link set bond0 up""",
            timeout=60,
            check=True,
        )

        def active() -> str:
            return a.run("cat /sys/class/net/bond0/bonding/active_slave", timeout=30).stdout.strip()

        eventually(lambda: active() == "eth0", "the first link")
        assert lab["b"].run(f"ping -c 2 -i 0.3 -W 2 {address}").ok
        lab.link("first").down()
        eventually(lambda: active() == "eth1", "the second link")
        assert lab["b"].run(f"ping -c 2 -i 0.3 -W 2 {address}").ok


needs_openvswitch = pytest.mark.skipif(
    shutil.which("ovs-vswitchd", path="/usr/sbin:/usr/bin") is None,
    reason="sudo apt-get install openvswitch-switch",
)


@contextmanager
def aggregated(tmp_path, *, time: str, **direction: str) -> Iterator[airloom.Lab]:
    """Two switches with two links, which LACP (IEEE 802.1AX) has made one."""
    between = [{"name": name, "ends": ["s1", "s2"], **direction} for name in ("first", "second")]
    # No flows until the bonds are made: two separate links would be a loop.
    switch = {"kind": "openvswitch", "fail_mode": "secure"}
    with pair(
        tmp_path,
        switches={"s1": switch, "s2": switch},
        links=[*between, {"ends": ["a", "s1"]}, {"ends": ["b", "s2"]}],
    ) as lab:
        for name in ("s1", "s2"):
            lab[name].run(
                "ovs-vsctl del-port br0 eth1 -- del-port br0 eth2 -- add-bond br0 bond0 eth1 eth2"
                f" lacp=active bond_mode=active-backup other_config:lacp-time={time}"
                " -- set-fail-mode br0 standalone",
                check=True,
            )
        for name in ("s1", "s2"):
            eventually(lambda name=name: members(lab[name]) == {"eth1", "eth2"}, f"both links of {name}")
        yield lab


def members(switch: airloom.LiveNode) -> set[str]:
    """The interfaces of the bond that carry frames: LACP has negotiated them, and they have a carrier."""
    told = switch.run("ovs-appctl bond/show bond0", check=True).stdout
    if "lacp_status: negotiated" not in told:
        return set()
    return {line.split()[1].rstrip(":") for line in told.splitlines() if line.endswith(": enabled")}


@needs_openvswitch
def test_lacp_leaves_a_link_that_lost_its_carrier(tmp_path):
    # By its messages alone it would take 90 seconds: three times the slow period of 30.
    with aggregated(tmp_path, time="slow") as lab:
        assert lab["a"].run("ping -c 2 -i 0.3 -W 2 b").ok
        for failed, left in (("first", "eth2"), ("second", "eth1")):
            lab.link(failed).down()
            for name in ("s1", "s2"):
                eventually(lambda name=name, left=left: members(lab[name]) == {left}, f"{left} of {name}")
            assert lab["a"].run("ping -c 2 -i 0.3 -W 2 b").ok
            lab.link(failed).up()
            for name in ("s1", "s2"):
                eventually(lambda name=name: members(lab[name]) == {"eth1", "eth2"}, f"both of {name}")


@needs_openvswitch
def test_lacp_finds_by_its_messages_a_failure_that_keeps_the_carrier(tmp_path):
    with aggregated(tmp_path, time="fast", carrier="keep") as lab:
        lab.link("first").down()
        for name in ("s1", "s2"):
            eventually(lambda name=name: members(lab[name]) == {"eth2"}, f"the second link of {name}")
            assert carrier(lab[name], "eth1") == "1"
        assert lab["a"].run("ping -c 2 -i 0.3 -W 2 b").ok


def test_a_pair_of_the_kernel_cannot_go_down_and_the_error_says_why(tmp_path):
    with pair(tmp_path, kind="native", nodes={"a": {"kind": "native"}, "b": {"kind": "native"}}) as lab:
        with pytest.raises(airloom.RunError, match="the link a-b between native nodes cannot change"):
            lab.link("a", "b").down()
        assert lab["a"].run("ping -c 1 -W 2 b").ok
