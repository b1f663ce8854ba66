"""From the engine's ledger to what a verdict is made from."""

from __future__ import annotations

import pytest

from airloom.host import idle_poll
from airloom.planning.gate import check
from airloom.runs import evidence
from airloom.scenario import Scenario
from airloom.verdict import Verdict


def test_what_is_lost_on_the_way_to_the_engine_was_offered_too() -> None:
    """A flood of which the engine sees a third loses two thirds, not twice what was offered."""
    raw = {"offered": 100, "missed": 150, "unresolved": 50, "host_lost": {"guest-ring-full": 3}}
    lost = evidence.host_lost(raw)
    assert lost == {"guest-ring-full": 3, evidence.MISSED: 150, evidence.UNRESOLVED: 50}
    assert evidence.offered(raw) == 300
    assert evidence.offered({"offered": 7, "missed": 0, "host_lost": {}}) == 7


def test_a_full_neighbour_table_of_the_machine_is_no_loss_of_the_run() -> None:
    """Another laboratory filled it: 256 times, and not one packet of this run is missing."""
    assert evidence.unresolved(256, {}) == 0
    [note] = evidence.unsent_notes(256, {})
    assert "was full 256 times meanwhile; no packets of this run are missing" in note
    assert evidence.unresolved(256, {"a": 3}) == 3
    assert evidence.unresolved(2, {"a": 3, "b": 1}) == 2
    assert evidence.unsent_notes(0, {}) == []


def test_packets_that_no_account_has_are_a_note() -> None:
    [note] = evidence.unsent_notes(0, {"a": 3290, "b": 1})
    assert note.endswith("at least: a 3290, b 1")


@pytest.mark.parametrize(
    ("unsent", "at_link"),
    [
        ({"frames": 0, "since": None}, 0),
        ({"frames": 4, "since": None}, 4),
        ({"frames": 4, "since": 9}, 5),
        ({"frames": 40, "since": None}, 10),
        (None, 10),
    ],
    ids=["carrier", "without for a while", "without at the end", "never more than all", "cannot be told"],
)
def test_what_an_interface_drops_without_carrier_is_lost_at_its_link(
    unsent: dict[str, int | None] | None, at_link: int
) -> None:
    port = {"offered": 100, "missed": 0, "dropped": {"queue-full": 1}, "unsent": unsent}
    raw = {"offered": 100, "missed": 0, "dropped": {"queue-full": 1}, "ports": {"a:eth0": port}}
    found = evidence.with_kernel_drops(raw, {"a": {"eth0": {"tx_dropped": 10}, "lo": {"tx_dropped": 3}}})
    assert found["missed"] == found["ports"]["a:eth0"]["missed"] == 10 - at_link
    assert found["offered"] == found["ports"]["a:eth0"]["offered"] == 100 + at_link
    at_links = {"link-down": at_link} if at_link else {}
    assert found["dropped"] == found["ports"]["a:eth0"]["dropped"] == {"queue-full": 1, **at_links}
    assert raw["dropped"] == {"queue-full": 1}


def test_what_an_interface_dropped_before_it_was_part_of_the_run_is_no_loss() -> None:
    port = {"offered": 100, "missed": 0, "dropped": {}, "unsent": {"frames": 2, "since": None}}
    raw = {"offered": 100, "missed": 0, "dropped": {}, "ports": {"a:eth0": port, "a:eth1": port}}
    counters = {"a": {"eth0": {"tx_dropped": 7}, "eth1": {"tx_dropped": 2}}}
    found = evidence.with_kernel_drops(raw, counters, early={"a:eth0": 1, "a:eth1": 1})
    assert {name: one["missed"] for name, one in found["ports"].items()} == {"a:eth0": 4, "a:eth1": 0}


def test_what_a_stack_without_an_association_drops_is_no_loss_of_the_host() -> None:
    port = {"offered": 100, "missed": 2, "dropped": {}, "unsent": {"frames": 0, "since": None}}
    raw = {"offered": 200, "missed": 4, "dropped": {"noise": 1}, "ports": {"a:wlan0": port, "a:eth0": port}}
    counters = {"a": {"wlan0": {"tx_dropped": 7}, "eth0": {"tx_dropped": 3}}}
    found = evidence.with_kernel_drops(raw, counters, {"a:wlan0"})
    assert found["dropped"] == {"noise": 1, "node-kernel": 7}
    assert found["offered"] == 207
    assert evidence.host_lost_by_port(
        found
        | {"host_lost": {}}
        | {"ports": {name: one | {"host_lost": {}} for name, one in found["ports"].items()}}
    ) == {"a:wlan0": {evidence.MISSED: 2}, "a:eth0": {evidence.MISSED: 5}}


def test_segments_that_entered_late_are_a_note_with_the_largest_error() -> None:
    def wire(entered: int, late: int, most: int) -> dict[str, int]:
        return {"entered": entered, "late": late, "late_most_ns": most}

    assert (
        evidence.late_note({"links": {"a-b": {"forward": wire(5, 0, 0), "backward": wire(0, 0, 0)}}}) is None
    )
    links = {
        "a-b": {"forward": wire(150, 4, 90_000), "backward": wire(20, 0, 0)},
        "b-c": {"forward": wire(30, 6, 70_000), "backward": wire(0, 0, 0)},
    }
    note = evidence.late_note({"links": links})
    assert note is not None
    assert "up to 90 us" in note
    assert "10, 5 % of all frames" in note


@pytest.mark.parametrize(
    ("network", "carrier", "noted"),
    [("tap", "follow", True), ("tap", "keep", False), ("vhost", "follow", False)],
)
def test_an_interface_that_cannot_lose_its_carrier_is_a_note(network: str, carrier: str, noted: bool) -> None:
    scenario = {
        "name": "carrier",
        "nodes": {"a": {"kind": "uml", "guest": {"network": network}}, "b": {}},
        "links": [{"ends": ["a", "b"], "carrier": carrier}],
        "events": [{"at": "1 s", "link": "a-b", "action": "down"}],
        "duration": "2 s",
    }
    (plan,) = check(Scenario.model_validate(scenario)).plans
    note = evidence.carrier_note(plan)
    assert (note is not None) == noted
    assert note is None or note.endswith("while the link is down: a:eth0")


@pytest.mark.parametrize(
    ("code", "idle", "halts", "said"),
    [
        ("delivery.late", "halt", True, True),
        ("link.paused", "halt", True, True),
        ("delivery.late", "halt", False, False),
        ("delivery.late", "poll", True, False),
        ("host.lost", "halt", True, False),
    ],
)
def test_a_late_engine_where_processors_halt_is_told_to_poll(
    monkeypatch: pytest.MonkeyPatch, code: str, idle: str, halts: bool, said: bool
) -> None:
    monkeypatch.setattr(idle_poll, "would_help", lambda: halts)
    text = {"name": "t", "nodes": {"a": {}, "b": {}}, "links": [{"ends": ["a", "b"]}]}
    (plan,) = check(Scenario.model_validate({**text, "engine": {"idle": idle}})).plans
    verdict = Verdict(status="degraded", reasons=("r",), codes=(code,), notes=("n",))
    notes = evidence.advised(verdict, plan).notes
    assert notes[0] == "n"
    assert any("`engine: {idle: poll}`" in note for note in notes) is said
