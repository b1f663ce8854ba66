"""Reports of sweeps and repetitions: order, panels, bands, pivot tables, nothing left out unsaid."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from airloom import report
from airloom.bench.report import large_sweep
from airloom.report import curves, facets, grid, pivot, spread, sweeps
from airloom.report.facets import Dimension
from airloom.report.style import PAPER
from airloom.results import Ledger, Measurement, RunReader, SweepWriter, Verdict

QUEUE = "links[bottleneck].queue.discipline"
DELAY = "links[bottleneck].delay"

SCENARIO = """\
name: made
nodes: {a: , b: }
measurements:
  - name: second
    iperf3: {from: a, to: b}
  - name: first
    iperf3: {from: a, to: b}
"""


def sweep(
    folder: Path,
    swept: dict[str, list[str]],
    *,
    repetitions: int = 3,
    flows: int = 2,
    labels: dict[str, str] | None = None,
) -> RunReader:
    """Writes a sweep whose measurements end in another order than the scenario's."""
    writer = SweepWriter(
        folder, scenario="made", seed=1, sweep=swept, repetitions=repetitions, labels=labels,
        scenario_text=SCENARIO,
    )  # fmt: skip
    random = np.random.default_rng(1)
    names = ["first", "second", *(f"flow{number}" for number in range(flows - 2))]
    for number, point in enumerate(writer.unfinished()):
        with writer.run(point, kinds=["netns"], seed=number) as one:
            for share, name in enumerate(names, 1):
                mean = 1e6 * share + random.normal(0, 1e5)
                t = np.arange(20) * 100_000_000
                one.record(name, "throughput", "bit/s", t, np.full(20, mean), node="b")
                one.measured(Measurement(name=name, metric="throughput", unit="bit/s", mean=mean))
                one.measured(Measurement(name=name, metric="octets", unit="octets", mean=1e6))
            one.finish(Verdict(status="valid"), Ledger())
    writer.finish()
    return RunReader(folder)


GRID = {QUEUE: ["drop-tail", "codel", "fq-codel"], DELAY: ["20 ms", "5 ms"]}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> RunReader:
    return sweep(tmp_path_factory.mktemp("sweep") / "run", GRID)


def test_figures_have_the_order_of_the_scenario(made: RunReader) -> None:
    whole = grid.of_sweep(made)
    assert list(dict.fromkeys(one.name for one in whole.figures)) == ["second", "first", "second, first"]
    assert whole.axes[0].values == ("drop-tail", "codel", "fq-codel")
    assert [case.key for case in whole.cases[:2]] == [("drop-tail", "20 ms"), ("drop-tail", "5 ms")]


def test_numeric_values_are_the_axis_in_their_unit(made: RunReader) -> None:
    whole = grid.of_sweep(made)
    assert whole.main is not None
    assert (whole.main.path, whole.main.positions, whole.main.unit) == (DELAY, (20.0, 5.0), "ms")
    assert not whole.axes[0].numeric


def test_every_point_is_drawn_with_its_interval(made: RunReader) -> None:
    whole = grid.of_sweep(made)
    throughput = sweeps.quantities(whole)[0]
    assert throughput.title == "Throughput"
    [drawing] = curves.of_family(whole, throughput.drawn, throughput.title, throughput.slug)
    canvas = drawing.figure(PAPER)
    panels = [axes for axes in canvas.axes if axes.axison]
    assert [axes.get_title(loc="left") for axes in panels] == ["second", "first"]
    assert "Bars" not in drawing.caption
    assert "Dots: the single values, where 3 repetitions have one." in drawing.caption
    for axes in panels:
        # The three values of each point, and the line of the means.
        assert len(axes.lines) == 6
        low, high = axes.get_ylim()
        for band in axes.collections:
            heights = band.get_paths()[0].vertices[:, 1]
            assert low <= heights.min()
            assert heights.max() <= high


