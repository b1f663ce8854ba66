"""What slices did on the air: use of channels over time, and violations of their grants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from airloom.results.details import SliceUse
from airloom.results.result import Violation
from airloom.runs.emulation import World

UNITS = {"channel": "MHz", "power": "dB", "slot": "us"}
"""Unit of the amount of a violation, by what was violated."""

Totals = dict[tuple[str, int, int], tuple[int, int]]
"""By slice, channel and MHz: airtime in ns and frames so far."""


def totals(radios: Sequence[Mapping[str, Any]]) -> Totals:
    """Sums the use of channels over the radios of each slice."""
    found: Totals = {}
    for radio in radios:
        for used in radio["uses"] if radio["slice"] is not None else ():
            key = (radio["slice"], used["channel"], used["mhz"])
            sent, frames = found.get(key, (0, 0))
            found[key] = (sent + used["sent"], frames + used["frames"])
    return found


def uses(found: Totals) -> tuple[SliceUse, ...]:
    """The use of channels for ``details.json``."""
    return tuple(
        SliceUse(slice=name, channel=channel, mhz=mhz, frames=frames, sent_ns=sent)
        for (name, channel, mhz), (sent, frames) in sorted(found.items())
    )


def airtime(looks: Sequence[tuple[int, Totals]]) -> Iterator[tuple[str, list[int], list[float]]]:
    """Yields for each slice and channel its share of each interval between two looks.

    The share of several radios that send at once is above 1.
    """
    for key in sorted(looks[-1][1]) if looks else ():
        times: list[int] = []
        shares: list[float] = []
        for (before, old), (at, new) in pairwise(looks):
            if at > before:
                times.append(at)
                sent = new.get(key, (0, 0))[0] - old.get(key, (0, 0))[0]
                shares.append(sent / (at - before))
        yield f"{key[0]}:{key[1]}", times, shares


def violations(world: World) -> tuple[tuple[Violation, ...], int]:
    """The violations and refused settings so far, and the number of those that were not recorded."""
    slices = any(radio.grant is not None for medium in world.plan.media.values() for radio in medium.radios)
    if not slices:
        return (), 0
    state = world.violations()
    found = (
        Violation(
            t_ns=one["from"],  # type: ignore[typeddict-item]
            until_ns=one["until"],
            slice=one["slice"],
            node=one["port"].partition(":")[0],
            radio=one["port"],
            what=one["what"],  # type: ignore[arg-type]
            amount=round(one["amount"], 3),
            unit=UNITS.get(one["what"], ""),
            frames=one["frames"],
            channel=one["channel"],
            concerned=tuple(one["concerned"]),
        )
        for one in state["found"]
    )
    refused, unrecorded = world.refusals.found()
    both = sorted((*found, *refused), key=lambda one: (one.t_ns, one.radio))
    return tuple(both), state["unrecorded"] + unrecorded
