"""Networks of the MTU study: its frame sizes, and shapes of hosts and switches with links of one rate.

The study has host, switch, host. Its outlook (R-MTU-30) asks for topologies beyond it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airloom.experiments.polling import POLLING
from airloom.measure import flow
from airloom.measure.flow import FlowReading
from airloom.scenario.model import Scenario

FRAMES = (1518, 4370, 7999)
"""Octets of the study's frames with check sequence: its "MTUs"."""
HEADER_AND_CHECK = 18
"""Octets of a frame beside its packet."""
GAP = 20
"""Octets on the wire beside a frame: preamble 8, gap 12."""
TCP_HEADERS = 52
"""Octets of IPv4, TCP and its time stamps in a full packet (RFC 791, RFC 9293, RFC 7323)."""
PACKETS = 1000
"""Frames that may wait for a link, and what Mininet's links have."""
RECEIVE_BUFFER = 500_000
"""Octets that the kernel of a TCP receiver buffers at most, with what it needs for each packet. Less is on
the way, also of two flows less than PACKETS of the smallest frames, so that none is lost: after a loss the
program gets the octets behind it all at once, up to a second late, and a rate of few seconds could exceed
that of the link."""
WARM_UP = 1_000_000_000
"""ns from the first arrival that a rate of TCP leaves out: slow start."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Hosts and switches; names of switches begin with ``s``."""

    name: str
    label: str
    links: tuple[tuple[str, str], ...]
    flows: tuple[tuple[str, str], ...]
    """Sender and receiver of each flow; all share the narrowest part of their path."""

    @property
    def names(self) -> list[str]:
        """Hosts and switches, sorted."""
        return sorted({end for link in self.links for end in link})

    def hops(self) -> int:
        """Links on the path of the first flow."""
        first, last = self.flows[0]
        far = {first: 0}
        waiting = deque([first])
        while waiting:
            here = waiting.popleft()
            for link in self.links:
                if here in link:
                    there = link[0] if link[1] == here else link[1]
                    if there not in far:
                        far[there] = far[here] + 1
                        waiting.append(there)
        return far[last]

    def scenario(
        self,
        name: str,
        rate: float,
        mtu: int,
        measurements: Sequence[Mapping[str, Any]],
        *,
        host: Mapping[str, Any] | None = None,
        switch: Mapping[str, Any] | None = None,
        other: Mapping[str, Any] | None = None,
        **link: Any,
    ) -> Scenario:
        """The network with links of ``rate`` Mbit/s and packets of ``mtu`` octets.

        ``host`` adds to each host, ``switch`` to each switch, ``link`` to each link, and ``other`` to the
        scenario.
        """
        wire = {"rate": f"{rate} Mbit/s", "mtu": mtu, "queue": {"packets": PACKETS}, **link}
        return Scenario.model_validate(
            {
                "name": name,
                "nodes": {one: dict(host or {}) for one in self.names if not one.startswith("s")},
                "switches": {one: dict(switch or {}) for one in self.names if one.startswith("s")},
                "links": [{"ends": list(ends), **wire} for ends in self.links],
                "measurements": list(measurements),
                "engine": POLLING,
                **(other or {}),
            }
        )


SHAPES = (
    Shape("one-switch", "host, switch, host", (("h1", "s1"), ("s1", "h2")), (("h1", "h2"),)),
    Shape("two-switches", "two switches", (("h1", "s1"), ("s1", "s2"), ("s2", "h2")), (("h1", "h2"),)),
    Shape(
        "tree",
        "tree of depth 2, two flows through its root",
        (("s1", "s2"), ("s1", "s3"), ("s2", "h1"), ("s2", "h2"), ("s3", "h3"), ("s3", "h4")),
        (("h1", "h3"), ("h2", "h4")),
    ),
)

FORK = Shape(
    "fork", "two hosts, a switch, a host", (("h1", "s1"), ("h2", "s1"), ("s1", "h3")), (("h1", "h3"),)
)
"""Two senders that share the link from the switch to the receiver."""


def mtu_of(frame: int) -> int:
    """Largest packet of a frame with check sequence: octets."""
    return frame - HEADER_AND_CHECK


def receiving(octets: int) -> dict[str, Any]:
    """What a host adds whose kernel buffers at most so many octets of a TCP connection."""
    return {"sysctl": {"net.ipv4.tcp_rmem": f"4096 65536 {octets}"}}


def on_wire(frame: int, link: float) -> float:
    """How long a frame takes on a link of ``link`` Mbit/s: ns."""
    return (frame + GAP) * 8e3 / link


def ideal_frames(frame: int, link: float, load: float) -> float:
    """Rate of a UDP flow counted in frames: the load, or what the wire leaves beside preamble and gap."""
    return min(load, link * frame / (frame + GAP))


def ideal_tcp(frame: int, link: float) -> float:
    """Rate of TCP's octets on a full link, in the unit of ``link``."""
    return link * (mtu_of(frame) - TCP_HEADERS) / (frame + GAP)


def together(readings: Sequence[FlowReading], frame: int | None) -> float:
    """bit/s of flows in the time that all of them have, without slow start where there are no frames.

    ``frame`` is the size of the frames of UDP, in octets. The rate is that between the first and the last
    arrival of any flow within this time: a flow that gets nothing at first counts as such.
    """
    warm_up = 0 if frame else WARM_UP
    begin = max(int(one.arrivals.min()) for one in readings) + warm_up
    end = min(int(one.arrivals.max()) for one in readings)
    times = np.concatenate([one.arrivals for one in readings])
    octets = np.concatenate([counted_octets(one, frame) for one in readings])
    return rate_between(times, octets, begin, end)


def counted_octets(reading: FlowReading, frame: int | None) -> Any:
    """Octets of each arrival: those of a frame of UDP, else what TCP handed to the program."""
    return np.full(reading.arrivals.size, frame, np.int64) if frame else reading.arrival_octets


def rate_between(times: Any, octets: Any, begin: int, end: int) -> float:
    """Mean rate of the arrivals between two times in ns, in bit/s; 0 without any."""
    inside = (times >= begin) & (times <= end)
    return flow.rate(times[inside], octets[inside]) or 0.0
