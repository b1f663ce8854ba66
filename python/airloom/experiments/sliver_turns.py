"""Slivers of a node that take turns, as the papers' guests did on a node's only processor.

Slivers with a kernel of their own are frozen as a whole, at both ends of their slices (``turns`` of a
scenario). Slivers on the host's kernel cannot be: only their traffic senders are stopped, by a program in
each of them, and what arrives is received at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airloom.planning.machine.guests import MEMORY

_PROGRAM = "/opt/turns.py"
"""Path of the program in a sliver that stops and continues its sender."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What is added to a scenario."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Files of every sliver: content by path."""
    programs: Sequence[Mapping[str, Any]] = ()
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the scenario."""


def of_guests(kind: str) -> bool:
    """Returns whether slivers of a kind take turns as whole guests."""
    return kind in MEMORY


def parts(
    kind: str,
    quantum: int,
    phase: int,
    senders: Mapping[str, Sequence[str]],
    receiver: tuple[str, Sequence[str]],
    together: Sequence[tuple[float, float]] | None = None,
) -> Parts:
    """Returns what lets slivers take turns.

    ``senders``, ``receiver``: nodes and their slivers in the order of the slices. ``quantum``: ms; 0: no
    turns. ``phase``: ms by which the receiver's turns are later. ``together``: from when to when the
    slivers of a node are busy together, in s; whole guests take no turns before and after. None: always.
    """
    if not quantum:
        return Parts()
    if of_guests(kind):
        return Parts(more=_guests(quantum, phase, senders, receiver, together))
    programs = [
        {
            "node": sliver,
            "name": f"turns-{sliver}",
            "run": ["python3", _PROGRAM, str(quantum), str(number), str(len(slivers))],
            "until_end": True,
        }
        for slivers in senders.values()
        for number, sliver in enumerate(slivers)
    ]
    text = Path(__file__).with_name("time_slicer.py").read_text(encoding="utf-8")
    return Parts({_PROGRAM: text}, programs)


def _guests(
    quantum: int,
    phase: int,
    senders: Mapping[str, Sequence[str]],
    receiver: tuple[str, Sequence[str]],
    together: Sequence[tuple[float, float]] | None,
) -> dict[str, Any]:
    """The later slice is served first, as by a scheduler that prefers what has slept."""
    name, slivers = receiver
    turns: dict[str, dict[str, Any]] = {
        node: {"nodes": [*reversed(several)], "quantum": f"{quantum} ms"} for node, several in senders.items()
    }
    turns[name] = {"nodes": [*reversed(slivers)], "quantum": f"{quantum} ms", "phase": f"{phase} ms"}
    if together is None:
        return {"turns": turns}
    events = [
        {"at": f"{at:g} s", "turns": node, "action": action, "awaited": False}
        for begin, end in together
        for at, action in ((begin, "start"), (end, "stop"))
        for node in turns
    ]
    return {"turns": {node: {**one, "active": False} for node, one in turns.items()}, "events": events}
