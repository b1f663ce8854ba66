"""Sends the frames of a capture on an interface, each at its own time.

A frame leaves at the start plus its distance in time from the first one, never earlier: the sender sleeps
until shortly before that time, then polls the clock. Addresses and checksums are those of the frames;
:mod:`airloom.measure.rewriting` makes them those of nodes.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from airloom.errors import RunError
from airloom.host.captured_packets import is_known, link_type_name
from airloom.host.pcap import ETHERNET, Captured, frames

AHEAD = 300_000
"""Nanoseconds before a frame's time from which the clock is polled: a sleep ends too late by less."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What was sent, and how late: nanoseconds between a frame's time and the call that sent it."""

    frames: int
    octets: int
    late: Sequence[int]
    padded: int
    """Frames of which the file has fewer octets than they had; the rest is zeros."""

    def percentile(self, share: float) -> int:
        """Returns the lateness that this share of the frames does not exceed."""
        return sorted(self.late)[min(len(self.late) - 1, int(share * len(self.late)))]


def load(path: str | Path, *, rewritten: bool = False) -> list[Captured]:
    """Returns the frames of a capture in time order.

    Raises :class:`RunError` if it has none, or frames of another link type than Ethernet. ``rewritten``:
    they get new Ethernet headers, so that other link types with IP are taken too.
    """
    found = sorted(frames(path), key=lambda frame: frame.at)
    if not found:
        raise RunError("replay.empty", "the capture has no frame", where=str(path))
    takes = is_known if rewritten else _is_ethernet
    other = next((frame.link_type for frame in found if not takes(frame)), None)
    if other is not None:
        raise RunError(
            "replay.link-type",
            f"the capture has frames of {link_type_name(other)}, an interface sends Ethernet frames",
            where=str(path),
            cure="capture at one Ethernet interface; `pattern: replay` of a measurement needs sizes only",
        )
    return found


def _is_ethernet(frame: Captured) -> bool:
    return frame.link_type == ETHERNET


def send(
    captured: Sequence[Captured],
    put: Callable[[bytes], object],
    *,
    speed: float = 1.0,
    loops: int = 1,
    begin: int | None = None,
) -> Sent:
    """Sends frames by ``put``, ``speed`` times as fast as they were captured, ``loops`` times over.

    ``begin``: the time in the capture, in ns, that is the start; by default that of the first frame.
    """
    octets = [frame.octets.ljust(frame.length, b"\0") for frame in captured]
    begin = captured[0].at if begin is None else begin
    times = [round((frame.at - begin) / speed) for frame in captured]
    late: list[int] = []
    start = time.monotonic_ns() + 1_000_000
    for _ in range(loops):
        for at, frame in zip(times, octets, strict=True):
            due = start + at
            rest = due - time.monotonic_ns() - AHEAD
            if rest > 0:
                time.sleep(rest / 1e9)
            while time.monotonic_ns() < due:
                pass
            put(frame)
            late.append(time.monotonic_ns() - due)
        # The gap before a repetition is the mean one.
        start += times[-1] + times[-1] // max(1, len(times) - 1)
    padded = sum(frame.length > len(frame.octets) for frame in captured)
    return Sent(len(octets) * loops, sum(map(len, octets)) * loops, late, padded * loops)


def on_interface(name: str) -> socket.socket:
    """Returns a socket that sends whole Ethernet frames on an interface."""
    try:
        found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        found.bind((name, 0))
    except OSError as error:
        raise RunError("replay.interface", f"no frame can be sent on {name!r}: {error.strerror}") from None
    return found
