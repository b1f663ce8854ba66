"""Displays of objects in notebooks."""

from __future__ import annotations

from pathlib import Path

from airloom.lab.lab import Lab
from airloom.measure.ping import parse
from airloom.report import tables
from airloom.results import Measurement, RunReader, RunWriter, Verdict
from airloom.units import html

DATA = Path(__file__).parents[2] / "data" / "measure"


def test_text_is_escaped() -> None:
    shown = html.table(["<a>"], [["<b>"], [3]], caption="&", numeric=[0])
    assert "&lt;a&gt;" in shown
    assert "&lt;b&gt;" in shown
    assert "&amp;</caption>" in shown
    assert shown.count("text-align: right") == 3
    assert html.paragraph("<i>", strong="x") == "<p><strong>x</strong> &lt;i&gt;</p>"


def test_a_reading_shows_figures_and_not_samples() -> None:
    reading = parse((DATA / "ping.txt").read_text())
    assert "rtt mean" in reading._repr_html_()
    assert repr(reading).startswith("PingReading(transmitted ")
    assert "Reply" not in repr(reading)


def test_a_run_shows_verdict_and_figures(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run", scenario="<s>", seed=1, kinds=["netns"]) as writer:
        writer.measured(Measurement(name="rtt", metric="rtt_mean", unit="ns", mean=2e6))
        writer.finish(
            Verdict(status="degraded", reasons=("late", "short <of>"), codes=("x", "y")), writer.ledger
        )
    run = RunReader(tmp_path / "run")
    shown = run._repr_html_()
    assert "<strong>degraded</strong>" in shown
    assert "<ul><li>late</li><li>short &lt;of&gt;</li></ul>" in shown
    assert "2 ms" in shown
    assert "&lt;s&gt;" in shown
    assert "rtt mean" in tables.measurements(run)._repr_html_()


def test_a_laboratory_shows_nodes_and_links(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text("name: two\nnodes: {a: {}, b: {}}\nlinks: [{ends: [a, b], rate: 10 Mbit/s}]\n")
    lab = Lab(path)
    assert repr(lab) == "Lab('two', 2 nodes, not up)"
    assert "10.0.0.1" in lab._repr_html_()
    assert "10 Mbit/s" in lab._repr_html_()
