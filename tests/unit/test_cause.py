"""The named resource: planted faults in invented evidence, and no accusation without a fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloom.cause import find, with_cause
from airloom.host import clocks
from airloom.report import tables
from airloom.results.sweep import worst
from airloom.scenario.model import Limits
from airloom.verdict import Evidence, Lateness, Pacing, Share, Verdict, judge

SECOND = 1_000_000_000
MS = 1_000_000
BEGIN, END = 3, 7
"""Seconds of the fault, of ten."""


def over(fault: float, otherwise: float = 0.02) -> list[Share]:
    """A share in each second of a run: ``fault`` during the fault."""
    return [
        Share(at * SECOND, (at + 1) * SECOND, fault if BEGIN <= at < END else otherwise) for at in range(10)
    ]


CLEAN = Evidence(
    offered=100_000,
    delivery=Lateness(p50=20_000, p99=90_000, p999=200_000, max=900_000, count=100_000),
    cpu_pressure=over(0.05),
    steal=over(0.0, 0.0),
    memory_pressure=over(0.0, 0.0),
    engine_busy=over(0.3),
    engine_wait=over(0.02),
    node_wait={"h1": over(0.02), "h2": over(0.02)},
    node_used={"h1": over(0.3), "h2": over(0.2)},
    processors=2,
    processors_used=over(0.4, 0.4),
    interrupts=over(0.03),
    neighbours=over(0.02),
    node_kinds={"h1": "netns", "h2": "netns"},
)
LATE = Lateness(p50=20_000, p99=3 * MS, p999=20 * MS, max=60 * MS, count=100_000)


def short(amount: float, **more: Any) -> Evidence:
    """Processors were short: tasks, the engine and a node waited, and frames were late."""
    return replace(
        CLEAN,
        delivery=LATE,
        cpu_pressure=over(amount),
        engine_wait=over(amount / 2),
        node_wait={"h1": over(amount), "h2": over(amount / 3)},
        processors_used=over(0.99),
        **more,
    )


def lost(reason: str, **more: Any) -> Evidence:
    return replace(CLEAN, host_lost={reason: 900}, host_lost_by_port={"h2:eth0": {reason: 900}}, **more)


Fault = Callable[[float], Evidence]
FAULTS: dict[str, Fault] = {
    "the clock": lambda x: replace(CLEAN, delivery=LATE, clock=f"this machine was suspended for {x:.2g} s"),
    "this machine's memory": lambda x: short(0.5, memory_pressure=over(0.2 + x / 2)),
    "the hypervisor": lambda x: short(0.5, steal=over(0.1 + x / 2)),
    "interrupt work": lambda x: short(0.5, interrupts=over(0.5 + x / 3), neighbours=over(0.05)),
    "a neighbour on this machine": lambda x: short(0.5 + x / 2, neighbours=over(0.4 + x / 2)),
    "a guest": lambda x: short(
        0.5, node_used={"h1": over(1.0 + x / 2), "h2": over(0.2)}, node_kinds={"h1": "uml", "h2": "netns"}
    ),
    "this machine's processors": lambda x: short(0.5 + x / 2, node_used={"h1": over(0.8), "h2": over(0.7)}),
    "the engine's thread": lambda x: replace(CLEAN, delivery=LATE, engine_busy=over(0.92 + x / 20)),
    "a node's share": lambda x: replace(
        CLEAN,
        pacing=(Pacing("flow", 5 * MS, 80 * MS),),
        node_throttled={"h1": over(0.5 + x / 2, 0.4)},
        node_share={"h1": 0.1},
    ),
    "a node's processors": lambda x: replace(
        CLEAN, node_wait={"h1": over(0.3 + x / 2), "h2": over(0.01)}, processors_used=over(0.5)
    ),
    "a ring": lambda x: lost("port-overflow", delivery=LATE),
    "a program's socket": lambda x: lost("socket-full"),
    "this machine's neighbour table": lambda x: lost("neighbour-table-full"),
    "idle processors": lambda x: replace(CLEAN, delivery=LATE, halts=True),
}


@pytest.mark.parametrize("resource", FAULTS)
@settings(max_examples=30, deadline=None)
@given(size=st.floats(0, 1))
def test_a_planted_fault_is_named(resource: str, size: float) -> None:
    evidence = FAULTS[resource](size)
    verdict = judge(evidence, Limits())
    assert verdict.status != "valid"
    found = find(verdict, evidence, Limits())
    assert found is not None
    assert found.resource == resource
    assert with_cause(verdict, evidence, Limits()).cause == found.text
    assert found.cure in found.text


def test_a_full_guest_ring_is_the_guest_s() -> None:
    found = find(judge(lost("guest-ring-full"), Limits()), lost("guest-ring-full"), Limits())
    assert found is not None
    assert found.resource == "a guest"
    assert "h2:eth0" in found.sentence


@settings(max_examples=200, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            name: st.lists(st.floats(0, 0.19), min_size=10, max_size=10)
            for name in (
                "cpu_pressure",
                "engine_wait",
                "engine_busy",
                "interrupts",
                "neighbours",
                "processors_used",
            )
        }
    ),
    st.booleans(),
    st.sampled_from(["", "the clock source hpet is slow to read"]),
)
def test_a_clean_run_accuses_nobody(shares: dict[str, list[float]], halts: bool, clock: str) -> None:
    evidence = replace(
        CLEAN,
        **{
            name: [Share(at * SECOND, (at + 1) * SECOND, value) for at, value in enumerate(values)]
            for name, values in shares.items()
        },
        halts=halts,
        clock=clock,
    )
    verdict = judge(evidence, Limits())
    assert verdict.status == "valid"
    assert with_cause(verdict, evidence, Limits()) == verdict


def test_what_no_rule_explains_accuses_nobody() -> None:
    late = replace(CLEAN, delivery=LATE)
    assert find(judge(late, Limits()), late, Limits()) is None


def test_a_stopped_program_and_a_ceiling_are_not_the_machine_s() -> None:
    ceiling = replace(CLEAN, above_ceiling=("too many packets",), clock="this machine was suspended for 1 s")
    assert find(judge(ceiling, Limits()), ceiling, Limits()) is None


def test_a_neighbour_outside_of_the_shortage_is_not_accused() -> None:
    """The shortage is from 3 to 7 s; a neighbour that came later had no part in it."""
    later = [Share(at * SECOND, (at + 1) * SECOND, 0.8 if at >= 8 else 0.0) for at in range(10)]
    evidence = short(0.5, neighbours=later)
    found = find(judge(evidence, Limits()), evidence, Limits())
    assert found is not None
    assert found.resource == "this machine's processors"


def test_a_share_is_not_accused_where_all_waited() -> None:
    evidence = short(0.9, node_throttled={"h2": over(0.5)}, node_share={"h2": 0.1})
    found = find(judge(evidence, Limits()), evidence, Limits())
    assert found is not None
    assert found.resource == "this machine's processors"


def test_a_sweep_names_the_cause_of_most_of_its_runs() -> None:
    def of(resource: str) -> Verdict:
        evidence = FAULTS[resource](0.5)
        return with_cause(judge(evidence, Limits()), evidence, Limits())

    whole = worst(
        [("a", of("a ring")), ("b", of("the hypervisor")), ("c", of("the hypervisor")), ("d", Verdict())]
    )
    assert whole.resource == "the hypervisor"
    assert whole.cause.endswith("in 2 of 4 runs")
    assert worst([("a", Verdict()), ("b", Verdict())]).cause == ""


def test_another_reason_keeps_the_cause() -> None:
    evidence = FAULTS["a ring"](0)
    verdict = with_cause(judge(evidence, Limits()), evidence, Limits())
    assert verdict.also("degraded", "claim.undecided", "a claim").resource == "a ring"


def test_reasons_have_labels() -> None:
    evidence = FAULTS["the hypervisor"](0.5)
    labels = tables.reason_labels(judge(evidence, Limits()))
    assert "late deliveries" in labels
    assert "processor time stolen" in labels
    assert len(labels) == len(set(labels))


CLOCKS = clocks.Clocks("tsc", 50 * SECOND, 50 * SECOND, 0)


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (clocks.Clocks("tsc", 60 * SECOND, 60 * SECOND, 0), ""),
        (clocks.Clocks("tsc", 60 * SECOND + 900_000, 60 * SECOND, 0), ""),
        (clocks.Clocks("tsc", 60 * SECOND + 4_000_000, 60 * SECOND, 0), "+400 millionths"),
        (clocks.Clocks("tsc", 51 * SECOND + 4_000_000, 51 * SECOND, 0), ""),
        (clocks.Clocks("hpet", 60 * SECOND, 60 * SECOND, 0), "from tsc to hpet"),
        (clocks.Clocks("tsc", 60 * SECOND, 60 * SECOND, 2 * SECOND), "suspended for 2 s"),
    ],
)
def test_the_trouble_of_clocks(after: clocks.Clocks, said: str) -> None:
    found = clocks.trouble(CLOCKS, after)
    assert said in found
    assert bool(said) == bool(found)


def test_the_clocks_of_this_machine_are_read() -> None:
    first, second = clocks.read(), clocks.read()
    assert second.corrected > first.corrected
    assert second.raw > first.raw
