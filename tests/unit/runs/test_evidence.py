"""From the engine's ledger to what a verdict is made from."""

from __future__ import annotations

from airloom.runs import evidence


def test_what_is_lost_on_the_way_to_the_engine_was_offered_too() -> None:
    """A flood of which the engine sees a third loses two thirds, not twice what was offered."""
    raw = {"offered": 100, "missed": 150, "unresolved": 50, "host_lost": {"guest-ring-full": 3}}
    lost = evidence.host_lost(raw)
    assert lost == {"guest-ring-full": 3, evidence.MISSED: 150, evidence.UNRESOLVED: 50}
    assert evidence.offered(raw) == 300
    assert evidence.offered({"offered": 7, "missed": 0, "host_lost": {}}) == 7


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
