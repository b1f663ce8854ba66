"""Which sliver has which radio when: whatever the grants say, no radio has two holders."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from airloom.planning.slices.claims import Claim, claims
from airloom.planning.slices.spans import meet, within
from airloom.scenario.model import Scenario

RADIOS = {"n1": ["wlan0", "wlan1"], "n2": ["wlan0"]}
ENTRIES = ["n1", "n2", *(f"{node}:{radio}" for node, radios in RADIOS.items() for radio in radios)]
NODES = st.lists(st.sampled_from(ENTRIES), max_size=3)
SLICES = ("one", "two")
Start = dict[str, tuple[list[str], list[str]]]
Changes = list[tuple[int, str, list[str]]]


def scenario(start: Start, changes: Changes) -> Scenario:
    raw: dict[str, Any] = {
        "name": "claims",
        "slices": {
            name: {"grant": {"nodes": nodes, "standby": standby, "channels": [36]}}
            for name, (nodes, standby) in start.items()
        },
        "events": [
            {"at": f"{at} s", "slice": name, "grant": {"nodes": nodes}} for at, name, nodes in changes
        ],
    }
    return Scenario.model_validate(raw)


@given(
    start=st.fixed_dictionaries({name: st.tuples(NODES, NODES) for name in SLICES}),
    changes=st.lists(st.tuples(st.integers(0, 4), st.sampled_from(SLICES), NODES), max_size=8),
)
def test_a_radio_has_one_holder_and_every_entry_its_radio(start: Start, changes: Changes) -> None:
    _must_be_apart(claims(scenario(start, changes), RADIOS)[0])
    # Most timelines are refused, so this one has the changes that are not.
    if claims(scenario(start, []), RADIOS)[1]:
        start = {"one": (["n1"], []), "two": (["n1", "n2"], ["n1"])}
    made: Changes = []
    for change in changes:
        if not claims(scenario(start, [*made, change]), RADIOS)[1]:
            made.append(change)
    found, _ = claims(scenario(start, made), RADIOS)
    _must_be_apart(found)
    wanted = {name: nodes for name, (nodes, _) in start.items()}
    for at in range(6):
        # Of events at one time the last one counts.
        wanted |= {name: nodes for when, name, nodes in made if when == at}
        for name, nodes in wanted.items():
            own = [one for one in found if one.slice == name and within(one.held, at * 1_000_000_000)]
            assert Counter(one.node for one in own) == Counter(entry.partition(":")[0] for entry in nodes)
            held = {f"{one.node}:{one.radio}" for one in own}
            assert {entry for entry in nodes if ":" in entry} <= held


def _must_be_apart(found: list[Claim]) -> None:
    for one, other in combinations(found, 2):
        assert one.name != other.name
        if (one.node, one.radio) == (other.node, other.radio):
            assert not meet(one.held, other.held)


def test_a_named_radio_is_served_first_and_numbers_follow_the_entries() -> None:
    start = {"one": (["n1", "n1:wlan0"], []), "two": ([], ["n2"])}
    found, problems = claims(scenario(start, []), RADIOS)
    assert not problems
    assert {one.name: one.radio for one in found} == {
        "n1-one": "wlan1",
        "n1-one-2": "wlan0",
        "n2-two": "wlan0",
    }
