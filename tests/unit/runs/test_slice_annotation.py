"""Annotation of a flow with what other slices did: against totals that are known."""

from __future__ import annotations

import pyarrow as pa
import pytest

from airloom.planning.gate import check
from airloom.report.series import all_series
from airloom.results import Ledger, RunReader, RunWriter, Verdict
from airloom.runs.slice_annotation import SliceAnnotation
from airloom.scenario.model import Scenario

S = 1_000_000_000
SCENARIO = """\
name: slices
media: {air: {radio: {rate: 36 Mbit/s}}}
nodes:
  n1: {position: [0 m, 0 m], radios: {wlan0: , wlan1: }}
  n2: {position: [1 m, 0 m], radios: {wlan0: , wlan1: }}
slices:
  one: {grant: {nodes: [n1, n2], channels: [5.18 GHz]}}
  two: {grant: {nodes: [n1, n2], channels: [5.32 GHz, 100]}}
measurements:
  - {name: alpha, traffic: {from: n1-one, to: n2-one, rate: 30 Mbit/s}}
  - {name: beta, traffic: {from: n1-two, to: n2-two, rate: 30 Mbit/s}}
  - {name: gamma, traffic: {from: n2-two, to: n1-two, rate: 30 Mbit/s}}
"""


def samples(*rows: tuple[str, int, float]) -> pa.Table:
    metric, times, values = zip(*rows, strict=True)
    return pa.table({"metric": list(metric), "t_ns": pa.array(times, pa.int64()), "value": list(values)})


def annotated() -> dict[tuple[str, str, str], tuple[list[int], list[float]]]:
    annotation = SliceAnnotation(check(Scenario.from_yaml(SCENARIO)).plans[0])
    annotation.add("alpha", samples(*(("throughput", end * S, 1e6) for end in (1, 2, 3, 4))))
    # In slice two, one flow offers 8 Mbit/s from 2 s to 4 s, the other 2 Mbit/s from 3.5 s to 4 s.
    annotation.add(
        "beta", samples(("throughput", 3 * S, 1.0), ("offered", 3 * S, 8e6), ("offered", 4 * S, 8e6))
    )
    half = [("offered", 7 * S // 2 + step * S // 4, 2e6) for step in (1, 2)]
    annotation.add("gamma", samples(*half))
    looks = [
        (0, {}),
        (2 * S, {("two", 64, 5320): (0, 0)}),
        (3 * S, {("two", 64, 5320): (S // 2, 9), ("two", 100, 5500): (S // 4, 3)}),
        (
            4 * S,
            {("two", 64, 5320): (S, 18), ("two", 100, 5500): (S // 4, 3), ("one", 36, 5180): (S // 8, 1)},
        ),
    ]
    return {(flow, metric, other): (t, v) for flow, metric, _, other, t, v in annotation.annotations(looks)}


def test_each_interval_has_the_airtime_and_the_load_of_the_other_slice() -> None:
    found = annotated()
    times, shares = found[("alpha", "other_airtime", "two")]
    assert times == [S, 2 * S, 3 * S, 4 * S]
    assert shares == pytest.approx([0, 0, 0.75, 0.5])
    times, loads = found[("alpha", "other_offered", "two")]
    assert times == [S, 2 * S, 3 * S, 4 * S]
    assert loads == pytest.approx([0, 0, 8e6, 9e6])
    assert ("alpha", "other_airtime", "one") not in found
    # Slice one has airtime in the last second, and none in beta's only interval.
    assert found[("beta", "other_airtime", "one")][1] == pytest.approx([0])


def test_without_another_slice_there_is_nothing_to_say() -> None:
    alone = check(
        Scenario.from_yaml(SCENARIO.replace("  two: {grant", "  # two: {grant").split("  - {name: beta")[0])
    )
    annotation = SliceAnnotation(alone.plans[0])
    annotation.add("alpha", samples(("throughput", S, 1e6)))
    assert list(annotation.annotations([(0, {}), (S, {})])) == []


def test_the_annotation_is_read_with_the_flow_and_drawn_apart_from_it(tmp_path) -> None:
    with RunWriter(tmp_path / "r", scenario="s", seed=1, kinds=["netns"]) as writer:
        writer.record("alpha", "throughput", "bit/s", [S], [1e6], node="n2-one")
        for (flow, metric, other), (times, values) in annotated().items():
            unit = "1" if metric == "other_airtime" else "bit/s"
            writer.record(flow, metric, unit, times, values, node=other)
        writer.finish(Verdict(status="valid"), Ledger())
    run = RunReader(tmp_path / "r")
    rows = run.samples("alpha", "other_offered", "two")
    assert rows["value"].tolist() == pytest.approx([0, 0, 8e6, 9e6])
    drawn = {(one.label, one.kind) for one in all_series(run.samples())}
    assert ("alpha at two", "other_offered") in drawn
    assert ("alpha", "throughput") in drawn
