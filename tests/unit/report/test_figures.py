"""Figures of experiments: kept as data, drawn with every report."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from pydantic import ValidationError

from airloom import report
from airloom.errors import RunError
from airloom.report import figures
from airloom.report.figures import Figure, Line, Mark
from airloom.report.style import PAPER
from helpers import fake_results

N = (2.0, 3.0, 5.0, 8.0, 13.0, 20.0, 32.0)


def throughput() -> Figure:
    """An invented figure in the manner of a chain's throughput."""
    measured = (94.9, 94.9, 94.8, 94.8, 94.7, 94.1, 71.0)
    return Figure(
        name="throughput",
        title="TCP throughput, first to last node",
        x_label="nodes in the chain",
        y_label="goodput",
        unit="Mbit/s",
        tolerance=0.02,
        lines=(
            Line(label="ideal", role="ideal", x=N, y=(94.93,) * 7),
            Line(label="Airloom", role="measured", x=N, y=measured, ci95=(0.1,) * 6 + (4.0,)),
            Line(label="native", role="reference", x=N, y=(*(95.0,) * 6, None)),
        ),
        marks=(Mark(x=3, label="UML: first deviation"), Mark(x=13, label="virtual routing: first deviation")),
        caption="Invented.",
    )


def drawn(figure: Figure) -> Axes:
    canvas = Canvas()
    figure.drawing().draw(canvas, PAPER)
    (axes,) = canvas.axes
    return axes


@pytest.mark.parametrize("y", [(-1.5, 0.9, 0.5), (0.0, 0.0, 0.0), (-3.0, -2.0, -1.0), (94.0, 95.0, None)])
def test_every_value_is_inside_of_the_axes_and_every_line_has_a_name(y: tuple[float | None, ...]) -> None:
    line = Line(label="two slices", role="measured", x=(6, 36, 54), y=y)
    axes = drawn(Figure(name="loss", title="Loss", x_label="rate", y_label="loss", unit="%", lines=(line,)))
    low, high = axes.get_ylim()
    assert all(low <= value <= high for value in y if value is not None)
    assert low <= 0 <= high
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["two slices"]


def test_a_line_without_values_is_only_named() -> None:
    lines = tuple(
        Line(label=label, role="measured", x=(1, 2), y=y)
        for label, y in {"netns": (None, None), "uml": (3.0, None)}.items()
    )
    figure = Figure(name="memory", title="Memory", x_label="guests", y_label="memory", lines=lines)
    assert [text.get_text() for text in drawn(figure).get_legend().get_texts()] == ["uml"]
    assert figure.drawing().caption == "Without values: netns."
    nothing = figure.model_copy(update={"lines": lines[:1]})
    assert drawn(nothing).get_legend() is None


@pytest.mark.parametrize("role", ["measured", "reference", "published"])
def test_lines_beyond_the_colours_differ_by_their_marker(role: figures.Role) -> None:
    looks = [figures.look(role, number, ["red", "green", "blue"]) for number in range(9)]
    assert len(set(looks)) == 9
    assert [colour for colour, _ in looks[:3]] == ["red", "green", "blue"]
    assert len({marker for _, marker in looks[:3]}) == 1


def test_the_last_faithful_position() -> None:
    figure = throughput()
    ideal, measured, native = figure.lines
    assert figures.last_within(measured, ideal, 0.02) == 20
    assert figures.last_within(measured, ideal, 1e-4) is None
    assert figures.last_within(native, ideal, 0.02) == 20
    assert figures.last_within(measured, ideal, 0.5) == 32
    between = Line(label="gap", role="measured", x=(2, 4, 5), y=(94.9, 1.0, 94.9))
    assert figures.last_within(between, ideal, 0.02) == 5


@pytest.mark.slow
def test_figures_are_data_that_reports_draw(tmp_path: Path) -> None:
    folder = fake_results.run(tmp_path / "run", only=("rtt",))
    figures.save(folder, [throughput()])
    assert figures.load(folder) == [throughput()]
    text = report.write([folder]).read_text()
    assert "Airloom is within 2 % of the ideal up to 20" in text
    assert "UML: first deviation at 3" in text
    written = {path.name for path in report.export(folder, tmp_path / "out", ["png"])}
    assert "figure-throughput.png" in written


def test_every_scale_is_drawn() -> None:
    for log_x in (False, True):
        for log_y in (False, True):
            drawing = throughput().model_copy(update={"log_x": log_x, "log_y": log_y}).drawing()
            assert "<svg" in drawing.svg("f")


def test_a_line_has_one_length() -> None:
    with pytest.raises(ValidationError, match="2 positions"):
        Line(label="l", role="ideal", x=(1, 2), y=(1,))


def test_what_cannot_be_read_says_where(tmp_path: Path) -> None:
    (tmp_path / figures.FILE).write_text("{}")
    with pytest.raises(RunError, match=r"figures\.json cannot be read"):
        figures.load(tmp_path)
    assert figures.load(tmp_path / "elsewhere") == []


def test_a_figure_of_categories_has_words_at_its_axis() -> None:
    line = Line(label="all", role="measured", x=(0.0, 1.0, 2.0), y=(0.2, 0.3, 0.25))
    words = ("native", "pass-through", "virtual")
    one = Figure(name="f", title="T", x_label="radio", y_label="y", unit="1", lines=(line,), categories=words)
    drawing = one.drawing()
    assert "all: 0.2 at native, 0.25 at virtual" in drawing.alt
    assert [tick.get_text() for tick in drawn(one).get_xticklabels()] == list(words)
    with pytest.raises(ValueError, match="no category for the position 2"):
        Figure(name="f", title="T", x_label="x", y_label="y", lines=(line,), categories=words[:2])
