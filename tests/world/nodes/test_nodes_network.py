"""What a node's network stack is after bring-up, as the node's own tools show it."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

import pytest

from airloom import _engine
from airloom.errors import HostError, LabError, RunError
from airloom.nodes.kind import NodeHandle
from airloom.planning.links.link_settings import LinkSettings
from airloom.planning.plan import LinkPlan, RoutePlan
from helpers.nodes import Up, eventually, interface, node

pytestmark = pytest.mark.world


def ip(handle: NodeHandle, *words: str) -> list[dict[str, Any]]:
    done = handle.exec(["ip", "-j", *words], timeout=20)
    assert done.exit.ok, done.stderr
    return json.loads(done.stdout or "[]")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_addresses_mac_and_mtu_are_those_of_the_plan(up: Up) -> None:
    plan = node(
        "a",
        interface("eth0", 1, "10.1.0.1/24", "fd00:1::1/64", mtu=9000),
        interface("wan.7", 2, "10.2.0.1/30", mtu=68),
    )
    links = {link["ifname"]: link for link in ip(up(plan)["a"], "addr")}
    assert set(links) == {"lo", "eth0", "wan.7"}
    assert links["eth0"]["address"] == "02:00:00:00:00:01"
    assert (links["eth0"]["mtu"], links["wan.7"]["mtu"]) == (9000, 68)
    assert all("UP" in link["flags"] for link in links.values())
    found = {(entry["local"], entry["prefixlen"]) for entry in links["eth0"]["addr_info"]}
    assert {("10.1.0.1", 24), ("fd00:1::1", 64)} <= found
    assert not any(entry.get("tentative") for entry in links["eth0"]["addr_info"])
    assert [entry["broadcast"] for entry in links["wan.7"]["addr_info"]] == ["10.2.0.3"]


def test_routes_are_those_of_the_plan(up: Up) -> None:
    plan = node(
        "r",
        interface("eth0", 1, "10.1.0.1/24", "fd00:1::1/64"),
        interface("eth1", 2, "10.2.0.1/24"),
        routes=(
            RoutePlan("default", "10.1.0.254", "eth0"),
            RoutePlan("10.9.0.0/16", "10.2.0.9", "eth1"),
            RoutePlan("fd00:9::/32", "fd00:1::9", "eth0"),
        ),
        forwarding=True,
    )
    handle = up(plan)["r"]
    routes = {route["dst"]: (route.get("gateway"), route["dev"]) for route in ip(handle, "route")}
    assert routes["default"] == ("10.1.0.254", "eth0")
    assert routes["10.9.0.0/16"] == ("10.2.0.9", "eth1")
    routes6 = {route["dst"]: route.get("gateway") for route in ip(handle, "-6", "route")}
    assert routes6["fd00:9::/32"] == "fd00:1::9"


@pytest.mark.parametrize("forwarding", [False, True])
def test_parameters_do_not_depend_on_the_host(up: Up, forwarding: bool) -> None:
    plan = node(
        "a",
        interface("eth0", 1, "10.1.0.1/24", "fd00::1/64"),
        forwarding=forwarding,
        sysctl={"net.ipv4.tcp_sack": "0", "net.ipv4.conf.eth0.proxy_arp": "1"},
    )
    names = [
        "net/ipv4/ip_forward",
        "net/ipv6/conf/all/forwarding",
        "net/ipv4/conf/eth0/rp_filter",
        "net/ipv4/tcp_sack",
        "net/ipv4/conf/eth0/proxy_arp",
    ]
    done = up(plan)["a"].exec(["cat", *(f"/proc/sys/{name}" for name in names)], timeout=20)
    forward = str(int(forwarding))
    assert done.stdout.split() == [forward, forward, "0", "0", "1"]


def test_a_node_without_ipv6_addresses_is_silent(up: Up) -> None:
    handle = up(node("a", interface("eth0", 1, "10.1.0.1/24")))["a"]
    assert ip(handle, "-6", "addr") == []
    assert handle.counters()["eth0"]["tx_packets"] == 0


def test_the_loopback_works(up: Up) -> None:
    handle = up(node("a", interface("eth0", 1, "10.1.0.1/24")))["a"]
    assert handle.exec(["ping", "-c1", "-W5", "10.1.0.1"], timeout=20).exit.ok
    lo = handle.counters()["lo"]
    assert lo["tx_packets"] == lo["rx_packets"] >= 2


def test_frames_come_out_of_the_tap_with_their_header(up: Up) -> None:
    handle = up(node("a", interface("eth0", 7, "10.1.0.1/24")))["a"]
    process = handle.start(["ping", "-c1", "-W1", "10.1.0.2"])
    fd = handle.taps["eth0"].fileno()
    frames: list[bytes] = []

    def asked() -> bool:
        try:
            frames.append(os.read(fd, 65_562))
        except BlockingIOError:
            return False
        return frames[-1][12 + 12 : 12 + 14] == b"\x08\x06"  # ARP, behind the 12-octet virtio-net header

    eventually(asked, "no ARP request came out of the TAP")
    assert frames[-1][12:24] == b"\xff" * 6 + bytes([2, 0, 0, 0, 0, 7])
    process.wait(20)


def native_chain() -> tuple[list[Any], list[LinkPlan]]:
    """a - r - b, joined by veth pairs; the first wire has a rate, the second more than a wire can."""
    a = node(
        "a",
        interface("eth0", 1, "10.1.0.1/24"),
        kind="native",
        routes=(RoutePlan("default", "10.1.0.2", "eth0"),),
    )
    r = node(
        "r",
        interface("eth0", 2, "10.1.0.2/24"),
        interface("eth1", 3, "10.2.0.1/24"),
        kind="native",
        forwarding=True,
    )
    b = node(
        "b",
        interface("eth0", 4, "10.2.0.2/24"),
        kind="native",
        routes=(RoutePlan("default", "10.2.0.1", "eth0"),),
    )
    rate, slow = LinkSettings(rate=100_000_000), LinkSettings(delay=1_000_000)
    links = [LinkPlan("l1", "a:eth0", "r:eth0", rate, rate), LinkPlan("l2", "r:eth1", "b:eth0", slow, slow)]
    return [a, r, b], links


def test_native_nodes_are_joined_without_the_engine(up: Up) -> None:
    nodes, links = native_chain()
    handles = up(*nodes, links=links)
    assert all(not handle.taps for handle in handles.values())
    done = handles["a"].exec(["ping", "-c2", "-i0.1", "-W5", "b"], timeout=30)
    assert done.exit.ok, done.stdout + done.stderr
    assert "ttl=63" in done.stdout


def test_the_reference_says_what_it_does_and_what_not(supervisor: Any) -> None:
    from airloom.nodes.all_nodes import Nodes
    from helpers.nodes import plan_of

    nodes, links = native_chain()
    with Nodes(plan_of(nodes, links), supervisor) as world:
        world.bring_up()
        notes = "\n".join(world.notes)
    assert "link l1: a:eth0 shaped by HTB" in notes or "link l1: the reference is not shaped" in notes
    assert "link l2: the reference has no delay from r" in notes


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"routes": (RoutePlan("default", "10.99.0.1", "eth0"),)}, "node.kernel", "default via 10.99.0.1"),
        ({"routes": (RoutePlan("nonsense", "10.1.0.9", "eth0"),)}, "node.spec", "nonsense"),
        ({"sysctl": {"net.ipv4.no_such": "1"}}, "node.kernel", "no_such"),
        ({"sysctl": {"kernel.panic": "1"}}, "node.spec", "kernel.panic"),
        ({"sysctl": {"net.../../kernel.panic": "1"}}, "node.spec", "net.../../kernel.panic"),
    ],
)
def test_all_or_none_and_the_error_names_the_node(
    up: Up, change: dict[str, Any], code: str, words: str
) -> None:
    good = [node(f"n{number}", interface("eth0", number, f"10.1.0.{number}/24")) for number in range(1, 20)]
    bad = node("culprit", interface("eth0", 99, "10.1.0.99/24"), **change)
    up(node("before"))  # whatever is opened once is open by now
    before = descriptors()
    with pytest.raises(LabError) as caught:
        up(*good, bad)
    assert caught.value.code == code
    assert "node culprit" in str(caught.value)
    assert words in str(caught.value)
    assert descriptors() == before


def test_too_few_descriptors_is_an_error_with_a_cure() -> None:
    # In a process of its own: the limit cannot be raised again.
    script = (
        "import os, resource\n"
        "from airloom import _engine\n"
        "from airloom.errors import HostError, translated\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "os.setresuid(65534, 65534, 65534)\n"
        "try:\n"
        "    with translated():\n"
        "        _engine.bring_up([{'name': f'n{i}'} for i in range(100)])\n"
        "except HostError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert "descriptors are needed and 64 are allowed" in done.stdout, done.stderr
    assert "ulimit -Hn" in done.stdout


def test_the_limit_of_descriptors_grows_with_the_nodes() -> None:
    script = (
        "import resource\n"
        "from airloom import _engine\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
        "print(len(_engine.bring_up([{'name': f'n{i}'} for i in range(100)])))\n"
    )
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert hard > 1000
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.strip() == "100", done.stderr


def test_a_closed_namespace_says_so() -> None:
    (namespace,) = _engine.bring_up([{"name": "a"}])
    namespace.close()
    namespace.close()
    with pytest.raises(_engine.EngineError) as caught:
        namespace.counters()
    assert caught.value.args[0] == "node.closed"


@pytest.mark.slow
def test_a_thousand_nodes_come_up_and_go(up: Up) -> None:
    count = 1000
    nodes = [
        node(f"n{number}", interface("eth0", number, f"10.{number >> 8}.{number & 255}.1/16"))
        for number in range(1, count + 1)
    ]
    before = descriptors()
    handles = up(*nodes)
    assert len({handle.taps["eth0"].fileno() for handle in handles.values()}) == count
    last = handles[f"n{count}"]
    assert last.counters()["eth0"]["rx_packets"] == 0
    assert last.exec(["ping", "-c1", "-W5", str(nodes[-1].interfaces[0].addresses[0].ip)], timeout=20).exit.ok
    assert before + count <= descriptors() < before + 2 * count


def test_switching_off_and_on_restores_addresses_and_routes(up: Up) -> None:
    nodes, links = native_chain()
    handles = up(*nodes, links=links)
    ping = ["ping", "-c1", "-W2", "10.2.0.2"]

    def reached() -> bool:
        """At last: the one table of neighbours may still be full of a large laboratory that has ended."""
        return any(handles["a"].exec(ping, timeout=20).exit.ok or time.sleep(1) for _ in range(15))

    assert reached()
    handles["r"].kill()
    assert not handles["a"].exec(ping, timeout=20).exit.ok
    with pytest.raises(RunError, match="node r is stopped"):
        handles["r"].exec(["true"])
    handles["r"].restart()
    assert reached()


def test_no_permission_is_a_host_error() -> None:
    script = (
        "import os\n"
        "from airloom import _engine\n"
        "from airloom.errors import HostError, translated\n"
        "os.setresuid(65534, 65534, 65534)\n"
        "try:\n"
        "    with translated():\n"
        "        _engine.bring_up([{'name': 'a'}])\n"
        "except HostError as error:\n"
        "    print(error.code, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.startswith("host.namespace node a: may not make a network namespace"), done.stderr
    assert issubclass(HostError, LabError)
