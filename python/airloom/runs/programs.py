"""Supervises a scenario's programs: start time, readiness, restarts and exit codes.

Everything runs on the run's timeline, except functions marked as callable from any thread. A
program has these states::

    waiting -> running -> ready -> ended          (as expected)
                  |          `--> waiting         (restart policy)
                  `-> failed                      (reported once, with its log's last lines)
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from airloom.errors import LabError, RunError
from airloom.nodes.kind import Exit, NodeHandle, Process
from airloom.runs.timeline import Timeline
from airloom.scenario import patterns
from airloom.scenario.command_line import words_of
from airloom.scenario.model import Program, Ready
from airloom.units.text import seconds

GRACE = 2_000_000_000
"""Time between SIGTERM and SIGKILL: ns."""
POLL = 20_000_000
"""Interval of readiness checks: ns."""
FIRST_PAUSE, LONGEST_PAUSE = 100_000_000, 5_000_000_000
"""Pause before a restart: doubles from the first value to the longest: ns."""
PIECE, WINDOW = 1 << 16, 1 << 12
"""Octets of a log per readiness check, and octets at its end that are checked again with the next
piece.
"""
LAST_LINES = 5
"""Number of log lines shown for a failed program."""

State = Literal["waiting", "running", "ready", "ended", "failed"]


def said(exit: Exit) -> str:
    """How a process ended, as text."""
    if exit.signal is not None:
        return f"was killed by {signal_name(exit.signal)}"
    return f"ended with exit code {exit.code}" if exit.code is not None else "ended with its node"


def signal_name(number: int) -> str:
    """``SIGTERM`` for 15."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def signal_number(name: str) -> int:
    """15 for ``SIGTERM``, ``TERM`` or ``15``."""
    upper = name.upper()
    if upper.isascii() and upper.isdigit() and len(upper) < 3 and 0 < int(upper) <= 64:
        return int(upper)
    try:
        return signal.Signals[upper if upper.startswith("SIG") else f"SIG{upper}"].value
    except KeyError:
        raise RunError(
            "signal.unknown", f"there is no signal {name}", cure="such as TERM, HUP or USR1"
        ) from None


def condition(ready: Ready) -> str:
    """What a readiness check waits for, as text."""
    if ready.log is not None:
        return f"{ready.log!r} in its log"
    return f"a listener on port {ready.port}" if ready.port is not None else f"success of {ready.command!r}"


class Reading:
    """Searches a running program's log piece by piece; matches have at most :data:`WINDOW` octets.

    The end of what was read is no end of a line: the program may go on with it.
    """

    def __init__(self, log: Path, begin: int) -> None:
        self._log = log
        self._at = begin
        self._window = b""
        self.left = False
        """True if the last piece did not reach the end of the log."""

    def has(self, pattern: str) -> bool:
        """Whether the pattern is in the next piece, or in a match begun in the previous one."""
        try:
            with self._log.open("rb") as log:
                log.seek(self._at)
                piece = log.read(PIECE)
        except OSError:
            piece = b""
        self.left = len(piece) == PIECE
        self._at += len(piece)
        self._window += piece
        held = _found(pattern, self._window)
        if len(self._window) > WINDOW:
            # Start at the beginning of a line, if there is one, so that ^ matches only there.
            begin = self._window.find(b"\n", len(self._window) - WINDOW) + 1
            self._window = self._window[begin:] if begin else b"\0" + self._window[-WINDOW:]
        return held


def _found(pattern: str, octets: bytes) -> bool:
    """Whether a pattern matches, and does so whatever follows."""
    whole, _, rest = octets.rpartition(b"\n")
    if whole and patterns.found(pattern, whole.decode("utf-8", "replace") + "\n"):
        return True
    text = octets.decode("utf-8", "replace")
    return bool(rest) and patterns.found(pattern, text) and patterns.found(pattern, f"{text}\0")


def is_ready(ready: Ready, reading: Reading, listens: Callable[[int], bool]) -> bool | str:
    """Whether a program is ready, by its log or port; the command line whose success decides it."""
    if ready.log is not None:
        return reading.has(ready.log)
    if ready.port is not None:
        return listens(ready.port)
    return True if ready.command is None else ready.command


