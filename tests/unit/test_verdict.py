from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import airloom
from airloom import results
from airloom.scenario.model import Limits
from airloom.verdict import (
    Evidence,
    Lateness,
    Pacing,
    Share,
    Verdict,
    disturbed,
    judge,
    stretches,
)

SECOND = 1_000_000_000
MS = 1_000_000


def shares(*values: float, step: int = SECOND // 2) -> list[Share]:
    return [Share(i * step, (i + 1) * step, value) for i, value in enumerate(values)]


def test_a_clean_run_is_valid_without_reasons():
    evidence = Evidence(
        offered=1000,
        delivery=Lateness(p50=20_000, p99=90_000, p999=200_000, max=900_000, count=1000),
        cpu_pressure=shares(0.01, 0.05, 0.19),
    )
    assert judge(evidence, Limits()) == Verdict(status="valid")


def test_one_frame_lost_by_the_host_makes_a_run_invalid():
    evidence = Evidence(
        offered=1000, host_lost={"ring-full": 1}, host_lost_by_port={"h2:eth0": {"ring-full": 1}}
    )
    verdict = judge(evidence, Limits())
    assert verdict.status == "invalid"
    (reason,) = verdict.reasons
    assert verdict.codes == ("host.lost",)
    assert "1 frame, 0.1 % of those offered: h2:eth0 1 (ring-full)" in reason


def test_loss_at_many_ports_names_the_worst_three():
    by_port = {f"n{i}:eth0": {"ring-full": i} for i in range(1, 6)}
    evidence = Evidence(offered=100, host_lost={"ring-full": 15}, host_lost_by_port=by_port)
    sentence = judge(evidence, Limits()).reasons[0]
    assert "n5:eth0 5" in sentence
    assert "and 2 more ports" in sentence
    assert "n1:eth0" not in sentence


@pytest.mark.parametrize(
    ("lateness", "status"),
    [
        (Lateness(p50=1, p99=MS, p999=MS, max=20 * MS, count=9), "valid"),
        (Lateness(p50=1, p99=MS + 1, p999=2 * MS, max=3 * MS, count=9), "degraded"),
        (Lateness(p50=1, p99=2, p999=3, max=20 * MS + 1, count=9), "degraded"),
        (Lateness(p50=MS + 1, p99=2 * MS, p999=3 * MS, max=4 * MS, count=9), "invalid"),
        (Lateness(p50=MS + 1, p99=2 * MS, max=4 * MS, count=0), "valid"),
    ],
)
@pytest.mark.parametrize("which", ["delivery", "ingress"])
def test_lateness_is_held_to_its_limits(lateness: Lateness, status: str, which: str):
    assert judge(Evidence(**{which: lateness}), Limits()).status == status


def test_lateness_says_when_where_and_how_much():
    lateness = Lateness(
        p50=10,
        p99=3 * MS,
        max=9 * MS,
        count=9,
        worst=((2 * SECOND, 4 * MS, "a:eth0"), (3 * SECOND, 9 * MS, "b")),
    )
    sentence = judge(Evidence(delivery=lateness), Limits()).reasons[0]
    assert "more than 3 ms (limit 1 ms)" in sentence
    assert "worst at 3.0 s towards b by 9 ms" in sentence


def test_limits_are_the_scenarios():
    lateness = Lateness(p50=1, p99=3 * MS, max=30 * MS, count=9)
    wide = Limits(lateness_p99="5 ms", lateness_max="50 ms")
    assert judge(Evidence(delivery=lateness), wide).status == "valid"


@pytest.mark.parametrize(
    ("field", "code", "words"),
    [
        ("cpu_pressure", "host.cpu-pressure", "short of processors"),
        ("steal", "host.steal", "hypervisor took"),
        ("engine_busy", "engine.busy", "engine's thread"),
        ("memory_pressure", "host.memory-pressure", "short of memory: some task waited for it"),
    ],
)
def test_shortage_for_a_second_degrades_and_says_from_when_to_when(field: str, code: str, words: str):
    verdict = judge(Evidence(**{field: shares(0.0, 0.95, 0.97, 0.0)}), Limits())
    assert verdict.status == "degraded"
    (reason,) = verdict.reasons
    assert verdict.codes == (code,)
    assert words in reason
    assert "96 % " in reason
    assert "from 0.5 s to 1.5 s" in reason


def test_a_host_with_nearly_no_memory_left_is_named():
    verdict = judge(Evidence(memory_taken=shares(0.5, 0.99, 0.99, 0.97)), Limits())
    assert (verdict.status, verdict.codes) == ("degraded", ("host.memory-low",))
    assert "short of memory: 99 % of it was in use from 0.5 s to 1.5 s" in verdict.reasons[0]
    full = judge(Evidence(memory_taken=shares(0.9, 0.97, 0.97), memory_pressure=shares(0.09, 0.09)), Limits())
    assert full.status == "valid"


def test_a_short_peak_of_pressure_is_left_to_the_lateness():
    assert judge(Evidence(cpu_pressure=shares(0.0, 0.9, 0.0, 0.9)), Limits()).status == "valid"


@pytest.mark.parametrize(
    ("paused_ms", "limits", "status"),
    [
        (20, Limits(), "valid"),
        (21, Limits(), "degraded"),
        (500, Limits(), "degraded"),
        (501, Limits(), "invalid"),
        (7_300, Limits(), "invalid"),
        (501, Limits(paused_max="10 %"), "degraded"),
        (90, Limits(paused="1 %"), "valid"),
        (50, Limits(paused="1 %", paused_max="0.1 %"), "invalid"),
    ],
)
def test_a_link_that_stood_still_degrades_a_run_and_then_spoils_it(
    paused_ms: int, limits: Limits, status: str
):
    evidence = Evidence(paused={"a-b forward": paused_ms * MS, "b-c forward": 1}, length=10 * SECOND)
    verdict = judge(evidence, limits)
    assert verdict.status == status
    if status != "valid":
        assert verdict.codes == ("link.paused",)
        limit = limits.paused_max if status == "invalid" else limits.paused
        assert "link a-b forward stood still" in verdict.reasons[0]
        assert f"limit {100 * limit:g} %" in verdict.reasons[0]


def test_there_is_one_class_of_verdicts():
    assert airloom.Verdict is results.Verdict is Verdict
    assert isinstance(judge(Evidence(), Limits()), airloom.Verdict)
    read_back = results.Result.model_validate_json(
        '{"scenario": "s", "seed": 1, "kinds": [], "started": "", "wall_seconds": 1,'
        '"verdict": {"status": "degraded", "reasons": ["r"], "codes": ["c"], "notes": []}}'
    )
    assert isinstance(read_back.verdict, airloom.Verdict)


def test_a_starved_node_is_named():
    verdict = judge(Evidence(node_wait={"h7": shares(0.5, 0.5), "h8": shares(0.1, 0.1)}), Limits())
    (reason,) = verdict.reasons
    assert "node h7 waited for a processor 50 % of the time" in reason
    assert "limit 20 %" in reason


def test_a_share_asked_for_is_a_note_and_no_reason():
    verdict = judge(Evidence(node_throttled={"slow": shares(0.0, 0.5)}), Limits())
    assert verdict.status == "valid"
    assert verdict.notes[0].startswith("node slow used up")
    assert "25 % of the time" in verdict.notes[0]


def test_a_node_that_used_more_than_its_share_is_a_reason_and_has_no_such_note():
    evidence = Evidence(
        node_share={"evil": 0.2, "good": 0.2},
        node_used={"evil": shares(0.2, 1.0, 1.2, 0.1), "good": shares(0.2, 0.22, 0.24, 0.2)},
        node_throttled={"evil": shares(0.5, 0.1), "good": shares(0.0, 0.5)},
    )
    verdict = judge(evidence, Limits())
    (reason,) = verdict.reasons
    assert (verdict.status, verdict.codes) == ("degraded", ("node.share",))
    assert "node evil used 110 % of a processor from 0.5 s to 1.5 s" in reason
    assert "its share of 20 %" in reason
    (note,) = verdict.notes
    assert note.startswith("node good used up")


def test_a_share_is_judged_by_whole_seconds():
    evidence = Evidence(node_share={"a": 0.1}, node_used={"a": shares(0.1, 0.9, 0.1)})
    assert judge(evidence, Limits()).status == "valid"


def test_pacing_names_the_measurement():
    verdict = judge(Evidence(pacing=[Pacing("voice", 2 * MS, 7 * MS), Pacing("bulk", 1, 2)]), Limits())
    (reason,) = verdict.reasons
    assert "voice" in reason
    assert "2 ms" in reason


def test_a_source_may_be_as_late_as_its_node_waits_for_its_turn():
    flow = Pacing("voice", 100 * MS, 101 * MS, waits=100 * MS)
    assert judge(Evidence(pacing=[flow]), Limits()).status == "valid"
    assert judge(Evidence(pacing=[replace(flow, p99=102 * MS)]), Limits()).codes == ("traffic.pacing",)


def test_turns_that_were_not_kept_degrade_the_run():
    verdict = judge(Evidence(late_turns=["turns t: late"]), Limits())
    assert (verdict.status, verdict.codes, verdict.reasons) == (
        "degraded",
        ("turns.late",),
        ("turns t: late",),
    )


def test_what_cannot_be_observed_is_said():
    notes = judge(Evidence(blind=["processor pressure (no /proc/pressure)"]), Limits()).notes
    assert notes == ("not observed on this machine: processor pressure (no /proc/pressure)",)


def test_the_gravest_reason_comes_first():
    evidence = Evidence(
        host_lost={"ring-full": 5}, steal=shares(0.5, 0.5), delivery=Lateness(p99=2 * MS, count=1)
    )
    assert judge(evidence, Limits()).codes[0] == "host.lost"


@given(st.lists(st.floats(0, 1), max_size=30), st.floats(0, 1))
def test_stretches_lie_in_the_samples_and_above_the_limit(values: list[float], limit: float):
    samples = shares(*values)
    previous = -1
    for stretch in stretches(samples, limit):
        assert stretch.end - stretch.start >= SECOND
        assert stretch.start > previous or previous == -1
        assert stretch.value >= limit - 1e-9
        previous = stretch.end


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ((), False),
        (("delivery.late",), True),
        (("host.steal", "claim.undecided"), True),
        (("turns.late",), True),
        # Another run must not depend on the figures of the first.
        (("claim.undecided",), False),
        (("kind.ceiling", "traffic.pacing", "node.share"), False),
    ],
)
def test_only_what_the_machine_did_asks_for_another_run(codes: tuple[str, ...], expected: bool) -> None:
    status = "degraded" if codes else "valid"
    assert disturbed(Verdict(status=status, codes=codes, reasons=codes)) == expected


