"""Inventories: the shipped ones, and that each mistake is told with its place."""

from __future__ import annotations

import pytest

from airloom.errors import ScenarioError
from airloom.grid.inventory import checked, load
from airloom.scenario.source import Source
from helpers import REPOSITORY

ROOM = "name: room\nchannels: [36]\nnodes: {a: {position: [0 m, 0 m]}}\n"


def refusal(text: str) -> str:
    with pytest.raises(ScenarioError) as found:
        checked(Source.of_text(text, "room.yaml"))
    return str(found.value)


def test_orbit_has_400_nodes_a_metre_apart_with_two_radios() -> None:
    bed = load(REPOSITORY / "examples" / "grid" / "orbit-400.yaml")
    assert len(bed.nodes) == 400
    assert all(node.radios == ["wlan0", "wlan1"] for node in bed.nodes.values())
    assert bed.place("n1x1") == (0, 0, 0)
    assert bed.place("n20x3") == (2, 19, 0)
    assert bed.frame == 10


def test_closed_nodes_are_not_lent() -> None:
    bed = checked(Source.of_text(ROOM + "grid: {rows: 1, columns: 2}\nclosed: [n1x2]\n"))
    assert list(bed.nodes) == ["n1x1", "a"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: x\nchannels: [36]\n", "room.yaml:1:1: there are no nodes"),
        (ROOM.replace("[36]", "[36, 36]"), "room.yaml:2:16 channels[1]: channel 36 is given twice"),
        (ROOM.replace("[36]", "[1]"), "room.yaml:2:12 channels[0]"),
        (ROOM.replace("0 m, 0 m", "0 m, 0"), "room.yaml:3:"),
        (ROOM + "power: 10\n", "room.yaml:4:8 power"),
        (ROOM + "grid: {rows: 20, columns: 200}\n", "room.yaml:4:1 grid: more than 2000 nodes"),
        (ROOM + "grid: {rows: 1, columns: 1, spacing: 0 m}\n", "the spacing must be above zero"),
        (ROOM + "grid: {rows: 1, columns: 1, radios: [w, w]}\n", "a radio is named twice"),
        (ROOM + "slots: {frame: 4, length: 1 ms, guard: 1 ms}\n", "the guard takes the whole slot"),
        (ROOM + "slots: {frame: 4, length: 1 us, guard: 0 s}\n", "1000 ns is outside 100 us to 10 s"),
        (
            ROOM + "slots: {frame: 4, length: 1 ns, guard: 0 s}\n",
            "room.yaml:4:27 slots.length: slots",
        ),
        (
            ROOM + "medium: {radio: {phy: 802.11n, rate: MCS 7}}\n",
            "room.yaml:4:23 medium.radio.phy: a testbed does not lend radios of 802.11n",
        ),
        (ROOM + "closed: [b]\n", "room.yaml:4:10 closed[0]: there is no node 'b'"),
        (ROOM + "closed: [a]\n", "all nodes are closed"),
        (ROOM + "terms: {longest: 1 ms}\n", "shorter than 1 s"),
        (ROOM + "chanels: [36]\n", "did you mean 'channels'?"),
        ("- a\n", "an inventory is a mapping"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, said: str) -> None:
    assert said in refusal(text)
