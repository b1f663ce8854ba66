"""Claims that are missed by no more than what the machine may have cost are not decided."""

from __future__ import annotations

import pytest

from airloom.planning.gate import check
from airloom.results import Measurement
from airloom.results.claims import Unmeasured
from airloom.runs import margins
from airloom.runs.margins import Margin
from airloom.scenario.reader import read
from airloom.units.figures import PLAIN, RATE, TIME, Quantity
from airloom.verdict import Share, Verdict

SECOND = 1_000_000_000
MS = 1_000_000

SCENARIO = """
name: three
nodes: {a: , b: , c: }
links:
  - {ends: [a, b], rate: 100 Mbit/s}
  - {ends: [b, c], rate: 100 Mbit/s}
measurements:
  - {name: tcp, iperf3: {from: a, to: c, duration: 8 s}}
  - {name: rtt, ping: {from: a, to: b}}
claims:
  - {id: rate, statement: fills it, check: tcp.throughput >= 93 Mbit/s}
  - {id: time, statement: is quick, check: rtt.rtt_mean <= 2 ms}
"""


def plan():
    return check(read(SCENARIO)).plans[0]


def lateness(mean: int, most: int) -> dict:
    return {"buckets": [[mean, 100]] if mean else [], "max": most}


def found(*, paused: int = 0, wait: float = 0.0, delivery: int = 0, most: int = 0) -> dict[str, Margin]:
    links = {
        "a-b": {"forward": {"paused_ns": paused}, "backward": {"paused_ns": 0}},
        "b-c": {"forward": {"paused_ns": paused // 2}, "backward": {"paused_ns": 0}},
    }
    late = {"delivery": lateness(delivery, most), "ingress": lateness(0, 0)}
    waits = {"a": [Share(0, 5 * SECOND, 0.0), Share(5 * SECOND, 10 * SECOND, 2 * wait)]}
    return margins.of_run(plan(), {"links": links}, late, waits, 10 * SECOND)


def weighed(throughput: float, rtt: float, known: dict[str, Margin]):
    measured = [
        Measurement(name="tcp", metric="throughput", unit="bit/s", mean=throughput),
        Measurement(name="rtt", metric="rtt_mean", unit="ns", mean=rtt),
    ]
    claims, verdict = margins.weigh(plan(), measured, known, Verdict())
    return [one.outcome for one in claims], verdict, [one.why for one in claims]


def test_an_idle_machine_costs_nothing():
    assert found() == {"tcp": Margin(), "rtt": Margin()}
    outcomes, verdict, _ = weighed(92.99e6, 2.001e6, found())
    assert outcomes == ["fails", "fails"]
    assert verdict == Verdict()


def test_pauses_count_by_the_length_of_the_flow_and_the_worst_link():
    assert found(paused=40 * MS)["tcp"].share == pytest.approx(0.005)
    assert found(paused=40 * MS, wait=0.02)["tcp"].share == pytest.approx(0.025)
    assert found(paused=SECOND, wait=1.0)["tcp"].share == 0.99


def test_lateness_counts_at_every_crossing():
    known = found(delivery=30_000, most=5 * MS)
    assert known["tcp"].late == pytest.approx(4 * 30e-6)
    assert known["rtt"].late == pytest.approx(2 * 30e-6)
    assert known["rtt"].worst == pytest.approx(5e-3 + 2 * 30e-6)


def test_goodput_0_4_percent_low_is_not_decided_where_the_link_stood_still_for_0_5_percent():
    outcomes, verdict, whys = weighed(93e6 * 0.996, 1e6, found(paused=40 * MS))
    assert outcomes == ["undecided", "holds"]
    assert verdict.status == "degraded"
    assert verdict.codes == ("claim.undecided",)
    assert "the claim rate is missed by no more than this machine may have cost" in verdict.reasons[0]
    assert "tcp up to 0.5 % of a rate" in verdict.reasons[0]
    assert "not decided" in whys[0]


def test_goodput_0_6_percent_low_fails_all_the_same():
    outcomes, verdict, whys = weighed(93e6 * 0.994, 1e6, found(paused=40 * MS))
    assert outcomes == ["fails", "holds"]
    assert verdict == Verdict()
    assert "not decided" not in whys[0]


@pytest.mark.parametrize(("rtt", "decided"), [(2.05e6, False), (2.07e6, True)])
def test_durations_are_decided_beyond_the_lateness(rtt: float, decided: bool):
    outcomes, verdict, _ = weighed(94e6, rtt, found(delivery=30_000))
    assert outcomes == ["holds", "fails" if decided else "undecided"]
    assert (verdict.status == "valid") == decided


def test_a_worse_verdict_stays():
    measured = [Measurement(name="tcp", metric="throughput", unit="bit/s", mean=92.9e6)]
    _, verdict = margins.weigh(plan(), measured, found(paused=40 * MS), Verdict(status="invalid"))
    assert verdict.status == "invalid"


VALUES = {
    "one.throughput": Quantity(99e6, RATE),
    "two.throughput": Quantity(100e6, RATE),
    "one.rtt_max": Quantity(0.010, TIME),
    "one.loss": Quantity(0.01, PLAIN),
}
KNOWN = {"one": Margin(0.05, 0.0001, 0.002), "two": Margin(0.05, 0.0001, 0.002)}


@pytest.mark.parametrize(
    ("text", "decided"),
    [
        ("one.throughput >= 104 Mbit/s", False),
        ("one.throughput >= 105 Mbit/s", True),
        ("one.throughput <= 98 Mbit/s", True),
        # Better by a part of what it may have lost, not by all of it.
        ("one.throughput within 0.1 % of 100 Mbit/s", False),
        # One of the two may have been slowed without the other.
        ("one.throughput >= two.throughput", False),
        ("one.throughput >= two.throughput * 1.1", True),
        ("one.rtt_max <= 8.1 ms", False),
        ("one.rtt_max <= 7.9 ms", True),
        # Nothing bounds what the machine did to a loss.
        ("one.loss == 0", True),
        ("one.throughput >= 104 Mbit/s and one.loss == 0", True),
        ("three.throughput >= 1 Mbit/s", True),
    ],
)
def test_what_would_have_held_without_the_machine(text: str, decided: bool):
    def values(name: str) -> Quantity:
        if name not in VALUES:
            raise Unmeasured(f"{name} was not measured")
        return VALUES[name]

    assert margins.is_decided(text, values, KNOWN) == decided


SLICES = """
name: slices
media: {air: {}}
nodes:
  n1: {position: [0 m, 0 m], radios: {w0: , w1: }}
  n2: {position: [1 m, 0 m], radios: {w0: , w1: }}
slices:
  one: {grant: {nodes: [n1, n2], channels: [36]}}
  two: {grant: {nodes: [n1, n2], channels: [40]}}
measurements:
  - {name: a, traffic: {from: n1-one, to: n2-one, rate: 1 Mbit/s}}
  - {name: b, traffic: {from: n1-one, to: n2-one, rate: 1 Mbit/s}}
"""
SECOND_FLOW = "  - {name: c, traffic: {from: n1-two, to: n2-two, rate: 1 Mbit/s}}\n"


def test_the_hosts_part_of_the_coupling_is_that_of_a_slices_worst_flow():
    known = {"a": Margin(0.01, 1e-6, 2e-6), "b": Margin(0.002, 5e-6, 6e-6), "c": Margin()}
    one, two = margins.of_slices(check(read(SLICES + SECOND_FLOW)).plans[0], known)
    assert one.startswith("slice one: coupling by the host is up to 1 % of a rate, up to 5 us")
    assert two.startswith("slice two: coupling by the host is up to 0 % of a rate, up to 0 s")
    assert margins.of_slices(check(read(SLICES)).plans[0], known) == []
    assert margins.of_slices(plan(), known) == []
