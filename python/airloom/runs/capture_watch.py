"""Watches the size of the captures during a run."""

from __future__ import annotations

from airloom.errors import LabError
from airloom.results.details import Captured
from airloom.runs.emulation import World
from airloom.runs.progress import Watcher
from airloom.runs.sampler import Sampler

PERIOD = 1.0
"""Seconds between samples."""


class CaptureWatch(Sampler):
    """Tells the watcher the size of the captures once a second."""

    def __init__(self, world: World, watcher: Watcher) -> None:
        super().__init__(world, PERIOD, "capturewatch")
        self._watcher = watcher
        self.counts = Captured(frames=0)
        """As of the last sample."""

    @property
    def skipped(self) -> int:
        """Frames that are missing."""
        return self.counts.skipped

    def _sample(self) -> None:
        try:
            seen = self._world.engine.lateness()["capture"]
        except LabError:
            return  # the engine has ended; the last sample remains
        if seen is not None:
            self.counts = Captured(frames=seen["written"], skipped=seen["skipped"], octets=seen["octets"])
            self._watcher.captured(self.counts.octets, self.counts.skipped)
