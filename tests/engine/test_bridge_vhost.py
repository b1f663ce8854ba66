"""The engine between real guests: User Mode Linux by vhost-user, and a namespace beside them."""

import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from helpers.kernels import BUILT, LACK_OF_PACKAGED, PACKAGED
from helpers.namespaces import inside, node

_engine = pytest.importorskip("airloom._engine")

pytestmark = pytest.mark.world

KERNEL = str(BUILT) if LACK_OF_PACKAGED and os.access(BUILT, os.X_OK) else PACKAGED
MODULES = Path("/usr/lib/uml/modules")
OFFLOADS = 1 << 7 | 1 << 8 | 1 << 11 | 1 << 12 | 1 << 15
SENT = 3_000_000

BEGIN = """#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmp /tmp
for module in failover net_failover virtio_net; do insmod $(find {modules} -name $module.ko); done
ip address add 10.0.0.{number}/24 dev eth0
ip link set eth0 up
echo up $(cat /sys/class/net/eth0/address) $(cat /sys/class/net/eth0/mtu)
{work}
echo all is done
while :; do sleep 1; done
"""


class Guest:
    """One guest with the host's files as its own, read only."""

    def __init__(self, folder: Path, number: int, work: str) -> None:
        self.script = folder / f"init{number}"
        self.script.write_text(BEGIN.format(modules=MODULES, number=number, work=work))
        self.script.chmod(0o755)
        self.console = folder / f"console{number}"
        words = ["mem=64M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={self.script}"]
        words += ["con=null", "con0=null,fd:1", f"virtio_uml.device={folder}/port{number}:1"]
        words += [f"umid=guest{number}", f"uml_dir={folder}/uml"]
        with self.console.open("w") as console:
            self.process = subprocess.Popen(
                ["setarch", "-R", KERNEL, *words],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def says(self, words: str) -> str:
        """The console once it has these words."""
        end = time.monotonic() + 40
        while words not in (text := self.console.read_text(errors="replace")):
            assert time.monotonic() < end, text
            assert self.process.poll() is None, text
            time.sleep(0.05)
        return text

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def stage(tmp_path):
    """The engine with a switch, two guests' ports and a namespace's; then whatever guests were started."""
    if KERNEL is None or not MODULES.is_dir():
        pytest.skip("no User Mode Linux: apt-get install -y --no-install-recommends user-mode-linux")
    try:
        [namespace] = _engine.bring_up([node(3)])
    except _engine.EngineError as error:
        if error.args[0] not in ("host.namespace", "host.tun-device"):
            raise
        pytest.skip(f"no nodes here: {error.args[1]}")
    engine = _engine.Engine(1)
    engine.add_switch("switch", {"switch": {"ageing_ns": 300 * 10**9, "addresses": 1000}})
    engine.add_tap_port("h3", namespace.taps()["eth0"])
    for number in (1, 2):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(tmp_path / f"port{number}"))
            listener.listen(1)
            engine.add_vhost_port(f"g{number}", listener.fileno(), f"02:00:00:00:00:0{number}", 1400)
    for name in ("g1", "g2", "h3"):
        engine.connect(f"wire-{name}", name, "switch", {}, {})
    engine.start()
    guests = []

    def start(number: int, work: str) -> Guest:
        guests.append(Guest(tmp_path, number, work))
        return guests[-1]

    yield engine, namespace, start
    for guest in guests:
        if guest.process.poll() is None:
            guest.kill()
    engine.stop()
    _engine.tear_down([namespace])


def sink(namespace) -> tuple[threading.Thread, list[int]]:
    """Counts the octets of one TCP connection to the namespace."""
    server = inside(namespace, lambda: socket.create_server(("10.0.0.3", 5001)))
    octets = [0]

    def take() -> None:
        with server, server.accept()[0] as near:
            near.settimeout(40)
            while got := near.recv(1 << 16):
                octets[0] += len(got)

    server.settimeout(100)
    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    return thread, octets


def standing(engine, name: str, wanted: str) -> dict:
    end = time.monotonic() + 20
    while (guest := engine.guests()[name])["standing"] != wanted:
        assert time.monotonic() < end, guest
        time.sleep(0.02)
    return guest


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_guests_talk_to_each_other_and_to_a_namespace_and_come_back(stage):
    engine, namespace, start = stage
    reader, octets = sink(namespace)
    other = start(2, "")
    assert "up 02:00:00:00:00:02 1400" in other.says("all is done")
    ping = "ping -n -c 3 -i 0.2 -W 20 10.0.0."
    first = start(1, f"sleep 1\n{ping}2\n{ping}3\nbash -c 'head -c {SENT} /dev/zero >/dev/tcp/10.0.0.3/5001'")
    assert first.says("all is done").count("3 packets transmitted, 3 received, 0% packet loss") == 2
    reader.join(40)
    assert octets == [SENT]
    guest = engine.guests()["g1"]
    assert guest["features"] & OFFLOADS == OFFLOADS
    assert guest["taken_octets"] / guest["taken"] > 2000, "TCP crosses in super-frames"
    assert guest["calls"] > 0
    assert guest["kicks"] > 0
    assert guest["full"] == 0
    ledger = engine.ledger()
    assert ledger["host_lost"] == {}
    assert set(ledger["dropped"]) <= {"not-up"}, "but for what came while a guest was booting"

    # One guest dies the hardest way; the other does not notice, and it is welcome again.
    other.kill()
    gone = standing(engine, "g2", "gone")
    assert gone["cause"] == "the guest closed its connection"
    assert engine.ledger()["ports"]["g2"]["gone"]
    assert engine.guests()["g1"]["standing"] == "up"
    again = start(2, f"sleep 1\n{ping}3\n{ping}1")
    assert again.says("all is done").count("3 received, 0% packet loss") == 2
    assert standing(engine, "g2", "up")["connections"] == 2
    assert not engine.ledger()["ports"]["g2"]["gone"]


def test_what_cannot_be_a_guests_socket_is_refused(tmp_path):
    engine = _engine.Engine(1)

    def refusal(fd: int, mac: str = "02:00:00:00:00:01") -> tuple[str, str]:
        with pytest.raises(_engine.EngineError) as caught:
            engine.add_vhost_port("g", fd, mac, 1500)
        return caught.value.args

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        code, message = refusal(one.fileno())
        assert code == "host.vhost-socket"
        assert "not listening" in message
        one.bind(str(tmp_path / "one"))
        one.listen()
        code, message = refusal(one.fileno(), "03:00:00:00:00:01")
        assert code == "engine.settings"
        assert "multicast" in message
    with socket.socket() as other:
        assert "not a Unix socket" in refusal(other.fileno())[1]
    with (tmp_path / "file").open("w") as file:
        assert "not a Unix socket" in refusal(file.fileno())[1]
    assert refusal(-1)[0] == "host.descriptor"
