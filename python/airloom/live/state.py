"""What the live page shows of a run: its constant part once, and its state at an instant.

The state is read with the calls that reports and the verdict use; the engine keeps nothing for it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from airloom.live.values import Values
from airloom.planning.plan import Plan
from airloom.report.topology import layout
from airloom.runs import evidence, slice_monitor
from airloom.runs.link_loads import DIRECTIONS, LinkLoad, loads_of
from airloom.runs.picture import topology_of
from airloom.runs.single import OneRun

VERDICT_S = 5.0
"""Least time between two verdicts, which read counters of every node."""
VERDICT_SHARE = 0.02
"""Largest share of one processor that verdicts may take."""
MOST_VIOLATIONS = 50

Answer = dict[str, Any]


def drawing(plan: Plan, measurements: Iterable[str]) -> Answer:
    """Nodes, links and radios of a plan, for the page's map; positions of wired ones from 0 to 1.

    ``measurements`` are those that are going to be made.
    """
    topology = topology_of(plan)
    places = _places(topology)
    slices = {
        radio.port: radio.grant.slice
        for medium in plan.media.values()
        for radio in medium.radios
        if radio.grant is not None
    }
    return {
        "scenario": plan.scenario.name,
        "description": plan.scenario.description or "",
        "seed": plan.seed,
        "point": {path: str(value) for path, value in plan.point.items()},
        "duration_ns": plan.scenario.duration,
        "vertices": [
            {
                "name": vertex.name,
                "role": vertex.kind,
                "kind": plan.nodes[vertex.name].kind if vertex.name in plan.nodes else None,
                "addresses": [
                    f"{interface.name} {address}"
                    for interface in plan.nodes[vertex.name].interfaces
                    for address in interface.addresses
                ]
                if vertex.name in plan.nodes
                else [],
                "place": places.get(vertex.name),
            }
            for vertex in topology.vertices
        ],
        "links": [
            {"name": link.name, "a": link.a.partition(":")[0], "b": link.b.partition(":")[0]}
            for link in plan.links.values()
        ],
        "radios": [radio.port for medium in plan.media.values() for radio in medium.radios],
        "slices": slices,
        "measurements": list(measurements),
    }


def _places(topology: Any) -> dict[str, list[float]]:
    """Positions of the vertices that have links, from 0 to 1."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_edges_from((wire.a, wire.b) for wire in topology.wires)
    if not graph:
        return {}
    found = layout(graph)
    low = [min(place[axis] for place in found.values()) for axis in (0, 1)]
    span = [max(place[axis] for place in found.values()) - low[axis] for axis in (0, 1)]
    return {
        name: [(place[axis] - low[axis]) / span[axis] if span[axis] > 1e-9 else 0.5 for axis in (0, 1)]
        for name, place in found.items()
    }


