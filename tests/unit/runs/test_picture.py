"""The topology picture of a plan."""

from __future__ import annotations

from pathlib import Path

from airloom.planning.gate import check
from airloom.report import topology
from airloom.runs.picture import topology_of


def test_a_link_is_told_with_its_rate_its_trace_and_its_delay(tmp_path: Path) -> None:
    (tmp_path / "link.trace").write_text("1\n2\n", encoding="ascii")
    (tmp_path / "net.yaml").write_text(
        """
        name: x
        nodes: {a: {}, b: {}}
        switches: {s: {}, hub: {kind: hub}}
        links:
          - {ends: [a, s], trace: link.trace, delay: 5 ms, backward: {rate: 1 Mbit/s}}
          - {ends: [s, hub], rate: 10 Mbit/s}
          - {ends: [hub, b]}
        """,
        encoding="utf-8",
    )
    (plan,) = check(tmp_path / "net.yaml").plans
    found = topology_of(plan)
    assert [(one.name, one.kind) for one in found.vertices] == [
        ("a", "host"),
        ("b", "host"),
        ("s", "switch"),
        ("hub", "hub"),
    ]
    assert [topology.describe(wire) for wire in found.wires] == [
        "a trace, 5 ms forward, 1 Mbit/s, 5 ms backward",
        "10 Mbit/s",
        "unlimited",
    ]
