"""The queue of a link over time, read with tc as assignments do it, and by other ways of a script."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from airloom.mininet import session
from airloom.mininet.link import TCLink
from airloom.mininet.net import Mininet
from airloom.mininet.topo import Topo

pytestmark = [pytest.mark.world, pytest.mark.timeout(180)]

_BACKLOG = re.compile(r"backlog\s(\d+)b\s(\d+)p")
_COUNTERS = re.compile(r"Sent (\d+) bytes \d+ pkt \(dropped (\d+),.*\n backlog \d+b (\d+)p")


class Slow(Topo):
    """A fast and a slow link: frames wait at port 2 of the switch."""

    def build(self) -> None:
        h1, h2, switch = self.addHost("h1"), self.addHost("h2"), self.addSwitch("s0")
        self.addLink(h1, switch, bw=100)
        self.addLink(switch, h2, bw=0.5, delay="5ms", max_queue_size=40)


@pytest.fixture
def net() -> Iterator[Mininet]:
    made = Mininet(topo=Slow(), link=TCLink)
    made.start()
    made.staticArp()
    yield made
    made.stop()
    session.close()


def fill(net: Mininet) -> None:
    """Lets 80 datagrams of 1000 octets wait, of which 40 and the one on the wire stay.

    Returns when all have left the fast link, of which they take 7 ms.
    """
    send = (
        "import socket; s = socket.socket(2, 2); [s.sendto(bytes(1000), ('10.0.0.2', 9)) for _ in range(80)]"
    )
    net["h1"].cmd(f'{sys.executable} -c "{send}"')
    until = time.monotonic() + 20
    while _datagrams(net["s0"].cmd("tc -s qdisc show dev s0-eth2")) < 78:
        assert time.monotonic() < until, "some were lost"


def _datagrams(text: str) -> int:
    """Sent, dropped and waiting; h1's kernel multicasts a few small frames of its own."""
    sent_octets, dropped, waiting = (int(number) for number in _COUNTERS.findall(text)[0])
    return sent_octets // 1042 + dropped + waiting


def assert_all_counted(text: str) -> None:
    """Every datagram is sent, waiting or dropped, but for two that are on the wire or in its delay."""
    assert 78 <= _datagrams(text) <= 83
    assert 0 < int(_COUNTERS.findall(text)[0][1]) <= 42


def test_tc_says_what_waits_drops_and_has_been_sent(net: Mininet) -> None:
    before = net["s0"].cmd("tc -s qdisc show dev s0-eth2")
    assert len(_BACKLOG.findall(before)) == 2, "htb and netem, as in Mininet"
    assert "qdisc htb 5: root" in before
    assert "qdisc netem 10: parent 5:1 limit 40 delay 5ms" in before
    fill(net)
    full = net["s0"].cmd("tc -s qdisc show dev s0-eth2")
    (octets, frames), _ = [(int(octets), int(frames)) for octets, frames in _BACKLOG.findall(full)]
    # A frame of 1042 octets takes 17 ms. Small ones of the kernel may wait among them.
    assert 0 < frames <= 40
    assert 0 <= frames * 1042 - octets <= 3 * 1042
    assert_all_counted(full)
    assert net["s0"].pid is None, "nothing needed a node"


def test_processes_of_the_script_and_other_terminals_read_the_same(net: Mininet) -> None:
    fill(net)
    command = "tc -s qdisc show dev s0-eth2"
    own = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=30, check=False)
    assert own.returncode == 0, own.stderr
    assert_all_counted(own.stdout)
    words = [sys.executable, "-m", "airloom", "exec", "--lab", str(os.getpid()), "s0", "--", *command.split()]
    other = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert other.returncode == 0, other.stderr
    assert_all_counted(other.stdout)
    in_host = net["h2"].cmd("tc -s qdisc show dev h2-eth0")
    assert "qdisc netem 10:" in in_host
    assert "tc" in net["h2"].cmd("for i in 1; do tc qdisc show dev lo; done; type tc")
    real = subprocess.run(
        "tc qdisc show dev lo", shell=True, capture_output=True, text=True, timeout=30, check=False
    )
    assert "noqueue" in real.stdout, "devices of the machine are those of the machine"
    assert net["s0"].pid is None


MONITOR = """
import re, sys
from subprocess import PIPE, Popen
from time import sleep, time


def monitor_queue(iface, interval_sec, fname):
    pattern = re.compile(r"backlog\\s[^\\s]+\\s([\\d]+)p")
    open(fname, "w").write("")
    while True:
        p = Popen("tc -s qdisc show dev %s" % iface, shell=True, stdout=PIPE)
        matches = pattern.findall(p.stdout.read().decode())
        if matches and len(matches) > 1:
            open(fname, "a").write("%f,%s\\n" % (time(), matches[1]))
        sleep(interval_sec)
"""
BUFFERBLOAT = """
import sys
from multiprocessing import Process
from time import sleep
from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import CPULimitedHost
from mininet.topo import Topo
from monitor import monitor_queue


class BBTopo(Topo):
    def build(self):
        h1, h2, s0 = self.addHost("h1"), self.addHost("h2"), self.addSwitch("s0")
        self.addLink(h1, s0, bw=100, delay="2ms", max_queue_size=50)
        self.addLink(s0, h2, bw=2, delay="2ms", max_queue_size=50)


net = Mininet(topo=BBTopo(), host=CPULimitedHost, link=TCLink)
net.start()
monitor = Process(target=monitor_queue, args=("s0-eth2", 0.05, sys.argv[1]))
monitor.start()
h1, h2 = net.get("h1", "h2")
server = h2.popen("iperf3 -s -1", shell=True)
sleep(1)
client = h1.popen("iperf3 -c %s -t 6 -C reno" % h2.IP(), shell=True)
client.wait()
monitor.terminate()
net.stop()
"""


def test_the_bufferbloat_assignment_fills_its_file(tmp_path: Path) -> None:
    """The assignment of CS244 and others: a process beside the network calls tc again and again."""
    (tmp_path / "monitor.py").write_text(textwrap.dedent(MONITOR))
    script = tmp_path / "bufferbloat.py"
    script.write_text(textwrap.dedent(BUFFERBLOAT))
    file = tmp_path / "q.txt"
    words = [sys.executable, "-m", "airloom", "mn-run", str(script), str(file)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lengths = [int(line.split(",")[1]) for line in file.read_text().split()]
    assert len(lengths) >= 10
    assert max(lengths) >= 45, "TCP fills 50 frames"
    assert min(lengths) == 0, "before it starts"
