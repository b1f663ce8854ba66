"""Radios that change from one slice to another, from the scenario to the engine in stepped time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airloom import _engine
from airloom.errors import RunError, ScenarioError
from airloom.planning.extend import regranted
from airloom.planning.gate import check
from airloom.planning.plan import Plan
from airloom.planning.radio.interference import over_time
from airloom.planning.timed_changes import radio_changes
from airloom.runs.radio_control import held

SECOND = 1_000_000_000
SCENARIO = """\
name: slices
media: {{air: {{radio: {{rate: 36 Mbit/s}}}}}}
nodes:
  n1: {{position: [0 m, 0 m], radios: {{{radios}}}}}
  n2: {{position: [1 m, 0 m], radios: {{{radios}}}}}
slices:
  one: {{grant: {{channels: [36], {one}}}}}
  two: {{grant: {{channels: [{channel}], {two}}}}}
"""
HANDED_OVER = """\
events:
  - {at: 1 s, slice: one, grant: {nodes: []}}
  - {at: 1 s, slice: two, grant: {nodes: [n1, n2]}}
"""


def plan_of(
    tmp_path: Path,
    events: str = "",
    *,
    one: str = "nodes: [n1, n2]",
    two: str = "nodes: []",
    radios: str = "wlan0: ",
    channel: int = 36,
) -> Plan:
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO.format(one=one, two=two, radios=radios, channel=channel) + events)
    return check(file).plans[0]


def turns(plan: Plan) -> dict[str, tuple[str, list[tuple[float, float | None]]]]:
    """By sliver: its radio, and the seconds in which it has it."""
    radios = (radio for medium in plan.media.values() for radio in medium.radios)
    return {
        radio.node: (
            radio.grant.radio,
            [(since / 1e9, until and until / 1e9) for since, until in radio.grant.held],
        )
        for radio in radios
        if radio.grant is not None
    }


class Stepped:
    """The media of a plan, in memory."""

    def __init__(self, plan: Plan) -> None:
        self.engine = _engine.Engine(plan.seed)
        (medium,) = plan.media.values()
        self.engine.add_medium(medium.name, medium.settings)
        self.macs = {}
        for radio in medium.radios:
            self.engine.add_memory_port(radio.port)
            self.engine.add_radio(medium.name, radio.port, radio.settings, radio.motion, radio.mover)
            self.macs[radio.port] = bytes(radio.settings["mac"])
            assert radio.grant is not None
            self.engine.police(radio.port, radio.grant.engine())
        for change in radio_changes(plan):
            self.engine.schedule_radio(change.at, change.port, change.change)

    def offer(self, at: int, slice: str) -> None:
        """Offers a frame of a slice from n1 to n2."""
        sender, receiver = (f"{node}-{slice}:wlan0" for node in ("n1", "n2"))
        head = self.macs[receiver] + self.macs[sender] + b"\x08\x00"
        self.engine.offer(sender, at, head + bytes(1498))

    def attempts(self) -> dict[str, int]:
        """Transmissions of data by sending radio."""
        return {
            radio["port"]: sum(peer["attempts"] for peer in radio["peers"].values())
            for radio in self.engine.radios()
            if radio["port"].startswith("n1")
        }


def test_frames_of_the_one_end_and_those_of_the_other_begin_at_the_nanosecond(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, HANDED_OVER)
    for at, (one, two) in ((SECOND - 1, (1, 0)), (SECOND, (0, 1))):
        stepped = Stepped(plan)
        for name in ("one", "two"):
            stepped.offer(at, name)
        arrived = [port for port, _, _ in stepped.engine.step(2 * SECOND)]
        # What is on the air at the handover has no receiver any more, so nobody acknowledges it.
        assert stepped.attempts() == {"n1-one:wlan0": one, "n1-two:wlan0": two}
        assert arrived == (["n2-two:wlan0"] if at == SECOND else [])
        dropped = stepped.engine.ledger()["dropped"]
        assert dropped == ({"radio-off": 1, "out-of-range": 1} if at < SECOND else {"radio-off": 1})


def test_a_full_queue_moves_nothing_after_its_radio_is_gone(tmp_path: Path) -> None:
    stepped = Stepped(plan_of(tmp_path, HANDED_OVER))
    for number in range(6000):
        for name in ("one", "two"):
            stepped.offer(number * SECOND // 3000, name)
    arrived = stepped.engine.step(3 * SECOND)
    times = {name: [at for port, at, _ in arrived if port == f"n2-{name}:wlan0"] for name in ("one", "two")}
    # 364 us of data.
    assert max(times["one"]) < SECOND
    assert SECOND + 364_000 <= min(times["two"]) < SECOND + 2_000_000
    # Slice one lost what waited, and slice two had its time to the end.
    assert 0 < len(times["two"]) - len(times["one"]) < 60
    on = {radio["port"]: radio["on"] for radio in stepped.engine.radios()}
    assert on == {"n1-one:wlan0": False, "n2-one:wlan0": False, "n1-two:wlan0": True, "n2-two:wlan0": True}


def test_a_sliver_keeps_its_radio_and_has_it_from_time_to_time(tmp_path: Path) -> None:
    events = """\
