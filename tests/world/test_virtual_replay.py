"""A finished run in virtual time is brought back to an instant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom.errors import ScenarioError
from airloom.host import pcap
from airloom.results import RunReader
from airloom.runs.progress import Watcher
from helpers.kernels import needs_virtual_time
from helpers.virtual import scenario

pytestmark = [pytest.mark.world, pytest.mark.timeout(300)]

SECOND = 1_000_000_000
PARTS: dict[str, Any] = {
    "seed": 7,
    "links": [{"ends": ["h1", "h2"], "rate": "10 Mbit/s", "delay": "10 ms", "loss": "20 %"}],
    "programs": [
        {"node": "h2", "name": "draws", "at": "500 ms", "run": "cat /proc/sys/kernel/random/uuid"},
        {"node": "h1", "name": "later", "at": "1500 ms", "run": "date"},
    ],
    "events": [{"at": "1 s", "link": "h1-h2", "set": {"loss": "0 %", "delay": "40 ms"}}],
    "measurements": [{"name": "rtt", "ping": {"from": "h1", "to": "h2", "count": 10, "interval": "200 ms"}}],
}


class Told(Watcher):
    """Keeps the problems that it is told."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def problem(self, text: str) -> None:
        self.problems.append(text)


def captured(out: Path, until: int) -> dict[str, list[tuple[int, bytes]]]:
    """The frames of each capture up to an instant in ns since 1970."""
    return {
        file.name: [(one.at, one.octets) for one in pcap.frames(file) if one.at <= until]
        for file in (out / "captures").iterdir()
    }


@needs_virtual_time
def test_a_run_is_brought_back_to_an_instant(tmp_path: Path) -> None:
    run, again, told = tmp_path / "run", tmp_path / "again", Told()
    airloom.run(scenario(**PARTS), out=run, capture=True)
    with airloom.Replay(run, "1210 ms", out=again, capture=True, watcher=told) as up:
        assert up.now() == 1210 * SECOND // 1000
        logs = [folder / "nodes/h2/draws.log" for folder in (run, again)]
        assert logs[0].read_text() == logs[1].read_text() != ""
        assert not (again / "nodes/h1/later.log").exists()
        assert up.link("h1", "h2").describe() == "10 Mbit/s, 40 ms"
        pinged = (again / "measurements/rtt/client.out").read_text()
        assert (run / "measurements/rtt/client.out").read_text().startswith(pinged)
        assert "icmp_seq" in pinged
        done = up["h1"].run("ping -c 1 h2", check=True)
        assert "time=80.2 ms" in done.stdout, "it goes on from there, with the link of that time"
    assert told.problems == []
    until = 1_577_836_800 * SECOND + RunReader(run).details.calendar_ns + 1210 * SECOND // 1000
    before = captured(run, until)
    assert sum(map(len, before.values())) > 10
    assert captured(again, until) == before
    with pytest.raises(ScenarioError, match="was steered while it ran"):
        airloom.Replay(again, "1 s")
