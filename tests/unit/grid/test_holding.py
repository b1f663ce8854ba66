"""Runs inside a reservation: what does not fit the grant is refused, and settings are held to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airloom import _engine
from airloom.errors import ScenarioError
from airloom.grid.answers import Lent, TimeDivision
from airloom.grid.holding import held
from airloom.planning.gate import check
from airloom.planning.plan import Plan
from helpers.grid import lent

PLAIN = """\
name: lent
duration: 1 s
media: {air: {radio: {channel: 36, power: 10 dBm}}}
nodes:
  a1: {position: [0 m, 0 m], radios: {wlan0: }}
  a2: {position: [3 m, 0 m], radios: {wlan0: }}
"""
SLICED = PLAIN + "slices: {one: {grant: {nodes: [a1, a2], channels: [36, 40], power: 5 dBm}}}\n"
TUNE = "{at: 0.5 s, radio: a1, tune: {channel: 44}}"
INNER = "slices: {one: {grant: {nodes: [a1, a2], channels: [36], power: 5 dBm}}}\n"
STANDBY = "slices: {one: {grant: {nodes: [a1], standby: [a2], channels: [36], power: 5 dBm}}}\n"
REGRANT = "{at: 0.5 s, slice: one, grant: {channels: [44]}}"
MOVE = "{at: 0.5 s, node: a1, position: [9 m, 0 m]}"
WLAN1 = "a2: {position: [3 m, 0 m], radios: {wlan1: }}"
GRANT: dict[str, Any] = {
    "radios": {"a1": ["wlan0"], "a2": ["wlan0"]}, "channels": [36, 40], "slots": [0], "power_dbm": 10.0,
}  # fmt: skip
PLACES = {"a1": (0.0, 0.0, 0.0), "a2": (3.0, 0.0, 0.0)}
LENT = lent("mine", GRANT, PLACES)
MS = 1_000_000
THREE = TimeDivision(frame=3, length_ns=20 * MS, guard_ns=MS // 10)
UNDIVIDED = TimeDivision(frame=1, length_ns=20 * MS, guard_ns=MS // 10)
DCF_36 = 23.08e6
"""bit/s of payloads of 1470 octets at 36 Mbit/s: closed form of the standard's timing."""


def experiment(tmp_path: Path, text: str) -> Any:
    file = tmp_path / "scenario.yaml"
    file.write_text(text)
    return check(file)


@pytest.mark.parametrize(("text", "power"), [(PLAIN, 10.0), (SLICED, 5.0)], ids=["plain", "slices"])
def test_radios_are_held_to_the_grant_during_the_run(tmp_path: Path, text: str, power: float) -> None:
    plan = held(experiment(tmp_path, text), LENT, UNDIVIDED).plans[0]
    grants = [radio.grant for radio in plan.media["air"].radios]
    assert [(one.channels, one.power_dbm) for one in grants] == [((36, 40), power)] * 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("a2:", "b2:", "the node 'b2' is not granted"),
        ("a2: {position: [3 m, 0 m], radios: {wlan0: }}", WLAN1, "a2:wlan1"),
        ("channel: 36", "channel: 44", "channel 44 is not granted"),
        ("10 dBm", "11 dBm", "11 dBm are not granted"),
        (", power: 10 dBm", "", "16 dBm are not granted"),
        ("[3 m, 0 m]", "[4 m, 0 m]", "'a2' is not where the testbed has it"),
        ("nodes:", f"events: [{TUNE}]\nnodes:", "its channel is not granted"),
        ("nodes:", f"events: [{MOVE}]\nnodes:", "it moves a node of the testbed"),
        ("nodes:", f"{STANDBY}nodes:", "slices.one.grant.standby"),
        (
            "nodes:",
            f"{INNER}events: [{REGRANT}]\nnodes:",
            "events[0]: a grant of a reservation does not change",
        ),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = PLAIN.replace(old, new)
    with pytest.raises(ScenarioError) as found:
        held(experiment(tmp_path, text), LENT, UNDIVIDED)
    assert said in " ".join(str(one) for one in (found.value, *found.value.further))


def test_an_event_that_changes_a_grant_is_one_mistake(tmp_path: Path) -> None:
    text = PLAIN.replace("nodes:", f"{INNER}events: [{REGRANT}]\nnodes:").replace("10 dBm", "5 dBm")
    with pytest.raises(ScenarioError) as found:
        held(experiment(tmp_path, text), LENT, UNDIVIDED)
    assert (found.value.code, found.value.further) == ("grid.grant", ())


