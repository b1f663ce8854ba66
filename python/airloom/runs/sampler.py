"""A thread that samples a quantity periodically during a run."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Self

from airloom.runs.emulation import World

_POLL = 0.01
"""Seconds between two checks whether the emulation's clock has started."""


class Sampler(ABC):
    """Samples once per period from the start of the emulation's clock until the block ends.

    ``at_once``: take the first sample when the clock starts.
    """

    def __init__(self, world: World, period: float, name: str, *, at_once: bool = False) -> None:
        self._world = world
        self._period = period
        self._at_once = at_once
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"airloom-{name}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def finish(self) -> None:
        """Takes the last sample. A second call has no effect."""
        if self._over.is_set():
            return
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._sample_last()

    @abstractmethod
    def _sample(self) -> None:
        """Takes a sample."""

    def _sample_last(self) -> None:
        """Takes the final sample, after the thread has ended."""
        self._sample()

    def _work(self) -> None:
        while not self._world.running:
            if self._over.wait(_POLL):
                return
        if self._at_once:
            self._sample()
        while not self._over.wait(self._period):
            if self._world.running:
                self._sample()
