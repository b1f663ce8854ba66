"""Closed forms for NET's chain without machine limits: all times in ns, rates in bit/s."""

from __future__ import annotations

RATE = 11_000_000
SEGMENT = 1448
"""Octets of data in a segment: MTU 1500, IP 20, TCP 20, timestamps 12."""
THROUGHPUT = RATE * SEGMENT / (14 + 1500)
"""Goodput of one flow over the ideal radio, whose frames are an Ethernet header and a packet."""

# Frame sizes on the ideal radio in octets.
ECHO = 14 + 20 + 8 + 56
REQUEST = 14 + 20 + 8 + 24
"""AODV's route request in UDP (RFC 3561, 5.1)."""
REPLY = 14 + 20 + 8 + 20
ARP = 60
"""The shortest Ethernet frame without its check sequence; ARP's own 42 octets are padded."""

RINGS = (2, 4, 6, 8)
"""TTLs of an expanding ring search that begins with 2 (AODV-UU 0.8); then 35."""


def wait(hops: int) -> int:
    """Returns the time lost in rings that are too small.

    A node answers for its neighbours, which it knows by their hellos, so a ring of t reaches t + 1
    hops; the timeout of a ring without reply is 2 * 40 ms * (t + 2).
    """
    return sum(2 * 40_000_000 * (ring + 2) for ring in RINGS if hops > ring + 1)


def first_rtt(hops: int) -> float:
    """Returns the RTT of the first echo over the ideal radio, with nodes of zero processing time.

    On each hop: a request (except on the last, whose end is known), a reply preceded by an ARP
    request and reply, and the echo both ways. A direct neighbour needs only ARP, no search.
    """
    echo, request, reply, arp = (octets * 8e9 / RATE for octets in (ECHO, REQUEST, REPLY, ARP))
    searched = 0 if hops == 1 else hops - 1
    return wait(hops) + searched * (request + reply) + hops * (2 * arp + 2 * echo)


# IEEE 802.11b with long preambles: 18.3 of IEEE Std 802.11-2020 (ns).
_SLOT, _SIFS, _DIFS, _PREAMBLE = 20_000, 10_000, 50_000, 192_000
_CW_MIN = 31
_HEADERS = 24 + 8 + 4
"""Overhead of a data frame in octets: MAC header, LLC and SNAP, check sequence."""
_ACK = 14


def exchange(packet: int, backoff_slots: float) -> float:
    """Returns a packet's airtime: DIFS + backoff + data + SIFS + acknowledgment."""
    octets = (_HEADERS + packet) * 8e9 / RATE
    return _DIFS + backoff_slots * _SLOT + _PREAMBLE + octets + _SIFS + _PREAMBLE + _ACK * 8e9 / RATE


def pair_limits() -> tuple[float, float]:
    """Returns the lower and upper bound of one TCP flow over a real 802.11b pair.

    Per cycle, two segments and one TCP ACK (52 octets). Lower bound: each of the three frames waits
    a mean backoff of its own (15.5 slots). Upper bound: the backoff of the ACK passes while the
    sender's own runs too.
    """
    mean = _CW_MIN / 2
    segments = 2 * exchange(1500, mean)
    slow, fast = segments + exchange(52, mean), segments + exchange(52, 0)
    return 2 * SEGMENT * 8e9 / slow, 2 * SEGMENT * 8e9 / fast


def shared_limit(hops: int) -> float:
    """Returns the maximum throughput of a chain: with h hops, min(h, 3) of them exclude each other.

    A node hears only its neighbours, so of three consecutive hops no two can succeed at once.
    """
    return pair_limits()[1] / min(hops, 3)
