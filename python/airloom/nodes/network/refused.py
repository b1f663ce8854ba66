"""Counter of datagrams lost to full socket buffers of a node."""

from __future__ import annotations


def refused_in(snmp: str, snmp6: str) -> int:
    """UDP ``RcvbufErrors`` for IPv4 and IPv6 from the texts of /proc/net/snmp and snmp6."""
    rows = [line.split() for line in snmp.splitlines() if line.startswith("Udp:")]
    four = dict(zip(*rows, strict=True)) if len(rows) == 2 else {}
    six = dict(line.split() for line in snmp6.splitlines())
    return int(four.get("RcvbufErrors", 0)) + int(six.get("Udp6RcvbufErrors", 0))
