"""The OpenFlow part of reports, on made-up messages: nothing was measured."""

from __future__ import annotations

from pathlib import Path

from airloom.report import control, page
from airloom.results import Details, Ledger, RunReader, RunWriter, Verdict
from airloom.results.details import ControlAnswers, ControlMessages

SECOND = 1_000_000_000


def run_of(folder: Path, *, decoded: bool) -> RunReader:
    with RunWriter(folder, scenario="net", seed=1, kinds=("netns",)) as writer:
        if decoded:
            writer.record("control", "PACKET_IN", "1/s", [SECOND, 2 * SECOND], [3.0, 0.0], node="s1")
            writer.record("control", "ERROR", "1/s", [SECOND, 2 * SECOND], [0.0, 1.0], node="s1")
        channel = {"switch": "s1", "controller": "tcp:c0:6653"}
        shared = {**channel, "sender": "switch", "version": "1.3", "octets": 240}
        details = Details(
            control=(
                ControlMessages(**shared, message="PACKET_IN", count=3, first_ns=0, last_ns=SECOND),
                ControlMessages(
                    **shared, message="ERROR", count=1, first_ns=5, last_ns=5, error="OFPET_BAD_MATCH, X"
                ),
            ),
            control_answers=(
                ControlAnswers(
                    **channel,
                    answer="FLOW_MOD",
                    asked=3,
                    asked_per_s=2.0,
                    answered=2,
                    found_by={"addresses": 2},
                    median_ns=1_500_000,
                    p99_ns=2_000_000,
                    max_ns=2_000_000,
                ),
            ),
        )
        writer.finish(Verdict(), Ledger(), details=details if decoded else Details())
    return RunReader(folder)


def test_messages_errors_and_answers_are_in_the_chapter(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", decoded=True)
    (chapter,) = [one for one in page.chapters(run, lambda step, share: None) if one.title == "OpenFlow"]
    messages, answers = chapter.tables
    shown = [[cell.text for cell in row] for row in messages.rows]
    assert shown[0] == ["s1", "tcp:c0:6653", "switch", "PACKET_IN", "1.3", "3", "240", "0.000 s", "1.000 s"]
    assert messages.rows[1][3].text == "ERROR: OFPET_BAD_MATCH, X"
    assert messages.rows[1][3].tone == "bad"
    assert [cell.text for cell in answers.rows[0]][2:7] == ["3", "2 /s", "FLOW_MOD", "2", "1.5 ms"]
    (drawing,) = chapter.drawings
    assert "s1: 4 messages" in drawing.alt
    assert "PACKET_IN" in drawing.svg("x")


def test_a_run_without_control_channels_has_no_chapter(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", decoded=False)
    assert control.drawing(run, run.samples()) is None
    assert all(one.title != "OpenFlow" for one in page.chapters(run, lambda step, share: None))
