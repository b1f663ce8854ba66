"""Export of ready tests and pings in the file format of flent, version 4.

The series have the names that flent's own tests give them, so that ``flent -i FILE -p all_scaled``
draws them. Values are interpolated on a grid of 0.2 s; the samples themselves are the raw values.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from airloom.host import output
from airloom.report.series import Floats
from airloom.results import RunReader
from airloom.units.quantities import Duration

VERSION = 4
SUFFIX = ".flent.gz"
STEP = 0.2
"""Seconds between values."""
_MILLI = 1e6
"""Nanoseconds in a millisecond."""
_MEGA = 1e6

_TESTS = {"rrul": "rrul", "rrul_be": "rrul_be", "tcp_nup": "tcp_nup", "voip": "voip", "web_page": "http"}
"""Test of the scenario: the one of flent."""
_METRICS = {
    "cwnd": ("tcp_cwnd", 1.0),
    "srtt": ("tcp_rtt", 1 / _MILLI),
    "delivery_rate": ("tcp_delivery_rate", 1 / _MEGA),
}
"""Series of sockets: the name that flent gives them, and the factor to its unit."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A series in the units of flent: ms, Mbit/s."""

    t_s: Floats
    values: Floats


def write(run: RunReader, target: Path) -> list[Path]:
    """Writes one file for each ready test and ping of a run, or of each run of a sweep."""
    files = []
    for one in run.points or [run]:
        for measurement in one.scenario.get("measurements", []):
            document = document_of(one, measurement)
            if document is None:
                continue
            folder = target / one.name if run.points else target
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / document["metadata"]["DATA_FILENAME"]
            output.refuse_others(path, output.GZIP, "name another folder, or remove the file")
            # A fixed time in the header of gzip: equal results are equal files.
            with path.open("wb") as sink, gzip.GzipFile("", "wb", fileobj=sink, mtime=0) as packed:
                packed.write(json.dumps(document, indent=1, allow_nan=False).encode())
            files.append(path)
    return files


