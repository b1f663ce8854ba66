"""Who lets virtual time pass, if several threads wait."""

from __future__ import annotations

import threading

import pytest

from airloom.errors import RunError
from airloom.nodes.virtual_time import Pacer


def test_a_thread_gets_its_turn_while_another_one_lets_time_pass_on_and_on() -> None:
    pacer = Pacer(1)
    done, others = threading.Event(), 0

    def passing(most: int | None) -> None:
        nonlocal others
        others += 1

    def loop() -> None:
        while not done.is_set():
            pacer.pass_time(None)

    pacer.passing = passing
    thread = threading.Thread(target=loop)
    thread.start()
    try:
        for _ in range(20):
            with pacer.alone():
                before = others
                pacer.pass_time(None)
                with pacer.alone():
                    pacer.pass_time(None)
                assert others == before + 2, "nobody else did meanwhile"
    finally:
        done.set()
        thread.join()


def test_who_waits_in_a_turn_does_not_wait_for_those_that_want_one() -> None:
    pacer = Pacer(1)
    asked, got = threading.Event(), threading.Event()

    def other() -> None:
        asked.set()
        with pacer.alone():
            got.set()

    thread = threading.Thread(target=other)

    def passing(most: int | None) -> None:
        if most is None:
            thread.start()
            asked.wait(60)
            pacer.pass_time(1)
            assert not got.is_set()

    pacer.passing = passing
    pacer.pass_time(None)
    thread.join(60)
    assert got.is_set()


def test_an_error_in_a_turn_lets_others_have_theirs() -> None:
    pacer = Pacer(1)

    def passing(most: int | None) -> None:
        raise RunError("x", "the guest hangs")

    pacer.passing = passing
    for _ in range(2):
        with pytest.raises(RunError, match="hangs"):
            pacer.pass_time(None)

    def other() -> None:
        with pacer.alone():
            pass

    thread = threading.Thread(target=other)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
