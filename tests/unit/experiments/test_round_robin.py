"""A flow between guests in turns, by arithmetic: against closed forms, and against what needs no turns."""

from __future__ import annotations

import numpy as np
import pytest

from airloom.experiments import orbit
from airloom.experiments.round_robin import Turn, passed

QUANTUM = 0.1
INTERVAL = 8 * orbit.PAYLOAD / 50e6


def test_a_turn_begins_where_the_one_before_ends() -> None:
    first, second = Turn(0.1), Turn(0.1, phase=0.1)
    assert [round(first.from_(at), 9) for at in (0.0, 0.05, 0.1, 0.15, 0.2, 0.35)] == [
        0.0, 0.05, 0.2, 0.2, 0.2, 0.4,
    ]  # fmt: skip
    assert [round(second.from_(at), 9) for at in (0.0, 0.05, 0.1, 0.15, 0.25)] == [0.1, 0.1, 0.1, 0.15, 0.3]


@pytest.mark.parametrize("guests", [2, 3, 4])
def test_the_mean_wait_is_that_of_arrivals_at_any_time(guests: int) -> None:
    turn = Turn(QUANTUM, guests=guests)
    at = (np.arange(100_000) + 0.5) * guests * QUANTUM / 100_000
    assert np.mean([turn.from_(one) - one for one in at]) == pytest.approx(turn.mean_wait, rel=1e-3)
    assert Turn(QUANTUM).mean_wait == pytest.approx(0.025), "a quarter of a turn of two"


@pytest.mark.parametrize("places", [20, 40, 100])
def test_a_sender_in_turns_gets_what_the_formula_of_the_queue_says(places: int) -> None:
    found = passed(INTERVAL, orbit.cycle(), places, Turn(QUANTUM), None, 10)
    rate = 8 * orbit.PAYLOAD * len(found.sent) / 10
    assert rate == pytest.approx(orbit.shared_queue(places, QUANTUM), rel=0.01)


def test_a_receiver_in_turns_adds_the_mean_wait_and_loses_nothing() -> None:
    alone, waiting = (passed(INTERVAL, orbit.cycle(), 40, None, turn, 10) for turn in (None, Turn(QUANTUM)))
    assert len(alone.sent) == len(waiting.sent)
    added = waiting.after(1).delay - alone.after(1).delay
    assert added == pytest.approx(Turn(QUANTUM).mean_wait, rel=0.02)


def test_without_turns_a_full_queue_is_the_delay() -> None:
    found = passed(INTERVAL, orbit.cycle(), 40, None, None, 10).after(1)
    assert found.delay == pytest.approx(40 * orbit.cycle(), rel=0.02)
    assert found.sent[0] >= 1
