"""Packets that a node's kernel dropped between its network layer and its interfaces.

A kernel that does not know a neighbour's address keeps a few packets for it and drops the others; none
of its counters of a node tells how many. The octets that IPv4 and IPv6 passed on (``OutOctets``, RFC
4293, of packets of this node and of others that it forwards) and those that the interfaces were handed
do: their difference did not reach an interface. Whatever an interface adds (ARP, headers of segments and
fragments) makes it smaller, so it is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from airloom.host.network_namespace import within

_ETHERNET = 14
_LOOPBACK = "lo"
"""Counts octets without a header: the kernel removes it first (``loopback_xmit``)."""


@dataclass(frozen=True, slots=True)
class Passed:
    """What a node's network layer has passed on until now."""

    packets: int
    octets: int
    interfaces: Collection[str]
    """The interfaces for which the comparison holds: tunnels, bridges and the like count packets twice."""


def passed(read: Callable[[str], str], interfaces: Collection[str]) -> Passed:
    """Returns what the tables netstat, snmp and snmp6 of /proc/net say."""
    six = dict(line.split() for line in read("snmp6").splitlines())
    four = _rows(read("snmp"), "Ip:")
    octets = int(_rows(read("netstat"), "IpExt:").get("OutOctets", 0)) + int(six.get("Ip6OutOctets", 0))
    counts = [four.get(name, 0) for name in ("OutRequests", "ForwDatagrams")]
    counts += [six.get(name, 0) for name in ("Ip6OutRequests", "Ip6OutForwDatagrams")]
    return Passed(sum(map(int, counts)), octets, interfaces)


def passed_in(namespace: int, interfaces: Collection[str]) -> Passed:
    """Returns the same of a network namespace. Raises :class:`OSError`."""
    return within(namespace, lambda: passed(_read, interfaces))


def _read(table: str) -> str:
    path = Path(f"/proc/thread-self/net/{table}")
    return path.read_text() if path.exists() else ""


def packets(passed: Passed, interfaces: Mapping[str, Mapping[str, int]]) -> int:
    """Returns how many packets of mean length reached no interface, at least.

    ``interfaces`` are the counters of all interfaces of the node, read afterwards. Frames that an interface
    itself dropped are known from them, and do not count.
    """
    if not passed.packets or not set(passed.interfaces).issuperset(interfaces):
        return 0
    left = sum(
        one["tx_octets"] - (0 if name == _LOOPBACK else _ETHERNET) * one["tx_packets"]
        for name, one in interfaces.items()
    )
    dropped = sum(one["tx_dropped"] for one in interfaces.values())
    mean = max(1.0, passed.octets / passed.packets)
    return max(0, int((passed.octets - left) / mean + 0.5) - dropped)


def _rows(text: str, word: str) -> dict[str, str]:
    """Returns names and values of a table with a line of each."""
    rows = [line.split() for line in text.splitlines() if line.startswith(f"{word} ")]
    return dict(zip(rows[0][1:], rows[1][1:], strict=False)) if len(rows) == 2 else {}
