"""The radio medium in real time with real programs: a grid of 400 nodes, and one flow's cost.

ORBIT's grid: 20 by 20 nodes a metre apart, on 12 channels with 100 flows of 1 Mbit/s.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from airloom.bench import BenchResult, Progress
from airloom.results import RunReader
from airloom.runs import batch
from airloom.scenario.model import Measurement as Wanted
from airloom.scenario.model import Medium, Node, Scenario

SIDE = 20
CHANNELS = (36, 40, 44, 48, 52, 56, 60, 64, 149, 153, 157, 161)
FLOWS = 100
SECONDS = 10
START_EVERY_MS = 40
MOST_CPU = 0.15
"""Limit as a share of one processor, for one flow at 54 Mbit/s."""
LOSS = {"model": "log-distance", "exponent": 3.0, "reference": "1 m", "loss": "46.7 dB"}


def run(progress: Progress) -> list[BenchResult]:
    """Measures verdict and goodput of the grid, and the engine's CPU time for a saturated flow."""
    with tempfile.TemporaryDirectory(prefix="airloom-bench-") as folder:
        progress(f"{SIDE * SIDE} nodes, {FLOWS} flows")
        many = batch.run(grid(), out=Path(folder) / "grid")
        progress("one flow at 54 Mbit/s")
        one = batch.run(pair(), out=Path(folder) / "pair")
        share = _goodput(many) / (FLOWS * 1e6)
        verdict = many.result.verdict
        valid = verdict.status == "valid"
        why = "; ".join(verdict.reasons[:2])
        cost = _busy(one)
        return [
            BenchResult(
                f"grid of {SIDE * SIDE} nodes, {FLOWS} flows of 1 Mbit/s: share delivered", "1", share,
                f"verdict {verdict.status}{': ' if why else ''}{why}", promise="verdict valid", holds=valid,
            ),
            BenchResult("... processors busy in the engine's thread", "1", _busy(many)),
            BenchResult("... one of 100 frames late by more than", "us", many.result.ledger.lateness_us.p99),
            BenchResult("one UDP flow at 54 Mbit/s: goodput", "bit/s", _goodput(one)),
            BenchResult(
                "... processors busy in the engine's thread", "1", cost, promise="less than 15 %",
                holds=cost < MOST_CPU,
            ),
        ]  # fmt: skip


def grid() -> Scenario:
    """Returns a grid where four neighbours in a row share a channel; the first sends to the second."""
    names = [f"n{row}x{column}" for row in range(SIDE) for column in range(SIDE)]
    nodes = {
        name: {
            "radios": {"wlan0": {"channel": CHANNELS[number // 4 % len(CHANNELS)]}},
            "position": [f"{number % SIDE} m", f"{number // SIDE} m"],
        }
        for number, name in enumerate(names)
    }
    pairs = [(names[4 * flow], names[4 * flow + 1]) for flow in range(FLOWS)]
    return Scenario.model_validate(
        {
            "name": "bench-grid",
            "media": {"air": {"propagation": LOSS, "radio": {"phy": "802.11a", "rate": "54 Mbit/s"}}},
            "nodes": nodes,
            "measurements": [
                {
                    "name": f"flow{number}",
                    "traffic": {
                        "from": source,
                        "to": to,
                        "rate": "1 Mbit/s",
                        "duration": f"{SECONDS} s",
                        # Generators start one after the other, like other programs, no faster than
                        # two processors can start them beside the running load.
                        "at": f"{2000 + START_EVERY_MS * number} ms",
                    },
                }
                for number, (source, to) in enumerate(pairs)
            ],
        }
    )


def pair() -> Scenario:
    """Returns a scenario with one saturated sender and its neighbour."""
    medium = {"propagation": LOSS, "radio": {"phy": "802.11a", "channel": 36, "rate": "54 Mbit/s"}}
    flow = {"from": "a", "to": "b", "rate": "32 Mbit/s", "duration": f"{SECONDS} s"}
    return Scenario(
        name="bench-pair",
        media={"air": Medium.model_validate(medium)},
        nodes={
            "a": Node.model_validate({"radios": {"wlan0": {}}, "position": ["0 m", "0 m"]}),
            "b": Node.model_validate({"radios": {"wlan0": {}}, "position": ["5 m", "0 m"]}),
        },
        measurements=[Wanted.model_validate({"name": "flow", "traffic": flow})],
    )


def _goodput(reader: RunReader) -> float:
    """Returns the sum over all flows in bit/s."""
    found = [one.mean for one in reader.result.measurements if one.metric == "throughput"]
    return sum(value for value in found if value is not None)


def _busy(reader: RunReader) -> float:
    """Returns the engine thread's mean share of a processor, in the middle of the run."""
    rows = reader.samples("engine")
    values = rows[rows.metric == "busy"].sort_values("t_ns").value.tolist()
    middle = values[1:-1] or values
    return statistics.fmean(middle) if middle else 0.0
