"""Predicts how strongly the slices of a scenario disturb each other.

The received power of radio b from radio a is ``P_a + G(a, b)`` in dBm and dB, with the path gain G
that the engine computes from the positions at the start by the scenario's own propagation model, so
prediction and run agree; fading is left out. Grants that change are taken period by period; a
sliver without a radio then neither disturbs nor is disturbed. Between
two channels, the share of the power that the receiver's filter passes is the engine's
``Channel::overlap``. Of all channels and powers that two slices may use by their grants the worst
count. Of a slice that hops these are the channels of its sequence, dwell by dwell. With codes,
powers and noise are those after the receiver's correlation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airloom.errors import translated
from airloom.planning import timed_changes
from airloom.planning.radio import media
from airloom.planning.radio.channels import mhz_of
from airloom.planning.slices import hopping
from airloom.planning.slices.divisions import code_factor, in_turn
from airloom.planning.slices.spans import within

if TYPE_CHECKING:
    from airloom import _engine
    from airloom.planning.plan import MediumPlan, Plan, RadioPlan

FLOOR_DBM = -150.0
"""The engine's lowest floor: losses above 150 dB at 0 dBm count as such."""
_THERMAL_DBM = -101.0
"""Thermal noise at 290 K in 20 MHz: -174 dBm/Hz + 73 dB."""
_NOISE_FIGURE_DB, RECEIVE_DBM = 7.0, -82.0
"""The engine's defaults."""
NEGLIGIBLE_DB = -10.0
"""Interference this far below the noise raises noise plus interference by 0.4 dB."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """The strongest signal of one slice at a radio of another one."""

    source: str
    """The slice that disturbs."""
    victim: str
    sender: str
    """Radios, as ``node:interface``."""
    receiver: str
    channel: int
    """The victim's channel."""
    power_dbm: float
    """Received power within the victim's channel."""
    noise_dbm: float
    wanted_dbm: float | None
    """Strongest signal of its own slice at the receiver; None if it hears none."""
    heard: bool
    """The receiver detects the sender's frames, and so defers to them."""
    dwells: float | None = None
    """Share of the dwells in which they meet; None if neither hops."""
    since_ns: int = 0
    """From when to when their grants allow it; ``until_ns`` None: to the end."""
    until_ns: int | None = None

    @property
    def above_noise_db(self) -> float:
        """Interference over noise."""
        return self.power_dbm - self.noise_dbm

    @property
    def snr_db(self) -> float | None:
        """Wanted signal over noise, without the other slice."""
        return None if self.wanted_dbm is None else self.wanted_dbm - self.noise_dbm

    @property
    def sinr_db(self) -> float | None:
        """Wanted signal over noise and interference, while the other slice transmits."""
        if self.wanted_dbm is None:
            return None
        return self.wanted_dbm - _decibels(_linear(self.noise_dbm) + _linear(self.power_dbm))

    @property
    def effect(self) -> str:
        """The effect in words."""
        if self.heard:
            effect = "contends"
        elif self.above_noise_db > NEGLIGIBLE_DB:
            effect = "interferes"
        else:
            return "none"
        return effect if self.dwells is None else f"{effect}, {self.dwells * 100:.3g} % of dwells"


def signals(engine: _engine.Engine, senders: Sequence[str], receivers: Sequence[str]) -> list[list[float]]:
    """Returns the received powers in dBm, a row for each sender; 0 from a port to itself."""
    return [
        [0.0 if sender == receiver else engine.signal(sender, receiver) for receiver in receivers]
        for sender in senders
    ]


def disturbances(plan: Plan, at: int = 0) -> list[Disturbance]:
    """Returns the strongest disturbance of each slice by each other one whose channels and slots overlap.

    ``at``: the time in ns; slivers without a radio then do not count.
    """
    return [one for medium in plan.media.values() for one in _on(medium, at)]


def over_time(plan: Plan) -> list[Disturbance]:
    """Returns the disturbances by the grants of the start and of each later change, with their times."""
    periods = list(timed_changes.granted(plan))
    ends = [since for since, _ in periods[1:]]
    found: list[Disturbance] = []
    for (since, then), until in zip(periods, [*ends, None], strict=True):
        for one in disturbances(then, since):
            before = [old for old in found if old.until_ns == since and _is_same(old, one)]
            if before:
                found[found.index(before[0])] = replace(before[0], until_ns=until)
            else:
                found.append(replace(one, since_ns=since, until_ns=until))
    return found


