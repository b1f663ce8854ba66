"""Airloom's own generator as a measuring tool: a receiver, a sender, and the records of both.

The records go to standard output, so that no file is needed inside a node; the programs' summaries are the
last line of standard error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from airloom.errors import ScenarioError
from airloom.measure.flow import FlowReading, join
from airloom.measure.records import read
from airloom.measure.tool import FOLDER, Listening, MeasureError, Outcome, Place, Step, failed

if TYPE_CHECKING:
    from airloom.scenario import model

_NOTHING_CAME = 5
"""Exit code of a receiver to which nothing came: for a measurement that is a result."""

_PATIENCE = 60_000_000_000
"""How much longer than the flow its programs may take: ns."""


@dataclass(frozen=True, slots=True)
class TrafficTool:
    """One flow, recorded packet by packet at both ends."""

    ask: model.Traffic
    place: Place

    def steps(self) -> tuple[Step, ...]:
        """The receiver ends when the sender's end mark has come."""
        ask, place = self.ask, self.place
        port = str(place.port)
        limit = int(ask.duration) + _PATIENCE
        common = ("--port", port, "--protocol", ask.protocol, "--record", "-", "--json")
        # Silence is no end: links may be down for long in an experiment.
        receive = (place.traffic, "receive", *common, "--idle", f"{limit} ns")
        send = [place.traffic, "send", "--to", place.address(ask.to, ask.family), *common]
        send += ["--pattern", ask.pattern, "--duration", f"{int(ask.duration)} ns", "--seed", str(place.seed)]
        files = {}
        if ask.pattern == "trace" and ask.trace is not None:
            files["flow.trace"] = self._trace(place.folder / str(ask.trace))
            send += ["--trace", f"{FOLDER}/flow.trace"]
        else:
            send += (
                ["--size", f"{int(ask.size)} B"] if ask.frame is None else ["--frame", f"{int(ask.frame)} B"]
            )
        if ask.rate is not None:
            send += ["--rate", f"{int(ask.rate)} bit/s", "--rate-of", ask.rate_of]
        elif ask.interval is None and ask.pattern == "constant":
            send += ["--rate", "max"]
        if ask.interval is not None:
            send += ["--interval", f"{int(ask.interval)} ns"]
        if ask.dscp or ask.ecn:
            send += ["--dscp", str(ask.dscp), "--ecn", str(ask.ecn)]
        if ask.on is not None and ask.off is not None:
            send += ["--on", f"{int(ask.on)} ns", "--off", f"{int(ask.off)} ns"]
        return (
            Step(
                role="receiver",
                node=place.node(ask.to),
                argv=receive,
                service=True,
                ready=Listening("tcp" if ask.protocol == "tcp" else "udp", place.port),
                linger=5_000_000_000,
                limit=int(ask.at) + limit + _PATIENCE,
                expect=frozenset({0, _NOTHING_CAME}),
            ),
            Step(
                role="sender",
                node=ask.source,
                argv=tuple(send),
                at=int(ask.at),
                limit=limit,
                files=files,
            ),
        )

    def _trace(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise ScenarioError(
                "measure.trace.unreadable",
                f"cannot read the trace {path}: {error.strerror}",
                where=f"measurement {self.place.name}",
            ) from error

    def read(self, outcome: Outcome) -> FlowReading:
        """The flow; an error with the program's own words if an end failed."""
        receiver, sender = self.steps()
        for step in (sender, receiver):
            if outcome.ended[step.role].code not in step.expect:
                raise failed("traffic", self.place.name, step, outcome)
        try:
            flow = join(read(outcome.folder / sender.stdout), read(outcome.folder / receiver.stdout))
        except MeasureError as error:
            error.where = error.where or f"measurement {self.place.name}"
            raise
        return replace(flow, zero=outcome.zero, sender=sender.node, receiver=receiver.node)
