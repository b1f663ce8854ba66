"""What measurements that run show so far: a value at each reading of the live page.

A ping writes each reply as it comes. Other tools tell their figures at the end; of these the page shows
what arrives at the measured node, which is all traffic to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airloom.measure.iperf3 import Iperf3Tool
from airloom.measure.ping import PingTool, round_trips
from airloom.measure.tool import Metric
from airloom.measure.traffic import TrafficTool
from airloom.runs.measurement import Measuring

_MOST = 1 << 20
"""Octets of a program's output that one reading takes."""

Answer = dict[str, Any]


class Values:
    """Reads the values of running measurements since the reading before."""

    def __init__(self) -> None:
        self._read: dict[str, int] = {}
        """By measurement: octets of its output that were read."""
        self._arrived: dict[str, int] = {}
        """By measurement: octets that had arrived at its node."""

    def of(self, measurings: Mapping[str, Measuring], ports: Mapping[str, Any], span: int) -> Answer:
        """Returns name, value and unit by measurement. ``ports``: of the ledger; ``span`` in ns."""
        found = {}
        for name, measuring in list(measurings.items()):
            metric = self._metric(measuring, ports, span) if measuring.state == "running" else None
            if metric is not None:
                title, value = metric
                found[name] = {"name": title, "value": value.value, "unit": value.unit}
        return found

    def _metric(self, measuring: Measuring, ports: Mapping[str, Any], span: int) -> tuple[str, Metric] | None:
        match measuring.tool:
            case PingTool() as tool:
                (step,) = tool.steps()
                times = round_trips(self._output(measuring.name, measuring.folder / step.stdout))
                return ("round trip", Metric("rtt", "ns", sum(times) / len(times))) if times else None
            case Iperf3Tool(ask=ask):
                node = ask.source if ask.reverse else ask.to
            case TrafficTool(ask=ask):
                node = ask.to
            case _:
                return None
        here = [port for name, port in ports.items() if name.partition(":")[0] == node]
        if not here:
            return None  # the target is an address, or its traffic passes no port
        now = sum(port["delivered_octets"] for port in here)
        before = self._arrived.get(measuring.name)
        self._arrived[measuring.name] = now
        if before is None:
            return None
        return f"arrives at {node}", Metric("arrived", "bit/s", (now - before) * 8e9 / span)

    def _output(self, name: str, path: Path) -> str:
        """The whole lines that were written since the reading before."""
        before = self._read.get(name, 0)
        try:
            with path.open("rb") as file:
                file.seek(before)
                octets = file.read(_MOST)
        except OSError:
            return ""
        whole = octets[: octets.rfind(b"\n") + 1]
        self._read[name] = before + len(whole)
        return whole.decode("utf-8", "replace")