def _is_same(one: Disturbance, other: Disturbance) -> bool:
    """Whether they differ in their times only."""
    return replace(one, since_ns=0, until_ns=None) == replace(other, since_ns=0, until_ns=None)


def _on(medium: MediumPlan, at: int) -> list[Disturbance]:
    slices: dict[str, list[RadioPlan]] = {}
    for radio in medium.radios:
        if radio.grant is not None and within(radio.grant.held, at):
            slices.setdefault(radio.grant.slice, []).append(radio)
    pairs = [
        (source, victim, *overlap)
        for source in slices
        for victim in slices
        if source != victim
        and not in_turn(slices[source][0].settings, slices[victim][0].settings)
        and _code_factor(slices[source], slices[victim]) > 0
        and (overlap := _overlap(slices[source], slices[victim])) is not None
    ]
    if not pairs:
        return []
    from airloom import _engine

    found = []
    with translated():
        engine = _engine.Engine(1)
        engine.add_medium(medium.name, {**medium.settings, "floor_dbm": FLOOR_DBM})
        for radio in medium.radios:
            engine.add_memory_port(radio.port)
            engine.add_radio(medium.name, radio.port, radio.settings, radio.motion, radio.mover)
        for source, victim, share, channel, dwells in pairs:
            one = _strongest(engine, source, victim, slices[source], slices[victim], share, channel)
            found.append(replace(one, dwells=dwells))
    return found


def _code_factor(senders: list[RadioPlan], receivers: list[RadioPlan]) -> float:
    """Returns the share of the senders' power that the receivers' code passes."""
    return code_factor(senders[0].settings, receivers[0].settings)


def _overlap(senders: list[RadioPlan], receivers: list[RadioPlan]) -> tuple[float, int, float | None] | None:
    """Returns the largest overlap of the channels, the receivers' channel of it, and, if one of the
    slices hops, the share of the dwells in which they overlap.
    """
    from airloom import _engine

    mine, theirs = _sequences(senders), _sequences(receivers)
    # For each pair of channels or sequences: the channels in each dwell of one period.
    periods = [hopping.pairs(one, two) for one in mine for two in theirs]
    shares = [
        [(_engine.overlap(mhz_of(one), mhz_of(two)), -two) for one, two in period] for period in periods
    ]
    share, channel = max(max(period) for period in shares)
    if share <= 0:
        return None
    hop = any(len(period) > 1 for period in periods)
    dwells = max(sum(part > 0 for part, _ in period) / len(period) for period in shares)
    return share, -channel, dwells if hop else None


def _sequences(radios: list[RadioPlan]) -> list[list[int]]:
    """Returns each granted channel as a sequence of one dwell, or the hopping sequence of the slice."""
    hops = radios[0].settings.get("hops")
    if hops is not None:
        return [hopping.channels(hops)]
    return [[one] for one in sorted({one for radio in radios if radio.grant for one in radio.grant.channels})]


def _strongest(
    engine: _engine.Engine,
    source: str,
    victim: str,
    senders: list[RadioPlan],
    receivers: list[RadioPlan],
    share: float,
    channel: int,
) -> Disturbance:
    found = signals(engine, [one.port for one in senders], [one.port for one in receivers])
    loss = _decibels(share * _code_factor(senders, receivers))
    power, row, column = max(
        (signal + _reserve(senders[row]) + loss, row, column)
        for row, line in enumerate(found)
        for column, signal in enumerate(line)
    )
    receiver = receivers[column]
    own = [one.port for one in receivers if one is not receiver]
    wanted = max((line[0] for line in signals(engine, own, [receiver.port])), default=None)
    code = receiver.settings.get("code")
    gain = 0.0 if code is None else _decibels(code["spreading"])
    threshold = float(receiver.settings.get("receive_dbm", RECEIVE_DBM)) - gain
    noise = _THERMAL_DBM + float(receiver.settings.get("noise_figure_db", _NOISE_FIGURE_DB)) - gain
    return Disturbance(
        source,
        victim,
        senders[row].port,
        receiver.port,
        channel,
        power,
        noise,
        wanted,
        share >= 1.0 and power >= threshold and senders[row].settings.get("code") == code,
    )


def _reserve(radio: RadioPlan) -> float:
    """Returns by how many dB a radio may still raise its power."""
    now = float(radio.settings.get("power_dbm", media.DEFAULT_POWER))
    most = radio.grant.power_dbm if radio.grant is not None else None
    return 0.0 if most is None else max(0.0, most - now)


def _linear(decibels: float) -> float:
    return float(10.0 ** (decibels / 10.0))


def _decibels(ratio: float) -> float:
    return 10.0 * math.log10(ratio)
