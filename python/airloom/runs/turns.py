"""Guests take turns: all but one are frozen, and another one runs from each change on.

In wall time each turns' guests have a thread here. At a change it freezes the guest that ran, waits until
the kernel confirms it, and only then lets the next one run, so that never do two of them run at once. How
late the next one runs is measured. In virtual time the calendar of the guests grants each of them only the
time of its own turns (``ports/src/virtual_time/turns.rs``), and there is nothing to do here.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from airloom.errors import LabError, RunError
from airloom.nodes.guests.guest import GuestNode
from airloom.planning.machine.turns import LATE, TurnsPlan
from airloom.planning.plan import Plan
from airloom.runs.emulation import World
from airloom.units.text import duration, measured_percent, percent

_FULL = "guest-ring-full"
"""Frames lost because the guest had no buffer ready."""


@dataclass(slots=True)
class Taken:
    """The turns that guests have taken."""

    plan: TurnsPlan
    late: list[int] = field(default_factory=list)
    """How late each turn began: ns."""
    missed: int = 0
    """Turns that were over before they could begin."""
    granted: int = 0
    """Turns in virtual time, each of which begins at its time."""

    @property
    def note(self) -> str:
        """What the report says of them."""
        plan, count = self.plan, len(self.late)
        if self.granted:
            turns = f"{self.granted} turns of {duration(plan.quantum)}"
            return f"turns {plan.name}: {plan.who} took {turns} in virtual time, each at its time"
        if not count:
            return f"turns {plan.name}: {plan.who} took none"
        return (
            f"turns {plan.name}: {plan.who} took {count} turns of {duration(plan.quantum)}, and were frozen "
            f"between them; a turn began up to {duration(max(self.late))} late"
        )

    @property
    def reason(self) -> str | None:
        """What is wrong with them, if anything."""
        if self.missed:
            words = f"{self.missed} of {self.missed + len(self.late)} turns were over before they could begin"
            return f"turns {self.plan.name}: {words}"
        late = sorted(self.late)[int(0.99 * len(self.late))] if self.late else 0
        if late <= LATE * self.plan.quantum:
            return None
        share = measured_percent(late / self.plan.quantum)
        return (
            f"turns {self.plan.name}: one of 100 turns began {duration(late)} late or later, {share} of its "
            f"length (limit {percent(LATE)})"
        )


class TurnTaking:
    """Lets guests take turns from time zero until the block ends; afterwards all run."""

    def __init__(self, world: World, fail: Callable[[LabError], None]) -> None:
        """``fail`` is called with the error if a guest cannot be frozen."""
        self._taken = [Taken(one) for one in world.plan.turns]
        self._world = world
        self._fail = fail
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._take, args=(one,), name="airloom-turns", daemon=True)
            for one in self._taken
        ]

    @property
    def taken(self) -> list[Taken]:
        """The turns that were taken until now."""
        if self._world.pacer is not None:
            now = self._world.now()
            return [Taken(one, granted=one.count(now)) for one in self._world.plan.turns]
        return self._taken

    def __enter__(self) -> Self:
        if self._world.pacer is None:
            self._world.at_begin.append(self._begin)
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def finish(self) -> None:
        """Lets all run. A second call has no effect."""
        self._over.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def _take(self, taken: Taken) -> None:
        with contextlib.suppress(PermissionError):  # as the engine's thread; without the right it may be late
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        plan, now = taken.plan, self._world.now
        machines = {name: self._machine(name) for name in plan.guests}
        running = set(machines)
        at: int | None = 0
        try:
            while at is not None:
                whose = plan.whose(at)
                wanted = set(machines) if whose is None else {whose}
                for name in running - wanted:
                    machines[name].give_turn(False)
                for name in wanted:
                    machines[name].give_turn(True)
                running = wanted
                if whose is not None:
                    taken.late.append(max(0, now() - at))
                at = self._next(taken, at)
                if at is not None and self._over.wait(max(0, at - now()) / 1e9):
                    return
        except (LabError, OSError) as error:
            if not self._over.is_set():
                cause = error if isinstance(error, LabError) else RunError("turns.freeze", str(error))
                self._fail(cause)
        finally:
            for machine in machines.values():
                with contextlib.suppress(LabError, OSError):  # it has ended
                    machine.give_turn(True)

    def _next(self, taken: Taken, at: int) -> int | None:
        """The next change; those of turns that are over by now are left out."""
        found = taken.plan.change(at)
        now = self._world.now()
        while found is not None and (after := taken.plan.change(found)) is not None and after <= now:
            taken.missed += taken.plan.whose(found) is not None
            found = after
        return found

    def _machine(self, name: str) -> GuestNode:
        machine = self._world.guests.get(name) or self._world.nodes[name]
        assert isinstance(machine, GuestNode)
        return machine


def behind_taps(plan: Plan) -> list[str]:
    """A note on guests of User Mode Linux that take turns behind TAPs.

    Their packet sockets hold ``net.core.rmem_default`` octets of frames and what the kernel adds to each, and
    no account of this machine has what such a socket drops.
    """
    found = [
        name
        for name, node in plan.nodes.items()
        if node.kind == "uml"
        and node.guest is not None
        and node.guest.network == "tap"
        and plan.wait_of(name)
    ]
    if not found:
        return []
    return [
        "with `network: tap` frames that a guest has no room for while it waits for its turn are lost "
        f"without an account: {', '.join(found[:5])}"
    ]


def without_waiting(plan: Plan, raw: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The ledger without the frames that guests lost because it was not their turn, or because their modelled
    processor had other work, and a note on those.

    A guest that waits takes no frames, so that its ring gets full.
    """
    lost: dict[str, int] = {}
    ports = {}
    for name, port in raw["ports"].items():
        node = plan.nodes.get(name.partition(":")[0])
        frames = int(port["host_lost"].get(_FULL, 0))
        if frames and node is not None and (plan.wait_of(node.name) or plan.has_processor(node.name)):
            lost[name] = frames
            port = {**port, "host_lost": {**port["host_lost"], _FULL: 0}}
        ports[name] = port
    if not lost:
        return dict(raw), []
    total = sum(lost.values())
    named = ", ".join(
        f"{name} {frames}" for name, frames in sorted(lost.items(), key=lambda one: -one[1])[:5]
    )
    host_lost = {**raw["host_lost"], _FULL: int(raw["host_lost"][_FULL]) - total}
    note = f"frames were lost because guests that waited for a turn or processor had no buffer left: {named}"
    return {**raw, "ports": ports, "host_lost": host_lost}, [note]
