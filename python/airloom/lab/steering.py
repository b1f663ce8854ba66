"""Letting time pass in a live laboratory.

In virtual time it stands still but for the calls here, and for what waits itself: a command, a
measurement, the end of a program.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from airloom.errors import RunError, ScenarioError
from airloom.lab.whereabouts import where_it_is
from airloom.nodes.virtual_time import Pacer, PassedFrame
from airloom.rpc import Stays
from airloom.runs.single import OneRun
from airloom.units.quantities import Duration
from airloom.units.text import duration

Condition = Callable[[], bool]
"""What is waited for."""

TOUCHED = "virtual.touched"
"""Begin of notes of a verdict on a run in virtual time that its scenario alone does not repeat."""
EVERY = "10 ms"
"""How often a condition is asked."""
WITHIN = "60 s"
"""How long something is waited for."""


class Steered(Stays, ABC):
    """A laboratory whose time can be let pass."""

    @abstractmethod
    def _up(self) -> OneRun:
        """The run; raises :class:`~airloom.RunError` if it is not up."""

    @abstractmethod
    def now(self) -> int:
        """The engine time in nanoseconds."""

    @where_it_is
    def run_for(self, span: str | int) -> int:
        """Lets time pass: ``run_for("2 s")``, or nanoseconds. Returns the engine time in ns.

        In virtual time it stands still otherwise. What the scenario has for that time happens
        meanwhile; what is due at its end happens when time goes on.
        """
        one = self._up()
        length = span_of(span)
        if length < 0:
            raise ScenarioError("time.past", f"{duration(-length)} have passed", cure="give a later time")
        one.world.pass_time(length)
        if one.runner.failure is not None:
            raise one.runner.failure
        return one.world.now()

    def run_until(
        self, when: str | int | Condition, *, every: str | int = EVERY, within: str | int = WITHIN
    ) -> int:
        """Lets time pass until ``when``: an engine time such as ``"5 s"``, or a condition.

        A condition, such as ``lambda: lab["h2"].listens(80)``, is asked now and each ``every`` of
        engine time. Returns the engine time in ns; raises :class:`TimeoutError` if the condition does
        not hold ``within`` that time.
        """
        if not callable(when):
            return self.run_for(span_of(when) - self.now())
        step, limit = span_of(every), span_of(within)
        if step <= 0:
            raise ScenarioError("time.step", f"a condition cannot be asked each {step} ns", where="every")
        end = self.now() + limit
        while not when():
            left = end - self.now()
            if left <= 0:
                raise TimeoutError(f"the condition does not hold within {duration(limit)}")
            self.run_for(min(step, left))
        return self.now()

    @where_it_is
    def step(self, *, within: str | int = WITHIN) -> list[PassedFrame]:
        """Lets virtual time pass until the next frame: one enters the network, or is delivered.

        Returns the frames of that instant; none if there is no frame ``within`` that time.
        """
        one = self._up()
        pacer = self._pacer(one)
        return pacer.next_frames(pacer.now() + span_of(within))

    def _pacer(self, one: OneRun) -> Pacer:
        if one.world.pacer is None:
            raise RunError(
                "time.wall",
                "the time of this machine's clock does not stand still at a frame",
                cure='make the laboratory with time="virtual"',
            )
        return one.world.pacer


def span_of(span: str | int) -> int:
    """Nanoseconds of ``"2 s"``, or of a number of them."""
    return int(Duration(span)) if isinstance(span, str) else span
