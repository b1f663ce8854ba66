"""Paths of files and mounts that Linux does not take are refused before anything starts."""

from __future__ import annotations

import pytest

from airloom.errors import ScenarioError
from airloom.planning.gate import check
from airloom.scenario.model import Scenario

LONGEST = "/etc/" + "a" * 255
DEEP = "/srv/" + "a/" * 2044 + "ab"


def asked(**node: object) -> None:
    check(Scenario(name="paths", nodes={"a": node}))


@pytest.mark.parametrize(
    ("path", "why"), [(LONGEST + "a", "has 256 octets"), (DEEP + "c", "has 4096 octets")]
)
def test_a_path_that_is_too_long_is_refused(path: str, why: str) -> None:
    with pytest.raises(ScenarioError, match=why) as caught:
        asked(files={path: "x"})
    assert caught.value.code == "node.file"
    with pytest.raises(ScenarioError, match=why) as caught:
        asked(mounts=[{"source": "/etc", "target": path}])
    assert caught.value.code == "node.mount"


@pytest.mark.parametrize("path", [LONGEST, DEEP])
def test_the_longest_paths_are_taken(path: str) -> None:
    asked(files={path: "x"})
