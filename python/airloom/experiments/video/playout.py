"""Playout: when a viewer sees the first picture, and how often and how long the picture stands still."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Playout:
    """Start-up and stalls of one viewer."""

    startup: float
    """s from asking for the video to its first picture."""
    stalls: int
    """How often the picture stands still."""
    stalled: float
    """s for which it stands still in all."""


def download(arrivals: Sequence[float], times: Sequence[float], frame: float, ahead: float) -> Playout:
    """A progressive download: nothing is lost, and the player waits for what is not there.

    ``arrivals`` are when each frame was complete after the request, ``times`` when it is to be shown, both in
    s; a frame is shown for ``frame``. The player starts, and goes on after a stall, when ``ahead`` seconds of
    video are there, or all of it.
    """

    def buffered(first: int) -> float:
        """When so much from this frame on is there."""
        enough = [
            at for at, time in zip(arrivals, times, strict=True) if time <= times[first] + ahead - frame
        ]
        return max(enough)

    clock = startup = buffered(0)
    stalls, stalled = 0, 0.0
    for number, at in enumerate(arrivals):
        if number:
            clock += times[number] - times[number - 1]
        if at > clock:
            again = max(clock, buffered(number))
            stalls, stalled, clock = stalls + 1, stalled + again - clock, again
    return Playout(startup, stalls, stalled)


def live(times: Sequence[float], start: float, frame: float, seconds: float) -> Playout:
    """A live stream of ``seconds``: what is missing is skipped, and the picture before it stands meanwhile.

    ``times`` are presentation times of the frames that are there; ``start`` is when the stream's time 0 is
    shown.
    """
    stalls, stalled = 0, 0.0
    for before, after in zip(times, [*times[1:], seconds], strict=True):
        missing = after - before - frame
        if missing > frame / 2:
            stalls, stalled = stalls + 1, stalled + missing
    return Playout(start + times[0], stalls, stalled)