class Reader:
    """Reads the state of a run; rates and shares are means since the reading before."""

    def __init__(self, run: OneRun) -> None:
        self._run = run
        self._before: dict[str, Mapping[str, int]] = {}
        self._loads: list[LinkLoad] = []
        self._values = Values()
        self._at = 0
        self._verdict: Answer | None = None
        self._next_verdict = 0.0

    def read(self) -> Answer:
        """Returns the state now. Raises :class:`~airloom.LabError` if the run has ended."""
        world = self._run.world
        at = world.now() if world.running else self._at
        span = max(1, at - self._at)
        ledger = world.engine.ledger()
        media = bool(world.plan.media)
        answer = {
            "at": at,
            "running": world.running,
            "nodes": {name: str(node.state) for name, node in world.nodes.items()},
            "links": self._links(ledger["links"], span),
            "radios": self._radios(span) if media else {},
            "channels": self._channels(span) if media else [],
            "ledger": {
                "delivered": ledger["delivered"],
                "dropped": {reason: frames for reason, frames in ledger["dropped"].items() if frames},
                "host_lost": sum(evidence.host_lost(ledger).values()),
            },
            "violations": self._violations(),
            "values": self._values.of(self._run.runner.measurings, ledger["ports"], span),
        }
        self._at = at
        return answer

    def _since(self, name: str, now: Mapping[str, int]) -> dict[str, int]:
        """Counters since the reading before, and keeps them for the next one."""
        before = self._before.get(name, {})
        self._before[name] = now
        return {key: value - before.get(key, 0) for key, value in now.items()}

    def _links(self, ledger: Mapping[str, Mapping[str, Any]], span: int) -> Answer:
        world = self._run.world
        used = self._utilizations()
        found = {}
        for number, (name, directions) in enumerate(ledger.items()):
            if name not in world.plan.links:
                continue  # it was taken out
            settings = world.link_settings(name)
            found[name] = {"up": world.is_link_up(name)} | {
                direction: self._direction(f"{name} {direction}", wire, span)
                | {"text": settings[direction].text, "rate": settings[direction].mean_rate}
                | {"utilization": used.get(2 * number + DIRECTIONS.index(direction))}
                for direction, wire in directions.items()
            }
        return found

    def _utilizations(self) -> dict[int, float]:
        """The share of the time since the reading before for which each direction's wire was occupied."""
        before, self._loads = self._loads, loads_of(self._run.world.engine)
        pairs = enumerate(zip(self._loads, before, strict=False))
        return {place: now.utilization_since(then) for place, (now, then) in pairs}

    def _direction(self, name: str, wire: Mapping[str, Any], span: int) -> Answer:
        dropped = sum(wire["dropped"].values())
        since = self._since(name, {"octets": wire["left_octets"], "dropped": dropped})
        return {
            "bit_s": since["octets"] * 8e9 / span,
            "queue": wire["queue"],
            "queue_octets": wire["queue_octets"],
            "dropped": dropped,
            "dropping": since["dropped"],
        }

    def _radios(self, span: int) -> Answer:
        found = {}
        for radio in self._run.world.radios():
            port = radio["port"]
            since = self._since(port, {"sent": radio["airtime"]["transmitting"]})
            settings = radio["settings"]
            peers = {}
            for other, peer in radio["peers"].items():
                counted = {"attempts": peer["attempts"], "unanswered": peer["unanswered"]}
                here = self._since(f"{port} {other}", counted)
                if here["attempts"] > 0:
                    retries = min(1.0, here["unanswered"] / here["attempts"])
                    frames = here["attempts"] * 1e9 / span
                    peers[other] = {"frames_s": frames, "retries": retries, "rate": peer["rate"]}
            found[port] = {
                "medium": radio["medium"],
                "on": radio["on"],
                "cut": radio["cut"],
                "slice": radio["slice"],
                "position": list(radio["position"]),
                "channel": settings.get("channel"),
                "mhz": radio["mhz"],
                "phy": settings.get("phy"),
                "queued": radio["queued"],
                "access_point": radio["access_point"],
                "airtime": min(1.0, since["sent"] / span),
                "peers": peers,
            }
        return found

    def _channels(self, span: int) -> list[Answer]:
        found = []
        for channel in self._run.world.channels():
            counted = {
                "busy": channel["busy"],
                "overlapped": channel["overlapped"],
                "frames": channel["frames"],
            }
            since = self._since(f"{channel['medium']} {channel['mhz']} MHz", counted)
            found.append(
                {
                    "medium": channel["medium"],
                    "channel": channel["channel"],
                    "mhz": channel["mhz"],
                    "busy": min(1.0, since["busy"] / span),
                    "overlapped": min(1.0, since["overlapped"] / span),
                    "frames_s": since["frames"] * 1e9 / span,
                }
            )
        return found

    def _violations(self) -> Answer:
        found, unrecorded = slice_monitor.violations(self._run.world)
        return {
            "count": len(found) + unrecorded,
            "last": [one.model_dump(mode="json") for one in found[-MOST_VIOLATIONS:]],
        }

    def verdict(self) -> Answer | None:
        """Returns the verdict so far, which is judged from time to time; None before the start."""
        if self._run.world.running and time.monotonic() >= self._next_verdict:
            begun = time.thread_time()
            verdict = self._run.verdict()
            self._verdict = {"status": verdict.status, "reasons": list(verdict.reasons)}
            pause = max(VERDICT_S, (time.thread_time() - begun) / VERDICT_SHARE)
            self._next_verdict = time.monotonic() + pause
        return self._verdict
