"""Export in flent's file format."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airloom import report
from airloom.results import RunWriter, Verdict

SECOND = 1_000_000_000


def run(folder: Path, measurement: str, series: dict[str, tuple[str, Any]]) -> Path:
    """Returns a run with a measurement whose series have a sample every 0.1 s for 8 s."""
    text = f"name: lab\nmeasurements: [{{name: load, {measurement}}}]\n"
    with RunWriter(folder, scenario="lab", seed=1, kinds=["netns"], scenario_text=text) as writer:
        for metric, (unit, values) in series.items():
            t = np.arange(80) * (SECOND // 10)
            writer.record("load", metric, unit, t, np.broadcast_to(values, 80), node="a")
        writer.finish(Verdict(status="valid"), writer.ledger)
    return folder


def rrul(folder: Path) -> Path:
    flows = {
        f"throughput.{way}_{mark}": ("bit/s", 1e6 * (number + 1))
        for way in ("up", "down")
        for number, mark in enumerate(("be", "bk", "cs5", "ef"))
    }
    more = {"rtt.ping": ("ns", 40e6), "rtt.ping_ef": ("ns", 20e6), "cwnd.up_be": ("packets", 12)}
    return run(folder, "test: {kind: rrul, from: a, to: b, duration: 6 s}", flows | more)


def read(path: Path) -> dict[str, Any]:
    with gzip.open(path, "rt") as source:
        document: dict[str, Any] = json.load(source)
    return document


def test_series_have_the_names_and_units_of_flent(tmp_path: Path) -> None:
    (path,) = report.export(rrul(tmp_path / "run"), tmp_path / "out", ["flent"])
    assert path.name == "lab-load.flent.gz"
    found = read(path)
    assert found["version"] == 4
    assert found["metadata"]["NAME"] == "rrul"
    assert (found["metadata"]["HOST"], found["metadata"]["LENGTH"]) == ("b", 6.0)
    at = found["x_values"].index(4.0)
    here = {name: values[at] for name, values in found["results"].items()}
    assert here["TCP upload BE"] == 1.0
    assert here["TCP download EF"] == 4.0
    assert here["TCP upload sum"] == 10.0
    assert here["TCP upload avg"] == 2.5
    assert here["TCP totals"] == 20.0
    assert (here["Ping (ms) ICMP"], here["Ping (ms) ICMP EF"], here["Ping (ms) avg"]) == (40, 20, 30)
    assert here["TCP upload BE::tcp_cwnd"] == 12
    raw = found["raw_values"]["Ping (ms) ICMP"]
    assert len(raw) == 80
    assert raw[1]["t"] - raw[0]["t"] == pytest.approx(0.1, abs=1e-6)


def test_what_flent_has_no_test_for_is_left_out(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", "iperf3: {from: a, to: b}", {"throughput": ("bit/s", 1e6)})
    assert report.export(folder, tmp_path / "out", ["flent"]) == []


@pytest.mark.parametrize(
    ("measurement", "series", "name", "label", "value"),
    [
        ("ping: {from: a, to: b}", {"rtt": ("ns", 5e6)}, "ping", "Ping (ms) ICMP", 5.0),
        (
            "test: {kind: voip, from: a, to: b}",
            {"delay.up": ("ns", 3e6), "throughput.down": ("bit/s", 64e3)},
            "voip",
            "VoIP down::bitrate",
            64.0,
        ),
        (
            "test: {kind: web_page, from: a, to: b}",
            {"page_time": ("ns", 7e6)},
            "http",
            "HTTP latency",
            7.0,
        ),
        (
            "test: {kind: tcp_nup, from: a, to: b, streams: 2}",
            {"throughput.up_1": ("bit/s", 1e6), "throughput.up_2": ("bit/s", 3e6)},
            "tcp_nup",
            "TCP upload fairness",
            16 / 20,
        ),
    ],
)
def test_other_tests(
    tmp_path: Path, measurement: str, series: dict[str, Any], name: str, label: str, value: float
) -> None:
    (path,) = report.export(run(tmp_path / "run", measurement, series), tmp_path / "out", ["flent"])
    found = read(path)
    assert found["metadata"]["NAME"] == name
    assert found["results"][label][10] == pytest.approx(value)


def test_no_value_is_made_up_in_a_gap(tmp_path: Path) -> None:
    text = "name: lab\nmeasurements: [{name: load, ping: {from: a, to: b}}]\n"
    with RunWriter(tmp_path / "run", scenario="lab", seed=1, kinds=["netns"], scenario_text=text) as writer:
        t = np.concatenate([np.arange(10), np.arange(40, 50)]) * (SECOND // 10)
        writer.record("load", "rtt", "ns", t, np.full(20, 1e6), node="a")
        writer.finish(Verdict(status="valid"), writer.ledger)
    (path,) = report.export(tmp_path / "run", tmp_path / "out", ["flent"])
    found = read(path)
    values = dict(zip(found["x_values"], found["results"]["Ping (ms) ICMP"], strict=True))
    assert (values[0.4], values[2.0], values[4.2]) == (1.0, None, 1.0)


@pytest.mark.skipif(not shutil.which("flent"), reason="flent is not installed: pip install flent")
def test_flent_draws_it(tmp_path: Path) -> None:
    (path,) = report.export(rrul(tmp_path / "run"), tmp_path / "out", ["flent"])
    picture = tmp_path / "all.png"
    command = ["flent", "-i", str(path), "-p", "all_scaled", "-o", str(picture)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
