"""A capture between strangers, replayed between two nodes: their kernels take its packets."""

from __future__ import annotations

import sys
from ipaddress import ip_address
from pathlib import Path

import pytest

import airloom
from airloom.host.internet_checksum import internet_checksum
from helpers.pcap_files import ethernet, udp_packet, write

pytestmark = [pytest.mark.world, pytest.mark.timeout(180)]

A, B = b"\xc0\0\2\1", b"\xc0\0\2\2"
RECEIVER = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as inbox:
    inbox.bind(("", 4001))
    print("bound", flush=True)
    for _ in range(int(sys.argv[1])):
        octets, (host, port) = inbox.recvfrom(2000)
        print(host, port, octets.decode(), flush=True)
"""


def udp_counts(node: airloom.lab.lab.LiveNode) -> dict[str, int]:
    lines = [
        line.split()[1:] for line in node.run("cat /proc/net/snmp").stdout.splitlines() if "Udp:" in line
    ]
    return dict(zip(lines[0], map(int, lines[1]), strict=True))


def test_the_kernel_of_the_receiver_takes_every_datagram(tmp_path: Path) -> None:
    frames = [ethernet(udp_packet(b"call %d" % number, A, B)) for number in range(10)]
    # A checksum that the capturing machine's offload had left out.
    frames = [frame[:40] + b"\x12\x34" + frame[42:] for frame in frames]
    frames += [ethernet(udp_packet(b"answer", B, A)), b"\xff" * 12 + b"\x08\x06" + bytes(28)]
    rows = [(10**18 + number * 1_000_000, one) for number, one in enumerate(frames)]
    scenario = {
        "name": "replayed",
        "nodes": {"a": {}, "r": {"forwarding": True}, "b": {}},
        "links": [{"ends": ["a", "r"]}, {"ends": ["r", "b"]}],
    }
    with airloom.Lab(airloom.Scenario.model_validate(scenario), out=tmp_path / "out") as lab:
        path = write(lab.folder / "call.pcap", rows)
        replay = f"{sys.executable} -m airloom replay {path}"
        receiver = lab["b"].start(["python3", "-c", RECEIVER, "10"], ready={"log": "bound", "within": "60 s"})
        words = "--map 192.0.2.1=a --map 192.0.2.2=b"
        done = lab["a"].run(f"{replay} eth0 {words}", check=True, timeout=100)
        assert "10 frames sent" in done.stdout
        assert "1 not sent: from hosts that are other nodes; 1 not sent: without IP" in done.stdout
        assert receiver.wait(60) == 0
        heard = [f"{lab['a'].address} 4000 call {number}" for number in range(10)]
        assert receiver.output.splitlines()[1:] == heard
        counts = udp_counts(lab["b"])
        assert (counts["InDatagrams"], counts["InCsumErrors"]) == (10, 0)
        # The kernel's counter finds a wrong checksum in a frame that is sent as it is.
        addresses = [ip_address(str(lab[name].address)).packed for name in "ar"]
        wrong = udp_packet(b"wrong", *addresses)
        wrong = (
            wrong[:10]
            + internet_checksum(wrong[:20]).to_bytes(2, "big")
            + wrong[12:26]
            + b"\x12\x34"
            + wrong[28:]
        )
        as_it_is = write(lab.folder / "wrong.pcap", [(0, b"\xff" * 6 + ethernet(wrong)[6:])])
        lab["a"].run(f"{sys.executable} -m airloom replay {as_it_is} eth0", check=True, timeout=100)
        assert lab.run_until(lambda: udp_counts(lab["r"])["InCsumErrors"] == 1)
        itself = lab["a"].run(f"{replay} eth0 --map 192.0.2.1=a --map 192.0.2.2=a", timeout=100)
        assert "is an address of this node itself" in itself.stderr
