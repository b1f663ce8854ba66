"""Samples the positions of radios and their traffic per peer during a run.

A thread reads all radios from the engine once a second. Motion in the engine is continuous; the
samples are only for the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

from airloom.errors import LabError
from airloom.planning.plan import Plan
from airloom.results.details import CardUse, ChannelUse, RadioLink, RadioUse, SliceUse
from airloom.runs import slice_monitor
from airloom.runs.emulation import World
from airloom.runs.sampler import Sampler

PERIOD = 1.0
"""Seconds between samples."""

Series = tuple[str, str, str, str, list[int], list[float]]
"""Measurement, metric, unit, radio or pair; times in ns and values."""

View = Mapping[str, Any]
"""A radio's state as returned by ``Engine.radios``."""


class RadioWatch(Sampler):
    """Samples the radios of an emulation, if it has any."""

    def __init__(self, world: World) -> None:
        super().__init__(world, PERIOD, "radiowatch", at_once=True)
        self._looks: list[tuple[int, dict[str, View]]] = []
        self._there = any(medium.radios for medium in world.plan.media.values())

    def __enter__(self) -> Self:
        return super().__enter__() if self._there else self

    def follow(self, plan: Plan) -> None:
        """Samples from now on if the plan has radios."""
        if not self._there and any(medium.radios for medium in plan.media.values()):
            self._there = True
            super().__enter__()

    @property
    def radios(self) -> tuple[RadioUse, ...]:
        """All radios as of the last sample."""
        return tuple(use_of(radio) for radio in self._last().values())

    @property
    def links(self) -> tuple[RadioLink, ...]:
        """All pairs of radios of which at least one sent to the other."""
        return tuple(
            RadioLink(
                sender=name,
                receiver=other,
                attempts=int(peer["attempts"]),
                unanswered=int(peer["unanswered"]),
                rate_bit_s=peer["rate"],
            )
            for name, radio in self._last().items()
            for other, peer in radio.get("peers", {}).items()
            if peer["attempts"]
        )

    def changes(self) -> Iterator[tuple[int, str]]:
        """When stations have changed or lost access points, as of the first sample that shows it, in words.

        Only of stations whose association the medium keeps: a node's own 802.11 stack keeps its own.
        """
        last: dict[str, str] = {}
        lost: set[str] = set()
        for at, look in self._looks:
            for name, radio in look.items():
                now = radio.get("access_point")
                before = last.get(name)
                if now is None and before is not None and name not in lost:
                    lost.add(name)
                    yield at, f"{name} loses its access point {before}"
                elif now is not None and before is not None and now != before:
                    yield at, f"{name} roams from {before} to {now}"
                elif now is not None and name in lost:
                    yield at, f"{name} is back at {now}"
                if now is not None:
                    last[name] = now
                    lost.discard(name)

    def series(self) -> Iterator[Series]:
        """Positions of all radios, and rate and retries of all pairs, over time."""
        for name in self._last():
            places = [(at, look[name]["position"]) for at, look in self._looks if name in look]
            if all(place == places[0][1] for _, place in places):
                places = places[:1]
            for number, axis in enumerate("xyz"):
                values = [place[number] for _, place in places]
                yield ("radio", axis, "m", name, [at for at, _ in places], values)
        for link in self.links:
            yield from self._of_link(link.sender, link.receiver)
        for whose, times, shares in slice_monitor.airtime(self.totals):
            yield ("slice", "airtime", "1", whose, times, shares)

    @property
    def totals(self) -> list[tuple[int, slice_monitor.Totals]]:
        """The use of channels by each slice as of every sample."""
        return [(at, slice_monitor.totals(list(look.values()))) for at, look in self._looks]

    @property
    def slices(self) -> tuple[SliceUse, ...]:
        """The use of channels by each slice as of the last sample."""
        return slice_monitor.uses(slice_monitor.totals(list(self._last().values())))

    def _of_link(self, sender: str, receiver: str) -> Iterator[Series]:
        whose = f"{sender}>{receiver}"
        times: list[int] = []
        rates: list[float] = []
        retries: list[float] = []
        attempts = unanswered = 0
        for at, look in self._looks:
            peer = look.get(sender, {}).get("peers", {}).get(receiver)
            # A pair without transmissions since the last sample has no value.
            if peer is None or peer["attempts"] == attempts:
                continue
            times.append(at)
            rates.append(float(peer["rate"] or 0))
            # A frame on the air at a sample is counted as answered or unanswered in the next one.
            failed = (peer["unanswered"] - unanswered) / (peer["attempts"] - attempts)
            retries.append(min(1.0, failed))
            attempts, unanswered = peer["attempts"], peer["unanswered"]
        yield ("radio-link", "rate", "bit/s", whose, times, rates)
        yield ("radio-link", "retries", "1", whose, times, retries)

    def _last(self) -> dict[str, View]:
        return self._looks[-1][1] if self._looks else {}

    def _sample(self) -> None:
        if not self._there:
            return
        try:
            radios = self._world.radios()
            self._looks.append((max(0, self._world.now()), {radio["port"]: radio for radio in radios}))
        except LabError:
            return  # the engine has ended; earlier samples remain


def use_of(radio: View) -> RadioUse:
    """A radio for ``details.json``."""
    east, north, up = radio["position"]
    return RadioUse(
        name=radio["port"],
        medium=radio["medium"],
        mhz=radio["mhz"],
        channel=radio["settings"].get("channel"),
        place_m=(east, north, up),
        airtime_ns=dict(radio["airtime"]),
        dozing_ns=radio["dozing"],
        counts=dict(radio["counts"]),
    )


def cards_of(world: World) -> tuple[CardUse, ...]:
    """All cards, for ``details.json``."""
    if not any(medium.cards for medium in world.plan.media.values()):
        return ()
    return tuple(
        CardUse(
            medium=one["medium"],
            card=one["card"],
            switches=one["switches"],
            switching_ns=one["switching"],
            visits=one["visits"],
            collisions=one["collisions"],
            scans_asked=one["scans_asked"],
            scans_merged=one["scans_merged"],
            scans_cached=one["scans_cached"],
            scan_results=one["scan_results"],
            scan_age_ns=one["scan_age"],
            scan_oldest_ns=one["scan_oldest"],
            asleep_ns=one["asleep"],
            awake_ns=max(0, world.now() - one["asleep"]),
        )
        for one in world.cards()
    )


def channels_of(world: World) -> tuple[ChannelUse, ...]:
    """All channels used, for ``details.json``."""
    if not world.plan.media:
        return ()
    return tuple(
        ChannelUse(
            medium=one["medium"],
            channel=one["channel"],
            mhz=one["mhz"],
            frames=one["frames"],
            airtime_ns={key: one[key] for key in ("busy", "overlapped", "sent")},
        )
        for one in world.channels()
    )