class Supervised:
    """A program of the scenario during the run."""

    def __init__(
        self,
        program: Program,
        name: str,
        log: Path,
        node: NodeHandle,
        timeline: Timeline,
        *,
        changed: Callable[[Supervised], None],
    ) -> None:
        self.program = program
        self.name = name
        self.node = program.node
        self.log = log
        self.after: tuple[Supervised, ...] = ()
        """The programs that must be ready or ended before it starts."""
        self.earliest: int = program.at
        """Earliest start time, in ns; the programs in ``after`` may delay it further."""
        self.state: State = "waiting"
        self.was_ready = False
        self.exit: Exit | None = None
        self.failure: RunError | None = None
        self._node = node
        self._timeline = timeline
        self._changed = changed
        self._process: Process | None = None
        self._life = 0
        """Number of starts. A callback for an earlier process is ignored."""
        self._began = 0
        self._reading = Reading(log, 0)
        self._wanted_down = False
        self._pause = FIRST_PAUSE

    def __str__(self) -> str:
        return f"program {self.name} in node {self.node}"

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None

    @property
    def settled(self) -> bool:
        """Whether the run can end without it: it has ended, or is a service."""
        return self.state in ("ended", "failed") or self.program.until_end

    @property
    def holds_up(self) -> bool:
        """Whether measurements wait for it: it must be ready at the start and is not yet."""
        expected = self.program.ready is not None and self.earliest == 0
        return expected and not self.was_ready and self.state in ("waiting", "running")

    @property
    def awaited(self) -> list[Supervised]:
        """The programs that it must start after and that are not ready or ended yet."""
        return [one for one in self.after if not one.has_come]

    @property
    def has_come(self) -> bool:
        """Whether programs ordered after it may start: it is ready or has ended as expected. A
        service without a readiness condition need only be started.
        """
        says = self.program.ready is not None or self.program.until_end
        return self.state == "ended" or (says and self.was_ready)

    def start(self) -> None:
        """Starts it if it is not running."""
        if self.alive:
            return
        self._wanted_down = False
        self._life += 1
        self._began = self._timeline.now()
        life = self._life
        try:
            with self.log.open("ab") as log:
                self._reading = Reading(self.log, log.tell())
                self._process = self._node.start(
                    words_of(self.program.run),
                    env=self.program.env,
                    folder=self.program.folder,
                    stdout=log.fileno(),
                    on_exit=lambda exit: self._timeline.post(lambda: self._exited(life, exit)),
                )
        except LabError as error:
            self._fail(f"could not be started: {error.message}", error.cure)
            return
        except OSError as error:
            self._fail(f"could not be started: {self.log}: {error.strerror}")
            return
        self._set("running")
        if self.program.ready is None:
            self._become_ready()
        else:
            self._look(life)
            self._timeline.after(self.program.ready.within, lambda: self._too_late(life))

    def stop(self) -> None:
        """Ends it with SIGTERM, then SIGKILL after a grace period. Its end is not a failure."""
        self._wanted_down = True
        if self._process is None:
            self._set("ended")
            return
        self._send(signal.SIGTERM)
        life = self._life
        self._timeline.after(GRACE, lambda: self._send(signal.SIGKILL) if life == self._life else None)

    def kill(self) -> None:
        """Ends it with SIGKILL. Its end is not a failure."""
        self.expect_end()
        self._send(signal.SIGKILL)

    def expect_end(self) -> None:
        """From now on its end is not a failure, because its node is being switched off."""
        self._wanted_down = True

    def signal(self, number: int) -> None:
        """Sends it a signal. A resulting exit is judged like one of its own."""
        self._send(number)

    def tail(self) -> list[str]:
        """The last lines of its log."""
        with contextlib.suppress(OSError), self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 4096))
            return log.read().decode("utf-8", "replace").splitlines()[-LAST_LINES:]
        return []

    def _send(self, number: int) -> None:
        if self._process is not None:
            with contextlib.suppress(LabError, OSError):  # it has just ended
                self._process.signal(number)

    def _exited(self, life: int, exit: Exit) -> None:
        if life != self._life:
            return
        self._process = None
        self.exit = exit
        lasted = self._timeline.now() - self._began
        if self._wanted_down:
            self._set("ended")
            return
        right = self.program.expect is None or exit.code == self.program.expect
        if self.program.until_end:
            right = False
        policy = self.program.restart
        if policy == "always" or (policy == "on-failure" and not right):
            self._restart(lasted)
        elif right:
            self._set("ended")
        elif self.program.until_end:
            self._fail(
                f"{said(exit)} after {lasted / 1e9:.1f} s, though it should live until the end of the run"
            )
        else:
            self._fail(
                f"{said(exit)} after {lasted / 1e9:.1f} s (expected was exit code {self.program.expect})"
            )

    def _restart(self, lasted: int) -> None:
        if lasted > LONGEST_PAUSE:
            self._pause = FIRST_PAUSE
        self._set("waiting")
        life = self._life
        self._timeline.after(self._pause, lambda: self.start() if self._may_restart(life) else None)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _may_restart(self, life: int) -> bool:
        return life == self._life and not self._wanted_down

    def _look(self, life: int) -> None:
        """Checks readiness now, and again after a pause if it is not ready."""
        ready = self.program.ready
        if life != self._life or self.state != "running" or ready is None:
            return
        decided = is_ready(ready, self._reading, lambda port: self._node.listens("tcp", port))
        if isinstance(decided, str):
            self._ask(life, decided)
        elif decided:
            self._become_ready()
        else:
            # A long log is read in pieces, in turn with other work that is due.
            left = ready.log is not None and self._reading.left
            self._timeline.after(0 if left else POLL, lambda: self._look(life))

    def _ask(self, life: int, command: str) -> None:
        """Runs the readiness command in the node. Exit code 0 means ready."""

        def answered(exit: Exit) -> None:
            if life != self._life or self.state != "running":
                return
            if exit.code == 0:
                self._become_ready()
            else:
                self._timeline.after(5 * POLL, lambda: self._look(life))

        try:
            self._node.start(
                words_of(command),
                env=self.program.env,
                folder=self.program.folder,
                on_exit=lambda exit: self._timeline.post(lambda: answered(exit)),
            )
        except LabError as error:
            self._fail(f"its readiness command could not be started: {error.message}", error.cure)

    def _become_ready(self) -> None:
        self.was_ready = True
        self._set("ready")

    def _too_late(self, life: int) -> None:
        ready = self.program.ready
        if life != self._life or self.state != "running" or ready is None:
            return
        self._fail(f"was not ready within {seconds(ready.within)}: waited for {condition(ready)}")

    def _fail(self, what: str, cure: str | None = None) -> None:
        lines = self.tail()
        shown = "".join(f"\n    | {line}" for line in lines) if lines else " (its log is empty)"
        self.failure = RunError(
            "program.failed", f"{self} {what}{shown}", where=f"programs.{self.name}", cure=cure
        )
        self._set("failed")

    def _set(self, state: State) -> None:
        self.state = state
        self._changed(self)
