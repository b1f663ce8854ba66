"""Runs in virtual time, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import airloom
from airloom.compare.identical import OF_WALL_TIME, compare
from airloom.scenario.model import Scenario
from helpers.kernels import BUILT


def scenario(**parts: Any) -> Scenario:
    """Two nodes and a link in virtual time, with ``parts`` in addition or instead."""
    return Scenario(
        **{
            "name": "virtual",
            "time": "virtual",
            "guest": {"kernel": str(BUILT)},
            "nodes": {"h1": {}, "h2": {}},
            "links": [{"ends": ["h1", "h2"], "rate": "10 Mbit/s", "delay": "10 ms"}],
            **parts,
        }
    )


def run(out: Path, *, capture: bool = False, **parts: Any) -> dict[str, float]:
    """Runs such a scenario, which must be valid; returns the means of its figures."""
    done = airloom.run(scenario(**parts), out=out, capture=capture)
    assert done.verdict.status == "valid", done.verdict
    return {f"{one.name}.{one.metric}": one.mean or 0.0 for one in done.result.measurements}


def assert_same(one: Path, other: Path) -> None:
    """All files are the same to the octet, but for what states wall time."""
    assert compare(one, other).differences == ()
    read = [json.loads((folder / "result.json").read_text()) for folder in (one, other)]
    for key in OF_WALL_TIME:
        assert read[0].pop(key) != read[1].pop(key), "two runs, and not one"
    assert read[0] == read[1]
    assert read[0]["time"] == "virtual"
    assert read[0]["virtual_seconds"] > 0
