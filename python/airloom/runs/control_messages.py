"""Summary of a run's captured OpenFlow messages: counts, errors, rates, and the controllers' latency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from airloom.errors import LabError
from airloom.measure import openflow
from airloom.measure.openflow import FLOW_MOD, PACKET_IN, PACKET_OUT, Answers, Message
from airloom.nodes.network.control_capture import Channel, ControlCapture
from airloom.planning.capture import FOLDER, Capture
from airloom.planning.plan import Plan
from airloom.results.details import ControlAnswers, ControlMessages

INTERVAL = 100_000_000
"""Shortest interval of the time series in ns."""
INTERVALS = 1000
"""Longest time series."""
_ANSWERS = (PACKET_OUT, FLOW_MOD)

Series = tuple[str, str, str, str, Sequence[int], Sequence[float]]
"""Measurement, metric, unit, node, times and values."""


def control_capture(plan: Plan, capture: Capture, folder: Path) -> ControlCapture:
    """The capture of control channels that belongs to a run's captures, in the run's folder."""
    # Switches that are added later are captured too, unless ports were chosen.
    return ControlCapture(folder / FOLDER, capture.switches(plan) if capture.ports else None)


@dataclass(slots=True)
class Summary:
    """What is known of the control channels of a run."""

    messages: list[ControlMessages] = field(default_factory=list)
    answers: list[ControlAnswers] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What could not be captured or decoded."""
    _times: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def add(self, channel: Channel, zero: int) -> None:
        """Adds the messages of a switch. ``zero``: time zero of the run in ns since 1970."""
        found = list(openflow.messages(channel.path, channel.ports))
        groups: dict[tuple[int, bool, str, str, str], list[Message]] = {}
        asked: dict[int, list[int]] = {port: [] for port in channel.ports}
        for one in found:
            groups.setdefault((one.port, one.from_switch, one.name, one.version, one.error), []).append(one)
            self._times.setdefault((channel.switch, one.name), []).append(one.at - zero)
            if one.type == PACKET_IN:
                asked.setdefault(one.port, []).append(one.at)
        for (port, from_switch, name, version, error), same in sorted(groups.items()):
            self.messages.append(
                ControlMessages(
                    switch=channel.switch,
                    controller=channel.ports.get(port, ""),
                    sender="switch" if from_switch else "controller",
                    message=name,
                    version=version,
                    count=len(same),
                    octets=sum(one.octets for one in same),
                    first_ns=same[0].at - zero,
                    last_ns=same[-1].at - zero,
                    error=error,
                )
            )
        answers = openflow.answers(found)
        for port, times in asked.items():
            if times:
                for kind in _ANSWERS:
                    answer = answers.get((port, kind), Answers())
                    self.answers.append(_answered(channel, port, kind, times, answer))

    def series(self, length: int) -> Iterator[Series]:
        """Messages per second, by switch and type, in a run of this length in ns."""
        width = max(INTERVAL, -(-length // INTERVALS))
        edges = np.arange(0, length + width, width)
        for (switch, name), times in self._times.items():
            counts, _ = np.histogram(times, edges)
            if counts.any():
                yield "control", name, "1/s", switch, edges[1:].tolist(), (counts * 1e9 / width).tolist()


def summary(capture: ControlCapture, zero: int) -> Summary:
    """Ends the capture. The messages of all its channels; notes of the summary say what is missing."""
    capture.close()
    made = Summary()
    if capture.failed is not None:
        made.notes.append(f"the capture of control channels is incomplete: {capture.failed}")
    for name, channel in capture.channels.items():
        if channel.missing:
            made.notes.append(
                f"{channel.missing:,} frames are missing in the capture of the control channel of {name}"
            )
    try:
        for channel in capture.channels.values():
            made.add(channel, zero)
    except LabError as error:
        made.notes.append(
            f"OpenFlow messages are in {channel.path.parent.name}, and not in the report: {error}"
        )
    return made


def _answered(
    channel: Channel, port: int, kind: int, times: Sequence[int], answer: Answers
) -> ControlAnswers:
    latencies = np.array(answer.latencies, np.int64)
    median, p99, most = (
        (round(float(one)) for one in np.quantile(latencies, [0.5, 0.99, 1.0]))
        if latencies.size
        else (None, None, None)
    )
    lasted = times[-1] - times[0]
    return ControlAnswers(
        switch=channel.switch,
        controller=channel.ports[port],
        answer="PACKET_OUT" if kind == PACKET_OUT else "FLOW_MOD",
        asked=len(times),
        asked_per_s=(len(times) - 1) * 1e9 / lasted if lasted > 0 else None,
        answered=int(latencies.size),
        found_by=dict(sorted(answer.found_by.items())),
        median_ns=median,
        p99_ns=p99,
        max_ns=most,
    )
