"""Which runs are made again, on invented verdicts; tests/world/test_run.py makes real ones again."""

from types import SimpleNamespace
from typing import Any

import pytest

from airloom.runs.batch import Tries, undisturbed
from airloom.verdict import Verdict
from helpers.notes import Notes

STEAL, LATE, CLAIM = "host.steal", "delivery.stall", "claim.failed"


def verdict(status: Any, code: str = "") -> Verdict:
    found = Verdict(status="valid")
    return found if status == "valid" else found.also(status, code, f"because of {code}")


@pytest.mark.parametrize(
    ("tries", "verdicts", "made"),
    [
        (Tries(3), [("degraded", STEAL), ("invalid", LATE), ("valid", "")], 3),
        (Tries(2), [("degraded", STEAL), ("invalid", LATE)], 2),
        (Tries(3), [("invalid", CLAIM)], 1),
        (Tries(3), [("valid", "")], 1),
        (Tries(3, accept="degraded"), [("degraded", STEAL)], 1),
        (Tries(3, accept="degraded"), [("invalid", LATE), ("degraded", STEAL)], 2),
        (Tries(1, accept="degraded"), [("invalid", LATE)], 1),
        (Tries(2), [("degraded", STEAL), ("valid", "")], 2),
    ],
)
def test_a_run_that_the_machine_disturbed_more_than_accepted_is_made_again(
    tries: Tries, verdicts: list[tuple[str, str]], made: int
) -> None:
    given: list[tuple[str, ...]] = []

    def once(notes: tuple[str, ...]) -> Any:
        given.append(notes)
        return SimpleNamespace(verdict=verdict(*verdicts[len(given) - 1]))

    watcher = Notes()
    undisturbed(once, tries, watcher)
    assert [len(notes) for notes in given] == list(range(made))
    assert len(watcher.problems) == made - 1
    assert all(f"of at most {tries.most}" in one for one in watcher.problems)
