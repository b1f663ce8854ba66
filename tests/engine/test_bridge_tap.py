"""The engine between real kernels' network stacks."""

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import threading

import pytest

from helpers.namespaces import inside, node
from helpers.nodes import eventually

_engine = pytest.importorskip("airloom._engine")

pytestmark = pytest.mark.world

SIOCGIFFLAGS, IFF_RUNNING = 0x8913, 0x40


def udp(namespace, address):
    def make():
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind(address)
        made.settimeout(20)
        return made

    return inside(namespace, make)


@pytest.fixture
def nodes():
    try:
        made = _engine.bring_up([node(1), node(2)])
    except _engine.EngineError as error:
        if error.args[0] not in ("host.namespace", "host.tun-device"):
            raise
        pytest.skip(f"no nodes here: {error.args[1]}")
    yield made
    _engine.tear_down(made)


def join(nodes, forward: dict | None = None, backward: dict | None = None):
    engine = _engine.Engine(1)
    for number, namespace in enumerate(nodes, 1):
        engine.add_tap_port(f"h{number}:eth0", namespace.taps()["eth0"])
    engine.connect("wire", "h1:eth0", "h2:eth0", forward or {}, backward or {})
    return engine


def transfer(nodes, count: int) -> None:
    """Sends octets over TCP from node 1 to node 2 and checks them."""
    server = inside(nodes[1], lambda: socket.create_server(("10.0.0.2", 0)))
    server.settimeout(20)
    client = inside(nodes[0], lambda: socket.create_connection(server.getsockname(), 20))
    far, _ = server.accept()
    far.settimeout(20)
    data = os.urandom(count)
    sender = threading.Thread(target=lambda: (client.sendall(data), client.close()))
    sender.start()
    got = b"".join(iter(lambda: far.recv(1 << 16), b""))
    sender.join()
    far.close()
    server.close()
    assert got == data


def test_a_change_of_a_link_shows_in_what_programs_see(nodes):
    # With its carrier, the sender's kernel hands frames over while the link is down.
    engine = join(nodes, {"delay_ns": 1_000_000}, {"carrier": "keep"})
    zero = engine.start()
    assert zero > 0
    a, b = udp(nodes[0], ("10.0.0.1", 7)), udp(nodes[1], ("10.0.0.2", 7))

    def one_way() -> int:
        before = engine.now()
        a.sendto(b"there", ("10.0.0.2", 7))
        b.recv(100)
        return engine.now() - before

    one_way()
    assert one_way() >= 1_000_000
    engine.set_link("wire", "forward", {"delay_ns": 30_000_000})
    assert one_way() >= 30_000_000
    engine.set_link_up("wire", False)
    a.sendto(b"lost", ("10.0.0.2", 7))
    while "link-down" not in engine.ledger()["dropped"]:
        pass
    engine.set_link_up("wire", True)
    one_way()
    engine.stop()
    a.close()
    b.close()
    assert engine.ledger()["host_lost"] == {}


def test_the_interfaces_of_a_link_lose_their_carrier_with_it(nodes):
    engine = join(nodes)

    def running(namespace) -> bool:
        def ask() -> bool:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
                answer = fcntl.ioctl(asker, SIOCGIFFLAGS, struct.pack("16s24x", b"eth0"))
            return bool(struct.unpack_from("H", answer, 16)[0] & IFF_RUNNING)

        return inside(namespace, ask)

    engine.start()
    for up in (False, True):
        engine.set_link_up("wire", up)
        eventually(lambda up=up: [running(one) for one in nodes] == [up, up], f"running {up}")
    engine.set_link_up("wire", False)
    # It is done before the engine ends.
    engine.stop()
    eventually(lambda: [running(one) for one in nodes] == [False, False], "not running")


@pytest.mark.slow
def test_the_ledger_and_the_lateness_of_a_run_agree(nodes):
    engine = join(nodes)
    engine.start()
    transfer(nodes, 2_000_000)
    while not engine.lateness()["status"]:
        pass
    engine.stop()
    ledger, lateness = engine.ledger(), engine.lateness()
    lost = sum(ledger["dropped"].values()) + sum(ledger["host_lost"].values())
    assert ledger["offered"] + ledger["copies"] == ledger["delivered"] + lost + ledger["in_flight"]
    assert ledger["ports"]["h2:eth0"]["delivered_octets"] > 2_000_000
    for name in ("delivery", "ingress"):
        histogram = lateness[name]
        assert 0 < histogram["count"] <= ledger["offered"]
        assert histogram["count"] == sum(count for _, count in histogram["buckets"])
        assert histogram["p50"] <= histogram["p99"] <= histogram["p999"] <= histogram["max"]
        assert histogram["worst"][0][1] == histogram["max"]
        assert histogram["worst"][0][2] in ("h1:eth0", "h2:eth0")
    second = lateness["status"][0]
    assert second["end"] - second["start"] >= 10**9
    assert second["busy"] <= second["end"] - second["start"]


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")
def test_super_frames_are_captured_as_the_frames_they_stand_for(nodes, tmp_path):
    engine = join(nodes)
    path = tmp_path / "run.pcapng"
    engine.capture(path)
    engine.start()
    transfer(nodes, 1_000_000)
    engine.stop()
    account = engine.lateness()["capture"]
    ledger = engine.ledger()
    assert account["written"] == ledger["offered"] + ledger["delivered"]
    header = 44
    assert account["octets"] == path.stat().st_size - header
    assert (account["skipped"], account["failed"]) == (0, False)
    checks = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    bad = "ip.checksum.status == 0 or tcp.checksum.status == 0 or frame.len > 1514"
    for condition, expected in ((bad, 0), ("frame", account["written"])):
        result = subprocess.run(
            ["tshark", "-r", path, *checks, "-Y", condition, "-T", "fields", "-e", "frame.number"],
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        )
        assert len(result.stdout.split()) == expected


def test_a_node_is_exchanged_while_the_engine_runs(nodes):
    engine = join(nodes)
    engine.start()
    transfer(nodes, 1000)
    engine.detach("h2:eth0")
    nodes.pop().close()
    nodes.extend(_engine.bring_up([node(2)]))
    engine.attach_tap("h2:eth0", nodes[1].taps()["eth0"])
    transfer(nodes, 1000)
    engine.stop()


def test_an_engine_that_is_forgotten_ends_its_thread(nodes):
    before = set(os.listdir("/proc/self/task"))
    engine = join(nodes)
    engine.start()
    assert set(os.listdir("/proc/self/task")) - before
    del engine
    assert not set(os.listdir("/proc/self/task")) - before
