"""Plans of modelled processors: what work costs there, and the prices of published machines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airloom.units.figures import readable
from airloom.units.text import duration

if TYPE_CHECKING:
    from airloom.scenario.model import Processor, Scenario
    from airloom.scenario.model.processors import PresetName, SchedulerName


@dataclass(frozen=True, slots=True)
class Prices:
    """What work costs; see ``ports/src/virtual_time/processors.rs``."""

    interrupt: int = 0
    """ns"""
    frame: int = 0
    """ns"""
    copy_rate: int | None = None
    """bit/s; None: octets cost nothing."""
    context_switch: int = 0
    """ns"""

    @property
    def words(self) -> str:
        """Returns the prices as text."""
        parts = [
            f"{duration(price)} {what}"
            for price, what in (
                (self.interrupt, "an interrupt"),
                (self.frame, "a frame"),
                (self.context_switch, "a context switch"),
            )
            if price
        ]
        if self.copy_rate is not None:
            parts.append(f"octets at {readable(self.copy_rate, 'bit/s')}")
        return ", ".join(parts)

    def at(self, speed: float) -> Prices:
        """Returns the prices on a processor that is so many times faster, rounded to ns and bit/s."""
        rate = None if self.copy_rate is None else max(1, round(self.copy_rate * speed))
        interrupt, frame, switch = (
            round(price / speed) for price in (self.interrupt, self.frame, self.context_switch)
        )
        return Prices(interrupt, frame, rate, switch)


PRESETS: dict[PresetName, Prices] = {
    # E-THESIS-4: a native node of ORBIT's grid sends at most 80,000 small packets a second.
    "orbit-native": Prices(frame=12_500),
    # E-THESIS-4: the User Mode Linux guests of such a node send 65,000 a second together.
    "orbit-uml": Prices(frame=15_385),
    # P-46: a Pentium 4 of 2.4 GHz forwards 97,500 full frames a second, each received and sent.
    "net-pentium-4": Prices(frame=5_128),
}
"""Prices that follow from one published rate each. No paper divides them into interrupts, octets and
switches, so that a preset has the price of a frame alone."""


@dataclass(frozen=True, slots=True)
class ProcessorPlan:
    """A processor and its guests."""

    name: str
    guests: tuple[str, ...]
    """Nodes with a machine of their own, or shared guests."""
    prices: Prices
    scheduler: SchedulerName
    quantum: int
    """ns"""
    weights: tuple[int, ...]
    """Of each guest."""


def prices(said: Processor) -> Prices:
    """Returns the prices of a processor, at its speed."""
    found = Prices() if said.preset is None else PRESETS[said.preset]
    given = {
        name: int(value)
        for name in ("interrupt", "frame", "copy_rate", "context_switch")
        if (value := getattr(said, name)) is not None
    }
    return replace(found, **given).at(said.speed)


def plans(scenario: Scenario) -> tuple[ProcessorPlan, ...]:
    """Returns the processors of a checked scenario."""
    return tuple(
        ProcessorPlan(
            name,
            tuple(said.nodes),
            prices(said),
            said.scheduler,
            int(said.quantum),
            tuple(said.weights.get(guest, 1) for guest in said.nodes),
        )
        for name, said in scenario.processors.items()
    )