def observed(rows: dict[str, list[float]], repetitions: int) -> grid.Grid:
    """A grid over a distance, with the values of a loss-like figure at each point."""
    axis = grid.axis("d", "distance", list(rows))
    at = {(key,): grid._observed(values, None) for key, values in rows.items() if values}
    whole = grid.Grid([axis], [grid.Case((key,), (None,) * repetitions) for key in rows])  # type: ignore[arg-type]
    whole.__dict__["figures"] = [grid.Figure("load", "goodput", "traffic", (1, -1), at)]
    return whole


def test_the_number_of_values_stands_where_it_is_less_than_the_repetitions() -> None:
    whole = observed({"1 ms": [5e6, 6e6, 5e6, 6e6, 5e6], "2 ms": [1e6, 2e6, 1e6, 2e6]}, 5)
    [goodput] = sweeps.quantities(whole)
    [drawing] = curves.of_family(whole, goodput.drawn, goodput.title, goodput.slug)
    assert drawing.title == "Goodput against distance"
    assert "over 5 repetitions, of fewer where n says so." in drawing.caption
    assert "Not every run has a value: 2 ms: 4 of 5." in drawing.caption
    [axes] = drawing.figure(PAPER).axes
    assert [text.get_text() for text in axes.texts] == ["n = 4"]
    table = pivot.of_family(whole, goodput.drawn, "Goodput", "g")
    assert [cell.text.endswith("(n = 4)") for cell in table.rows[0]] == [False, False, True]


def test_wide_intervals_set_no_axis() -> None:
    """Of two values 1 and 9 the interval is -46 to 56; of four it ends where a rate does, at 0."""
    whole = observed({"1 ms": [1e6, 9e6], "2 ms": [0.0, 0.0, 0.0, 8e6]}, 4)
    [goodput] = sweeps.quantities(whole)
    [drawing] = curves.of_family(whole, goodput.drawn, goodput.title, goodput.slug)
    [axes] = drawing.figure(PAPER).axes
    low, high = axes.get_ylim()
    assert low == 0
    assert 9 < high < 12


def test_the_main_line_of_a_family_has_a_name() -> None:
    whole = observed({"1 ms": [5e6], "2 ms": [1e6]}, 1)
    figures = whole.figures
    at = figures[0].at
    whole.__dict__["figures"] = [
        grid.Figure("load", metric, "iperf3", (1, -1), at)
        for metric in ("throughput", "throughput_min", "throughput_max")
    ]
    [rates] = sweeps.quantities(whole)
    table = pivot.of_family(whole, rates.drawn, "Throughput", "t")
    assert [row[0].text for row in table.rows] == ["throughput", "min", "max"]
    [drawing] = curves.of_family(whole, rates.drawn, rates.title, rates.slug)
    [legend] = drawing.figure(PAPER).legends
    assert [text.get_text() for text in legend.get_texts()] == ["throughput", "min", "max"]


@pytest.mark.slow
def test_more_than_eight_lines_become_panels_and_none_is_lost(tmp_path: Path) -> None:
    run = sweep(tmp_path / "run", {DELAY: ["5 ms", "10 ms"]}, flows=70, repetitions=1)
    whole = grid.of_sweep(run)
    throughput = sweeps.quantities(whole)[0]
    drawings = curves.of_family(whole, throughput.drawn, throughput.title, throughput.slug)
    assert [one.title.rpartition(" (")[2] for one in drawings] == ["1 of 2)", "2 of 2)"]
    assert len({one.name for one in drawings}) == 2
    shown = [one.svg("x") for one in drawings]
    assert "flow0" in shown[0]
    assert "flow67" in shown[1]


@pytest.mark.parametrize(
    ("sizes", "panels", "lines"),
    [((2, 3), 2, 3), ((3, 64), 64, 3), ((64, 9), 576, 1), ((1, 1), 1, 1), ((8,), 1, 8), ((9,), 9, 1)],
)
def test_panels_hold_all_data(sizes: tuple[int, ...], panels: int, lines: int) -> None:
    dims = [Dimension(f"d{at}", tuple(map(str, range(size)))) for at, size in enumerate(sizes)]
    data = {tuple(map(str, place)): place for place in np.ndindex(*sizes)}
    found = facets.arranged(dims, data)
    assert len(found.panels) == panels
    assert found.count == lines
    assert {line.data for panel in found.panels for line in panel.lines} == set(data.values())


