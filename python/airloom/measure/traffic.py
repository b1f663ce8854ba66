"""Airloom's traffic generator as a measuring tool: a receiver, a sender, and the records of both.

The records are written to standard output, so that no file is needed inside a node. The programs'
summaries are the last line of standard error.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airloom.errors import ScenarioError
from airloom.host.files import content
from airloom.measure import stages
from airloom.measure.flow import FlowReading, join
from airloom.measure.records import NOT_SENT, FlowRecord, Integers, Passed, read
from airloom.measure.tool import FOLDER, Listening, MeasureError, Outcome, Place, Step, failed
from airloom.planning import replayed

if TYPE_CHECKING:
    from airloom.scenario import model

_NOTHING_CAME = 5
"""Exit code of a receiver that received nothing, which is a result for a measurement."""

_LARGEST = 64 * 2**20
"""Maximum size of a trace in octets."""
_TIMEOUT = 60_000_000_000
"""Time that its programs may run beyond the flow's duration: ns."""


@dataclass(frozen=True, slots=True)
class TrafficTool:
    """One flow, recorded packet by packet at both ends."""

    ask: model.Traffic
    place: Place

    def steps(self) -> tuple[Step, ...]:
        """The receiver exits when it has received the sender's end mark."""
        ask, place = self.ask, self.place
        port = str(place.port)
        limit = int(ask.duration) + _TIMEOUT
        followed = ("--stages",) if ask.stages else ()
        common = ("--port", port, "--protocol", ask.protocol, "--record", "-", "--json", *followed)
        # No idle timeout ends the receiver: links may be down for long in an experiment.
        receive = (place.traffic, "receive", *common, "--idle", f"{limit} ns")
        send = [place.traffic, "send", "--to", place.address(ask.to, ask.family), *common]
        pattern = "trace" if ask.pattern == "replay" else ask.pattern
        send += ["--pattern", pattern, "--duration", f"{int(ask.duration)} ns", "--seed", str(place.seed)]
        files = {}
        if ask.pattern in ("trace", "replay"):
            files["flow.trace"] = self._trace(place)
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
                limit=int(ask.at) + limit + _TIMEOUT,
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

    def _trace(self, place: Place) -> bytes:
        """Returns the packets of a trace or a capture."""
        ask = self.ask
        if ask.pattern == "replay":
            version = 6 if ":" in place.address(ask.to, ask.family) else 4
            made = replayed.schedule(ask, place.folder)
            return made.trace(ask.least_payload, replayed.headers(version))
        path = place.folder / str(ask.trace)
        try:
            return content(path, _LARGEST)
        except OSError as error:
            raise ScenarioError(
                "measure.trace.unreadable",
                f"cannot read the trace {path}: {error.strerror}",
                where=f"measurement {self.place.name}",
            ) from error

    def read(self, outcome: Outcome) -> FlowReading:
        """The flow. Raises an error with the program's own message if an end failed."""
        receiver, sender = self.steps()
        for step in (sender, receiver):
            if outcome.ended[step.role].code not in step.expect:
                raise failed("traffic", self.place.name, step, outcome)
        skews = outcome.skews
        ends = (sender, receiver)
        here, there = (skews[end.role].to_host if end.role in skews else _same for end in ends)
        try:
            sent = read(outcome.folder / sender.stdout).moved(here, here)
            received = read(outcome.folder / receiver.stdout).moved(there, here)
            # A trace is over with its last packet, whatever duration it may have had.
            planned = 0 if self.ask.pattern in ("trace", "replay") else int(self.ask.duration)
            flow = join(sent, received, planned=planned)
        except MeasureError as error:
            error.where = error.where or f"measurement {self.place.name}"
            raise
        if self.ask.stages:
            flow = replace(
                flow,
                boundaries={
                    "sent": _left(sent),
                    "arrived": (received.sequence, received.received),
                    **sent.passed,
                    **received.passed,
                },
                followed=stages.Followed(
                    port=self.place.port,
                    rtp=self.ask.protocol == "rtp",
                    sender=sender.node,
                    receiver=receiver.node,
                    system_call_ns=_summary(outcome.folder / sender.stderr).get("system_call_ns"),
                    clock_error_ns=max((skew.error for skew in skews.values()), default=0),
                ),
            )
        return replace(flow, zero=outcome.zero, sender=sender.node, receiver=receiver.node)


def _left(sent: FlowRecord) -> Passed:
    """Every packet that the sender's socket accepted."""
    taken = (sent.flags & NOT_SENT) == 0
    return sent.sequence[taken], sent.sent[taken]


def _same(times: Integers) -> Integers:
    return times


def _summary(path: Path) -> dict[str, Any]:
    """The program's summary: the last line of its standard error."""
    lines = path.read_text("utf-8", "replace").splitlines()
    try:
        found = json.loads(lines[-1]) if lines else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
