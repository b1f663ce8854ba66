"""Which sliver has which radio when: whatever the grants say, no radio has two holders."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from airloom.planning.claims import claims
from airloom.planning.spans import meet, within
from airloom.scenario.model import Scenario

RADIOS = {"n1": ["wlan0", "wlan1"], "n2": ["wlan0"]}
ENTRIES = ["n1", "n2", *(f"{node}:{radio}" for node, radios in RADIOS.items() for radio in radios)]
NODES = st.lists(st.sampled_from(ENTRIES), max_size=3)
SLICES = ("one", "two")
Changes = list[tuple[int, str, list[str]]]


def scenario(start: dict[str, tuple[list[str], list[str]]], changes: Changes) -> Scenario:
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
    changes=st.lists(st.tuples(st.integers(0, 4), st.sampled_from(SLICES), NODES), max_size=6),
)
def test_a_radio_has_one_holder_and_every_entry_its_radio(
    start: dict[str, tuple[list[str], list[str]]], changes: Changes
) -> None:
    found, problems = claims(scenario(start, changes), RADIOS)
    for one, other in combinations(found, 2):
        assert one.name != other.name
        if (one.node, one.radio) == (other.node, other.radio):
            assert not meet(one.held, other.held)
    if problems:
        return
    wanted = {name: nodes for name, (nodes, _) in start.items()}
    for at in range(6):
        # Of events at one time the last one counts.
        wanted |= {name: nodes for when, name, nodes in changes if when == at}
        for name, nodes in wanted.items():
            own = [one for one in found if one.slice == name and within(one.held, at * 1_000_000_000)]
            assert Counter(one.node for one in own) == Counter(entry.partition(":")[0] for entry in nodes)
            held = {f"{one.node}:{one.radio}" for one in own}
            assert {entry for entry in nodes if ":" in entry} <= held


def test_a_named_radio_is_served_first_and_numbers_follow_the_entries() -> None:
    start = {"one": (["n1", "n1:wlan0"], []), "two": ([], ["n2"])}
    found, problems = claims(scenario(start, []), RADIOS)
    assert not problems
    assert {one.name: one.radio for one in found} == {
        "n1-one": "wlan1",
        "n1-one-2": "wlan0",
        "n2-two": "wlan0",
    }
