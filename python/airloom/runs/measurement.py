"""A running measurement: starts its services and programs, and reads the results at the end.

Follows the rules at the top of :mod:`airloom.measure.tool`. All work is done on the run's timeline,
except reading the programs' output, which may take long and has its own thread.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from airloom.errors import LabError, RunError
from airloom.measure.clock import ClockReading
from airloom.measure.tool import Ended, Outcome, Reading, Skew, Step, Tool
from airloom.nodes.kind import Exit, NodeHandle, Process
from airloom.runs.programs import GRACE, POLL
from airloom.runs.timeline import Timeline
from airloom.units.text import seconds

State = Literal["waiting", "preparing", "prepared", "running", "closing", "reading", "done", "failed"]


class _Running:
    """One step that was started."""

    def __init__(self, step: Step, process: Process, started: int) -> None:
        self.step = step
        self.process = process
        self.started = started
        self.ended: Ended | None = None
        self.killed = False
        self.starts = 1


class Measuring:
    """One measurement of a run."""

    def __init__(
        self,
        name: str,
        tool: Tool,
        folder: Path,
        nodes: Mapping[str, NodeHandle],
        timeline: Timeline,
        monotonic: Callable[[], int],
        *,
        expected: int = 0,
        changed: Callable[[Measuring], None],
    ) -> None:
        self.name = name
        self.tool = tool
        self.folder = folder
        self.expected = expected
        """Expected duration in nanoseconds."""
        self.state: State = "waiting"
        self.reading: Reading | None = None
        self.failure: LabError | None = None
        self._nodes = nodes
        self._timeline = timeline
        self._monotonic = monotonic
        self._changed = changed
        self._steps = tool.steps()
        self._running: dict[str, _Running] = {}
        self._zero = 0
        self._zero_realtime = 0
        self._clocks: dict[str, ClockReading] = {}

    def follow(self, changed: Callable[[Measuring], None]) -> None:
        """Sets the function to call at every change of state; it replaces the previous one."""
        self._changed = changed

    @property
    def nodes(self) -> set[str]:
        """The nodes in which it runs programs."""
        return {step.node for step in self._steps}

    @property
    def settled(self) -> bool:
        """Whether it has ended, successfully or not."""
        return self.state in ("done", "failed")

    def alive(self) -> list[tuple[str, Process]]:
        """Role and process of its programs that run, while it measures."""
        if self.state != "running":
            return []
        return [(role, one.process) for role, one in list(self._running.items()) if one.ended is None]

    def prepare(self) -> None:
        """Starts its services one after the other; its state is ``prepared`` when all are ready."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for step in self._steps:
            (self.folder / step.stdout).parent.mkdir(exist_ok=True)
            for name, content in step.files.items():
                (self.folder / name).write_bytes(content)
        self._clocks = self._read_clocks()
        self._set("preparing")
        self._next_service([step for step in self._steps if step.service])

    def begin(self, zero: int, zero_realtime: int) -> None:
        """Starts its programs at their times. Arguments: both clocks at time zero, in ns."""
        self._zero, self._zero_realtime = zero, zero_realtime
        self._set("running")
        for step in self._steps:
            if not step.service:
                self._timeline.at(step.at, partial(self._client, step))

    def cancel(self, why: LabError) -> None:
        """Aborts: kills its programs and ignores their output."""
        if self.settled:
            return
        self.failure = why
        self._set("failed")
        for running in self._running.values():
            if running.ended is None:
                self._send(running, signal.SIGKILL)

    def _next_service(self, rest: list[Step]) -> None:
        if self.state != "preparing":
            return
        if not rest:
            self._set("prepared")
            return
        step = rest[0]
        if self._start(step):
            ready = step.ready
            deadline = self._timeline.now() + (ready.within if ready else 0)
            self._await_ready(step, deadline, lambda: self._next_service(rest[1:]))

    def _await_ready(self, step: Step, deadline: int, then: Callable[[], None]) -> None:
        ready = step.ready
        if self.state != "preparing":
            return
        if ready is None or self._nodes[step.node].listens(ready.protocol, ready.port):
            then()
        elif self._running[step.role].ended is not None:
            self._fail(step, "ended before it was ready")
        elif self._timeline.now() >= deadline:
            self._fail(
                step, f"did not listen on {ready.protocol} port {ready.port} within {seconds(ready.within)}"
            )
        else:
            self._timeline.after(POLL, lambda: self._await_ready(step, deadline, then))

    def _client(self, step: Step, earlier: _Running | None = None) -> None:
        if self.state == "running":
            self._start(step, earlier)

    def _start(self, step: Step, earlier: _Running | None = None) -> bool:
        mode = "wb" if earlier is None else "ab"
        try:
            with (
                (self.folder / step.stdout).open(mode) as output,
                (self.folder / step.stderr).open(mode) as errors,
            ):
                started = self._monotonic()
                process = self._nodes[step.node].start(
                    step.command(self.folder),
                    stdout=output.fileno(),
                    stderr=errors.fileno(),
                    on_exit=lambda exit: self._exited_anywhere(step, exit),
                )
        except LabError as error:
            self._fail(step, f"could not be started: {error.message}", error.cure)
            return False
        except OSError as error:
            self._fail(step, f"could not be started: {error.strerror}")
            return False
        running = _Running(step, process, started)
        if earlier is not None:
            running.started, running.starts = earlier.started, earlier.starts + 1
        self._running[step.role] = running
        self._timeline.after(step.limit, lambda: self._over_limit(running))
        return True

    def _exited_anywhere(self, step: Step, exit: Exit) -> None:
        """Callable from any thread: records the time and posts the rest to the timeline."""
        ended = self._monotonic()
        self._timeline.post(lambda: self._exited(step, exit, ended))

    def _exited(self, step: Step, exit: Exit, ended: int) -> None:
        running = self._running[step.role]
        if self.state == "running" and self._starts_again(running, exit):
            return
        running.ended = Ended(running.started, ended, exit.code, exit.signal, running.killed)
        if self.state == "running" and step.service and exit.code not in step.expect:
            # Its clients would wait forever. The tool can interpret the exit.
            for other in self._running.values():
                if not other.step.service and other.ended is None:
                    self._timeline.after(step.linger, partial(self._send, other, signal.SIGTERM))
        if self.state == "running" and self._all_ended(service=False):
            self._close()
        elif self.state == "closing" and self._all_ended(service=True):
            self._read()

    def _starts_again(self, running: _Running, exit: Exit) -> bool:
        again = running.step.again
        if again is None or running.killed:
            return False
        last = _tail(self.folder / running.step.stderr, 1)
        argv = again.argv(running.starts) if again.when(exit.code, "".join(last)) else None
        if argv is None:
            return False
        step = replace(running.step, argv=argv)
        self._timeline.after(again.pause, lambda: self._client(step, running))
        return True

    def _all_ended(self, *, service: bool) -> bool:
        steps = [step for step in self._steps if step.service is service]
        return all(
            step.role in self._running and self._running[step.role].ended is not None for step in steps
        )

    def _close(self) -> None:
        """All clients have ended: services may take time to finish, and are then ended."""
        self._set("closing")
        if self._all_ended(service=True):
            self._read()
            return
        for running in self._running.values():
            if running.step.service and running.ended is None:
                linger = running.step.linger
                self._timeline.after(linger, partial(self._send, running, signal.SIGTERM))
                self._timeline.after(linger + GRACE, partial(self._send, running, signal.SIGKILL))

    def _over_limit(self, running: _Running) -> None:
        current = self._running.get(running.step.role) is running
        if current and running.ended is None and not self.settled:
            running.killed = True
            self._send(running, signal.SIGKILL)

    def _read(self) -> None:
        self._set("reading")
        ended = {role: running.ended for role, running in self._running.items() if running.ended is not None}

        def work() -> None:
            try:
                skews = self._skews()
                reading = self.tool.read(Outcome(self.folder, self._zero, self._zero_realtime, ended, skews))
            except LabError as error:
                failure = error
                self._timeline.post(lambda: self._has_failed(failure))
            except Exception as error:
                unread = RunError("measure.unreadable", f"{type(error).__name__}: {error}", where=self.name)
                unread.__cause__ = error
                self._timeline.post(lambda: self._has_failed(unread))
            else:
                self._timeline.post(lambda: self._has_read(reading))

        if self._timeline.pacer is not None:
            work()
            return
        threading.Thread(target=work, name=f"airloom-read-{self.name}", daemon=True).start()

    def _read_clocks(self) -> dict[str, ClockReading]:
        return {node: self._nodes[node].clock() for node in self.nodes}

    def _skews(self) -> dict[str, Skew]:
        """Clock skew of the steps whose nodes have their own clocks."""
        last = self._read_clocks()
        return {
            step.role: Skew(self._clocks[step.node], last[step.node])
            for step in self._steps
            if last[step.node].error
        }

    def _has_read(self, reading: Reading) -> None:
        if self.state == "reading":
            self.reading = reading
            self._set("done")

    def _has_failed(self, error: LabError) -> None:
        self.cancel(error)

    def _fail(self, step: Step, what: str, cure: str | None = None) -> None:
        lines = _tail(self.folder / step.stderr) or _tail(self.folder / step.stdout)
        shown = "".join(f"\n    | {line}" for line in lines)
        self.cancel(
            RunError(
                "measure.failed",
                f"{step.role} in node {step.node} ({step.argv[0]}) {what}{shown}",
                where=f"measurement {self.name}",
                cure=cure,
            )
        )

    def _send(self, running: _Running, number: int) -> None:
        if running.ended is None:
            try:
                running.process.signal(number)
            except (LabError, OSError):
                return  # it has just ended

    def _set(self, state: State) -> None:
        self.state = state
        self._changed(self)


def _tail(path: Path, lines: int = 5) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()[-lines:]
    except OSError:
        return []
