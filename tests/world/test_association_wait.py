"""Measurements wait until the stations that take part are associated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom.results import RunReader
from airloom.scenario.model import Scenario

pytest.importorskip("airloom._engine")

pytestmark = [pytest.mark.world, pytest.mark.timeout(100)]

SCANNED = [40, 44, 48, 52, 56, 60, 64, 36]
"""Channels of a passive scan, 120 ms each: the access point is on the last one."""
SCAN = 0.96


def carried(out: Path, place: str = "5 m", **ping: Any) -> RunReader:
    """A run with an access point, a station that scans for it, and one ping from time zero on."""
    station = {"mode": "station", "ssid": "lab", "scan": SCANNED}
    return airloom.run(
        Scenario.model_validate(
            {
                "name": "wait",
                "media": {"air": {"radio": {"rate": "24 Mbit/s", "channel": 36}}},
                "nodes": {
                    "ap": {"position": ["0 m", "0 m"], "radios": {"wlan0": {"mode": "ap", "ssid": "lab"}}},
                    "sta": {"position": [place, "0 m"], "radios": {"wlan0": station}},
                },
                "measurements": [
                    {
                        "name": "ping",
                        "ping": {"from": "sta", "to": "ap", "count": 10, "interval": "50 ms", **ping},
                    }
                ],
            }
        ),
        out=out,
    )


def lost(run: RunReader) -> float:
    return next(one.mean for one in run.result.measurements if one.metric == "loss") or 0.0


def first_sent(run: RunReader) -> float:
    """When the first echo that was answered was sent, in s from time zero."""
    samples = run.samples("ping")
    echoes = samples[samples.metric == "rtt"]
    return float((echoes.t_ns - echoes.value).min()) * 1e-9


def test_a_measurement_in_turn_begins_with_an_associated_station(tmp_path: Path) -> None:
    run = carried(tmp_path / "out")
    assert lost(run) == 0
    assert run.result.ledger.dropped.get("not-associated", 0) == 0
    # Not before it has found the access point, and not after the time that it waits at most.
    assert SCAN < first_sent(run) < 3


def test_a_measurement_at_a_time_begins_then(tmp_path: Path) -> None:
    run = carried(tmp_path / "out", at="1 ms")
    # It falls into the scan: requests for the address of the access point are lost.
    assert run.result.ledger.dropped["not-associated"] > 0


def test_a_station_out_of_reach_holds_a_measurement_up_for_three_seconds(tmp_path: Path) -> None:
    run = carried(tmp_path / "out", place="900 m")
    assert lost(run) == 1
    assert run.details.length_ns > 3e9
