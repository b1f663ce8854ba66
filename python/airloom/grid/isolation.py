"""Predicts how strongly the slices of a testbed disturb each other.

The received power of node b from node a is ``P_a - L(a, b)`` in dBm and dB. The engine computes the
path loss L from the positions by the inventory's own propagation model, so prediction and run agree;
fading is left out. Two channels that overlap at all count as one channel, which overestimates the
interference of partly overlapping channels at 2.4 GHz. Slices in different slots, or on channels
without overlap, do not disturb each other.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from airloom.errors import translated
from airloom.grid.inventory import MEDIUM, Testbed, radio
from airloom.planning import interference, media
from airloom.planning.hopping import overlap

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEARD_DB = 10.0
"""Signal above the noise with which two nodes are neighbours; 6 Mbit/s of 802.11a need less."""


class Isolation:
    """Path losses and overlaps of a testbed."""

    def __init__(self, testbed: Testbed):
        self.testbed = testbed
        self.numbers = {name: number for number, name in enumerate(testbed.nodes)}
        self.limit_dbm = float(testbed.inventory.noise) - float(testbed.inventory.isolation)
        """Most interference in dBm that a slice may cause at a node of another."""
        self._parts: dict[float, list[int]] = {}

    @cached_property
    def loss_db(self) -> NDArray[np.float64]:
        """Path loss in dB by sender and receiver, with antenna gains: an array (nodes, nodes)."""
        from airloom import _engine

        names = list(self.testbed.nodes)
        with translated():
            engine = _engine.Engine(1)
            settings = media.medium(self.testbed.inventory.medium, names)
            engine.add_medium(MEDIUM, {**settings, "floor_dbm": interference.FLOOR_DBM})
            for number, name in enumerate(names):
                engine.add_memory_port(name)
                engine.add_radio(MEDIUM, name, *radio(self.testbed, name, number), name)
            return -np.array(interference.signals(engine, names, names))

    @cached_property
    def overlaps(self) -> dict[int, frozenset[int]]:
        """For each channel of the inventory, those of the inventory that overlap it, itself included."""
        channels = self.testbed.inventory.channels
        phy = self.testbed.phy
        return {
            one: frozenset(other for other in channels if one == other or overlap(one, other, phy))
            for one in channels
        }

    def parts(self, power_dbm: float) -> list[int]:
        """Returns for each node the number of its part of the testbed.

        Within a part every node reaches every other one, over others if need be, with signals that are
        :data:`HEARD_DB` above the noise in both directions.
        """
        if power_dbm not in self._parts:
            least = float(self.testbed.inventory.noise) + HEARD_DB
            heard = power_dbm - np.maximum(self.loss_db, self.loss_db.T) >= least
            found = [-1] * len(heard)
            for first in range(len(heard)):
                ahead = [first] if found[first] < 0 else []
                while ahead:
                    one = ahead.pop()
                    near = [int(other) for other in np.flatnonzero(heard[one]) if found[other] < 0]
                    for other in (one, *near):
                        found[other] = first
                    ahead += near
            self._parts[power_dbm] = found
        return self._parts[power_dbm]

    def interference_dbm(self, senders: list[str], power_dbm: float, receivers: list[str]) -> float:
        """Returns the largest power at which one of ``receivers`` hears one of ``senders``."""
        rows = [self.numbers[name] for name in senders]
        columns = [self.numbers[name] for name in receivers]
        return float(power_dbm - self.loss_db[np.ix_(rows, columns)].min())

    def disturbed(self, nodes: list[str], power_dbm: float, own_dbm: float) -> NDArray[np.bool_]:
        """Returns for each node whether it and a slice on ``nodes`` would disturb each other.

        ``power_dbm`` is that slice's power, ``own_dbm`` the power that the node would send with.
        """
        rows = [self.numbers[name] for name in nodes]
        heard = power_dbm - self.loss_db[rows, :].min(axis=0)
        caused = own_dbm - self.loss_db[:, rows].min(axis=1)
        found: NDArray[np.bool_] = np.maximum(heard, caused) > self.limit_dbm
        return found
