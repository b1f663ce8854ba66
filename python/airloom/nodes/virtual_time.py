"""Virtual time: who waits for something lets time pass.

The engine is the calendar of the guests (``ports/src/virtual_time``). While it stands still, the
controller passes on what guests have written to their consoles, acts, and hands over its orders; then
time goes on. All of that happens on the thread that waits, in a fixed order, so that a run depends on
nothing but its scenario and its seed.
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from airloom import _engine
from airloom.errors import RunError, translated
from airloom.nodes.guests.guest_sockets import GuestSocket

if TYPE_CHECKING:
    from airloom.planning.machine.processors import ProcessorPlan
    from airloom.planning.machine.turns import TurnsPlan

SECOND = 1_000_000_000
TIME_OF_DAY = 1_577_836_800 * SECOND
"""Time of day when the calendar begins, in ns since 1970: 2020-01-01 00:00:00 UTC."""
_BUDGET = 60.0
"""Seconds of processor time that a guest may use for one instant."""
_SLICE = 0.05
"""Wall seconds after which the calendar returns, so that signals are handled and others may look."""
_REPORTED = 10.0
"""Wall seconds within which the end of a guest's process must be reported after its connection's."""
_GLANCE = 0.001
"""Wall seconds between two looks whether another thread has got its turn."""
_FAR = 3600 * SECOND
"""How far time passes at most without anything scheduled, in ns; then it is asked for again."""


@dataclass(slots=True)
class GuestTime:
    """What connects a guest's machine with the calendar."""

    name: str
    number: int
    time: GuestSocket = field(default_factory=GuestSocket.open)
    """For its kernel's messages about the time."""
    console: GuestSocket = field(default_factory=GuestSocket.open)
    """For its console device."""
    wire: tuple[socket.socket, socket.socket] = field(
        default_factory=lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    )
    """The octets of the console: the engine's end, and that of the node's first process."""

    def close(self) -> None:
        """Closes the sockets."""
        for one in (self.time, self.console, *self.wire):
            one.close()


@dataclass(frozen=True, slots=True)
class PassedFrame:
    """A frame that entered the emulated network or was delivered; several segments at once are one."""

    at: int
    """Engine time in ns."""
    port: str
    """``node:interface``."""
    sent: bool
    """True if the node has sent it, false if it was delivered to the node."""
    octets: int
    """Without the frame check sequence."""


class FirstProcess(Protocol):
    """A node's first process, as virtual time needs it."""

    node: str

    @property
    def is_gone(self) -> bool:
        """True if nothing more comes from it."""

    def settle(self) -> bool:
        """Has it pass on what there is; returns whether there was anything."""


