"""What a calibration makes of figures: harmless, correctable, unusable."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from airloom.calibration import model
from airloom.calibration.correct import advise, intervals, packet_rate, trips
from airloom.calibration.model import Calibration, Figure
from airloom.errors import RunError
from airloom.host.machine import machine
from airloom.planning.gate import check
from airloom.report.calibration import overview
from airloom.results import Measurement
from airloom.scenario.model import Scenario


def figure(value: float, half: float | None = None) -> Figure:
    return Figure(value=value, half_width=half, least=value - (half or 0))


def made(kind: str = "netns", **more: object) -> Calibration:
    values = {
        "kind": kind,
        "made": "2026-01-01T00:00:00.000Z",
        "airloom": "0",
        "machine": machine(),
        "rounds": 3,
        "ceilings": {1: figure(10_000, 1_000), 2: figure(6_000, 500)},
        "native_ceiling": figure(40_000, 4_000),
        "delay_ns": figure(40_000, 4_000),
        "jitter_ns": figure(10_000, 3_000),
        "spread_ns": figure(9_000),
        "cost_ns": figure(20_000),
    }
    return Calibration.model_validate(values | more)


def plan(pairs: int = 1):
    nodes = {f"{end}{n}": {} for n in range(pairs) for end in "ab"}
    links = [{"ends": [f"a{n}", f"b{n}"]} for n in range(pairs)]
    flows = [
        {"name": f"flow{n}", "traffic": {"from": f"a{n}", "to": f"b{n}", "rate": "1 Mbit/s"}}
        for n in range(pairs)
    ]
    scenario = {"name": "lab", "nodes": nodes, "links": links, "measurements": flows}
    return check(Scenario.model_validate(scenario)).plans[0]


def figures(rate: float, delay: float = 1e6, jitter: float = 1e6, name: str = "flow0") -> list[Measurement]:
    size = 100
    values = {
        "received": ("packets", 1_000.0),
        "octets": ("octets", 1_000.0 * size),
        "offered": ("bit/s", rate * 8 * size),
        "throughput": ("bit/s", min(rate, 9_500) * 8 * size),
        "delay_mean": ("ns", delay),
        "jitter_mean": ("ns", jitter),
    }
    return [Measurement(name=name, metric=m, unit=unit, mean=value) for m, (unit, value) in values.items()]


def verdicts(found) -> dict[str, str]:
    return {one.metric: one.verdict for one in found}


def test_below_the_ceiling_and_far_above_what_is_added_all_is_harmless() -> None:
    advice, warnings = advise(trips(plan(), lambda kind: made(kind)), figures(1_000), {})
    assert verdicts(advice) == dict.fromkeys(("throughput", "delay_mean", "jitter_mean"), "harmless")
    assert warnings == []


def test_what_is_added_is_taken_off_with_its_uncertainty() -> None:
    advice, _ = advise(
        trips(plan(), lambda kind: made(kind)), figures(1_000, delay=200_000, jitter=12_000), {}
    )
    by_metric = {one.metric: one for one in advice}
    delay = by_metric["delay_mean"]
    assert (delay.verdict, delay.corrected) == ("correctable", 160_000)
    assert delay.half_width == pytest.approx(4_000 / 2**0.5)  # two ends, half of the error each
    assert by_metric["jitter_mean"].verdict == "unusable"  # 2 us are left, known to 2.1 us


def test_a_pause_of_the_machine_widens_the_interval_of_its_run() -> None:
    steady = [200_000.0] * 400
    paused = [*steady[:200], 20_200_000.0, *steady[201:]]
    halves = []
    for values in (steady, paused):
        within = intervals("flow0", pa.table({"metric": ["delay"] * 400, "value": values}))
        advice, _ = advise(trips(plan(), lambda kind: made(kind)), figures(1_000, delay=400_000), within)
        halves.append({one.metric: one.half_width for one in advice}["delay_mean"])
    assert halves[0] == pytest.approx(4_000 / 2**0.5)
    # One of 20 batches is 1 ms above the others: s = 1 ms / sqrt(20), and t(19) = 2.093.
    assert halves[1] == pytest.approx(math.hypot(4_000 / 2**0.5, 2.093 * 1e6 / 20), rel=1e-3)


def test_above_the_ceiling_the_run_is_warned_and_the_rate_scaled() -> None:
    advice, warnings = advise(trips(plan(), lambda kind: made(kind)), figures(20_000), {})
    by_metric = {one.metric: one for one in advice}
    assert by_metric["delay_mean"].verdict == by_metric["jitter_mean"].verdict == "unusable"
    rate = by_metric["throughput"]
    assert (rate.verdict, rate.corrected) == ("correctable", 20_000 * 800)  # at most what was offered
    assert rate.half_width == pytest.approx(rate.corrected * (0.1**2 + 0.1**2) ** 0.5)
    assert warnings == [
        "flow0 offered 20,000 packets/s, and with so many nodes of kind netns the ceiling here is 9,000"
    ]


@pytest.mark.parametrize(("pairs", "ceiling"), [(1, 9_000), (2, 5_500), (4, 2_750)])
def test_the_ceiling_falls_with_the_nodes_that_share_the_machine(pairs: int, ceiling: int) -> None:
    _, warnings = advise(trips(plan(pairs), lambda kind: made(kind)), figures(9_400), {})
    assert f"{ceiling:,}" in warnings[0]
    assert ("by extrapolation" in warnings[0]) == (pairs == 4)


def test_without_a_calibration_nothing_is_said() -> None:
    assert advise(trips(plan(), lambda kind: None), figures(1e6), {}) == ([], [])


def test_packets_per_second_are_counted_at_the_size_that_arrived() -> None:
    by_metric = {one.metric: one for one in figures(1_234)}
    assert packet_rate(by_metric) == pytest.approx(1_234)
    assert packet_rate({}) is None


def test_a_calibration_is_kept_for_its_machine(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert model.load("netns") is None
    path = model.keep(made())
    assert model.load("netns") == made()
    model.keep(made(machine={**machine(), "processors": 999}))
    assert model.load("netns") is None
    path.write_text("{}")
    with pytest.raises(RunError, match="cannot be read") as refused:
        model.load("netns")
    assert refused.value.cure == "make it anew: airloom calibrate netns"


def test_the_table_has_a_column_for_each_kind() -> None:
    table = overview([made(), made("uml")])
    assert table.columns == ("", "netns", "uml")
    assert [cell.text for cell in table.rows[0]] == [
        "ceiling of one pair, packets/s",
        *["10,000 +- 1,000"] * 2,
    ]
    assert table.rows[1][1].text == "0.25"
