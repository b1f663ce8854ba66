"""A thread that samples a quantity periodically during a run."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import ClassVar, Self

from airloom.runs.emulation import World

_POLL = 0.01
"""Seconds between two checks whether the emulation's clock has started."""


class Sampler(ABC):
    """Samples once per period from the start of the emulation's clock until the block ends.

    ``at_once``: take the first sample when the clock starts.
    """

    _of_model: ClassVar[bool] = True
    """Whether it samples the emulation itself. What is of this machine says nothing in virtual time."""
    _skips: ClassVar[bool] = False
    """Whether a sample is the same as the one before if the engine has done nothing since."""

    def __init__(self, world: World, period: float, name: str, *, at_once: bool = False) -> None:
        self._world = world
        self._period = period
        self._at_once = at_once
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"airloom-{name}", daemon=True)

    def __enter__(self) -> Self:
        if self._world.pacer is None:
            self._thread.start()
        elif self._of_model:
            self._world.at_begin.append(self._follow)
        return self

    def _follow(self) -> None:
        """In virtual time: samples each period of that time."""
        assert self._world.pacer is not None
        if self._at_once:
            self._sample()
        self._world.pacer.every(round(self._period * 1e9), self._sample, skips=self._skips)

    def __exit__(self, *_: object) -> None:
        self.finish()

    def finish(self) -> None:
        """Takes the last sample. A second call has no effect."""
        if self._over.is_set():
            return
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._world.pacer is None or self._of_model:
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
