"""Grants in stepped time, from the scenario to the engine: weights, changes at exact times, watched slots."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from airloom import _engine
from airloom.errors import ScenarioError
from airloom.planning.extend import regranted
from airloom.planning.gate import check
from airloom.planning.plan import Plan
from airloom.planning.timed_changes import grant_at, radio_changes

MS = 1_000_000
SCENARIO = """\
name: slices
media: {{air: {{slots: {{frame: 2}}, radio: {{rate: 36 Mbit/s}}}}}}
nodes:
  n1: {{position: [0 m, 0 m], radios: {{wlan0: , wlan1: }}}}
  n2: {{position: [1 m, 0 m], radios: {{wlan0: , wlan1: }}}}
slices:
  one: {{grant: {{nodes: [n1, n2], channels: [36], {one}}}}}
  two: {{grant: {{nodes: [n1, n2], channels: [{channel}], {two}}}, radio: {{rate: 6 Mbit/s}}}}
"""


def plan_of(tmp_path: Path, events: str = "", channel: int = 36, **grants: str) -> Plan:
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO.format(channel=channel, **{"one": "", "two": "", **grants}) + events)
    return check(file).plans[0]


def stepped(plan: Plan, duration: int) -> tuple[Counter[tuple[str, int]], list[Any]]:
    """Saturates both slices; returns ns of airtime by slice and channel, and the violations."""
    engine = _engine.Engine(plan.seed)
    medium = plan.media["air"]
    engine.add_medium(medium.name, medium.settings)
    macs = {}
    for radio in medium.radios:
        engine.add_memory_port(radio.port)
        engine.add_radio(medium.name, radio.port, radio.settings, radio.motion, radio.node)
        macs[radio.port] = bytes(radio.settings["mac"])
        assert radio.grant is not None
        engine.police(radio.port, radio.grant.engine())
    for change in radio_changes(plan):
        engine.schedule_radio(change.at, change.port, change.change)
    for sender, receiver in (("n1-one:wlan0", "n2-one:wlan0"), ("n1-two:wlan1", "n2-two:wlan1")):
        for at in range(0, duration, MS // 3):
            engine.offer(sender, at, macs[receiver] + macs[sender] + b"\x08\x00" + bytes(1498))
    engine.step(duration)
    used: Counter[tuple[str, int]] = Counter()
    for state in engine.radios():
        for use in state["uses"]:
            used[str(state["slice"]), use["channel"]] += use["sent"]
    return used, engine.violations()["found"]


def test_airtime_follows_the_weights_at_different_rates(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, one="airtime_weight: 3", two="airtime_weight: 1")
    used, _ = stepped(plan, 3000 * MS)
    assert used["one", 36] / used["two", 36] == pytest.approx(3, rel=0.03)


def test_a_change_that_was_not_planned_is_as_exact_as_one_that_was(tmp_path: Path) -> None:
    planned = plan_of(
        tmp_path,
        "events:\n"
        "  - {at: 1 s, slice: one, grant: {channels: [40, 44]}}\n"
        "  - {at: 1 s, slice: two, grant: {channels: [36], power: 3 dBm}}\n",
        channel=48,
    )
    changes = {"one": {"channels": [40, 44]}, "two": {"channels": [36], "power": "3 dBm"}}
    made = regranted(plan_of(tmp_path, channel=48), 1000 * MS, changes)
    assert radio_changes(made) == radio_changes(planned)
    used, violations = stepped(made, 2000 * MS)
    assert (used, violations) == stepped(planned, 2000 * MS)


def test_a_later_planned_change_keeps_what_was_changed_before(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "events: [{at: 2 s, slice: one, grant: {power: 3 dBm}}]\n", channel=48)
    made = regranted(plan, 1000 * MS, {"one": {"channels": [40]}})
    port = "n1-one:wlan0"
    found = [grant_at(made, port, at * 1000 * MS) for at in (0, 1, 2)]
    assert [(one.channels, one.power_dbm) for one in found if one] == [
        ((36,), None),
        ((40,), None),
        ((40,), 3.0),
    ]


@pytest.mark.parametrize(
    ("changes", "events", "said"),
    [
        (
            {"three": {"channels": [40]}},
            "",
            "there is no slice 'three' (slices are: one, two) [slice.unknown]",
        ),
        ({"one": {"channels": [48]}}, "", "at 1 s channel 48 of 'two' overlaps channel 48 of 'one'"),
        (
            {"one": {"channels": [40]}},
            "events: [{at: 2 s, slice: two, grant: {channels: [40]}}]\n",
            "at 2 s channel 40 of 'two' overlaps channel 40 of 'one'",
        ),
        ({"one": {"colour": "red"}}, "", "events.0.grant.colour"),
    ],
)
def test_a_change_that_cannot_be_held_is_refused(
    tmp_path: Path, changes: dict[str, Any], events: str, said: str
) -> None:
    with pytest.raises(ScenarioError) as refused:
        regranted(plan_of(tmp_path, events, channel=48), 1000 * MS, changes)
    assert said in str(refused.value).replace("[0]", ".0")


def test_a_channel_is_handed_over_at_its_time(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        "events:\n"
        "  - {at: 1 s, slice: one, grant: {channels: [40, 44]}}\n"
        "  - {at: 1 s, slice: two, grant: {channels: [36], power: 3 dBm}}\n",
        channel=48,
    )
    used, violations = stepped(plan, 2000 * MS)
    assert not violations
    assert set(used) == {("one", 36), ("one", 40), ("two", 48), ("two", 36)}
    # Each slice is alone on its channel for a second.
    assert used["one", 36] == pytest.approx(used["one", 40], rel=0.01)
    assert used["two", 48] == pytest.approx(used["two", 36], rel=0.01)


def test_settings_during_the_run_are_held_to_the_grant_of_the_time(tmp_path: Path) -> None:
    events = "events: [{at: 1 s, slice: one, grant: {channels: [40], power: 3 dBm, airtime_weight: 2}}]\n"
    plan = plan_of(tmp_path, events, channel=48)
    for at, wanted in ((1000 * MS - 1, ((36,), None, None)), (1000 * MS, ((40,), 3.0, 2))):
        grant = grant_at(plan, "n1-one:wlan0", at)
        assert grant is not None
        assert (grant.channels, grant.power_dbm, grant.airtime_weight) == wanted
    assert grant_at(plan, "n1-two:wlan1", 2000 * MS) == plan.media["air"].radios[2].grant
    assert grant_at(plan, "n1:wlan9", 0) is None


def test_slots_that_are_not_held_are_watched(tmp_path: Path) -> None:
    for hold in (True, False):
        plan = plan_of(tmp_path, one=f"slots: [0], hold: {str(hold).lower()}", two="slots: [1]")
        used, violations = stepped(plan, 1000 * MS)
        assert {one["what"] for one in violations} == (set() if hold else {"slot"})
        # Of the sender's exchanges, 364 us of data, 16 us, and 28 us of acknowledgment may be outside.
        sent = [one["amount"] for one in violations if one["port"] == "n1-one:wlan0"]
        assert sent == ([] if hold else [pytest.approx(408)])
        share = used["one", 36] / 1e9
        assert share < 0.5 if hold else share > 0.5
