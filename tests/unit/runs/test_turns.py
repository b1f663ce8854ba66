"""What a run says of the turns that its guests have taken."""

from __future__ import annotations

from typing import Any

from airloom.planning.gate import check
from airloom.planning.machine.turns import TurnsPlan
from airloom.runs.turns import Taken, behind_taps, without_waiting
from airloom.scenario.model import Scenario

MS = 1_000_000
PLAN = TurnsPlan("t", ("a", "b", "c"), 100 * MS, 0, ((0, None),))


def test_the_note_names_guests_turns_and_the_latest() -> None:
    assert Taken(PLAN).note == "turns t: a, b and c took none"
    begin, end = Taken(PLAN, [MS, 3 * MS]).note.split("; ")
    assert begin == "turns t: a, b and c took 2 turns of 100 ms, and were frozen between them"
    assert end == "a turn began up to 3 ms late"


def test_in_virtual_time_every_turn_begins_at_its_time() -> None:
    taken = Taken(PLAN, granted=PLAN.count(1_000 * MS))
    assert taken.note == "turns t: a, b and c took 10 turns of 100 ms in virtual time, each at its time"
    assert taken.reason is None


def test_turns_that_were_not_kept_are_a_reason() -> None:
    kept = [MS] * 99
    assert Taken(PLAN).reason is None
    assert Taken(PLAN, [*kept, 10 * MS]).reason is None
    late = Taken(PLAN, [*kept, 11 * MS]).reason
    assert late == "turns t: one of 100 turns began 11 ms late or later, 11 % of its length (limit 10 %)"
    missed = Taken(PLAN, kept, missed=3).reason
    assert missed == "turns t: 3 of 102 turns were over before they could begin"


def test_what_a_waiting_guest_could_not_take_is_not_lost_by_the_host() -> None:
    said: dict[str, Any] = {
        "name": "test",
        "kind": "uml",
        "nodes": {"a": {}, "b": {}, "c": {"kind": "netns"}},
    }
    said |= {"links": [{"ends": ["a", "c"]}, {"ends": ["b", "c"]}], "turns": {"t": {"nodes": ["a", "b"]}}}
    plan = check(Scenario.model_validate(said)).plans[0]
    full, gone = "guest-ring-full", "node-gone"
    ports = {
        "a:eth0": {"host_lost": {full: 7, gone: 1}, "missed": 0},
        "b:eth0": {"host_lost": {full: 0}, "missed": 2},
        "c:eth0": {"host_lost": {full: 5}, "missed": 0},
    }
    raw = {"host_lost": {full: 12, gone: 1}, "ports": ports, "missed": 2}
    left, notes = without_waiting(plan, raw)
    assert left["host_lost"] == {full: 5, gone: 1}
    assert {name: port["host_lost"] for name, port in left["ports"].items()} == {
        "a:eth0": {full: 0, gone: 1}, "b:eth0": {full: 0}, "c:eth0": {full: 5},
    }  # fmt: skip
    assert notes == [
        "frames were lost because guests that waited for a turn or processor had no buffer left: a:eth0 7"
    ]
    assert raw["host_lost"][full] == 12
    assert without_waiting(plan, left | {"ports": {"c:eth0": ports["c:eth0"]}})[1] == []


def test_what_is_lost_behind_a_tap_has_no_account() -> None:
    said: dict[str, Any] = {"name": "test", "kind": "uml", "nodes": {"a": {}, "b": {}, "c": {}}}
    said |= {"links": [{"ends": ["a", "c"]}, {"ends": ["b", "c"]}], "turns": {"t": {"nodes": ["a", "b"]}}}
    tap = {"guest": {"network": "tap"}}
    assert behind_taps(check(Scenario.model_validate(said)).plans[0]) == []
    (note,) = behind_taps(check(Scenario.model_validate(said | tap)).plans[0])
    assert note.endswith("lost without an account: a, b")
