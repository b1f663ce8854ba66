"""Where the difference between two runs comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.evidence import processors
from airloom.hostwatch import NodeTrack
from airloom.nodes.kind import Cpu
from airloom.origins import component_rows, stage_rows
from airloom.results import Details, Ledger, Measurement, RunReader, RunWriter, Verdict


def run(folder: Path, stages: dict[str, float], components: dict[str, float]) -> RunReader:
    with RunWriter(folder, scenario="lab", seed=1, kinds=["netns"]) as writer:
        writer.measured(
            *(Measurement(name="flow", metric=f"stage_{n}", unit="ns", mean=v) for n, v in stages.items())
        )
        writer.finish(Verdict(status="valid"), Ledger(), details=Details(processors=components))
    return RunReader(folder)


ALL = ("send_stack", "send_queue", "send_device", "network", "receive_device", "receive_stack")


def test_the_stages_add_up_to_the_whole_difference(tmp_path: Path) -> None:
    one = {f"{name}_mean": 100.0 for name in (*ALL, "between")}
    other = one | {"send_stack_mean": 400.0, "receive_stack_mean": 200.0, "send_device_lost": 3.0}
    first, second = run(tmp_path / "a", one, {}), run(tmp_path / "b", other, {})
    rows = {row.stage: row for row in stage_rows(first, second)}
    assert list(rows) == list(ALL)
    assert rows["send_stack"].share == pytest.approx(0.75)
    assert rows["receive_stack"].share == pytest.approx(0.25)
    assert rows["network"].share == 0
    assert (rows["send_device"].first_lost, rows["send_device"].second_lost) == (0, 3)
    assert component_rows(first, second) == []


def test_without_an_engine_on_one_side_the_middle_is_one_stage(tmp_path: Path) -> None:
    ends = {"send_stack_mean": 5.0, "send_queue_mean": 1.0, "between_mean": 30.0, "receive_stack_mean": 9.0}
    whole = {f"{name}_mean": 10.0 for name in ALL} | {"between_mean": 30.0}
    rows = stage_rows(run(tmp_path / "a", whole, {}), run(tmp_path / "b", ends, {}))
    assert [row.stage for row in rows] == ["send_stack", "send_queue", "between", "receive_stack"]


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
    guest = NodeTrack([0, 1], [Cpu(5_000, 1_000), Cpu(5_900, 1_400)], within=[Cpu(2_000, 10), Cpu(2_300, 20)])
    found = processors({"plain": plain, "guest": guest}, {"status": [{"cpu": 70}, {"cpu": 30}]}, 1_000)
    assert found == pytest.approx(
        {"guest_user": 0.3 + 0.3, "guest_kernel": 0.6, "host_kernel": 0.15 + 0.4, "engine": 0.1}
    )
