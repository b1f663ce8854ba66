"""Attempts to set a radio to what the grant of its slice forbids: they were refused, and are recorded."""

from __future__ import annotations

import threading

from airloom.results.result import Violation

MOST = 1024
"""Most records; further attempts are only counted."""


class Refusals:
    """The attempts so far. Those of one radio for one channel are one record with their number.

    Callable from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[tuple[str, int], Violation] = {}
        self._unrecorded = 0

    def add(self, slice_name: str, port: str, channel: int, at: int) -> None:
        """Records an attempt at the engine time ``at`` in ns; ``channel``: the one that was asked for, or
        else that of the radio.
        """
        with self._lock:
            known = self._found.get((port, channel))
            if known is not None:
                update = {"until_ns": at, "frames": known.frames + 1}
                self._found[port, channel] = known.model_copy(update=update)
            elif len(self._found) < MOST:
                self._found[port, channel] = Violation(
                    t_ns=at,
                    until_ns=at,
                    slice=slice_name,
                    node=port.partition(":")[0],
                    radio=port,
                    what="setting",
                    frames=1,
                    channel=channel,
                )
            else:
                self._unrecorded += 1

    def found(self) -> tuple[tuple[Violation, ...], int]:
        """Returns the records, and how many attempts have none."""
        with self._lock:
            return tuple(self._found.values()), self._unrecorded
