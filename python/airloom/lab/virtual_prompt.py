"""The prompt of a laboratory in virtual time, which stands still between commands."""

from __future__ import annotations

import os
import signal
import time
from typing import IO, TYPE_CHECKING

from airloom.lab.repl import Misuse, Prompt
from airloom.lab.steering import EVERY, WITHIN, span_of
from airloom.units.text import duration, plural, virtual_speed

if TYPE_CHECKING:
    from airloom.lab.lab import Lab

_SHOWN = 1.0
"""Wall seconds between two lines of progress."""
_LEAST, _SHORT, _LONG = 1_000_000, 0.1, 0.4
"""First stretch of virtual time that passes at once, in ns; it doubles while it takes less than the first
number of wall seconds, and is halved if it takes more than the second.
"""


class VirtualPrompt(Prompt):
    """Reads commands; some let time pass."""

    intro = (
        "Time stands still. `continue`, `until` and `step` let it pass, and so do commands in nodes until "
        "they end; Ctrl-C stops it. `help` lists the commands, `exit` ends the laboratory."
    )

    def __init__(self, lab: Lab, *, interactive: bool, stdout: IO[str] | None = None) -> None:
        super().__init__(lab, interactive=interactive, stdout=stdout)
        self._show_time()

    def postcmd(self, stop: bool, line: str) -> bool:
        """Shows the time in the next prompt."""
        self._show_time()
        return stop

    def _show_time(self) -> None:
        if self.interactive:
            self.prompt = f"airloom {self._time()}> "

    def _time(self) -> str:
        return f"{self.lab.now() / 1e9:.9f} s"

    def do_now(self, rest: str) -> None:
        """Show the time: now"""
        self.say(self._time())

    def do_continue(self, rest: str) -> None:
        """Let time pass until Ctrl-C, or for a length of time: continue [10 s]"""
        self._pass(None if not rest.strip() else self.lab.now() + span_of(rest))

    def do_until(self, rest: str) -> None:
        """Let time pass until an engine time, or until a command in a node succeeds.

        until 5 s
        until h1 test -e /tmp/there (it is tried every 10 ms, for at most 60 s)
        """
        node, _, command = rest.strip().partition(" ")
        if node not in self.lab.nodes:
            self._pass(span_of(rest))
            return
        if not command.strip():
            raise Misuse("until TIME, or until NODE COMMAND")
        try:
            self.lab.run_until(lambda: self.lab[node].run(command).ok, every=EVERY, within=WITHIN)
        except TimeoutError:
            raise Misuse(f"{command} in {node} does not succeed within {WITHIN}") from None

    def do_step(self, rest: str) -> None:
        """Let time pass until the next frame is sent or delivered, and show it: step [COUNT]"""
        count = rest.strip() or "1"
        if not count.isdecimal() or len(count) > 9 or int(count) == 0:
            raise Misuse("step [COUNT]")
        for _ in range(int(count)):
            frames = self.lab.step()
            for frame in frames:
                way = "from" if frame.sent else "to"
                self.say(
                    f"{frame.at / 1e9:.9f} s  {way:4} {frame.port:16} "
                    f"{frame.octets:,} {plural('octet', frame.octets)}"
                )
            if not frames:
                raise Misuse(f"no frame within {WITHIN}")

    def _pass(self, end: int | None) -> None:
        """Lets time pass to its end, or until a signal, in stretches of it; a terminal shows progress."""
        began, shown, at = time.monotonic(), time.monotonic(), self.lab.now()
        start, stretch = at, _LEAST
        if end is not None and end < at:
            raise Misuse(f"{end / 1e9:g} s has passed: it is {self._time()}")
        while end is None or at < end:
            before = time.monotonic()
            at = self.lab.run_for(stretch if end is None else min(stretch, end - at))
            now = time.monotonic()
            if now - before < _SHORT:
                stretch *= 2
            elif now - before > _LONG:
                stretch = max(_LEAST, stretch // 2)
            if self.interactive and now - shown >= _SHOWN:
                shown = now
                self.say(progress(at, end, (at - start) / 1e9 / (now - began)))

    def _run(self, node: str, command: str) -> None:
        """Runs a command in a node; its output comes as it is written."""
        self.stdout.flush()
        with open(os.devnull, "rb") as nothing:
            program = self.lab.attached(node, self._words(command), {}, [nothing.fileno(), 1, 2])
        code: int | None = None
        for number in (signal.SIGINT, signal.SIGKILL):
            try:
                code = program.wait()
                break
            except KeyboardInterrupt:
                program.signal(number)
        self.failed |= (program.wait() if code is None else code) != 0


def progress(at: int, end: int | None, speed: float) -> str:
    """A line of progress: the time in ns, its end, virtual seconds a wall second."""
    words = virtual_speed(at, speed)
    if end is not None and speed > 0:
        words += f", {duration(round((end - at) / speed))} to go"
    return words
