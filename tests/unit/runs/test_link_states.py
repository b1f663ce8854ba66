"""What links were told, now and on schedule."""

from __future__ import annotations

from airloom.runs.link_states import LinkStates


def test_of_several_words_for_one_instant_the_last_one_holds() -> None:
    states = LinkStates()
    assert states.is_up("a", 0)
    states.raised(5, "a", False)
    states.raised(5, "a", True)
    states.raised(9, "a", False)
    assert [states.is_up("a", now) for now in (4, 5, 8, 9)] == [True, True, True, False]
    assert states.is_up("b", 9)


def test_at_time_zero_a_word_replaces_the_state_from_the_start() -> None:
    states = LinkStates()
    states.raised(0, "a", False)
    assert not states.is_up("a", 0)
    states.forget("a")
    assert states.is_up("a", 0)
