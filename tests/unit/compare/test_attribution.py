"""Where the difference between two runs comes from."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from airloom.compare.attribution import component_rows, stage_rows
from airloom.measure.stages import BOUNDARIES
from airloom.nodes.kind import Cpu
from airloom.results import Details, Ledger, Measurement, RunReader, RunWriter, Verdict
from airloom.runs.evidence import processors
from airloom.runs.host_monitor import NodeTrack


def run(folder: Path, since: dict[str, tuple[float, int]], components: dict[str, float]) -> RunReader:
    with RunWriter(folder, scenario="lab", seed=1, kinds=["netns"]) as writer:
        for name, (ns, packets) in since.items():
            writer.measured(
                Measurement(name="flow", metric=f"stage_at_{name}", unit="ns", mean=ns),
                Measurement(name="flow", metric=f"stage_at_{name}_packets", unit="packets", mean=packets),
            )
        writer.finish(Verdict(status="valid"), Ledger(), details=Details(processors=components))
    return RunReader(folder)


def test_the_stages_add_up_to_the_whole_difference(tmp_path: Path) -> None:
    one = {name: (100.0 * number, 50) for number, name in enumerate(BOUNDARIES)}
    slower = {"sent": (0.0, 50)} | {name: (ns + 300, 47) for name, (ns, _) in one.items() if name != "sent"}
    slower["read"] = (slower["read"][0] + 100, 40)
    first, second = run(tmp_path / "a", one, {}), run(tmp_path / "b", slower, {})
    rows = {(row.begin, row.end): row for row in stage_rows(first, second)}
    assert list(rows) == list(itertools.pairwise(BOUNDARIES))
    assert rows[("sent", "queued")].share == pytest.approx(0.75)
    assert rows[("arrived", "read")].share == pytest.approx(0.25)
    assert rows[("entered", "left")].share == 0
    assert (rows[("sent", "queued")].first_lost, rows[("sent", "queued")].second_lost) == (0, 3)
    assert rows[("arrived", "read")].second_lost == 7
    assert component_rows(first, second) == []


def test_stages_lie_between_the_boundaries_that_both_runs_know(tmp_path: Path) -> None:
    ends = {"sent": (0.0, 9), "driver": (6.0, 9), "arrived": (36.0, 9), "read": (45.0, 9)}
    whole = {name: (10.0 * number, 9) for number, name in enumerate(BOUNDARIES) if name != "queued"}
    rows = stage_rows(run(tmp_path / "a", whole, {}), run(tmp_path / "b", ends, {}))
    assert [(row.begin, row.end) for row in rows] == [
        ("sent", "driver"),
        ("driver", "arrived"),
        ("arrived", "read"),
    ]


def test_components_of_both_runs(tmp_path: Path) -> None:
    first = run(tmp_path / "a", {}, {"guest_user": 0.2, "host_kernel": 0.1, "engine": 0.05})
    second = run(
        tmp_path / "b", {}, {"guest_user": 0.2, "guest_kernel": 0.6, "host_kernel": 0.3, "engine": 0.05}
    )
    rows = {row.component: row.second - row.first for row in component_rows(first, second)}
    assert rows == {
        "guest_user": 0,
        "guest_kernel": pytest.approx(0.6),
        "host_kernel": pytest.approx(0.2),
        "engine": 0,
    }


def test_a_guest_is_seen_from_both_sides_and_its_boot_left_out() -> None:
    plain = NodeTrack([0, 1], [Cpu(100, 50), Cpu(300, 150)])
    guest = NodeTrack(
        [0, 1], [Cpu(5_000, 1_000), Cpu(5_900, 1_400)], within=[Cpu(2_000, 10), Cpu(2_600, 1_210)]
    )
    found = processors({"plain": plain, "guest": guest}, {"status": [{"cpu": 70}, {"cpu": 30}]}, 1_000)
    assert found == pytest.approx(
        {"guest_user": 0.3 + 0.3, "guest_kernel": 0.6, "host_kernel": 0.15 + 0.4, "engine": 0.1}
    )
