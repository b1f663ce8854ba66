"""Tests of the choice of a processor for a run in virtual time."""

from __future__ import annotations

import os
import subprocess

from airloom.runs.one_processor import choose, idlest, one_processor

FIRST = {0: (100, 1000), 1: (900, 1000), 2: (0, 1000), 3: (500, 1000)}


def test_the_idlest_processor_is_chosen() -> None:
    last = {0: (100, 1005), 1: (905, 1005), 2: (2, 1005), 3: (505, 1005)}
    assert idlest([0, 1, 2], FIRST, last, 7) == 1
    assert idlest([0, 2], FIRST, last, 7) == 2


def test_runs_that_start_at_once_are_spread_over_processors_that_are_alike() -> None:
    last = {0: (100, 1005), 1: (905, 1005), 2: (0, 1005), 3: (504, 1005)}
    assert {idlest([0, 1, 2, 3], FIRST, last, number) for number in range(100, 104)} == {1, 3}


def test_without_a_tick_between_the_looks_all_are_alike() -> None:
    assert {idlest([0, 1, 2, 3], FIRST, FIRST, number) for number in range(4)} == {0, 1, 2, 3}


def test_what_starts_meanwhile_is_bound_and_afterwards_nothing_is() -> None:
    before = os.sched_getaffinity(0)
    with one_processor():
        assert len(os.sched_getaffinity(0)) == 1
        said = subprocess.run(["nproc"], capture_output=True, text=True, check=True, env={"PATH": os.defpath})
        assert said.stdout.strip() == "1"
    assert os.sched_getaffinity(0) == before


def test_a_single_processor_is_taken_as_it_is() -> None:
    assert choose([5]) == 5