def test_repetitions_alone_have_figures(tmp_path: Path) -> None:
    run = sweep(tmp_path / "run", {}, repetitions=5)
    whole = grid.of_sweep(run)
    throughput = sweeps.quantities(whole)[0]
    names = [one.name for one in sweeps.drawings(whole, throughput)]
    assert names == [
        "repetitions-throughput-iperf3", "distribution-throughput-iperf3", "time-throughput-iperf3",
    ]  # fmt: skip
    [boxes] = spread.boxes(whole, throughput.headline, throughput.title, throughput.slug)
    assert "medians" in boxes.alt
    assert "Box: quartiles" in boxes.caption


def test_a_pivot_table_has_values_of_an_axis_as_columns(made: RunReader) -> None:
    whole = grid.of_sweep(made)
    found = pivot.of_family(whole, sweeps.quantities(whole)[0].drawn, "Throughput", "t")
    assert found.columns == ("measurement", QUEUE, "20 ms", "5 ms")
    assert [row[1].text for row in found.rows] == ["drop-tail", "codel", "fq-codel"] * 2
    assert all("±" in row[2].text for row in found.rows)


@pytest.mark.slow
def test_the_csv_file_has_every_figure_unrounded(made: RunReader) -> None:
    page = report.write([made.folder])
    with report.beside(page).open() as source:
        rows = list(csv.DictReader(source))
    assert len(rows) == 6
    assert rows[1][QUEUE] == "drop-tail"
    assert rows[1][DELAY] == "5 ms"
    first = [
        run.result.measurements[0].mean
        for point, run in made.begun
        if point.values == {QUEUE: "drop-tail", DELAY: "5 ms"}
    ]
    assert float(rows[1]["first.throughput [bit/s]"]) == pytest.approx(np.mean([one or 0 for one in first]))
    assert float(rows[1]["first.throughput ci95 [bit/s]"]) > 0
    assert "second, first.fairness [1]" in rows[1]


def test_metrics_without_a_figure_are_named(made: RunReader) -> None:
    whole = grid.of_sweep(made)
    assert sweeps.undrawn(whole, sweeps.quantities(whole)) == "Without a figure above: octets."


def shown(run: RunReader, width: int) -> str:
    console = Console(width=width, color_system=None, file=io.StringIO(), record=True)
    console.print(report.on_terminal(run.folder))
    return console.export_text()


def test_paths_stay_whole_on_a_narrow_terminal(made: RunReader) -> None:
    text = shown(made, 80)
    assert max(map(len, text.splitlines())) <= 80
    assert f"{QUEUE}: drop-tail, codel, fq-codel" in " ".join(text.split())
    assert "links[bottleneck]" in text
    assert ".discipline" in text
    # One line for each run, not a block.
    runs = text.partition("Runs of this sweep")[2]
    assert sum("valid" in line for line in runs.splitlines()) == 18


def test_a_label_stands_for_its_path(tmp_path: Path) -> None:
    run = sweep(tmp_path / "run", GRID, repetitions=1, labels={QUEUE: "queue", DELAY: "delay"})
    assert grid.of_sweep(run).axes[0].label == "queue"
    text = shown(run, 80)
    assert f"queue = {QUEUE}" in " ".join(text.split())
    table = text.partition("Throughput")[2]
    assert "queue" in table
    assert QUEUE not in table


@pytest.mark.slow
def test_a_hundred_points_of_many_flows_make_a_page_that_opens_soon(tmp_path: Path) -> None:
    # `airloom bench report` takes 64 flows, and measures the time in a browser.
    page = report.write([large_sweep(tmp_path / "large", flows=3)])
    assert page.stat().st_size < 600_000
    text = page.read_text()
    assert len(re.findall(r"<[a-zA-Z]", text)) < 8_500
    assert all(f"flow{number:02d}" in text for number in range(3))
    with report.beside(page).open() as source:
        assert len(list(csv.DictReader(source))) == 100