def test_notes_that_differ_by_numbers_only_are_together() -> None:
    said = (
        "slice one: up to 0.51 % of a rate, 53.2 us of a mean",
        "slice two: up to 0.4 % of a rate, 7 us of a mean",
        "slice one: up to 1 % of a rate, 1.2 ms of a mean",
        "node n1 had 3 processors",
        "node n2 had 1,024 processors",
    )
    first, second, third, fourth, fifth = said
    assert Verdict(notes=said).notes_by_words() == [[first, third], [second], [fourth, fifth]]


def test_the_gravest_reason_comes_first_also_in_a_sweep():
    from airloom.results.sweep import worst
    from airloom.verdict import Reason

    slow = Verdict.of([Reason("degraded", "host.cpu-pressure", f"slow {n}") for n in range(9)])
    lost = Verdict.of([Reason("degraded", "engine.busy", "busy"), Reason("invalid", "host.lost", "lost")])
    whole = worst([("q=1 #1", slow), ("q=1 #2", lost)])
    assert whole.status == "invalid"
    assert whole.reasons[:2] == ("q=1 #2: lost", "q=1 #1: slow 0")
    assert whole.codes[0] == "host.lost"
    assert whole.severities == ("invalid", *["degraded"] * 10)
    assert [code for code, _ in whole.by_code()] == ["host.lost", "host.cpu-pressure", "engine.busy"]
    more = whole.also("degraded", "results.disk-full", "full")
    assert more.reasons[:2] == ("q=1 #2: lost", "full")


