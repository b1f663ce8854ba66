"""Which tests of the suite start first."""

from __future__ import annotations

from helpers.order import expected, ordered


def order(*tests: tuple[str, float, bool]) -> list[str]:
    """Orders tests of (name, seconds, waits); the group is the name's first letter."""
    found = ordered(tests, group=lambda one: one[0][0], waits=lambda one: one[2], seconds=lambda one: one[1])
    return [name for name, _, _ in found]


def test_long_tests_start_first_and_groups_stay_together() -> None:
    tests = [("a", 1.0, True), ("b1", 2.0, True), ("c", 3.0, True), ("b2", 2.0, True), ("d", 3.0, True)]
    assert order(*tests) == ["b1", "b2", "c", "d", "a"]


def test_waiting_and_computing_tests_advance_at_the_same_pace() -> None:
    waiting = [(f"{letter}", 10.0, True) for letter in "abcd"]
    computing = [(f"{letter}", 1.0, False) for letter in "wxyz"]
    found = order(*waiting, *computing)
    for number in range(1, 5):
        assert sum(name in "abcd" for name in found[: 2 * number]) == number


def test_a_longer_time_limit_tells_of_a_longer_test() -> None:
    assert expected(400.0, waits=True, slow=False) > expected(240.0, waits=True, slow=False)
    assert expected(240.0, waits=True, slow=False) > expected(120.0, waits=True, slow=False)
    assert expected(120.0, waits=False, slow=True) > expected(120.0, waits=False, slow=False)
