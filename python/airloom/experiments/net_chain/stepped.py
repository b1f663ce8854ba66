"""NET's ideal measured: the frames of a chain through its own links on the engine in memory.

The links are those of the experiment's plan, with their rate, delay, overhead and queue. A node takes
no time: what arrives on one link enters the next at the same instant. Nothing here depends on the
machine, so what a chain of real nodes does worse is the host's share. The closed forms are in
:mod:`airloom.experiments.net_chain.ideal` and :mod:`~airloom.experiments.net_chain.wired`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from airloom import _engine
from airloom.experiments.net_chain import ideal
from airloom.planning import gate
from airloom.planning.plan import LinkPlan
from airloom.scenario.model import Scenario

Frame = tuple[int, int]
"""When a frame enters a link, in ns, and its octets with the Ethernet header."""
Times = tuple[list[int], list[int]]
"""When frames arrived at the far end, and at the near one, in ns."""

SEGMENT_FRAME, ACK_FRAME = 1514, 66
"""Octets of a full TCP segment and of an acknowledgment, with IP, TCP timestamps and Ethernet header."""
ECHO_FRAME = 98
SEGMENTS = 200
"""Segments of a measured flow; the interval between their arrivals is constant."""
_LONG = 3_600 * 10**9
_ADDRESSES = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]) + b"\x08\x00"


def links(scenario: Scenario) -> list[LinkPlan]:
    """Returns the links of a chain from its first node to its last."""
    return list(gate.check(scenario).plans[0].links.values())


def crossed(link: LinkPlan, forward: Iterable[Frame], backward: Iterable[Frame] = ()) -> Times:
    """Returns when frames have crossed a link in each direction, in ns; dropped ones are missing."""
    engine = _engine.Engine(1)
    for end in (link.a, link.b):
        engine.add_memory_port(end)
    engine.connect(link.name, link.a, link.b, link.forward.engine(), link.backward.engine())
    for end, frames in ((link.a, forward), (link.b, backward)):
        for at, octets in frames:
            engine.offer(end, at, _ADDRESSES.ljust(octets, b"\0"))
    arrived = engine.step(_LONG)
    return [at for end, at, _ in arrived if end == link.b], [at for end, at, _ in arrived if end == link.a]


def rtt(chain: Sequence[LinkPlan], octets: int = ECHO_FRAME) -> int:
    """Returns the round-trip time of an echo whose frames have ``octets``, in ns."""
    return sum(_there_and_back(link, octets, octets) for link in chain)


def first_rtt(chain: Sequence[LinkPlan]) -> int:
    """Returns the RTT of the first echo with AODV's search, in ns.

    The frames are those of :func:`airloom.experiments.net_chain.ideal.first_rtt`. The time-outs of
    rings that are too small are the daemon's constants and not measured.
    """
    found = ideal.wait(len(chain))
    for hop, link in enumerate(chain):
        found += _there_and_back(link, ideal.REQUEST, ideal.REPLY) if hop else 0
        found += _there_and_back(link, ideal.ARP, ideal.ARP)
    return found + rtt(chain, ideal.ECHO)


def throughput(chain: Sequence[LinkPlan], payload: int = ideal.SEGMENT) -> float:
    """Returns the goodput of a sender that always has a segment ready, in bit/s.

    An acknowledgment for every second segment goes the other way over the same links at the same time.
    """
    (alone,), _ = crossed(chain[0], [(0, SEGMENT_FRAME)])
    # A little faster than the link, so that a segment always waits.
    times = [number * (alone - chain[0].forward.delay) * 99 // 100 for number in range(SEGMENTS)]
    for link in chain:
        times, _ = crossed(
            link, [(at, SEGMENT_FRAME) for at in times], [(at, ACK_FRAME) for at in times[1::2]]
        )
    return (len(times) - 1) * payload * 8e9 / (times[-1] - times[0])


def _there_and_back(link: LinkPlan, request: int, reply: int) -> int:
    """Returns the times of a frame and of its answer on an idle link, together, in ns."""
    (there,), _ = crossed(link, [(0, request)])
    _, (back,) = crossed(link, [], [(0, reply)])
    return there + back