events:
  - {at: 1 s, slice: one, grant: {nodes: [n2]}}
  - {at: 1 s, slice: two, grant: {nodes: [n1]}}
  - {at: 3 s, slice: one, grant: {power: 10 dBm}}
  - {at: 4 s, slice: two, grant: {nodes: []}}
  - {at: 5 s, slice: one, grant: {nodes: [n2, n1]}}
"""
    assert turns(plan_of(tmp_path, events)) == {
        "n1-one": ("n1:wlan0", [(0, 1), (5, None)]),
        "n2-one": ("n2:wlan0", [(0, None)]),
        "n1-two": ("n1:wlan0", [(1, 4)]),
    }


@pytest.mark.parametrize(
    ("later", "wanted"),
    [
        # The radio that it has, by name or without one.
        ("n1:wlan0", {"n1-one": ("n1:wlan0", [(0, None)])}),
        ("n1", {"n1-one": ("n1:wlan0", [(0, None)])}),
        # Another radio is that of another sliver.
        ("n1:wlan1", {"n1-one": ("n1:wlan0", [(0, 1)]), "n1-one-2": ("n1:wlan1", [(1, None)])}),
        ("n1, n1", {"n1-one": ("n1:wlan0", [(0, None)]), "n1-one-2": ("n1:wlan1", [(1, None)])}),
        ("n2", {"n1-one": ("n1:wlan0", [(0, 1)]), "n2-one": ("n2:wlan0", [(1, None)])}),
    ],
)
def test_an_entry_means_a_sliver_that_exists_if_it_can(tmp_path: Path, later: str, wanted: Any) -> None:
    events = f"events: [{{at: 1 s, slice: one, grant: {{nodes: [{later}]}}}}]\n"
    two = "nodes: [n2:wlan1]"
    plan = plan_of(tmp_path, events, one="nodes: [n1]", two=two, radios="wlan0: , wlan1: ", channel=44)
    assert turns(plan) == {**wanted, "n2-two": ("n2:wlan1", [(0, None)])}


def test_a_sliver_on_standby_takes_a_free_radio_or_else_the_first(tmp_path: Path) -> None:
    for radios, radio in (("wlan0: ", "n1:wlan0"), ("wlan0: , wlan1: ", "n1:wlan1")):
        plan = plan_of(tmp_path, two="nodes: [], standby: [n1]", radios=radios)
        assert turns(plan)["n1-two"] == (radio, [])


def test_a_change_that_was_not_planned_is_that_of_an_event(tmp_path: Path) -> None:
    standby = "nodes: [], standby: [n1, n2]"
    planned = plan_of(tmp_path, HANDED_OVER, two=standby)
    made = regranted(
        plan_of(tmp_path, two=standby), SECOND, {"one": {"nodes": []}, "two": {"nodes": ["n1", "n2"]}}
    )
    assert radio_changes(made) == radio_changes(planned)
    assert turns(made) == turns(planned)


def test_a_later_event_takes_the_radio_from_a_slice_that_was_given_it(tmp_path: Path) -> None:
    made = regranted(plan_of(tmp_path, HANDED_OVER), SECOND // 2, {"one": {"nodes": ["n1"]}})
    assert turns(made)["n2-one"] == ("n2:wlan0", [(0, 0.5)])
    # The same time again: what was called last holds, although the engine knows the event before.
    made = regranted(made, SECOND, {"one": {"nodes": ["n1"]}, "two": {"nodes": ["n2"]}})
    assert turns(made)["n1-one"] == ("n1:wlan0", [(0, None)])
    last = {one.port: one.change["grant"]["assigned"] for one in radio_changes(made)}
    assert last == {
        "n1-one:wlan0": True,
        "n2-one:wlan0": False,
        "n1-two:wlan0": False,
        "n2-two:wlan0": True,
    }


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"two": {"nodes": ["n1"]}},
            "at 1 s 'one' and 'two' both claim the radio n1:wlan0 (let the other slice hand one over at the "
            "same time or before; free there: none) [slice.radio]",
        ),
        (
            {"one": {"nodes": ["n1"]}, "two": {"nodes": ["n2"]}},
            "'two' has no sliver for the radio n2:wlan0, and none is made during the run "
            "(standby: [n2:wlan0] in its grant makes one at the start) [slice.sliver]",
        ),
        ({"two": {"nodes": ["n3"]}}, "there is no node 'n3' with radios to share"),
        ({"two": {"nodes": ["n1:wlan9"]}}, "'n1' has no radio 'wlan9'"),
    ],
)
def test_a_change_that_cannot_be_held_is_refused(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    plan = plan_of(tmp_path, two="nodes: [], standby: [n1]")
    with pytest.raises(ScenarioError) as refused:
        regranted(plan, SECOND, changes)
    assert said in str(refused.value)


def test_a_slice_without_the_radio_cannot_turn_it_on(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, HANDED_OVER)
    grant = plan.media["air"].radios[0].grant
    for change in ({"on": False}, {"power": 10.0}):
        assert held(grant, [change], SECOND) == [change]
    assert held(grant, [{"on": True}], SECOND - 1)
    with pytest.raises(RunError, match="'one' does not have the radio n1:wlan0 now"):
        held(grant, [{"on": True}], SECOND)


def test_only_slices_with_radios_disturb_each_other(tmp_path: Path) -> None:
    events = """\
