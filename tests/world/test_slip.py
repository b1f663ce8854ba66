"""A link that slips, with real programs: never faster than the link, from the first packet on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import airloom
from airloom import Scenario
from airloom.measure import captures, flow, records

pytestmark = [pytest.mark.world, pytest.mark.measures]

RATE, FRAME = 10_000_000, 1518


def study(late: str) -> Scenario:
    """The MTU study's first case, for two seconds."""
    link = {"rate": "10 Mbit/s", "late": late}
    return Scenario.model_validate(
        {
            "name": f"late-{late}",
            "nodes": {"h1": {}, "h2": {}},
            "switches": {"s1": {}},
            "links": [{"ends": ["h1", "s1"], **link}, {"ends": ["s1", "h2"], **link}],
            "measurements": [
                {"name": "before", "ping": {"from": "h1", "to": "h2", "count": 1}},
                {
                    "name": "flow",
                    "traffic": {
                        "from": "h1", "to": "h2", "at": "0.5 s", "duration": "2 s",
                        "frame": f"{FRAME} B", "rate": "10 Mbit/s", "rate_of": "frame",
                    },
                },
            ],
        }
    )  # fmt: skip


def test_no_window_is_faster_than_a_link_that_slips(tmp_path: Path) -> None:
    result = airloom.run(study("slip"), out=tmp_path / "run", capture=airloom.Capture(merged=True))
    capture = result.folder / "capture.pcapng"
    wire = captures.flow(capture, capture, sender_port="h1:eth0", receiver_port="h2:eth0")
    assert wire.received > 1000
    assert flow.fastest(wire.arrived_at, wire.arrival_octets) <= RATE, "on the wire, any window"
    measured = result.folder / "measurements" / "flow"
    seen = flow.join(*(records.read(measured / f"{end}.out") for end in ("sender", "receiver")))
    octets = np.full(seen.arrived_at.size, FRAME)
    # The engine keeps them apart; the kernel's stamps are off by what taking them takes.
    assert flow.fastest(seen.arrived_at, octets, 50) <= RATE, "as the kernel stamps them"


def test_jitter_and_bandwidth_of_equipment_are_those_of_its_models(tmp_path: Path) -> None:
    scenario = study("catch-up").model_dump(mode="json", by_alias=True, exclude_defaults=True)
    scenario["nodes"]["h2"] = {"interfaces": {"eth0": {"adapter": {"moderation": "5 ms"}}}}
    scenario["nodes"]["h1"] = {"interfaces": {"eth0": {"adapter": {"gap": "500 us"}}}}
    result = airloom.run(
        Scenario.model_validate(scenario), out=tmp_path / "run", capture=airloom.Capture(merged=True)
    )
    capture = result.folder / "capture.pcapng"
    wire = captures.flow(capture, capture, sender_port="h1:eth0", receiver_port="h2:eth0")
    gaps = np.diff(wire.arrived_at)
    # A frame takes 1230.4 us and its sender rests for 500: three come with one interrupt, or two.
    assert set(gaps[gaps < 100_000]) == {0}
    assert gaps[gaps >= 100_000].min() >= 5_000_000
    mean = (wire.received - 1) * 1e9 / (wire.arrived_at[-1] - wire.arrived_at[0])
    assert mean <= 1e9 / 1_730_400 * 1.005
