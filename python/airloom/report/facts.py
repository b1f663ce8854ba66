"""The basic facts of a run: what ran, when, how long, and how late this machine was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airloom.results import RunReader
from airloom.results.writer import label_of
from airloom.units.figures import readable
from airloom.units.text import plural

SWEPT_VALUES = 6
"""Maximum number of swept values in the facts of a run."""


def _in_words(path: str, values: Sequence[Any], labels: Mapping[str, str]) -> str:
    """Returns a swept path with its label and its values."""
    name = f"{labels[path]} = {path}" if path in labels else path
    shown = [label_of(value) for value in values]
    if len(shown) > SWEPT_VALUES:
        return f"{name}: {shown[0]} to {shown[-1]}, {len(shown)} values"
    return f"{name}: {', '.join(shown)}"


def of_run(run: RunReader) -> list[tuple[str, str]]:
    """Returns the basic facts of a run, one line each."""
    result = run.result
    lateness = result.ledger.lateness_us
    found = [
        ("Scenario", result.scenario),
        ("Node kinds", ", ".join(result.kinds) or "-"),
        ("Seed", str(result.seed)),
        ("Started", result.started.replace("T", " ").replace("Z", " UTC")),
        ("Took", f"{result.wall_seconds:.1f} s"),
    ]
    if result.virtual_seconds is not None:
        ratio = result.virtual_seconds / result.wall_seconds if result.wall_seconds else 0.0
        said = f"virtual, {result.virtual_seconds:.3f} s: {ratio:.3g} virtual seconds a wall second"
        found.append(("Time", said))
    if run.is_sweep:
        index = run.index
        swept = "; ".join(_in_words(path, values, index.labels) for path, values in index.sweep.items())
        done = sum(point.state == "finished" for point in index.points)
        found.append(("Sweep", swept or "repetitions only"))
        runs = f"{done} of {len(index.points)} done"
        repeated = f"{index.repetitions} {plural('repetition', index.repetitions)}"
        found.append(("Runs", f"{runs}, {repeated}"))
    if not result.ledger.delivered:
        return found
    found.append(
        (
            "Lateness",
            ", ".join(
                f"{name} {readable(value, 'us')}"
                for name, value in (
                    ("median", lateness.p50),
                    ("99 %", lateness.p99),
                    ("99.9 %", lateness.p999),
                    ("largest", lateness.max),
                )
            ),
        )
    )
    return found
