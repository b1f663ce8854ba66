"""Predicts how strongly the slices of a testbed disturb each other.

The received power of node b from node a is ``P_a - L(a, b)`` in dBm and dB. The engine computes the
path loss L from the positions by the inventory's own propagation model, so prediction and run agree;
fading is left out. Two channels that overlap at all count as one channel, which overestimates the
interference of partly overlapping channels at 2.4 GHz. Slices in different slots, or on channels
without overlap, do not disturb each other.

The noise of node b on a channel is that of its receiver, ``k T B F`` at 290 K with the noise figure F
of the medium's ``radio``, plus the share of each noise source of the medium that falls into the band B
of the channel, less the loss from the source to b. Sources count if they stand still and are always
on, because isolation that a source gives must last. They do not count with shadowing, which is
drawn anew for each pair of places, nor if the centre of their band is more than 10 % away from that of
the channel, whose loss is used for them (an error of at most 0.9 dB by free-space loss).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from airloom.errors import translated
from airloom.grid.inventory import MEDIUM, Testbed, noise_radio, radio
from airloom.planning.radio import interference, media
from airloom.planning.radio.channels import mhz_of
from airloom.planning.slices.hopping import overlap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from airloom import _engine
    from airloom.scenario.model import Noise

HEARD_DB = 10.0
"""Signal above the noise with which two nodes are neighbours; 6 Mbit/s of 802.11a need less."""
_NEAR = 0.1
"""Farthest centre of a source's band, relative to the frequency of the channel."""
_SOURCE = "noise:0"
"""Port of a source; no node's name has a colon."""


class Isolation:
    """Path losses and overlaps of a testbed."""

    def __init__(self, testbed: Testbed):
        self.testbed = testbed
        self.numbers = {name: number for number, name in enumerate(testbed.nodes)}
        self._parts: dict[float, list[int]] = {}

    @cached_property
    def loss_db(self) -> NDArray[np.float64]:
        """Path loss in dB by sender and receiver, with antenna gains: an array (nodes, nodes)."""
        names = list(self.testbed.nodes)
        with self._engine() as engine:
            return -np.array(interference.signals(engine, names, names))

    @cached_property
    def noise_dbm(self) -> dict[int, NDArray[np.float64]]:
        """Noise in dBm at each node, by channel of the inventory."""
        said = self.testbed.inventory.medium
        names = list(self.testbed.nodes)
        own = 10 ** (media.receiver_noise(said.radio) / 10)
        found = {channel: np.full(len(names), own) for channel in self.testbed.inventory.channels}
        for source in said.noise if said.shadowing is None else ():
            for channel, noise in found.items():
                share = _share(source, channel, media.band_hz(said.radio))
                if share > 0:
                    with self._engine() as engine:
                        engine.add_memory_port(_SOURCE)
                        engine.add_radio(
                            MEDIUM, _SOURCE, *noise_radio(self.testbed, source, channel), _SOURCE
                        )
                        (heard,) = interference.signals(engine, [_SOURCE], names)
                    noise += share * 10 ** ((float(source.power) + np.array(heard)) / 10)
        return {channel: 10 * np.log10(noise) for channel, noise in found.items()}

    def limit_dbm(self, channel: int) -> NDArray[np.float64]:
        """Returns the most interference in dBm that a slice may cause at each node on a channel."""
        found: NDArray[np.float64] = self.noise_dbm[channel] - float(self.testbed.inventory.isolation)
        return found

    @contextmanager
    def _engine(self) -> Iterator[_engine.Engine]:
        """Context manager: an engine with the medium and one radio of each node."""
        from airloom import _engine

        names = list(self.testbed.nodes)
        with translated():
            engine = _engine.Engine(1)
            settings = media.medium(self.testbed.inventory.medium, names)
            engine.add_medium(MEDIUM, {**settings, "floor_dbm": interference.FLOOR_DBM})
            for number, name in enumerate(names):
                engine.add_memory_port(name)
                engine.add_radio(MEDIUM, name, *radio(self.testbed, name, number), name)
            yield engine

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
        :data:`HEARD_DB` above the noise in both directions, on every channel of the inventory.
        """
        if power_dbm not in self._parts:
            least = np.max(list(self.noise_dbm.values()), axis=0) + HEARD_DB
            heard = power_dbm - self.loss_db >= least[np.newaxis, :]
            heard &= heard.T
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

    def excess_db(
        self, senders: list[str], power_dbm: float, receivers: list[str], channel: int
    ) -> tuple[float, float]:
        """Returns the received power at which one of ``receivers`` on ``channel`` is disturbed most by
        one of ``senders``, and by how much that is above the limit.
        """
        rows = [self.numbers[name] for name in senders]
        columns = [self.numbers[name] for name in receivers]
        heard = power_dbm - self.loss_db[np.ix_(rows, columns)].min(axis=0)
        above = heard - self.limit_dbm(channel)[columns]
        worst = int(above.argmax())
        return float(heard[worst]), float(above[worst])

    def disturbed(
        self, nodes: list[str], power_dbm: float, their_channel: int, own_dbm: float, own_channel: int
    ) -> NDArray[np.bool_]:
        """Returns for each node whether it and a slice on ``nodes`` would disturb each other.

        ``power_dbm`` is that slice's power, ``own_dbm`` the power that the node would send with.
        """
        rows = [self.numbers[name] for name in nodes]
        heard = power_dbm - self.loss_db[rows, :].min(axis=0)
        caused = (own_dbm - self.loss_db[:, rows] - self.limit_dbm(their_channel)[rows]).max(axis=1)
        found: NDArray[np.bool_] = (heard > self.limit_dbm(own_channel)) | (caused > 0)
        return found


def _share(source: Noise, channel: int, band_hz: float) -> float:
    """Returns the share of a source's power that always falls into a channel."""
    if source.mobility is not None or source.at or source.until is not None or source.on is not None:
        return 0.0
    low, high = media.noise(source)["band_hz"]
    centre = mhz_of(channel) * 1e6
    if abs((low + high) / 2 - centre) > _NEAR * centre:
        return 0.0
    return float(max(0.0, min(high, centre + band_hz / 2) - max(low, centre - band_hz / 2)) / (high - low))
