"""Tunnels: two laboratories that are one network, and what is refused before anything starts."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom import Scenario, ScenarioError
from helpers import REPOSITORY
from helpers.machines import A6, B6, Machine, two_machines
from helpers.nodes import eventually

pytestmark = pytest.mark.world

GRETAP = {"kind": "gretap", "key": 7}
VXLAN = {"kind": "vxlan", "vni": 42}


def lab(
    host: str, address: str, machine: Machine, remote: str, tunnel: dict[str, Any], **link: Any
) -> Scenario:
    """A laboratory of one host, whose link leads through a tunnel."""
    return Scenario.model_validate(
        {
            "name": f"lab-{host}",
            "nodes": {host: {}},
            "tunnels": {"far": {"remote": remote, "namespace": machine.namespace, **tunnel}},
            "links": [{"ends": [host, "far"], "addresses": [[address], []], **link}],
        }
    )


@contextlib.contextmanager
def joined(tmp_path: Path, a: Machine, b: Machine, tunnel: dict[str, Any], remotes=None, **link: Any):
    """Two laboratories, one on each machine."""
    to_a, to_b = remotes or (a.address, b.address)
    with (
        airloom.Lab(lab("h1", "10.1.0.1/24", a, to_b, tunnel, **link), out=tmp_path / "a") as first,
        airloom.Lab(lab("h2", "10.1.0.2/24", b, to_a, tunnel, **link), out=tmp_path / "b") as second,
    ):
        yield first, second


MANY = 10_000_000 // 1448
"""Segments that a transfer of 20 MB brings at least: iperf3 ends once all is in the sender's buffers,
which hold some megabytes of it on a busy machine."""


def port(one: airloom.Lab) -> dict[str, Any]:
    """What the books of a laboratory say of its tunnel."""
    return one._one.world.engine.ledger()["ports"]["far"]


@pytest.mark.parametrize(
    ("tunnel", "overhead", "remotes"),
    [
        ({"kind": "gretap"}, 38, None),
        ({**GRETAP, "checksum": True, "sequence": True}, 50, None),
        (VXLAN, 50, None),
        (GRETAP, 62, (A6, B6)),
        (VXLAN, 70, (A6, B6)),
    ],
    ids=["gretap", "gretap-all", "vxlan", "gretap-ipv6", "vxlan-ipv6"],
)
def test_two_laboratories_are_one_network(tmp_path, tunnel, overhead, remotes):
    with (
        two_machines(1500 + overhead) as (a, b),
        joined(tmp_path, a, b, tunnel, remotes, mtu=1500, delay="5 ms") as (one, two),
    ):
        done = one["h1"].run("ping -n -q -c 5 -i 0.05 -M do -s 1472 10.1.0.2", check=True)
        assert "5 received" in done.stdout
        # Each laboratory's own link has its 5 ms in either direction.
        assert 20 <= float(done.stdout.rsplit("= ", 1)[1].split("/")[0]) < 30
        two["h2"].start("iperf3 -s -1")
        one["h1"].run("sh -c 'until iperf3 -c 10.1.0.2 -n 20M; do sleep 0.2; done'", check=True, timeout=30)
        for each in (one, two):
            assert port(each)["tunnel"] == {}
            assert port(each)["host_lost"] == {}
        # The last frames may still be on their way.
        eventually(lambda: port(two)["offered"] == port(one)["delivered"], f"{port(one)} {port(two)}")
        assert port(one)["delivered"] > MANY


def test_the_longest_frames_come_through_whole(tmp_path):
    with (
        two_machines(9216 + 38) as (a, b),
        joined(tmp_path, a, b, {"kind": "gretap"}, mtu=9216) as (one, _),
    ):
        done = one["h1"].run(f"ping -n -c 3 -i 0.05 -M do -s {9216 - 28} 10.1.0.2", check=True)
        assert "9196 bytes from 10.1.0.2" in done.stdout


def test_a_frame_is_cut_in_the_underlay_where_that_is_allowed(tmp_path):
    with (
        two_machines(1300) as (a, b),
        joined(tmp_path, a, b, {**GRETAP, "fragment": True}, mtu=1500) as (one, _),
    ):
        one["h1"].run("ping -n -q -c 3 -i 0.05 -M do -s 1472 10.1.0.2", check=True)
        assert int(a.sh("cat /proc/net/snmp | sed -n 2p").split()[-1]) > 0


def test_packets_of_another_tunnel_are_counted_and_kept_out(tmp_path):
    with two_machines() as (a, b):
        one = lab("h1", "10.1.0.1/24", a, b.address, {**GRETAP, "key": 1})
        two = lab("h2", "10.1.0.2/24", b, a.address, {**GRETAP, "key": 2})
        with airloom.Lab(one, out=tmp_path / "a") as first, airloom.Lab(two, out=tmp_path / "b") as second:
            done = first["h1"].run("ping -n -c 2 -i 0.05 -W 1 10.1.0.2")
            assert "0 received" in done.stdout
            assert port(second)["tunnel"]["foreign"] > 0
            assert port(second)["offered"] == 0


def refused(scenario: Scenario, out: Path) -> ScenarioError:
    """The refusal of a laboratory before it is up."""
    with pytest.raises(ScenarioError) as caught, airloom.Lab(scenario, out=out):
        pass
    return caught.value


def test_a_tunnel_that_does_not_carry_the_frame_is_refused_with_the_arithmetic(tmp_path):
    with two_machines(1500) as (a, b):
        error = refused(lab("h1", "10.1.0.1/24", a, b.address, {"kind": "gretap"}), tmp_path / "a")
        assert str(error) == (
            "tunnels.far: the tunnel does not carry packets of 1500 octets: "
            "1500 + 38 (IP 20, GRE 4, Ethernet 14) = 1538, but wire takes 1500 "
            "(set mtu: 1462 on its link, raise the MTU of wire to 1538, or allow fragment: true) [tunnel.mtu]"
        )
        keyed = refused(lab("h1", "10.1.0.1/24", a, b.address, GRETAP, mtu=1459), tmp_path / "b")
        assert "1459 + 42 (IP 20, GRE 4, key 4, Ethernet 14) = 1501" in keyed.message
        vxlan = refused(lab("h1", "10.1.0.1/24", a, b.address, VXLAN, mtu=1451), tmp_path / "c")
        assert "1451 + 50 (IP 20, UDP 8, VXLAN 8, Ethernet 14) = 1501" in vxlan.message


def test_a_narrow_path_behind_a_router_is_found(tmp_path):
    with two_machines(1600) as (a, b):
        # The peer is a second address of b, behind a link of b's own that takes 1300.
        b.sh(
            "sysctl -qw net.ipv4.ip_forward=1; "
            "ip link add near mtu 1300 type veth peer name far; ip addr add 198.51.100.1/24 dev near; "
            "ip link set near up; unshare -n sleep 30 >/dev/null 2>&1 & p=$!; sleep 0.3; "
            "ip link set far netns $p; "
            "nsenter -t $p -n sh -c 'ip addr add 198.51.100.2/24 dev far; ip link set far up mtu 1300; "
            "ip route add default via 198.51.100.1'"
        )
        a.sh(f"ip route add 198.51.100.0/24 via {b.address}")
        error = refused(lab("h1", "10.1.0.1/24", a, "198.51.100.2", {"kind": "gretap"}), tmp_path / "a")
        assert error.code == "tunnel.mtu"
        assert "= 1538, but the path to 198.51.100.2 takes 1300" in error.message
        assert "set mtu: 1262" in (error.cure or "")


@pytest.mark.skipif(shutil.which("ethtool") is None, reason="sudo apt-get install ethtool")
@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_a_kernels_vxlan_is_a_peer(tmp_path, family):
    with two_machines(1600) as (a, b):
        b.be_a_card()
        here, there = (a.address, b.address) if family == "ipv4" else (A6, B6)
        made = b.sh(
            f"ip link add vx0 mtu 1500 type vxlan id 42 local {there} remote {here} dstport 4789 dev wire "
            "&& ip addr add 10.1.0.2/24 dev vx0 && ip link set vx0 up || echo missing"
        )
        if "missing" in made:
            pytest.skip("this kernel has no VXLAN: sudo modprobe vxlan")
        with airloom.Lab(lab("h1", "10.1.0.1/24", a, there, VXLAN, mtu=1500), out=tmp_path / "a") as one:
            one["h1"].run("ping -n -q -c 3 -i 0.05 -M do -s 1472 10.1.0.2", check=True)
            b.sh("ping -n -q -c 3 -i 0.05 -M do -s 1472 10.1.0.1")
            server = b.start(["iperf3", "-s"], tmp_path)
            try:
                for more in ("", "-R"):
                    one["h1"].run(
                        f"sh -c 'until iperf3 -c 10.1.0.2 -n 20M {more}; do sleep 0.2; done'", check=True
                    )
            finally:
                server.kill()
                server.communicate()
            assert port(one)["tunnel"] == {}
            assert port(one)["host_lost"] == {}
            assert port(one)["offered"] > MANY
            assert port(one)["delivered"] > MANY


@pytest.mark.parametrize(
    ("remote", "more", "code", "words"),
    [
        ("203.0.113.1", {}, "tunnel.route", "no route to 203.0.113.1: Network is unreachable"),
        ("192.0.2.1", {}, "tunnel.own", "192.0.2.1 is this machine's own address"),
        ("192.0.2.77", {}, "tunnel.peer", "nothing at 192.0.2.77 answers"),
        ("192.0.2.2", {"local": "192.0.2.9"}, "tunnel.local", "192.0.2.9 is no address of this machine"),
        ("192.0.2.2", {"namespace": "no-such"}, "tunnel.namespace", "no network namespace 'no-such'"),
        ("192.0.2.2", {"namespace": "/etc/hosts"}, "tunnel.namespace", "cannot enter the network namespace"),
    ],
)
def test_a_peer_that_cannot_be_reached_is_refused(tmp_path, remote, more, code, words):
    with two_machines() as (a, _):
        error = refused(lab("h1", "10.1.0.1/24", a, remote, {**GRETAP, **more}), tmp_path / "a")
        assert error.code == code
        assert words in error.message
        assert error.exit_code == 2


def test_a_port_that_is_taken_is_refused(tmp_path):
    with two_machines() as (a, b):
        a.sh(
            "ip link add other type vxlan id 1 dstport 4789 local 192.0.2.1 remote 192.0.2.2 dev wire; "
            "ip link set other up"
        )
        error = refused(lab("h1", "10.1.0.1/24", a, b.address, VXLAN), tmp_path / "a")
        assert error.code == "tunnel.port"
        assert "UDP port 4789 cannot be had: Address already in use" in error.message


def test_the_example_joins_two_machines(tmp_path):
    examples = REPOSITORY / "examples"
    with two_machines(1500) as (a, b):
        right = b.start(
            [sys.executable, "-m", "airloom", "run", str(examples / "tunnel-right.yaml"), "--out", "right"],
            tmp_path,
        )
        try:
            b.sh("for i in $(seq 100); do grep -q :002F /proc/net/raw && break; sleep 0.1; done; true")
            scenario = str(examples / "tunnel-left.yaml")
            left = [sys.executable, "-m", "airloom", "run", scenario, "--out", "left"]
            a.sh(f"cd {shlex.quote(str(tmp_path))}; {shlex.join(left)}")
        finally:
            right.terminate()
            right.communicate()
        assert "20 received" in (tmp_path / "left" / "nodes" / "h1" / "ping.log").read_text()


@pytest.mark.parametrize("pool", ["ipv4", "ipv6"])
def test_ip_alone_crosses_plain_gre(tmp_path, pool):
    tunnel = {"kind": "gre", "key": 7, "sequence": True}
    one, two = ("10.1.0.1/24", "10.1.0.2/24") if pool == "ipv4" else ("fd01::1/64", "fd01::2/64")
    target = two.partition("/")[0]
    with two_machines(1532) as (a, b):
        here = lab("h1", one, a, b.address, tunnel, mtu=1500)
        there = lab("h2", two, b, a.address, tunnel, mtu=1500)
        with airloom.Lab(here, out=tmp_path / "a") as first, airloom.Lab(there, out=tmp_path / "b") as second:
            headers = 28 if pool == "ipv4" else 48
            ping = f"ping -n -q -c 3 -i 0.2 -M do -s {1500 - headers} {target}"
            assert "3 received" in first["h1"].run(ping, check=True).stdout
            second["h2"].start("iperf3 -s -1")
            first["h1"].run(f"sh -c 'until iperf3 -c {target} -n 20M; do sleep 0.2; done'", check=True)
            assert port(second)["tunnel"] == {}
            assert port(second)["offered"] > MANY
