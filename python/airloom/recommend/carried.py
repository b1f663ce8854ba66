"""How many nodes of a kind this machine carries for a scenario, by extrapolation of a trial.

The load for each node is assumed to stay as in the trial, and the three limits are

* processors: ``n * 0.8 * processors / busy``, with ``busy`` processors on average in the trial;
* memory: free memory before the trial over the memory of a node: that of its guest, else 1 MB;
* packets: ``n`` times the factor by which the number of pairs can grow until the ceiling of the
  calibration, which falls with the inverse of the number of pairs, reaches the offered packets/s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from airloom.calibration.model import Calibration
from airloom.planning.machine.host_needs import guest_memory
from airloom.planning.plan import Plan
from airloom.recommend.classes import Load

SHARE = 0.8
"""Share of the processors that nodes and engine may use: above it delivery becomes late."""
SMALL = 1_000_000
"""Octets of a node without a guest."""

Limit = Literal["processors", "memory", "packets"]


@dataclass(frozen=True, slots=True)
class Carried:
    """A number of nodes, and what limits it."""

    nodes: int
    limit: Limit


def carried(plan: Plan, made: Calibration, load: Load, busy: float, processors: int, memory: int) -> Carried:
    """Returns how many nodes with this load fit into so many processors and octets of memory."""
    nodes = len(plan.nodes)
    found: dict[Limit, float] = {"memory": nodes * memory / octets(plan)}
    if busy > 0:
        found["processors"] = nodes * SHARE * processors / busy
    if load.packets > 0:
        most = max(made.ceilings)
        found["packets"] = nodes * made.ceilings[most].least * most / (load.pairs * load.packets)
    limit = min(found, key=found.__getitem__)
    return Carried(math.floor(found[limit]), limit)


def octets(plan: Plan) -> int:
    """Returns the memory of all nodes of a plan; guests that several nodes share count once."""
    small = sum(node.guest is None for node in plan.nodes.values())
    return sum(guest_memory(plan).values()) + SMALL * small
