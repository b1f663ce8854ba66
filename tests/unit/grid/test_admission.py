"""Admission, against an exhaustive search over small testbeds."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloom.grid import inventory
from airloom.grid.admission import Ask, Held, beside, conflict, conflicts, find, nearest
from airloom.grid.grants import Grant
from airloom.grid.inventory import checked, load
from airloom.grid.isolation import Isolation
from airloom.scenario.source import Source
from helpers import REPOSITORY

LINE = """\
name: line
medium: {propagation: {model: log-distance, exponent: 3.0}}
channels: [36, 40]
power: 10 dBm
slots: {frame: 2}
nodes:
  a: {position: [0 m, 0 m], radios: [w0, w1]}
  b: {position: [30 m, 0 m], radios: [w0]}
  c: {position: [60 m, 0 m], radios: [w0, w1]}
  d: {position: [400 m, 0 m], radios: [w0]}
"""


def isolation(text: str = LINE) -> Isolation:
    return Isolation(checked(Source.of_text(text)))


ISOLATION = isolation()
RADIOS = {name: node.radios for name, node in ISOLATION.testbed.nodes.items()}
POWERS = (10.0, -10.0, -30.0)


def every_grant(bed: inventory.Testbed, ask: Ask) -> list[Grant]:
    """All grants that have what is asked for, whatever is held."""
    slots = bed.frame if ask.slots is None else ask.slots
    parts = dict(zip(bed.nodes, ISOLATION.parts(ask.power_dbm), strict=True))
    found = []
    for nodes in combinations(bed.nodes, ask.count):
        if not set(ask.nodes) <= set(nodes) or (not ask.apart and len({parts[one] for one in nodes}) > 1):
            continue
        choices = [list(combinations(bed.nodes[name].radios, ask.radios)) for name in nodes]
        for radios in product(*choices):
            for channels in combinations(bed.inventory.channels, ask.channel_count):
                if set(ask.channels) <= set(channels):
                    for chosen in combinations(range(bed.frame), slots):
                        grant = Grant(dict(zip(nodes, radios, strict=True)), channels, chosen, ask.power_dbm)
                        found.append(grant)
    return found


@st.composite
def grants(draw: st.DrawFn) -> Grant:
    nodes = draw(st.lists(st.sampled_from(list(RADIOS)), min_size=1, max_size=2, unique=True))
    radios = {name: (draw(st.sampled_from(RADIOS[name])),) for name in nodes}
    channels = draw(st.lists(st.sampled_from([36, 40]), min_size=1, max_size=2, unique=True))
    slots = draw(st.lists(st.sampled_from([0, 1]), min_size=1, max_size=2, unique=True))
    return Grant(radios, tuple(channels), tuple(slots), draw(st.sampled_from(POWERS)))


@st.composite
def helds(draw: st.DrawFn) -> list[Held]:
    found = []
    for number, grant in enumerate(draw(st.lists(grants(), max_size=5))):
        start = draw(st.integers(0, 8))
        found.append(Held(str(number), f"s{number}", start, start + draw(st.integers(1, 5)), grant))
    return found


@st.composite
def asks(draw: st.DrawFn) -> Ask:
    start = draw(st.integers(0, 8))
    nodes = tuple(draw(st.lists(st.sampled_from(list(RADIOS)), max_size=2, unique=True)))
    channels = tuple(draw(st.lists(st.sampled_from([36, 40]), max_size=1)))
    return Ask(
        start,
        start + draw(st.integers(1, 5)),
        "new",
        nodes=nodes,
        count=draw(st.integers(max(1, len(nodes)), 3)),
        channels=channels,
        channel_count=draw(st.integers(1, 2)),
        slots=draw(st.sampled_from([None, 1])),
        power_dbm=draw(st.sampled_from(POWERS)),
        apart=draw(st.booleans()),
    )


def possible(ask: Ask, held: list[Held]) -> bool:
    there = beside(held, ask.start, ask.end)
    everything = every_grant(ISOLATION.testbed, ask)
    return any(not list(conflicts(ISOLATION, "new", grant, there)) for grant in everything)


@given(asks(), helds())
@settings(max_examples=60)
def test_a_grant_is_found_exactly_if_there_is_one(ask: Ask, held: list[Held]) -> None:
    answer = find(ISOLATION, ask, held)
    assert (answer.grant is not None) == possible(ask, held), answer
    assert answer.status == ("impossible" if answer.grant is None else "granted")
    if answer.grant is not None:
        assert answer.grant in every_grant(ISOLATION.testbed, ask)
        assert not list(conflicts(ISOLATION, "new", answer.grant, beside(held, ask.start, ask.end)))
    else:
        assert answer.reason


@given(asks(), helds())
@settings(max_examples=25)
def test_the_nearest_start_is_the_nearest_of_all(ask: Ask, held: list[Held]) -> None:
    start, answer = nearest(ISOLATION, ask, held, 0, 16, 30)
    every = [at for at in range(17) if possible(ask.at(at), held)]
    if not every:
        assert start is None
        assert answer.status == "impossible"
    else:
        assert start in every
        assert abs(start - ask.start) == min(abs(at - ask.start) for at in every)


def test_far_nodes_share_a_channel_and_near_ones_do_not() -> None:
    bed = load(REPOSITORY / "examples" / "grid" / "small.yaml")
    rooms = Isolation(bed)
    left = Held("1", "one", 0, 10, Grant({"a1": ("wlan0",), "a2": ("wlan0",)}, (36,), (0,), 10.0))
    right = Grant({"b1": ("wlan0",)}, (36,), (0,), 10.0)
    assert conflict(rooms, "two", right, left) is None
    assert "disturb" in (conflict(rooms, "two", Grant({"a3": ("wlan0",)}, (36,), (0,), 10.0), left) or "")
    assert conflict(rooms, "two", Grant({"a3": ("wlan0",)}, (40,), (0,), 10.0), left) is None


def test_the_prediction_is_the_formula_of_the_model() -> None:
    """Log-distance: 46.7 dB + 30 dB log10(197 m / 1 m), from 10 dBm."""
    rooms = Isolation(load(REPOSITORY / "examples" / "grid" / "small.yaml"))
    assert rooms.excess_db(["a2"], 10.0, ["b1"], 36)[0] == pytest.approx(-105.53, abs=0.01)


def test_overlapping_channels_at_2_4_ghz_count_as_one() -> None:
    text = LINE.replace("channels: [36, 40]", "channels: [1, 3, 6, 11]")
    bed = isolation(text.replace("3.0}}", "3.0}, radio: {phy: 802.11b}}"))
    assert bed.overlaps[1] == {1, 3}
    assert bed.overlaps[6] == {3, 6}
    assert bed.overlaps[11] == {11}


def test_a_slice_name_is_on_the_air_once() -> None:
    held = [Held("1", "mine", 0, 10, Grant({"a": ("w0",)}, (36,), (0, 1), -30.0))]
    answer = find(ISOLATION, Ask(5, 6, "mine", count=1), held)
    assert (answer.status, answer.reason) == ("impossible", "a slice 'mine' is on the air then")


def test_nodes_of_a_grant_hear_each_other_unless_they_may_stand_apart() -> None:
    ask = Ask(0, 1, "new", count=4, power_dbm=10.0)
    assert find(ISOLATION, ask, []).grant is None
    assert find(ISOLATION, Ask(0, 1, "new", count=4, power_dbm=10.0, apart=True), []).grant is not None


def test_nodes_without_other_slices_are_preferred() -> None:
    held = [Held("1", "other", 0, 10, Grant({"a": ("w0",)}, (36,), (0, 1), 10.0))]
    answer = find(ISOLATION, Ask(0, 1, "new", count=2, power_dbm=10.0), held)
    assert answer.grant is not None
    assert answer.best
    assert set(answer.grant.nodes) == {"b", "c"}


def test_only_nodes_of_the_area_are_chosen() -> None:
    answer = find(ISOLATION, Ask(0, 1, "new", count=1, area=(50.0, -1.0, 70.0, 1.0)), [])
    assert answer.grant is not None
    assert answer.grant.nodes == ["c"]
