"""Comparisons: the statistics against published and simulated truth, the table, the JSON."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
import scipy
from rich.console import Console

from airloom.compare.render import ROWS, note, render
from airloom.compare.runs import Comparison, Estimate, compare, compare_values, holm, welch
from airloom.errors import ScenarioError
from airloom.results import Ledger, Measurement, RunWriter, SweepWriter, Verdict
from helpers import fake_results


def estimate(values: list[float]) -> Estimate:
    array = np.array(values)
    return Estimate(
        float(array.mean()), len(array), float(array.std(ddof=1) / len(array) ** 0.5), len(array) - 1
    )


@pytest.mark.slow
def test_welch_agrees_with_scipy() -> None:
    random = np.random.default_rng(3)
    one, two = random.normal(10, 1, 7).tolist(), random.normal(11, 4, 12).tolist()
    found = welch(estimate(one), estimate(two))
    assert found is not None
    reference = scipy.stats.ttest_ind(two, one, equal_var=False)
    interval = reference.confidence_interval(0.95)
    assert found == pytest.approx((interval.low, interval.high, reference.pvalue))


def test_welch_covers_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(4)
    covered = 0
    for _ in range(1000):
        found = welch(estimate(random.normal(5, 1, 5).tolist()), estimate(random.normal(7, 3, 8).tolist()))
        assert found is not None
        covered += found[0] <= 2.0 <= found[1]
    assert 0.93 <= covered / 1000 <= 0.97


def test_without_an_error_there_is_no_interval() -> None:
    assert welch(Estimate(1.0, 1), Estimate(2.0, 1)) is None
    same = Estimate(1.0, 3, 0.0, 2)
    assert welch(same, same) == (0.0, 0.0, 1.0)


def test_holm_is_the_textbook_procedure() -> None:
    # Sorted thresholds for four at 5 %: 0.0125, 0.0167, 0.025, 0.05; the third stops it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == [True, False, False, True]
    assert holm([]) == []
    assert holm([0.04]) == [True]


def sweep(folder: Path, centre: float, seed: int) -> Path:
    random = np.random.default_rng(seed)
    writer = SweepWriter(folder, scenario="s", seed=seed, sweep={"nodes": [2, 3]}, repetitions=6)
    for point in writer.unfinished():
        with writer.run(point, kinds=["netns"], seed=seed) as one:
            mean = centre + float(random.normal(0, 1e-6))
            one.measured(
                Measurement(name="rtt", metric="rtt_avg", unit="s", mean=mean),
                Measurement(name="tcp", metric="throughput", unit="bit/s", mean=9e7 + random.normal(0, 1e5)),
            )
            one.finish(Verdict(status="valid"), Ledger())
    writer.finish()
    return folder


def test_repetitions_tell_a_difference_from_chance(tmp_path: Path) -> None:
    found = compare(sweep(tmp_path / "a", 1e-3, 1), sweep(tmp_path / "b", 1.01e-3, 2))
    rows = {(row.name, row.labels["nodes"]): row for row in found.rows}
    rtt = rows[("rtt", "2")]
    assert rtt.significant
    assert rtt.basis == "repetitions"
    assert rtt.difference == pytest.approx(1e-5, abs=3e-6)
    assert rtt.ratio == pytest.approx(1.01, abs=0.003)
    assert rtt.low is not None
    assert rtt.high is not None
    assert rtt.low < 1e-5 < rtt.high
    assert not rows[("tcp", "3")].significant


def test_single_runs_are_compared_by_batches(tmp_path: Path) -> None:
    one = fake_results.run(tmp_path / "one", seed=1)
    two = fake_results.run(tmp_path / "two", nodes=5, seed=2)
    found = compare(one, two)
    rows = {(row.name, row.metric): row for row in found.rows}
    assert rows[("rtt", "rtt_avg")].significant
    assert rows[("rtt", "rtt_avg")].basis == "batches"
    assert rows[("rtt", "rtt_max")].p is None
    assert rows[("rtt", "rtt_max")].difference is not None
    assert "say nothing of how runs differ" in note(found.rows)


def test_a_run_does_not_differ_from_itself(tmp_path: Path) -> None:
    one = fake_results.run(tmp_path / "one")
    for row in compare(one, one).rows:
        assert row.difference == 0
        assert not row.significant


def test_figures_of_one_side_only_and_of_other_units(tmp_path: Path) -> None:
    folders = []
    for name, figures in (
        ("a", [Measurement(name="rtt", metric="max", unit="ms", mean=2.0)]),
        (
            "b",
            [
                Measurement(name="rtt", metric="max", unit="us", mean=3000.0),
                Measurement(name="tcp", metric="throughput", unit="bit/s", mean=1e6),
            ],
        ),
    ):
        writer = RunWriter(tmp_path / name, scenario="s", seed=1, kinds=["netns"])
        writer.measured(*figures)
        writer.finish(Verdict(status="valid"), Ledger())
        folders.append(tmp_path / name)
    rtt, tcp = compare(*folders).rows
    assert rtt.difference == pytest.approx(1.0)
    assert rtt.ratio == pytest.approx(1.5)
    assert tcp.first is None
    assert tcp.difference is None


def test_json_and_terminal(tmp_path: Path) -> None:
    one = fake_results.run(tmp_path / "one")
    two = fake_results.run(tmp_path / "two", seed=2, verdict=Verdict(status="valid"))
    found = compare(one, two)
    raw = json.loads(found.to_json())
    assert raw["schema"] == 1
    assert raw["first"]["verdict"]["status"] == "degraded"
    assert set(raw["rows"][0]) == {
        "name", "metric", "unit", "labels", "first", "second", "difference", "ratio", "low", "high", "p",
        "significant", "basis", "effect",
    }  # fmt: skip
    console = Console(width=120, color_system=None, file=io.StringIO(), record=True)
    console.print(render(found, every=True))
    text = console.export_text()
    assert "DEGRADED" in text
    assert "VALID" in text
    assert "rtt avg" in text


def printed(found: Comparison, width: int, *, every: bool = False) -> list[str]:
    console = Console(width=width, color_system=None, file=io.StringIO(), record=True)
    console.print(render(found, every=every))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_points_of_one_sweep_differ_in_what_was_swept(tmp_path: Path) -> None:
    folder = sweep(tmp_path / "a", 1e-3, 1)
    found = compare(folder / "points" / "p0000-r00", folder / "points" / "p0001-r00")
    assert found.differs == {"nodes": ("2", "3")}
    assert [(row.name, row.labels) for row in found.rows] == [("rtt", {}), ("tcp", {})]
    assert all(row.difference is not None for row in found.rows)
    assert json.loads(found.to_json())["differs"] == {"nodes": ["2", "3"]}
    assert "differs: nodes: 2 to 3" in printed(found, 80)
    assert sum(line.startswith(" rtt avg") for line in printed(found, 80)) == 1


def test_the_values_of_a_sweep_are_compared_over_repetitions(tmp_path: Path) -> None:
    writer = SweepWriter(
        tmp_path, scenario="s", seed=1, sweep={"queue": ["a", "b"], "delay": ["1 ms", "2 ms"]},
        repetitions=4, labels={"queue": "discipline"},
    )  # fmt: skip
    random = np.random.default_rng(1)
    for point in writer.unfinished():
        with writer.run(point, kinds=["netns"], seed=1) as one:
            mean = {"a": 10.0, "b": 12.0}[point.values["queue"]] + random.normal(0, 0.1)
            one.measured(Measurement(name="rtt", metric="rtt_mean", unit="ms", mean=mean))
            one.finish(Verdict(status="valid"), Ledger())
    writer.finish()
    [found] = compare_values(tmp_path, "discipline")
    assert found.differs == {"queue": ("a", "b")}
    assert [row.labels for row in found.rows] == [{"delay": "1 ms"}, {"delay": "2 ms"}]
    for row in found.rows:
        assert row.significant
        assert row.difference == pytest.approx(2, abs=0.3)
        assert row.effect is not None
        assert row.effect > 5
    assert compare_values(tmp_path)[0].differs == found.differs
    with pytest.raises(ScenarioError, match="'loss' was not swept") as caught:
        compare_values(tmp_path, "loss")
    assert caught.value.cure == "paths and labels: discipline, queue, delay"


def test_a_comparison_fits_eighty_columns_and_a_screen(tmp_path: Path) -> None:
    folders = []
    for number in (1, 2):
        path = "links[bottleneck].queue.discipline"
        values = ["drop-tail", "codel", "fq-codel"]
        writer = SweepWriter(
            tmp_path / str(number), scenario="s", seed=1, sweep={path: values}, repetitions=3
        )
        for point in writer.unfinished():
            with writer.run(point, kinds=["netns"], seed=1) as one:
                for metric in [f"other_{index}" for index in range(30)] + ["throughput", "loss"]:
                    mean = 1e7 * number + point.repetition * 1e3
                    one.measured(Measurement(name="tcp", metric=metric, unit="bit/s", mean=mean))
                one.finish(Verdict(status="valid"), Ledger())
        writer.finish()
        folders.append(tmp_path / str(number))
    found = compare(*folders)
    assert len(found.rows) == 96
    lines = printed(found, 80)
    assert max(map(len, lines)) <= 80
    assert f"{96 - ROWS} more: --all" in lines
    # One row of the headline for each of the three values, with its mark.
    assert sum(line.startswith(" throughput") and " *" in line for line in lines) == 3
    assert len(lines) < ROWS + 40
    assert "tcp, links[bottleneck].queue.discipline fq-codel" in lines
    assert not any("more: --all" in line for line in printed(found, 80, every=True))


def test_intervals_end_where_a_figure_cannot_fall_further(tmp_path: Path) -> None:
    folders = []
    for name, means in (("a", (10.0, 30.0)), ("b", (1.0, 9.0))):
        writer = SweepWriter(tmp_path / name, scenario="s", seed=1, sweep={}, repetitions=2)
        for point, mean in zip(writer.index.points, means, strict=True):
            with writer.run(point, kinds=["netns"], seed=1) as one:
                one.measured(Measurement(name="rtt", metric="rtt_p50", unit="ms", mean=mean))
                one.finish(Verdict(status="valid"), Ledger())
        writer.finish([])
        writer.close()
        folders.append(tmp_path / name)
    found = compare(*folders)
    (row,) = found.rows
    assert row.low is not None
    assert row.low < -20, "the interval itself is not cut"
    assert "-75 % (-100 to " in "\n".join(printed(found, 120, every=True))
