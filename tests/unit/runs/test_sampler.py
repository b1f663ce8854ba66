"""The thread that samples while a run lasts."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from airloom.runs.sampler import Sampler


class Counting(Sampler):
    """Notes what was asked of it, in order."""

    def __init__(self, world: Any, enough: int, period: float = 0.001, *, at_once: bool = False) -> None:
        super().__init__(world, period, "test", at_once=at_once)
        self.seen: list[str] = []
        self.enough = threading.Event()
        self._wanted = enough

    def _sample(self) -> None:
        self.seen.append("sample")
        if len(self.seen) >= self._wanted:
            self.enough.set()

    def _sample_last(self) -> None:
        self.seen.append("last")


def test_it_samples_from_the_start_of_the_clock_to_the_end_of_the_block() -> None:
    world: Any = SimpleNamespace(running=False, pacer=None)
    with Counting(world, 4) as sampler:
        assert not sampler.enough.wait(0.05)
        assert sampler.seen == []
        world.running = True
        assert sampler.enough.wait(20)
    seen = list(sampler.seen)
    assert (len(seen) >= 5, seen[-1], set(seen[:-1])) == (True, "last", {"sample"})
    sampler.finish()
    assert sampler.seen == seen


def test_without_a_running_clock_there_is_the_last_sample_alone() -> None:
    world: Any = SimpleNamespace(running=False, pacer=None)
    with Counting(world, 1) as sampler:
        pass
    assert sampler.seen == ["last"]


def test_it_can_sample_when_the_clock_starts() -> None:
    with Counting(SimpleNamespace(running=True, pacer=None), 1, period=3600, at_once=True) as sampler:
        assert sampler.enough.wait(20)
    assert sampler.seen == ["sample", "last"]


def test_it_may_be_finished_without_having_begun() -> None:
    sampler = Counting(SimpleNamespace(running=False, pacer=None), 1)
    sampler.finish()
    assert sampler.seen == ["last"]
