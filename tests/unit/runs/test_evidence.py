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
