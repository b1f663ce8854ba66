"""What guests of the kernel of ``kernel/build`` do that others need not: tunnels, VLANs and a mesh inside."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

import airloom
from airloom import Scenario
from helpers.kernels import BUILT, needs_built

pytestmark = [pytest.mark.world, needs_built]

GUEST = {"kind": "uml", "guest": {"kernel": "built"}}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[airloom.Lab]:
    """``a`` and ``b`` of that kernel and ``c`` of this system's, beside a switch; ``c`` is in VLAN 5 only."""
    scenario = Scenario.model_validate(
        {
            "name": "built",
            "nodes": {"a": GUEST, "b": GUEST, "c": {}},
            "switches": {"s1": {}},
            "links": [
                {"ends": ["a", "s1"], "trunk": [5], "native": 1, "mtu": 1600},
                {"ends": ["b", "s1"], "trunk": [5], "native": 1, "mtu": 1600},
                {"ends": ["c", "s1"], "vlan": 5, "mtu": 1600, "addresses": [["10.5.0.3/24"], []]},
            ],
        }
    )
    cache = tmp_path_factory.mktemp("cache")
    (cache / "airloom/kernel").mkdir(parents=True)
    (cache / "airloom/kernel/linux").symlink_to(BUILT.resolve())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        with airloom.Lab(scenario, out=tmp_path_factory.mktemp("built") / "out") as lab:
            yield lab


def sh(lab: airloom.Lab, node: str, script: str, **more: Any) -> str:
    done = lab[node].run(["sh", "-ec", script], timeout=60, **more)
    assert done.ok, done.stdout + done.stderr
    return done.stdout


def test_it_is_that_kernel_and_has_the_interfaces_of_its_node_alone(lab: airloom.Lab) -> None:
    assert sh(lab, "a", "uname -r").strip() in BUILT.resolve().name
    # The kernel's simulator of radios has an ear of its own, even if there are none.
    assert set(sh(lab, "a", "ls /sys/class/net").split()) - {"hwsim0"} == {"eth0", "lo"}


def test_tcp_and_udp_pass(lab: airloom.Lab) -> None:
    for protocol in (["-n", "30M"], ["-u", "-b", "5M", "-t", "1"]):
        server = lab["b"].start("iperf3 -s -1")
        deadline = time.monotonic() + 30
        while not lab["b"].listens(5201):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        lab["a"].run(["iperf3", "-c", lab.addresses["b"], *protocol], check=True, timeout=60)
        assert server.wait(30) == 0


def test_the_generator_of_traffic_is_recorded_at_both_ends(lab: airloom.Lab) -> None:
    load = {"from": "a", "to": "b", "rate": "1 Mbit/s", "size": "500 B", "duration": "2 s"}
    found = {one.name: one.value for one in lab.measure(traffic=load).metrics()}
    assert found["sent"] == 500
    assert found["received"] >= 495
    # The guests' clocks are not the host's.
    assert 0 < found["delay_p50"] < 50e6


TUNNELS = {
    "gretap": "type gretap local {own} remote {other} key 7 csum",
    "gre": "type gre local {own} remote {other} key 7",
    "vxlan": "type vxlan id 7 dstport 4789 local {own} remote {other}",
}


@pytest.mark.parametrize("kind", TUNNELS)
def test_two_guests_have_a_tunnel_of_their_own(lab: airloom.Lab, kind: str) -> None:
    address = lab.addresses
    for number, (own, other) in enumerate((("a", "b"), ("b", "a")), 1):
        words = TUNNELS[kind].format(own=address[own], other=address[other])
        sh(
            lab,
            own,
            f"ip link add t0 {words}; ip addr add 10.9.0.{number}/24 dev t0; ip link set t0 mtu 1400 up",
        )
    try:
        done = sh(lab, "a", "ping -n -c 4 -i 0.3 -M do -s 1372 10.9.0.2")
        assert "1380 bytes from 10.9.0.2" in done
        assert int(sh(lab, "b", "cat /sys/class/net/t0/statistics/rx_packets")) >= 3
        assert sh(lab, "b", "cat /sys/class/net/t0/statistics/rx_errors").strip() == "0"
    finally:
        for node in ("a", "b"):
            sh(lab, node, "ip link del t0")


def test_it_tags_frames_itself(lab: airloom.Lab) -> None:
    """An interface of 802.1Q inside a guest reaches who is in that VLAN of the engine's switch."""
    assert not lab["a"].run("ping -n -c 1 -W 1 10.5.0.3", timeout=30).ok
    sh(lab, "a", "ip link add link eth0 name eth0.5 type vlan id 5; ip link set eth0.5 up")
    sh(lab, "a", "ip addr add 10.5.0.1/24 dev eth0.5")
    try:
        sh(lab, "a", "ping -n -c 4 -i 0.3 -W 2 10.5.0.3")
        # Super-frames get their tags too.
        lab["c"].start("iperf3 -s -1")
        sh(lab, "a", "until iperf3 -c 10.5.0.3 -n 20M; do sleep 0.3; done")
    finally:
        sh(lab, "a", "ip link del eth0.5")
