"""What programs do with the interfaces of their nodes, each as the kernel's manual says."""

from __future__ import annotations

from pathlib import Path

import pytest

import airloom
from airloom.scenario.reader import read

pytestmark = [pytest.mark.world, pytest.mark.timeout(170)]

RECEIVER = """
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("239.1.1.1", 5007))
group = socket.inet_aton("239.1.1.1") + struct.pack("=I", 0)
s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
s.settimeout(20)
print(sum(1 for _ in range(20) if s.recv(100)), "datagrams")
"""
SENDER = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("10.0.0.1"))
for _ in range(80):
    s.sendto(b"x", ("239.1.1.1", 5007))
    time.sleep(0.05)
"""
SCENARIO = """name: overlays
nodes: {a: {}, b: {}, c: {}, r: {}, d: {}}
switches: {s: {}}
links:
  - {ends: [a, s], rate: 100 Mbit/s}
  - {ends: [b, s], rate: 100 Mbit/s}
  - {ends: [c, s], rate: 100 Mbit/s}
  - {ends: [r, s], rate: 100 Mbit/s}
  - {ends: [r, d], rate: 100 Mbit/s, mtu: 1000}
programs:
  - name: vmac
    node: b
    run: >-
      ip link add v0 link eth0 address 00:00:5e:00:01:07 type macvlan mode bridge &&
      ip addr add 10.0.0.77/24 dev v0 && ip link set v0 up
  - {name: vping, node: a, after: vmac, run: "sleep 1; ping -c 3 -i 0.2 -W 5 10.0.0.77"}
  - {name: frag, node: a, run: ping -c 3 -i 0.2 -W 5 -M dont -s 4000 d}
  - {name: join, node: c, folder: ., run: python3 receiver.py}
  - {name: send, node: a, folder: ., run: python3 sender.py}
"""


def test_virtual_addresses_fragments_and_groups_pass_a_switch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A VRRP address on a macvlan, a large datagram through a small MTU, a multicast group."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "receiver.py").write_text(RECEIVER)
    (tmp_path / "sender.py").write_text(SENDER)
    airloom.run(read(SCENARIO), out=tmp_path / "run")
    logs = tmp_path / "run" / "nodes"
    assert "3 received" in (logs / "a" / "vping.log").read_text()
    assert "3 received" in (logs / "a" / "frag.log").read_text()
    assert "20 datagrams" in (logs / "c" / "join.log").read_text()
