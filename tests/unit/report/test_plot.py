"""One figure with chosen axes: what it draws, its files, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.errors import ScenarioError
from airloom.report.axis import axis
from airloom.report.plot import plot
from airloom.results import Ledger, Measurement, SweepWriter, Verdict

RATE = "links[a-b].rate"
QUEUE = "links[a-b].queue.discipline"
WHERE = "nodes.b.position"
VALID = Verdict(status="valid", reasons=(), codes=(), notes=())


def sweep(folder: Path, swept: dict[str, list[str]], repetitions: int = 4) -> Path:
    """Goodput of 1 Mbit/s for each place in the order of points, plus 1 kbit/s for each repetition."""
    text = "name: made\nnodes: {a: , b: }\nmeasurements:\n  - name: load\n    traffic: {from: a, to: b}\n"
    with SweepWriter(
        folder, scenario="made", seed=1, sweep=swept, repetitions=repetitions, scenario_text=text
    ) as writer:
        for number, point in enumerate(writer.unfinished()):
            with writer.run(point, kinds=["netns"], seed=number) as one:
                place, repetition = divmod(number, repetitions)
                for metric, unit, mean in (
                    ("goodput", "bit/s", (place + 1) * 1e6 + repetition * 1e3),
                    ("delay_mean", "s", 0.001 * (place + 1)),
                    ("delay_max", "s", 0.01),
                ):
                    one.measured(
                        Measurement(name="load", metric=metric, unit=unit, mean=mean, ci95=None, n=10)
                    )
                one.finish(VALID, Ledger(delivered=1, dropped={}, host_lost=0))
        writer.finish(())
    return folder


def test_lines_are_the_values_of_the_other_path(tmp_path: Path) -> None:
    folder = sweep(
        tmp_path / "s", {RATE: ["1 Mbit/s", "10 Mbit/s", "20 Mbit/s"], QUEUE: ["drop-tail", "codel"]}
    )
    made = plot([folder], x="rate", y="goodput", by="discipline")
    assert list(made.lines) == ["drop-tail", "codel"]
    assert made.x.positions == (1, 10, 20)
    assert list(made.lines["codel"].mean) == pytest.approx([2.0015e6, 4.0015e6, 6.0015e6])
    axes = made.figure().axes[0]
    assert axes.get_xlabel() == f"{RATE} (Mbit/s)"
    assert axes.get_ylabel() == "goodput (Mbit/s)"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["drop-tail", "codel"]


def test_a_family_is_its_mean_and_a_metric_itself(tmp_path: Path) -> None:
    folder = sweep(tmp_path / "s", {RATE: ["1 Mbit/s", "10 Mbit/s"]})
    assert list(plot([folder], y="delay").lines["load"].mean) == pytest.approx([0.001, 0.002])
    assert list(plot([folder], y="load.delay_max").lines["load"].mean) == pytest.approx([0.01, 0.01])
    assert list(plot([folder], y="load").lines["load"].mean) == pytest.approx([1.0015e6, 2.0015e6])


def test_few_repetitions_are_drawn_as_they_are(tmp_path: Path) -> None:
    folder = sweep(tmp_path / "s", {RATE: ["1 Mbit/s", "10 Mbit/s"]}, repetitions=3)
    axes = plot([folder], y="goodput").figure().axes[0]
    dots = [line for line in axes.lines if line.get_marker() == "."]
    assert sorted(round(float(y), 6) for line in dots for y in line.get_ydata()) == [
        1.0, 1.001, 1.002, 2.0, 2.001, 2.002,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("suffix", "begins"), [("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG"), ("eps", b"%!PS")]
)
def test_the_suffix_is_the_form(tmp_path: Path, suffix: str, begins: bytes) -> None:
    folder = sweep(tmp_path / "s", {RATE: ["1 Mbit/s", "10 Mbit/s"]})
    path = plot([folder], y="goodput").save(tmp_path / f"fig.{suffix}")
    assert path.read_bytes().startswith(begins)
    plot([folder], y="goodput").save(path)
    path.write_text("notes of a year")
    with pytest.raises(ScenarioError, match="not replaced"):
        plot([folder], y="goodput").save(path)


def test_a_figure_is_as_wide_as_a_column_or_a_page(tmp_path: Path) -> None:
    folder = sweep(tmp_path / "s", {RATE: ["1 Mbit/s", "10 Mbit/s"]})
    widths = [plot([folder], y="goodput", width=one).figure().get_figwidth() for one in ("column", "page", 5)]
    assert widths == [3.5, 7.16, 5]


def test_several_runs_are_lines_beside_each_other(tmp_path: Path) -> None:
    swept = {RATE: ["1 Mbit/s", "10 Mbit/s"]}
    folders = [sweep(tmp_path / name, swept) for name in ("before", "after")]
    assert list(plot(folders, x="rate", y="goodput", by="run").lines) == ["before", "after"]


def test_what_is_not_there_is_refused_with_what_is(tmp_path: Path) -> None:
    folder = sweep(tmp_path / "s", {RATE: ["1 Mbit/s", "10 Mbit/s"], QUEUE: ["drop-tail", "codel"]})
    for settings, code, cure in (
        ({"y": "godput", "by": "discipline"}, "plot.figure", "load.goodput"),
        ({"y": "goodput", "x": "distance"}, "plot.axis", RATE),
        ({"y": "goodput", "x": "rate"}, "plot.axes", f"--by {QUEUE}"),
        ({"y": "goodput", "x": "rate", "where": {"discipline": "red"}}, "plot.value", "codel"),
        ({"y": "goodput", "by": "discipline", "style": "poster"}, "plot.style", "paper"),
        ({"y": "goodput", "by": "discipline", "width": 90}, "plot.width", "column"),
    ):
        with pytest.raises(ScenarioError) as refused:
            plot([folder], **settings)  # type: ignore[arg-type]
        assert refused.value.code == code
        assert cure in (refused.value.cure or "")
    with pytest.raises(ScenarioError, match=r"pdf, pgf"):
        plot([folder], y="goodput", by="discipline").save(tmp_path / "fig.doc")
    one = sweep(tmp_path / "one", {RATE: ["1 Mbit/s"]})
    with pytest.raises(ScenarioError) as refused:
        plot([one], y="goodput")
    assert refused.value.code == "plot.single"


@pytest.mark.parametrize(
    ("values", "positions", "title"),
    [
        (["10 m", "20 m", "1 km"], (10, 20, 1000), "d, m"),
        (["5 dBm", "15 dBm"], (5, 15), "d, dBm"),
        (["10 dBm", "1 W"], (10, 30), "d, dBm"),
        (['["0 m", "5 m"]', '["50 m", "5 m"]'], (0, 50), "d, east, m"),
        (["0 m, 0 m", "3 m, 4 m", "3 m, 10 m"], (0, 5, 11), "d, along the path, m"),
        (["1 ms", "2 s"], (0.001, 2), "d, s"),
        (["drop-tail", "codel"], (0, 1), "d"),
        (["1 m", "1 dBm"], (0, 1), "d"),
    ],
)
def test_quantities_and_positions_are_numbers(
    values: list[str], positions: tuple[float, ...], title: str
) -> None:
    found = axis("d", "d", values)
    assert found.positions == pytest.approx(positions)
    assert found.title == title
