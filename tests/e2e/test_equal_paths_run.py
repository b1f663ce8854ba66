"""Flows over computed routes with two paths of equal cost, in real nodes."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.world

SCENARIO = """\
name: diamond
nodes: {h1: , h2: , left: , right: , up: , down: }
links:
  - {name: in, ends: [h1, left], rate: 20 Mbit/s}
  - {name: a, ends: [left, up], rate: 2 Mbit/s, queue: {packets: 20}}
  - {name: b, ends: [left, down], rate: 2 Mbit/s, queue: {packets: 20}}
  - {ends: [up, right], rate: 20 Mbit/s}
  - {ends: [down, right], rate: 20 Mbit/s}
  - {ends: [right, h2], rate: 20 Mbit/s}
measurements:
"""
FLOWS = 12


def loss(shell, paths: str) -> float:
    """The mean loss of 12 flows of 300 kbit/s: a link of 2 Mbit/s has room for half of them."""
    flow = "  - {{name: f{0}, traffic: {{from: h1, to: h2, at: 200 ms, rate: 300 kbit/s, duration: 6 s}}}}\n"
    text = SCENARIO + "".join(flow.format(number) for number in range(FLOWS))
    (shell.folder / "x.yaml").write_text(text)
    done = shell.run("run", "x.yaml", "--set", f"equal_paths={paths}", "--out", paths)
    assert done.returncode == 0, done.stderr
    result = json.loads((shell.folder / paths / "result.json").read_text())
    losses = [one["mean"] for one in result["measurements"] if one["metric"] == "loss"]
    assert len(losses) == FLOWS
    return sum(losses) / FLOWS


@pytest.mark.measures
def test_flows_between_two_hosts_are_divided_among_two_paths(shell):
    # Twelve ports all on one side are one case in 2048; nine on one side leave a quarter of the room idle.
    assert loss(shell, "all") < loss(shell, "one") - 0.05
