"""Times as short as can be written do no harm to a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom import run

pytestmark = pytest.mark.world

SCENARIO = """\
name: short-times
nodes:
  a: {interfaces: {eth0: {adapter: {moderation: 1 ns, tick: 1 ns, gap: 1 ns}}}}
  b:
  c: {position: [0 m, 0 m], radios: {wlan0: {capture_window: 1 ns}}}
  d:
    mobility: {model: random-waypoint, area: [9 m, 9 m], speed: 1 m/s, pause: 1 ns}
    radios: {wlan0: {}}
switches: {s: {forwarding: shortest-path, convergence: 1 ns, ageing: 1 ns, latency: 1 ns}}
media: {air: {noise: [{position: [5 m, 0 m], power: -60 dBm, channel: 36, at: 1 ns, until: 2 ns}]}}
links:
- {ends: [a, s], delay: 1 ns, coalesce: 1 ns, rate: 100 Mbit/s, queue: {discipline: codel, target: 1 ns}}
- {ends: [s, b], jitter: {exponential: 1 ns}, rate: 100 Mbit/s, visibility: [[0 s, 1 min]]}
measurements:
- {name: wire, ping: {from: a, to: b, count: 20, interval: 1 ms}}
- {name: air, ping: {from: c, to: d, count: 20, interval: 1 ms}}
"""


def test_times_of_a_nanosecond_do_not_hold_a_run_up(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    result = run(path, out=tmp_path / "out")
    received = {one.name: one.mean for one in result.result.measurements if one.metric == "received"}
    assert received["wire"] >= 15
    assert received["air"] >= 15