def test_reasons_of_an_older_file_have_the_severity_of_their_run():
    old = Verdict(status="invalid", reasons=("one", "two"), codes=("a",))
    assert [(cause.status, cause.code) for cause in old.causes] == [("invalid", "a"), ("invalid", "")]
    assert old.by_code() == [("a", ["one"]), ("", ["two"])]


def test_a_stopped_program_degrades_the_run():
    from airloom.verdict import Stopped

    stop = Stopped("load", "server", "b", "iperf3", 2 * SECOND, 4 * SECOND)
    verdict = judge(Evidence(stopped=[stop]), Limits())
    assert (verdict.status, verdict.codes) == ("degraded", ("measure.stopped",))
    assert "iperf3, the server of load in node b, was stopped" in verdict.reasons[0]
    assert "from 2.0 s to 4.0 s" in verdict.reasons[0]


def test_pressure_that_another_run_hides_is_no_valid_run():
    verdict = judge(Evidence(hidden_pressure=shares(1, 1, 1)), Limits())
    assert (verdict.status, verdict.codes) == ("degraded", ("host.pressure-hidden",))
    assert "`engine: {idle: poll}`" in verdict.reasons[0]
    assert judge(Evidence(hidden_pressure=shares(0, 1, 0)), Limits()).status == "valid"
