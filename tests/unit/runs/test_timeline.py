from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from airloom.runs.timeline import Timeline


class Clock:
    """A clock that goes on by itself whenever it is read."""

    def __init__(self, step: int = 1_000_000) -> None:
        self.value = 0
        self.step = step

    def __call__(self) -> int:
        self.value += self.step
        return self.value


@given(st.lists(st.integers(0, 10_000_000), max_size=20))
def test_things_happen_in_the_order_of_their_times_and_then_as_asked(moments: list[int]):
    timeline = Timeline(Clock())
    done: list[tuple[int, int]] = []
    for number, moment in enumerate(moments):
        timeline.at(moment, lambda moment=moment, number=number: done.append((moment, number)))
    timeline.at(20_000_000, timeline.end)
    timeline.run()
    assert done == sorted((moment, number) for number, moment in enumerate(moments))


def test_nothing_happens_before_its_time():
    clock = Clock()
    timeline = Timeline(clock)
    seen: list[int] = []
    timeline.at(5_000_000, lambda: seen.append(clock.value))
    timeline.at(9_000_000, timeline.end)
    timeline.run()
    assert seen[0] >= 5_000_000


def test_what_is_posted_from_another_thread_wakes_it():
    timeline = Timeline(lambda: 0)
    thread = threading.Thread(target=lambda: timeline.post(timeline.end))
    timeline.at(1, lambda: None)  # never due: the clock stands
    thread.start()
    timeline.run()
    thread.join()


def test_it_can_be_run_again():
    timeline = Timeline(Clock())
    done: list[str] = []
    for word in ("first", "second"):
        timeline.post(lambda word=word: done.append(word))
        timeline.post(timeline.end)
        timeline.run()
    assert done == ["first", "second"]