class Pacer:
    """Lets virtual time pass."""

    def __init__(
        self,
        seed: int,
        *,
        plain: bool = False,
        budget: float = _BUDGET,
        turns: Sequence[TurnsPlan] = (),
        processors: Sequence[ProcessorPlan] = (),
    ) -> None:
        """``plain``: one message a step. ``turns``: guests that take turns. ``processors``: modelled ones.

        ``budget``: seconds of processor time that a guest may use for one instant, and of wall time
        for one that does not run.
        """
        self._seed = seed
        self._plain = plain
        self._budget = budget
        self._turns = tuple(turns)
        self._processors = tuple(processors)
        self._calendar: _engine.VirtualTime | None = None
        self._guests: list[GuestTime] = []
        self._inits: list[FirstProcess] = []
        self._over: set[str] = set()
        """Nodes of which the end was reported."""
        self._begun = False
        self._early: str | None = None
        """Why there will be no time zero: a guest that has ended may never have come to the calendar, which
        waits for it."""
        self._lock = threading.RLock()
        self._asking: set[int] = set()
        """Threads that wait to be alone. Locks are not fair, and all threads have one processor."""
        self._alone: int | None = None
        """The thread that lets time pass for those that wait."""
        self._unsettled = True
        self._samples: dict[int, Callable[[], None]] = {}
        """What is done at each of the calendar's samples."""
        self.passing: Callable[[int | None], None] = self.advance
        """How time passes for those that wait: for at most so many ns, as :meth:`advance` does."""
        self._passed: list[PassedFrame] | None = None
        """Frames at which time has stood still; None while it does not stand still at frames."""

    def guest(self, name: str) -> GuestTime:
        """Connects one more guest with the calendar. Before :meth:`attach`."""
        made = GuestTime(name, len(self._guests))
        self._guests.append(made)
        return made

    def may_wait(self, name: str) -> bool:
        """Whether a guest may have to run later than it requests: in its turn, or after other work."""
        turns, processors = self._turns, self._processors
        return any(name in one.guests for one in turns) or any(name in one.guests for one in processors)

    def seed_of(self, name: str) -> int:
        """The seed of a guest's random numbers, which follows from that of the run."""
        digest = hashlib.sha256(f"guest {name} {self._seed}".encode()).digest()
        return int.from_bytes(digest[:8], "big")

    def attach(self, engine: _engine.Engine) -> None:
        """Puts the engine into virtual time, with all guests."""
        with translated():
            self._calendar = _engine.VirtualTime(engine, self._plain, self._budget)
            for guest in self._guests:
                self._calendar.add_guest(
                    guest.name,
                    guest.time.listener.fileno(),
                    guest.console.listener.fileno(),
                    guest.wire[0].fileno(),
                )
            numbers = {guest.name: guest.number for guest in self._guests}
            for one in self._turns:
                guests = [numbers[name] for name in one.guests]
                self._calendar.take_turns(guests, one.quantum, one.phase, list(one.spans))
            for processor in self._processors:
                prices = processor.prices
                self._calendar.add_processor(
                    processor.name,
                    [numbers[name] for name in processor.guests],
                    list(processor.weights),
                    interrupt=prices.interrupt,
                    frame=prices.frame,
                    copy_rate=prices.copy_rate,
                    context_switch=prices.context_switch,
                    scheduler=processor.scheduler,
                    quantum=processor.quantum,
                )

    def join(self, init: FirstProcess) -> None:
        """Adds a node's first process, which passes on what its guest and its controller write."""
        with self._lock:
            self._inits.append(init)
            self._over.discard(init.node)

    def over(self, node: str, failure: str | None) -> None:
        """Notes that the end of a node's first process was reported, and why it failed if it did.

        Callable from any thread.
        """
        self._over.add(node)
        if failure is not None and not self._begun:
            self._early = f"node {node} is failed: {failure}"

    def now(self) -> int:
        """The calendar's time in ns; 0 before there is one."""
        return 0 if self._calendar is None else self._calendar.now()

    def counts(self) -> dict[str, int]:
        """The counters of the calendar."""
        return {} if self._calendar is None else self._calendar.counts()

    def spun(self) -> list[dict[str, Any]]:
        """Programs that were charged time because they called their kernel without waiting.

        Each with its guest, its program's name, the calls and the nanoseconds.
        """
        return [] if self._calendar is None else self._calendar.spun()

    def worked(self) -> list[dict[str, Any]]:
        """What each guest of a modelled processor has worked: ``ProcessorUse`` as a mapping."""
        return [] if self._calendar is None else self._calendar.worked()

    def pause(self, guest: int, paused: bool) -> None:
        """Pauses a guest or resumes it, at the present instant."""
        with self._lock, translated():
            assert self._calendar is not None
            self._calendar.pause(guest, paused)

    def sent(self) -> None:
        """Notes that a first process got an order. Callable from any thread."""
        self._unsettled = True

    def begin(self) -> int:
        """Lets time pass to the next whole second, which becomes the engine's time zero; returns it."""
        with self._lock:
            zero = -(-self.now() // SECOND) * SECOND
            while self.now() < zero or self._unsettled:
                self.advance(zero - self.now())
            self._begun = True
            with translated():
                assert self._calendar is not None
                return self._calendar.begin()

    def every(self, period: int, act: Callable[[], None], *, skips: bool = False) -> None:
        """From now on does something each ``period`` ns, while time stands still.

        ``skips``: not if the engine has done nothing since the last time.
        """
        with translated():
            assert self._calendar is not None
            self._samples[self._calendar.every(period, skips)] = act

    def until(self, done: Callable[[], bool], limit: float | None) -> bool:
        """Lets time pass until ``done``, or for at most ``limit`` virtual seconds, and returns False then."""
        return self.wait(done, None if limit is None else self.now() + round(limit * SECOND))

    def wait(self, done: Callable[[], bool], end: int | None) -> bool:
        """The same with the calendar's time at the end of waiting, in ns."""
        while not done():
            if self._calendar is None:
                raise RunError("virtual.early", "a guest is waited for before its time runs")
            if self._early is not None and not self._begun:
                raise RunError("node.state", self._early)
            if end is not None and not self._unsettled and self.now() >= end:
                return False
            self.pass_time(None if end is None else end - self.now())
        return True

    def pass_time(self, most: int | None) -> None:
        """Lets time pass by one turn, for at most ``most`` ns; not while another thread does so."""
        if self._alone == threading.get_ident():
            self.passing(most)
            return
        while self._asking:
            time.sleep(_GLANCE)
        if self._lock.acquire(timeout=_SLICE):
            with self._acquired():
                self.passing(most)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """During the block no other thread lets time pass, which may hold what this one needs."""
        me = threading.get_ident()
        if self._alone == me:
            yield
            return
        self._asking.add(me)
        try:
            self._lock.acquire()
        finally:
            self._asking.discard(me)
        with self._acquired():
            yield

    @contextlib.contextmanager
    def _acquired(self) -> Iterator[None]:
        """Is alone during the block, and releases the lock."""
        self._alone = threading.get_ident()
        try:
            yield
        finally:
            self._alone = None
            self._lock.release()

    def next_frames(self, end: int) -> list[PassedFrame]:
        """Lets time pass until frames enter or are delivered, and returns those of that instant.

        Empty if there are none before ``end``, in ns of the calendar.
        """
        assert self._calendar is not None
        self._passed = []
        with translated():
            self._calendar.stop_at_frames(True)
        try:
            self.wait(lambda: bool(self._passed), end)
            return self._passed
        finally:
            self._passed = None
            with translated():
                self._calendar.stop_at_frames(False)

    def advance(self, span: int | None) -> None:
        """Passes on what there is; if nothing, lets time pass for at most ``span`` ns.

        Returns as soon as there may be something to do.
        """
        with self._lock:
            if self._unsettled:
                self._settle()
            else:
                self._run(self.now() + (_FAR if span is None else max(0, span)))

    def close(self) -> None:
        """Closes the guests' sockets."""
        for guest in self._guests:
            guest.close()

    def _run(self, until: int) -> None:
        assert self._calendar is not None
        with translated():
            why, numbers, frames = self._calendar.run(until, _SLICE)
        if why in ("spoke", "ended"):
            self._unsettled = True
        if why == "ended":
            self._report_ends(set(self._calendar.gone()))
        elif why == "sample":
            for number in numbers:
                self._samples[number]()
        elif why == "frames" and self._passed is not None:
            self._passed += [PassedFrame(*frame) for frame in frames]

    def _settle(self) -> None:
        """Has all first processes pass on what there is, one after the other, until nothing is left.

        That of a shared guest carries what those of its nodes write, and joined before them. So they come
        first: otherwise it would find, and frame, as much of an order as they have written by then.
        """
        self._unsettled = False
        moved = True
        try:
            while moved:
                moved = False
                for init in reversed(self._inits):
                    moved |= init.settle()
        except BaseException:  # a signal
            self._unsettled = True
            raise

    def _report_ends(self, gone: set[str]) -> None:
        """Waits until the ends of these guests' processes are known here."""
        until = time.monotonic() + _REPORTED
        for init in self._inits:
            while (
                init.node in gone
                and not (init.is_gone and init.node in self._over)
                and time.monotonic() < until
            ):
                time.sleep(0.001)
        self._inits = [init for init in self._inits if not init.is_gone]
