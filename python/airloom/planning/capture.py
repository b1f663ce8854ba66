"""What can be captured, what a run captures, how it is stored, and about how large it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from airloom.errors import ScenarioError
from airloom.planning.estimate import UNLIMITED, path_between
from airloom.planning.plan import Plan
from airloom.planning.schedule import expected_of
from airloom.scenario.model import Iperf3, Measurement, Ping, Traffic
from airloom.scenario.suggest import nearest
from airloom.units.given import given

FOLDER = "captures"
"""Folder of the captures within a run's folder, one file for each port."""
MERGED = "capture.pcapng"
"""The capture of all ports in one file, within a run's folder."""
BLOCK = 48
"""Octets that pcapng adds to a frame, with its direction."""
FULL = 1514
"""Octets of a full Ethernet frame without check sequence."""
_ACKNOWLEDGMENT = 66
"""Octets of an acknowledgment of TCP, without check sequence."""
_HEADERS = {"icmp": 42, "udp": 42}
"""Octets of the headers of Ethernet, IPv4 and ICMP or UDP."""
LEAST, MOST = 14, 262_144
"""Range of the snap length in octets: an Ethernet header, and Wireshark's largest."""


What = Literal["node", "port", "radio", "medium", "link"]
"""What a name stands for. A radio is the port of a node's interface with a radio."""


@dataclass(frozen=True, slots=True)
class Source:
    """Something that can be captured, with its ports and media in the engine."""

    what: What
    ports: tuple[str, ...]


def sources(plan: Plan) -> dict[str, Source]:
    """Returns what can be captured in a plan, by name.

    A link stands for the port at its first end that is one, where each of its frames passes once. A
    link between two switches has none. The names of media come before those of nodes, ports and links.
    """
    radios = {radio.port for medium in plan.media.values() for radio in medium.radios}
    found = {name: Source("medium", (name,)) for name in plan.media}
    of_nodes = {
        name: tuple(f"{name}:{interface.name}" for interface in node.interfaces)
        for name, node in plan.nodes.items()
    }
    for name, ports in of_nodes.items():
        found.setdefault(name, Source("node", ports))
    for port in (port for ports in of_nodes.values() for port in ports):
        found[port] = Source("radio" if port in radios else "port", (port,))
    for link in plan.links.values():
        ends = [end for end in (link.a, link.b) if end in found and found[end].what in ("port", "radio")]
        found.setdefault(link.name, Source("link", tuple(ends[:1])))
    return found


def chosen(names: Sequence[str], known: Mapping[str, Source]) -> list[str] | None:
    """Returns the ports and media that names stand for; None, for no name, means all.

    Raises :class:`ScenarioError` for an unknown name, and for one whose frames pass no port.
    """
    found: dict[str, None] = {}
    for name in names:
        source = known.get(name)
        if source is None:
            raise ScenarioError(
                "capture.port",
                f"there is no port, node, link or medium {name!r} to capture",
                cure=nearest(name, known),
            )
        if not source.ports:
            raise ScenarioError(
                "capture.port",
                f"no frame of {source.what} {name} passes a port of a node",
                cure="capture a node, or a link to a node",
            )
        found |= dict.fromkeys(source.ports)
    return list(found) or None


def must_fit(snap: int | None) -> None:
    """Raises :class:`ScenarioError` for a snap length out of range."""
    if snap is not None and not LEAST <= snap <= MOST:
        raise ScenarioError(
            "capture.snap",
            f"the snap length is not from {LEAST} to {MOST} octets, but {snap}",
            cure="96 keeps the headers of IPv6 and TCP",
        )


@dataclass(frozen=True, slots=True)
class Capture:
    """Which frames a run captures, and how it stores them.

    ``ports`` are ports (``h1:eth0``), nodes (all their ports), links (the port at their first end) or
    media (the sniffer's view of their channels); empty means all. ``snap`` is the number of octets
    kept of each frame, None for all. ``merged`` writes one file with all ports, in order of time,
    instead of one for each port.
    """

    ports: tuple[str, ...] = ()
    snap: int | None = None
    merged: bool = False

    @classmethod
    def of(cls, asked: bool | Self) -> Self | None:
        """Returns the capture that an argument asks for: True is one of everything."""
        return (cls() if asked else None) if isinstance(asked, bool) else asked

    @property
    def place(self) -> str:
        """Returns the file or folder, relative to the run's folder."""
        return MERGED if self.merged else FOLDER

    @property
    def whole(self) -> bool:
        """True if it keeps all octets of all ports."""
        return not self.ports and self.snap is None

    def wanted(self, plan: Plan) -> list[str] | None:
        """Returns the names of ports and media for the engine; None means all.

        Raises :class:`ScenarioError` for an unknown name and for a snap length out of range.
        """
        must_fit(self.snap)
        if not self.whole and any(isinstance(one.tool, Traffic) and one.tool.stages for one in _all(plan)):
            raise ScenarioError(
                "capture.stages",
                "'stages' of a measurement follows its packets in the capture, which must be whole",
                cure="capture all ports without a snap length, or leave 'stages' out",
            )
        return chosen(self.ports, sources(plan)) if self.ports else None

    def switches(self, plan: Plan) -> frozenset[str]:
        """Returns the Open vSwitches whose control channels it captures, always whole."""
        return frozenset(
            name
            for name, node in plan.nodes.items()
            if node.openvswitch is not None
            and any(bridge.controllers for bridge in node.openvswitch.bridges)
            and (not self.ports or name in self.ports)
        )

    def octets(self, plan: Plan) -> float:
        """Returns about how many octets its files have at most.

        Counts the frames of measurements on wired links; programs and radios are not known before.
        """
        wanted = self.wanted(plan)
        return sum(self._of(plan, one, wanted) for one in _all(plan))

    def _of(self, plan: Plan, measurement: Measurement, wanted: list[str] | None) -> float:
        tool = measurement.tool
        path = path_between(plan, tool.source, tool.to)
        ends = [end for link in path for end in (link.a, link.b) if ":" in end]
        seen = len(ends) if wanted is None else len([end for end in ends if end in wanted])
        share = seen / (2 * len(path)) if path else 0
        slowest = min((link.forward.mean_rate or UNLIMITED for link in path), default=0)
        lasts = expected_of(measurement) / 1e9
        return 2 * len(path) * share * lasts * _rate(tool, slowest, self._kept)

    def _kept(self, octets: int) -> int:
        return BLOCK + (octets if self.snap is None else min(octets, self.snap))


def _rate(tool: Any, slowest: int, kept: Any) -> float:
    """Returns octets of a capture per second at one port."""
    match tool:
        case Ping():
            return float((tool.offered or 0) * kept(int(tool.size) + _HEADERS["icmp"]))
        case Iperf3() | Traffic() if tool.offered is not None:
            payload = int(given(tool.size, FULL - _HEADERS["udp"]))
            return float(tool.offered * kept(payload + _HEADERS["udp"]))
        case _:
            # TCP fills the slowest link, with an acknowledgment for every other segment.
            return float(slowest / 8 / FULL * (kept(FULL) + kept(_ACKNOWLEDGMENT) / 2))


def _all(plan: Plan) -> list[Measurement]:
    return list(plan.scenario.measurements)
