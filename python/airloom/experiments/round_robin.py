"""A flow between guests that take turns, by arithmetic: what a round robin makes of delay and throughput.

The source follows a constant timetable, and sends what was due meanwhile as soon as its turn begins, at
once. A queue that drops at its tail feeds a radio that takes a constant time for each packet and never
waits for a turn. What arrives while the receiver waits is received when its turn begins.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Turn:
    """Every ``guests``-th turn of ``quantum`` s, the first of which begins ``phase`` s after time zero."""

    quantum: float
    phase: float = 0.0
    guests: int = 2

    def from_(self, at: float) -> float:
        """Returns the first time from ``at`` on at which it is its turn."""
        number, inside = divmod(at - self.phase, self.quantum)
        left = -number % self.guests
        return at if left == 0 else at - inside + left * self.quantum

    @property
    def mean_wait(self) -> float:
        """Returns the mean wait in s for the turn, from a time that has nothing to do with the turns.

        Outside of its turns, a share (n - 1) / n of the time, half of (n - 1) q are left on average.
        """
        return (self.guests - 1) ** 2 * self.quantum / (2 * self.guests)


@dataclass(frozen=True, slots=True)
class Passed:
    """Packets that arrived, in their order; s."""

    sent: npt.NDArray[np.float64]
    received: npt.NDArray[np.float64]

    @property
    def delay(self) -> float:
        """Returns their mean delay in s."""
        return float(np.mean(self.received - self.sent))

    @property
    def jitter(self) -> float:
        """Returns the mean difference of delays of successive packets in s."""
        return float(np.mean(np.abs(np.diff(self.received - self.sent))))

    def after(self, seconds: float) -> Passed:
        """Returns those that were sent from a time on."""
        kept = self.sent >= seconds
        return Passed(self.sent[kept], self.received[kept])


def passed(
    interval: float, service: float, places: int, sender: Turn | None, receiver: Turn | None, seconds: float
) -> Passed:
    """Returns what arrives of a packet each ``interval`` s, ``service`` s each on the air.

    ``places``: packets in the queue and on the air at most. ``None``: a guest that never waits.
    """
    leaving: deque[float] = deque()
    sent, received = [], []
    left = 0.0
    for number in range(int(seconds / interval)):
        due = number * interval
        at = due if sender is None else sender.from_(due)
        while leaving and leaving[0] <= at:
            leaving.popleft()
        if len(leaving) < places:
            left = max(at, left) + service
            leaving.append(left)
            sent.append(at)
            received.append(left if receiver is None else receiver.from_(left))
    return Passed(np.asarray(sent), np.asarray(received))