@pytest.mark.parametrize(
    ("police", "held_to"),
    [("", "enforce"), ("police: watch, ", "enforce"), ("police: cut, ", {"cut": 10})],
    ids=["nothing said", "watch", "cut"],
)
def test_the_medium_enforces_the_grant_of_a_reservation(tmp_path: Path, police: str, held_to: Any) -> None:
    text = SLICED.replace("{one: {", f"{{one: {{{police}")
    for said in (text, PLAIN) if not police else (text,):
        plan = held(experiment(tmp_path, said), LENT, UNDIVIDED).plans[0]
        assert [radio.grant.police for radio in plan.media["air"].radios] == [held_to] * 2


def test_what_leaves_the_grant_is_not_transmitted(tmp_path: Path) -> None:
    """Of a radio whose channel changes without being asked for, as a guest's own stack may do."""
    plan = held(experiment(tmp_path, PLAIN), LENT, UNDIVIDED).plans[0]
    engine = _engine.Engine(plan.seed)
    medium = plan.media["air"]
    engine.add_medium(medium.name, medium.settings)
    for radio in medium.radios:
        engine.add_memory_port(radio.port)
        engine.add_radio(medium.name, radio.port, radio.settings, radio.motion, radio.node)
        engine.police(radio.port, radio.grant.engine())
        engine.set_radio(radio.port, {"channel": 44})
    sender, receiver = medium.radios
    ends = bytes(receiver.settings["mac"]) + bytes(sender.settings["mac"])
    engine.offer(sender.port, MS, ends + b"\x08\x00" + bytes(100))
    assert engine.step(300 * MS) == []
    assert engine.ledger()["ports"][sender.port]["dropped"] == {"outside-grant": 1}
    assert (sender.port, "channel") in {(one["port"], one["what"]) for one in engine.violations()["found"]}


def of_slots(*slots: int) -> Lent:
    return lent("mine", {**GRANT, "slots": list(slots)}, PLACES)


def bits_per_second(plan: Plan, duration: int = 3000 * MS) -> float:
    """The payload that a saturated a1 gets to a2 in stepped time."""
    engine = _engine.Engine(plan.seed)
    medium = plan.media["air"]
    engine.add_medium(medium.name, medium.settings)
    for radio in medium.radios:
        engine.add_memory_port(radio.port)
        engine.add_radio(medium.name, radio.port, radio.settings, radio.motion, radio.node)
    sender, receiver = medium.radios
    ends = bytes(receiver.settings["mac"]) + bytes(sender.settings["mac"])
    for at in range(0, duration, MS // 3):
        engine.offer(sender.port, at, ends + b"\x08\x00" + bytes(1498))
    return sum(port == receiver.port for port, *_ in engine.step(duration)) * 1470 * 8 * 1e9 / duration


@pytest.mark.parametrize(
    ("slots", "division", "share"),
    [
        ((1,), "", 1 / 3),
        ((0, 1), "", 2 / 3),
        ((0, 1, 2), "", 1),
        ((0, 1), "{frame: 3, length: 20 ms, guard: 100 us}", 1 / 3),
    ],
    ids=["one", "two", "all", "one of two by the scenario"],
)
def test_a_run_has_the_share_of_its_slots(
    tmp_path: Path, slots: tuple[int, ...], division: str, share: float
) -> None:
    text = PLAIN.replace("radio: {", "radio: {rate: 36 Mbit/s, ")
    if division:
        text = text.replace("air: {", f"air: {{slots: {division}, ")
        text += "slices: {one: {grant: {nodes: [a1, a2], channels: [36], slots: [0], power: 5 dBm}}}\n"
    plan = held(experiment(tmp_path, text), of_slots(*slots), THREE).plans[0]
    assert bits_per_second(plan) == pytest.approx(DCF_36 * share, rel=0.03)


@pytest.mark.parametrize(
    ("division", "said"),
    [
        ("{frame: 3, length: 20 ms, guard: 100 us}", "slot 1 is not granted"),
        ("{frame: 3, length: 10 ms, guard: 100 us}", "its frame of slots is not the testbed's"),
        ("{frame: 4, length: 20 ms, guard: 100 us}", "frame: 3, length: 20 ms, guard: 100 us"),
    ],
)
def test_slots_of_a_scenario_outside_of_the_granted_ones_are_named(
    tmp_path: Path, division: str, said: str
) -> None:
    text = PLAIN.replace("air: {", f"air: {{slots: {division}, ")
    text += "slices: {one: {grant: {nodes: [a1, a2], channels: [36], slots: [0, 1], power: 5 dBm}}}\n"
    with pytest.raises(ScenarioError) as found:
        held(experiment(tmp_path, text), of_slots(0, 2), THREE)
    assert said in " ".join(str(one) for one in (found.value, *found.value.further))
