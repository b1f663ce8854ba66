"""Ready tests after those of flent: several tools that measure one path together.

A test has parts, each with a tool and a name such as ``up_be``. Their programs run in a folder of
that name, and their figures and series are named ``throughput.up_be``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airloom.measure import voip
from airloom.measure.flow import FlowReading
from airloom.measure.iperf3 import Iperf3Reading, Iperf3Tool
from airloom.measure.ping import PingReading, PingTool
from airloom.measure.sampling import SamplingReading, SamplingTool
from airloom.measure.tool import FOLDER, Metric, Outcome, Place, Reading, Shown, Step, Tool, joined
from airloom.measure.traffic import TrafficTool
from airloom.measure.web import WebTool

if TYPE_CHECKING:
    from airloom.scenario import model

MARKS = {"be": 0, "bk": 8, "cs5": 40, "ef": 46}
"""Differentiated services code points of RRUL: best effort, CS1, CS5, EF."""
_PING_INTERVAL = "100 ms"
_SERIES = frozenset({"throughput", "rtt", "delay", "jitter_rfc3550", "loss"})
"""Series of parts that a test keeps; the others are in the output of its programs."""


@dataclass(frozen=True, slots=True, repr=False)
class TestReading(Shown):
    """Results of a ready test."""

    kind: str
    parts: Mapping[str, Reading]
    load: tuple[int, int] | None
    """Start and end of the load, ns after time zero; None if there is none."""

    def metrics(self) -> list[Metric]:
        """The figures of the whole, then the most important ones of each part."""
        if self.kind == "web_page":
            return self.parts["page"].metrics()
        return [*(self._call() if self.kind == "voip" else self._loaded()), *self._of_parts()]

    def in_force(self) -> dict[str, str]:
        """TCP: the congestion control of the senders."""
        found = {one.congestion for one in self.parts.values() if isinstance(one, Iperf3Reading)}
        known = sorted(one for one in found if one)
        return {"congestion": ", ".join(known)} if known else {}

    def samples(self) -> pa.Table:
        """The series of all parts."""
        tables = []
        for name, part in self.parts.items():
            if isinstance(part, SamplingReading):
                tables += [part.samples(), *self._of_sockets(part)]
            elif self.kind == "web_page":
                tables.append(part.samples())
            else:
                # The sockets' own round-trip times are those that the node is asked for.
                kept = ("throughput",) if isinstance(part, Iperf3Reading) else _SERIES
                tables.append(_named(part.samples(), name, kept))
        return joined([table for table in tables if table.num_rows])

    def _of_sockets(self, sampling: SamplingReading) -> Iterator[pa.Table]:
        """Yields the series of the connections that the sampled node sends."""
        for name, part in self.parts.items():
            if isinstance(part, Iperf3Reading) and part.sender == sampling.node:
                yield from sampling.of_connection(part.port, name)

    def _loaded(self) -> list[Metric]:
        rates = {
            name: part.throughput for name, part in self.parts.items() if isinstance(part, Iperf3Reading)
        }
        up = [rate for name, rate in rates.items() if name.startswith("up_")]
        down = [rate for name, rate in rates.items() if name.startswith("down_")]
        found = [Metric("throughput", "bit/s", sum(rates.values()))]
        if down:
            found.append(Metric("throughput_up", "bit/s", sum(up)))
            found.append(Metric("throughput_down", "bit/s", sum(down)))
        for name, group in (("fairness_up", up), ("fairness_down", down)):
            if len(group) > 1 and any(group):
                # Jain's index: 1 if all are equal, 1/n if one has everything.
                found.append(Metric(name, "1", sum(group) ** 2 / (len(group) * sum(r * r for r in group))))
        return [*found, *self._latency()]

    def _latency(self) -> list[Metric]:
        """Round-trip time of the ping without a mark, under load and before it."""
        ping = self.parts["ping"]
        assert isinstance(ping, PingReading)
        found = [Metric("loss", "1", ping.loss)]
        replies = [one for one in ping.replies if one.received is not None and not one.duplicate]
        if not replies or self.load is None:
            return found
        start, end = self.load
        at = np.array([(one.received or 0) - ping.zero_realtime for one in replies])
        rtt = np.array([one.rtt for one in replies], np.float64)
        loaded = (at >= start) & (at < end)
        if loaded.any():
            p50, p95, p99 = np.quantile(rtt[loaded], [0.5, 0.95, 0.99])
            found += [
                Metric("rtt_mean", "ns", float(rtt[loaded].mean())),
                Metric("rtt_p50", "ns", float(p50)),
                Metric("rtt_p95", "ns", float(p95)),
                Metric("rtt_p99", "ns", float(p99)),
                Metric("rtt_max", "ns", float(rtt[loaded].max())),
            ]
        # After the load the queue still has to drain.
        before = rtt[at < start]
        if before.size:
            idle = float(np.median(before))
            found.append(Metric("rtt_idle", "ns", idle))
            if loaded.any():
                found.append(Metric("rtt_induced", "ns", float(np.median(rtt[loaded])) - idle))
        return found

    def _call(self) -> list[Metric]:
        found = []
        for name, part in self.parts.items():
            assert isinstance(part, FlowReading)
            delay = float(part.delays.mean()) if part.delays.size else 0.0
            loss = part.lost / part.sent if part.sent else 1.0
            rating = voip.rating(delay, loss)
            found += [
                Metric(f"mos.{name}", "1", voip.mos(rating)),
                Metric(f"r_factor.{name}", "1", rating),
            ]
        return found

    def _of_parts(self) -> list[Metric]:
        found = []
        for name, part in self.parts.items():
            if isinstance(part, SamplingReading):
                found += [replace(one, name=f"{one.name}.{part.node}") for one in part.metrics()]
                continue
            for metric in part.metrics():
                if metric.name in _FIGURES:
                    found.append(replace(metric, name=f"{metric.name}.{name}"))
        return found


_FIGURES = frozenset(
    {
        "throughput",
        "retransmits",
        "rtt_mean",
        "rtt_p99",
        "loss",
        "delay_mean",
        "delay_p99",
        "jitter_rfc3550",
    }
)
"""Figures of parts that a test keeps."""


def _named(table: pa.Table, part: str, metrics: Collection[str]) -> pa.Table:
    """The series of a part with its name."""
    kept = table.filter(pc.is_in(table["metric"], pa.array(sorted(metrics))))
    names = pc.binary_join_element_wise(kept["metric"], part, ".")
    return kept.set_column(kept.column_names.index("metric"), "metric", names)


@dataclass(frozen=True, slots=True)
class TestTool:
    """The tools of a ready test."""

    ask: model.Test
    place: Place

    @property
    def _start(self) -> int:
        """Start of the load: ns after time zero."""
        return self.ask.at + (self.ask.idle if self.ask.loads else 0)

    def steps(self) -> tuple[Step, ...]:
        """The programs of all parts; services first."""
        found = [_inside(step, name) for name, tool in self.parts().items() for step in tool.steps()]
        return tuple(sorted(found, key=lambda step: not step.service))

    def parts(self) -> dict[str, Tool]:
        """The tools by the name of their part."""
        if self.ask.kind == "voip":
            return {name: self._call(name, number) for number, name in enumerate(("up", "down"))}
        if self.ask.kind == "web_page":
            return {"page": WebTool(self.ask, self.place)}
        return self._load()

    def _load(self) -> dict[str, Tool]:
        ask, place = self.ask, self.place
        found: dict[str, Tool] = {}
        if ask.sample:
            ports = range(place.port, place.port + ask.ports)
            nodes = dict.fromkeys((ask.source, place.node(ask.to)))
            found |= {
                f"node_{end}": SamplingTool(node, int(ask.sample), ports, place)
                for end, node in zip(("from", "to"), nodes, strict=False)
            }
        for number, (name, mark, reverse) in enumerate(self._connections()):
            found[name] = self._connection(place.port + number, mark, reverse=reverse)
        found |= {name: self._ping(mark) for name, mark in self._pings()}
        return found

    def _connections(self) -> Sequence[tuple[str, int, bool]]:
        """Name, mark and direction of the TCP connections."""
        kind = self.ask.kind
        if kind == "tcp_nup":
            return [(f"up_{number}", 0, False) for number in range(1, self.ask.ports + 1)]
        marks = MARKS if kind == "rrul" else {f"be{number}": 0 for number in range(1, 5)}
        return [
            (f"{way}_{name}", mark, way == "down") for way in ("up", "down") for name, mark in marks.items()
        ]

    def _pings(self) -> Sequence[tuple[str, int]]:
        """Name and mark of the pings; the first one has no mark."""
        if self.ask.kind != "rrul":
            return [("ping", 0)]
        return [("ping", 0), *((f"ping_{name}", MARKS[name]) for name in ("bk", "ef"))]

    def _connection(self, port: int, mark: int, *, reverse: bool) -> Tool:
        from airloom.scenario.model import Iperf3
        from airloom.units.quantities import Duration

        ask = self.ask
        one = Iperf3(
            **{"from": ask.source},
            to=ask.to,
            duration=ask.duration,
            reverse=reverse,
            congestion=ask.congestion,
            dscp=mark,
            family=ask.family,
            at=Duration(f"{self._start} ns"),
        )
        return Iperf3Tool(one, replace(self.place, port=port))

    def _ping(self, mark: int) -> Tool:
        from airloom.scenario.model import Ping
        from airloom.units.quantities import Duration

        ask = self.ask
        interval = Duration(_PING_INTERVAL)
        one = Ping(
            **{"from": ask.source},
            to=ask.to,
            interval=interval,
            count=max(1, ask.least // interval),
            dscp=mark,
            family=ask.family,
            at=ask.at,
        )
        return PingTool(one, self.place)

    def _call(self, name: str, number: int) -> Tool:
        from airloom.scenario.model import Traffic

        ask, place = self.ask, self.place
        there = place.node(ask.to)
        ends = (ask.source, ask.to) if name == "up" else (there, ask.source)
        one = Traffic(
            **{"from": ends[0]},
            to=ends[1],
            protocol="rtp",
            interval=voip.INTERVAL,
            size=voip.SIZE,
            dscp=MARKS["ef"],
            duration=ask.duration,
            family=ask.family,
            at=ask.at,
        )
        return TrafficTool(one, replace(place, port=place.port + number, seed=place.seed ^ number))

    def read(self, outcome: Outcome) -> TestReading:
        """The results of all parts."""
        found: dict[str, Reading] = {}
        for name, tool in self.parts().items():
            roles = {f"{name}/{step.role}": step.role for step in tool.steps()}
            found[name] = tool.read(
                replace(
                    outcome,
                    folder=outcome.folder / name,
                    ended={short: outcome.ended[role] for role, short in roles.items()},
                    skews={s: outcome.skews[role] for role, s in roles.items() if role in outcome.skews},
                )
            )
        load = None
        if self.ask.loads:
            loads = [f"{name}/client" for name, part in found.items() if isinstance(part, Iperf3Reading)]
            ends = [outcome.ended[role] for role in loads]
            load = (
                min(one.started for one in ends) - outcome.zero,
                max(one.ended for one in ends) - outcome.zero,
            )
        return TestReading(self.ask.kind, found, load)


def _inside(step: Step, part: str) -> Step:
    """The step of a part: in a folder of the part's name."""
    return replace(
        step,
        role=f"{part}/{step.role}",
        argv=tuple(word.replace(FOLDER, f"{FOLDER}/{part}") for word in step.argv),
        files={f"{part}/{name}": content for name, content in step.files.items()},
    )
