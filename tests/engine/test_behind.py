"""An engine that never catches up with its clock is asked, changed and stopped all the same."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from airloom import _engine
from airloom.planning.radio import media
from airloom.scenario.model import Medium

pytestmark = pytest.mark.timeout(120)

RADIOS = 400
"""Each with dwells of a length of its own, so that they have 4,000,000 events a second together, and
each event looks at all radios."""


def radio(number: int) -> dict[str, Any]:
    hops = {"channels": [36, 44], "step": 1, "sequence": 0, "dwell_ns": 100_000 + number, "switch_ns": 0}
    return {"mac": [2, 0, 0, 0, number >> 8, number & 255], "phy": "802.11a", "channel": 36, "hops": hops}


def test_it_obeys() -> None:
    engine = _engine.Engine(1)
    engine.add_medium("air", media.medium(Medium(), []))
    for number in range(RADIOS):
        engine.add_memory_port(f"n{number}:w0")
        place = {"static": {"x": float(number), "y": 0.0, "z": 0.0}}
        engine.add_radio("air", f"n{number}:w0", radio(number), place, f"n{number}")
    engine.start()
    done: list[str] = []

    def use() -> None:
        for _ in range(3):
            assert len(engine.radios()) == RADIOS
            engine.set_radio("n0:w0", {"power": 10.0})
            done.append("asked")
        engine.stop()
        done.append("stopped")

    # The engine works meanwhile: an event of this many radios takes longer than its dwell.
    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    thread.join(90)
    assert done == ["asked"] * 3 + ["stopped"]
    assert engine.lateness()["status"] is not None
