from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloom.errors import RunError
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


class Passing:
    """Virtual time that passes as it is asked to."""

    def __init__(self) -> None:
        self.now = 0
        self.asked: list[int | None] = []

    def advance(self, most: int | None) -> None:
        self.asked.append(most)
        self.now += 100 if most is None else most


def test_virtual_time_passes_up_to_what_is_due_while_something_is_waited_for():
    passing = Passing()
    timeline = Timeline(lambda: passing.now, passing)  # type: ignore[arg-type]
    done: list[int] = []
    timeline.at(7, lambda: done.append(passing.now))
    while passing.now < 10:
        timeline.pass_time(10 - passing.now)
    assert (done, passing.asked) == ([7], [7, 3])


def test_an_action_that_waits_lets_no_other_action_run_meanwhile():
    passing = Passing()
    timeline = Timeline(lambda: passing.now, passing)  # type: ignore[arg-type]
    done: list[str] = []

    def act() -> None:
        timeline.pass_time(20)
        done.append(f"first at {passing.now}")

    timeline.at(5, act)
    timeline.at(6, lambda: done.append(f"second at {passing.now}"))
    while len(done) < 2:
        timeline.pass_time(None)
    assert done == ["first at 25", "second at 25"]
    timeline.pass_time(None)
    assert passing.now == 125


def test_another_thread_asks_for_a_value_or_gets_the_error():
    timeline = Timeline(lambda: 0)
    thread = threading.Thread(target=timeline.run)
    thread.start()
    assert timeline.ask(lambda: threading.current_thread()) is thread
    with pytest.raises(ZeroDivisionError):
        timeline.ask(lambda: 1 // 0)
    assert timeline.ask(lambda: 5) == 5, "it goes on"
    timeline.post(timeline.end)
    thread.join()
    done: list[int] = []
    with pytest.raises(RunError, match="not up"):
        timeline.ask(lambda: done.append(5))
    timeline.post(timeline.end)
    timeline.run()
    assert done == [], "what was refused is not done later"