events:
  - {at: 2 s, slice: two, grant: {nodes: [n2]}}
  - {at: 3 s, slice: one, grant: {nodes: []}}
"""
    plan = plan_of(tmp_path, events, one="nodes: [n1]")
    found = over_time(plan)
    times = {
        (one.source, one.sender, one.since_ns / 1e9, one.until_ns and one.until_ns / 1e9) for one in found
    }
    assert times == {("one", "n1-one:wlan0", 2, 3), ("two", "n2-two:wlan0", 2, 3)}
    assert not over_time(plan_of(tmp_path, HANDED_OVER))


def test_slivers_of_one_node_are_at_one_place(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text("""\
name: slices
media: {air: {}}
nodes:
  n1: {mobility: {model: random-waypoint, area: [100 m, 100 m], speed: 10 m/s}, radios: {wlan0: }}
  n2: {position: [0 m, 0 m], radios: {wlan0: , wlan1: , wlan2: }}
  n2-three: {position: [7 m, 0 m]}
slices:
  one: {grant: {nodes: [n1, n2], channels: [36]}}
  two: {grant: {nodes: [n2], standby: [n1], channels: [44]}}
  three: {grant: {nodes: [n2], channels: [52]}}
""")
    stepped = Stepped(check(file).plans[0])
    stepped.engine.step(10 * SECOND)
    place = {radio["port"].partition(":")[0]: radio["position"] for radio in stepped.engine.radios()}
    assert place["n1-one"] == place["n1-two"] != place["n2-one"]
    assert place["n2-one"] == place["n2-two"] == (0.0, 0.0, 0.0)
    assert place["n2-three"] == (7.0, 0.0, 0.0)


@pytest.mark.parametrize(("until", "refused"), [("1 s", False), ("1001 ms", True)])
def test_slices_in_turn_may_have_one_hopping_sequence(tmp_path: Path, until: str, refused: bool) -> None:
    hops = "hops: {set: A, sequence: 0}"
    (tmp_path / "scenario.yaml").write_text(f"""\
name: slices
media: {{air: {{hops: {{dwell: 20 ms, switch: 1 ms, sets: {{A: {{channels: [36, 44]}}}}}}}}}}
nodes:
  n1: {{position: [0 m, 0 m], radios: {{wlan0: , wlan1: }}}}
slices:
  one: {{grant: {{nodes: [n1], channels: [36, 44], {hops}}}}}
  two: {{grant: {{nodes: [], channels: [36, 44], {hops}}}}}
events:
  - {{at: {until}, slice: one, grant: {{nodes: []}}}}
  - {{at: 1 s, slice: two, grant: {{nodes: [n1]}}}}
""")
    if not refused:
        assert turns(check(tmp_path / "scenario.yaml").plans[0])["n1-two"] == ("n1:wlan0", [(1, None)])
        return
    with pytest.raises(ScenarioError, match="'one' and 'two' both have sequence 0 of set 'A'"):
        check(tmp_path / "scenario.yaml")


def test_no_node_may_be_written_as_an_empty_key(tmp_path: Path) -> None:
    for nodes in ("", "[]"):
        events = f"events: [{{at: 1 s, slice: one, grant: {{nodes: {nodes}}}}}]\n"
        plan = plan_of(tmp_path, events, two="nodes: , standby: [n1]")
        assert turns(plan)["n1-one"] == ("n1:wlan0", [(0, 1)])
