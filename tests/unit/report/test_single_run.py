"""Plots and tables of one run: gaps, what is marked, what was in force."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airloom.planning.gate import check
from airloom.planning.links import in_force as planned
from airloom.report import plots, series
from airloom.report.in_force import in_force
from airloom.report.style import PAPER
from airloom.results import RunReader, RunWriter, Verdict
from airloom.results.details import Happening
from airloom.units.figures import TIME


def every_100_ms(*stretches: tuple[int, int]) -> series.Series:
    """Returns a series with a sample at each number of tenths of a second in the stretches."""
    t = np.concatenate([np.arange(first, last) for first, last in stretches]) * 100_000_000
    return series.Series("rtt", "rtt", "rtt", TIME, t.astype(np.int64), np.full(len(t), 0.02))


def test_an_outage_breaks_the_line_and_is_named() -> None:
    found = every_100_ms((0, 30), (64, 90))
    shape = series.envelope(found.t_ns, found.values)
    assert shape.gaps == [(pytest.approx(2.9), pytest.approx(6.4))]
    broken = shape.broken()
    assert len(broken.t_s) == len(shape.t_s) + 1
    assert np.isnan(broken.mean[30])
    assert np.isfinite(np.delete(broken.mean, 30)).all()
    (drawing,) = plots.over_time([found])
    assert "rtt has none from 2.9 s to 6.4 s" in drawing.caption
    assert "nan" not in drawing.alt


def test_the_drawn_line_has_a_hole() -> None:
    from matplotlib.figure import Figure

    (drawing,) = plots.over_time([every_100_ms((0, 100), (134, 200))])
    figure = Figure()
    drawing.draw(figure, PAPER)
    (line,) = figure.axes[0].get_lines()
    assert np.isnan(np.asarray(line.get_ydata(), dtype=float)).sum() == 1


def test_a_lost_reply_and_irregular_samples_are_no_gap() -> None:
    once = every_100_ms((0, 30), (31, 60))
    assert series.envelope(once.t_ns, once.values).gaps == []
    t = np.cumsum(np.random.default_rng(1).exponential(1e6, 300)).astype(np.int64)
    shape = series.envelope(t, np.ones(300))
    assert len(shape.gaps) <= 2


def test_a_gap_of_many_joined_samples() -> None:
    t = np.concatenate([np.arange(50_000), np.arange(80_000, 130_000)]) * 100_000
    shape = series.envelope(t, np.ones(100_000))
    assert shape.joined
    ((start, end),) = shape.gaps
    assert start == pytest.approx(5, abs=0.1)
    assert end == pytest.approx(8, abs=0.1)


def test_samples_between_two_gaps_stay_visible() -> None:
    found = every_100_ms((0, 100), (110, 111), (120, 220))
    assert list(np.flatnonzero(series.envelope(found.t_ns, found.values).alone)) == [100]


def happening(at: float, what: str, kind: str) -> Happening:
    return Happening.model_validate({"t_ns": int(at * 1e9), "what": what, "kind": kind})


def test_the_link_failure_is_marked_and_not_the_starts_of_programs() -> None:
    starts = [happening(0.1 * number, f"r{number}: ospfd started", "program") for number in range(70)]
    found = [*starts, happening(20, "link core down", "event"), happening(21, "r1: zebra failed", "failure")]
    assert [one.what for one in plots.most_important(found)] == ["link core down", "r1: zebra failed"]
    (drawing,) = plots.over_time([every_100_ms((0, 200))], found)
    assert "Dashed: link core down at 20 s; r1: zebra failed at 21 s." in drawing.caption
    assert "more are listed" not in drawing.caption


def test_a_roam_is_marked_before_events_and_the_rest_counted() -> None:
    events = [happening(number, f"event {number}", "event") for number in range(1, 9)]
    found = [*events, happening(5.5, "walker:wlan0 roams from ap1:wlan0 to ap2:wlan0", "radio")]
    (drawing,) = plots.over_time([every_100_ms((0, 100))], found)
    assert "walker:wlan0 roams from ap1:wlan0 to ap2:wlan0 at 5.5 s" in drawing.caption
    assert "3 more are listed under Events" in drawing.caption


def test_starts_of_programs_are_never_marked() -> None:
    starts = [happening(number, f"p{number} started", "program") for number in range(9)]
    assert plots.most_important(starts) == []
    (drawing,) = plots.over_time([every_100_ms((0, 100))], starts)
    assert "Dashed" not in drawing.caption


@pytest.mark.parametrize(
    ("at", "limits"),
    [(0.1, (2.0, 4.0)), (4.15, (2.0, 4.15)), (30.0, (2.0, 4.0))],
    ids=["before", "near", "after"],
)
def test_the_axis_ends_where_the_data_and_what_ended_it_are(at: float, limits: tuple[float, float]) -> None:
    from matplotlib.figure import Figure

    (drawing,) = plots.over_time([every_100_ms((20, 41))], [happening(at, "link a-b down", "event")])
    figure = Figure()
    drawing.draw(figure, PAPER)
    edge = 0.02 * (limits[1] - limits[0])
    assert figure.axes[0].get_xlim() == pytest.approx((limits[0] - edge, limits[1] + edge))


def test_what_a_sender_wrote_has_its_own_plot() -> None:
    rate = replace(every_100_ms((0, 30)), kind="throughput", metric="throughput")
    assert series.kind_of("offered", "bit/s") == "offered"
    offered = replace(rate, kind="offered", metric="offered", values=rate.values * 1000)
    drawings = plots.over_time([offered, rate])
    assert [one.title for one in drawings] == ["Throughput over time", "Offered load over time"]


def test_queues_and_traces_of_links(tmp_path: Path) -> None:
    (tmp_path / "lte.trace").write_text("1\n2\n4\n")
    scenario = tmp_path / "two.yaml"
    scenario.write_text(
        "name: two\nnodes: {a: {}, b: {}, c: {}}\nlinks:\n"
        "  - {ends: [a, b], rate: 10 Mbit/s, queue: {discipline: fq-codel, ecn: true, size: 30 kB}}\n"
        "  - {ends: [b, c], forward: {trace: lte.trace}}\n"
        "  - {ends: [a, c]}\n"
    )
    assert planned.of_links(check(scenario).plans[0]) == {
        "links[a-b].queue": "fq-codel, 30 kB, ECN",
        "links[b-c].forward.queue": "drop-tail, 1000 packets",
        "links[b-c].forward.trace": "lte.trace, 9 Mbit/s on average",
    }


def test_equal_settings_share_a_row(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run", scenario="s", seed=1, kinds=["netns"]) as writer:
        writer.in_force = {f"links[l{number}].queue": "red" for number in range(6)}
        writer.in_force["measurements[tcp].congestion"] = "bbr"
        writer.in_force["links[x].forward.trace"] = "a.trace"
        writer.finish(Verdict(status="valid"), writer.ledger)
    run = RunReader(tmp_path / "run")
    assert run.result.in_force["measurements[tcp].congestion"] == "bbr"
    assert [[cell.text for cell in row] for row in in_force(run).rows] == [
        ["queue", "red", "l0, l1, l2, l3 and 2 more"],
        ["congestion control", "bbr", "tcp"],
        ["trace", "a.trace", "x forward"],
    ]