def document_of(run: RunReader, measurement: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the contents of the file of a measurement; None if flent has no such test."""
    name = str(measurement.get("name"))
    asked = measurement.get("test") or measurement.get("ping")
    if not isinstance(asked, Mapping):
        return None
    test = _TESTS.get(str(asked.get("kind")), "ping")
    lines = dict(_lines(run, name, test))
    if not lines:
        return None
    begin = datetime.fromisoformat(run.result.started)
    zero = begin.timestamp()
    end = max(float(line.t_s[-1]) for line in lines.values())
    x = np.round(np.arange(0, end + STEP, STEP), 3)
    results = {label: _on_grid(line, x) for label, line in lines.items()}
    results |= _combined(test, results)
    started = begin.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    uploads = sum(label.startswith("TCP upload::") and "::tcp_" not in label for label in lines)
    return {
        "version": VERSION,
        "metadata": {
            "NAME": test,
            "TITLE": f"{run.result.scenario} {name}",
            "TIME": started,
            "T0": started,
            "LENGTH": _seconds(asked.get("duration"), end),
            "TOTAL_LENGTH": end,
            "STEP_SIZE": STEP,
            "HOST": str(asked.get("to")),
            "HOSTS": [str(asked.get("to"))],
            "LOCAL_HOST": str(asked.get("from")),
            "IP_VERSION": 6 if asked.get("family") == "ipv6" else 4,
            "TEST_PARAMETERS": {"upload_streams": str(uploads)} if uploads else {},
            "DATA_FILENAME": f"{run.result.scenario}-{name}{SUFFIX}",
            "SERIES_META": {label: {} for label in lines},
            "NOTE": f"measured by Airloom, verdict {run.result.verdict.status}",
        },
        "x_values": x.tolist(),
        "results": {label: _known(values) for label, values in results.items()},
        "raw_values": {
            label: [
                {"t": zero + float(t), "val": float(value)}
                for t, value in zip(line.t_s, line.values, strict=True)
            ]
            for label, line in lines.items()
        },
    }


def _lines(run: RunReader, name: str, test: str) -> Iterator[tuple[str, _Line]]:
    frame = run.samples(name)
    for metric in frame["metric"].unique():
        rows = frame[frame["metric"] == metric].sort_values("t_ns", kind="stable")
        word, _, part = str(metric).partition(".")
        found = _label(test, word, part)
        if found is None:
            continue
        label, factor = found
        yield label, _Line(rows["t_ns"].to_numpy(float) / 1e9, rows["value"].to_numpy(float) * factor)


def _label(test: str, word: str, part: str) -> tuple[str, float] | None:
    """Returns flent's name of a series, and the factor to flent's unit."""
    if test == "http":
        return ("HTTP latency", 1 / _MILLI) if word == "page_time" else None
    if word == "rtt" and part.partition("_")[0] in ("", "ping"):
        mark = part.partition("_")[2].upper()
        return (f"Ping (ms) ICMP {mark}".rstrip(), 1 / _MILLI)
    if test == "voip":
        call = "VoIP" if part == "up" else "VoIP down"
        units = {"delay": 1 / _MILLI, "jitter_rfc3550": 1 / _MILLI, "throughput": 1e-3, "loss": 1.0}
        names = {"jitter_rfc3550": "jitter", "throughput": "bitrate"}
        return (f"{call}::{names.get(word, word)}", units[word]) if word in units else None
    way, _, flow = part.partition("_")
    if way not in ("up", "down"):
        return None
    which = f"::{flow}" if test == "tcp_nup" else f" {flow.upper().removesuffix('1')}"
    label = f"TCP {way}load{which}"
    if word == "throughput":
        return label, 1 / _MEGA
    if word in _METRICS:
        known, factor = _METRICS[word]
        return f"{label}::{known}", factor
    return None


def _on_grid(line: _Line, x: Floats) -> Floats:
    """Returns the values at the times ``x``; not a number outside of the samples and in gaps."""
    values = np.interp(x, line.t_s, line.values, left=np.nan, right=np.nan)
    apart = np.diff(line.t_s, prepend=line.t_s[0])
    after = np.searchsorted(line.t_s, x).clip(max=len(line.t_s) - 1)
    exact = np.isclose(line.t_s[after], x)
    return np.asarray(np.where((apart[after] > _GAP) & ~exact, np.nan, values), np.float64)


_GAP = 1.0
"""Seconds without samples over which no value is interpolated."""


def _combined(test: str, results: Mapping[str, Floats]) -> dict[str, Floats]:
    """Returns the sums and means that flent stores with the series of these tests."""
    if test not in ("rrul", "rrul_be", "tcp_nup"):
        return {}
    found: dict[str, Floats] = {}
    plain = {label: values for label, values in results.items() if "::tcp_" not in label}
    for way in ("TCP upload", "TCP download"):
        group = np.array([values for label, values in plain.items() if label.startswith(way)])
        if not len(group):
            continue
        found[f"{way} sum"] = _sum(group)
        found[f"{way} avg"] = found[f"{way} sum"] / len(group)
        if test == "tcp_nup":
            squares = len(group) * np.nansum(group**2, axis=0)
            # Jain's index; nobody sends where the squares are zero.
            found[f"{way} fairness"] = found[f"{way} sum"] ** 2 / np.where(squares > 0, squares, np.nan)
    if test != "tcp_nup":
        found["TCP totals"] = _sum(np.array([found[label] for label in found if label.endswith("sum")]))
        pings = np.array([values for label, values in plain.items() if label.startswith("Ping")])
        if len(pings):
            found["Ping (ms) avg"] = _sum(pings) / np.maximum(np.isfinite(pings).sum(axis=0), 1)
    return found


def _sum(group: Floats) -> Floats:
    """Returns the sum of the known values at each time; not a number where none is known."""
    known = np.isfinite(group).any(axis=0)
    return np.asarray(np.where(known, np.nansum(group, axis=0), np.nan), np.float64)


def _known(values: Floats) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]


def _seconds(text: Any, otherwise: float) -> float:
    return Duration(text) / 1e9 if isinstance(text, str) else otherwise
