"""Samples of TCP sockets and queueing disciplines in a node, by the system's ``ss`` and ``tc``."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from airloom.measure.tool import Metric, Outcome, Place, Shown, Step, joined, series

_SOCKET = re.compile(r"\S+\s+\d+\s+\d+\s+\S+:(?P<local>\d{1,5})\s+\S+:(?P<peer>\d{1,5})\s+(?P<rest>.*)")
_STAMP = re.compile(r"= (?P<at>\d{1,19})")
_RTT = re.compile(r"\brtt:(\d{1,9}(?:\.\d{1,6})?)/")
_WINDOW = re.compile(r"\bcwnd:(\d{1,9})")
_RATE = re.compile(r"\bdelivery_rate (\d{1,15})bps")
_SENT = re.compile(r"\bbytes_sent:(\d{1,18})")

Series = dict[str, tuple[list[int], list[float]]]
"""Times in ns and values, by metric."""


@dataclass(frozen=True, slots=True, repr=False)
class SamplingReading(Shown):
    """Time series of sockets and queueing disciplines."""

    sockets: Mapping[int, Series]
    """Series of the sending socket, by the server's port."""
    qdiscs: Mapping[str, Series]
    """Series of the queueing disciplines, by interface."""
    congestion: Collection[str] = field(default_factory=frozenset)
    """Congestion controls of the sockets."""
    node: str = ""

    def metrics(self) -> list[Metric]:
        """The largest backlog of a queueing discipline."""
        highest = [max(one["backlog"][1]) for one in self.qdiscs.values() if one.get("backlog", ((), ()))[1]]
        return [Metric("qdisc_backlog_max", "octets", max(highest))] if highest else []

    def in_force(self) -> dict[str, str]:
        """Nothing; connections say what they use."""
        return {}

    def samples(self) -> pa.Table:
        """The series of queueing disciplines; those of sockets belong to connections."""
        return joined(
            [
                series(f"qdisc_{word}.{device}", _UNITS[word], times, values, self.node)
                for device, found in self.qdiscs.items()
                for word, (times, values) in found.items()
            ]
        )

    def of_connection(self, port: int, name: str) -> Iterator[pa.Table]:
        """Yields the series of the connection to a server's port."""
        for word, (times, values) in self.sockets.get(port, {}).items():
            yield series(f"{word}.{name}", _UNITS[word], times, values, self.node)


_UNITS = {
    "cwnd": "packets",
    "srtt": "ns",
    "delivery_rate": "bit/s",
    "backlog": "octets",
    "drops": "packets",
}


def parse(text: str, ports: Collection[int], zero_realtime: int) -> SamplingReading:
    """The samples in the output of :class:`SamplingTool`; a last sample that is cut off is left out."""
    sockets: dict[int, Series] = {}
    qdiscs: dict[str, Series] = {}
    controls: set[str] = set()
    for at, lines in _blocks(text):
        t_ns = at - zero_realtime
        best: dict[int, tuple[int, str]] = {}
        for line in lines:
            if line.startswith("["):
                _qdiscs(line, t_ns, qdiscs)
                continue
            found = _SOCKET.match(line)
            ends = (int(found["peer"]), int(found["local"])) if found else ()
            port = next((end for end in ends if end in ports), None)
            if found is None or port is None:
                continue
            # A test has a control connection too: the data connection has sent more.
            sent = _SENT.search(found["rest"])
            best[port] = max(best.get(port, (-1, "")), (int(sent[1]) if sent else 0, found["rest"]))
        for port, (sent_octets, rest) in best.items():
            if sent_octets > _CONTROL:
                controls.add(rest.split(None, 1)[0])
                _socket(rest, t_ns, sockets.setdefault(port, {}))
    return SamplingReading(sockets, qdiscs, frozenset(controls))


_CONTROL = 20_000
"""Octets that a control connection does not reach; a receiver's data connection neither."""


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    at, lines = 0, list[str]()
    for line in text.splitlines():
        stamp = _STAMP.fullmatch(line)
        if stamp is None:
            lines.append(line)
            continue
        if at:
            yield at, lines
        at, lines = int(stamp["at"]), []


def _socket(rest: str, t_ns: int, into: Series) -> None:
    for word, pattern, factor in (("cwnd", _WINDOW, 1.0), ("srtt", _RTT, 1e6), ("delivery_rate", _RATE, 1.0)):
        found = pattern.search(rest)
        if found is not None:
            _add(into, word, t_ns, float(found[1]) * factor)


def _qdiscs(line: str, t_ns: int, into: dict[str, Series]) -> None:
    try:
        found: list[dict[str, Any]] = json.loads(line)
        for one in found:
            device = str(one["dev"])
            # Children count into their root.
            if device == "lo" or not one.get("root", False):
                continue
            _add(into.setdefault(device, {}), "backlog", t_ns, float(one.get("backlog", 0)))
            _add(into[device], "drops", t_ns, float(one.get("drops", 0)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return  # another version of tc, or a line cut off


def _add(into: Series, word: str, t_ns: int, value: float) -> None:
    times, values = into.setdefault(word, ([], []))
    times.append(t_ns)
    values.append(value)


@dataclass(frozen=True, slots=True)
class SamplingTool:
    """A shell that runs ``ss`` and ``tc`` again and again in one node."""

    node: str
    interval: int
    """Time between samples: ns."""
    ports: Collection[int]
    """Ports of the servers whose connections are sampled."""
    place: Place

    def steps(self) -> tuple[Step, ...]:
        """One program that runs as long as the others."""
        pause = f"{self.interval // 10**9}.{self.interval % 10**9:09d}"
        script = (
            'while :; do echo "= $(date +%s%N)"; ss -tinHO; '
            f"tc -s -j qdisc show | tr -d '\\n'; echo; sleep {pause}; done"
        )
        return (Step(role="sampler", node=self.node, argv=("sh", "-c", script), service=True, linger=0),)

    def read(self, outcome: Outcome) -> SamplingReading:
        """The samples."""
        (step,) = self.steps()
        text = (outcome.folder / step.stdout).read_text("utf-8", "replace")
        reading = parse(text, self.ports, outcome.zero_realtime)
        return SamplingReading(reading.sockets, reading.qdiscs, reading.congestion, self.node)
