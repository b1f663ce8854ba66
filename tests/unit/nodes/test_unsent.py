"""Packets that a node's kernel dropped before its interfaces."""

from __future__ import annotations

from airloom.nodes.network import unsent

NETSTAT = "TcpExt: A\nTcpExt: 1\nIpExt: InOctets OutOctets\nIpExt: 5 {octets}\n"
SNMP = "Ip: Forwarding OutRequests ForwDatagrams\nIp: 1 {packets} {forwarded}\n"


def passed(octets: int, packets: int, forwarded: int = 0, six: str = "") -> unsent.Passed:
    netstat, snmp = NETSTAT.format(octets=octets), SNMP.format(packets=packets, forwarded=forwarded)
    tables = {"netstat": netstat, "snmp": snmp, "snmp6": six}
    return unsent.passed(tables.__getitem__, {"lo", "eth0"})


def eth0(packets: int, octets: int, dropped: int = 0) -> dict[str, dict[str, int]]:
    return {"eth0": {"tx_packets": packets, "tx_octets": octets, "tx_dropped": dropped}}


def test_what_reached_no_interface_is_missing() -> None:
    # 10 packets of 100 octets, of which 7 were sent in frames of 114.
    assert unsent.packets(passed(1000, 10), eth0(7, 7 * 114)) == 3
    assert unsent.packets(passed(1000, 6, forwarded=4), eth0(10, 1140)) == 0
    six = "Ip6OutRequests 5\nIp6OutForwDatagrams 0\nIp6OutOctets 500\n"
    assert unsent.packets(passed(500, 5, six=six), eth0(8, 8 * 114)) == 2


def test_what_an_interface_dropped_is_known_from_the_interface() -> None:
    assert unsent.packets(passed(1000, 10), eth0(7, 7 * 114, dropped=2)) == 1


def test_address_resolution_and_other_additions_are_no_loss() -> None:
    assert unsent.packets(passed(1000, 10), eth0(12, 1140 + 2 * 42)) == 0


def test_loopback_counts_no_headers() -> None:
    lo = {"lo": {"tx_packets": 10, "tx_octets": 1000, "tx_dropped": 0}}
    assert unsent.packets(passed(1000, 10), lo | eth0(0, 0)) == 0


def test_with_interfaces_that_count_twice_nothing_is_said() -> None:
    assert unsent.packets(passed(1000, 10), eth0(0, 0) | {"gre1": eth0(0, 0)["eth0"]}) == 0


def test_without_the_tables_nothing_is_said() -> None:
    assert unsent.packets(unsent.passed(lambda table: "", {"eth0"}), eth0(0, 0)) == 0
