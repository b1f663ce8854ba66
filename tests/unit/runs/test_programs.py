"""Programs on a node that is played, with a clock that jumps: every transition, no waiting."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.errors import RunError
from airloom.nodes.kind import Exit
from airloom.runs.programs import GRACE, PIECE, WINDOW, Reading, Supervised, signal_number
from airloom.runs.timeline import Timeline
from airloom.scenario.command_line import words_of
from airloom.scenario.model import Program
from helpers.fake_node import SECOND, Clock, PlayedNode


class Bench:
    """One program, its node, and a clock that the test moves."""

    def __init__(self, folder: Path, **said) -> None:
        self.clock = Clock()
        self.timeline = Timeline(self.clock)
        self.node = PlayedNode()
        self.log = folder / "log"
        program = Program(node="h1", run="server --port 80", **said)
        self.states: list[str] = []
        self.supervised = Supervised(
            program,
            "h1-server",
            self.log,
            self.node,
            self.timeline,
            changed=lambda one: self.states.append(one.state),
        )
        self.supervised.start()

    def go(self, ns: int = 0) -> None:
        """Does everything that is due until ``ns`` from now, step by step."""
        self.clock.go(self.timeline, ns)

    def exits(self, **how) -> None:
        self.node.started[-1].on_exit(Exit(**how))
        self.go()


def test_a_program_that_ends_as_expected(tmp_path):
    bench = Bench(tmp_path)
    assert bench.supervised.state == "ready"
    bench.exits(code=0)
    assert bench.supervised.state == "ended"
    assert bench.supervised.failure is None


def test_another_exit_code_is_a_failure_with_the_logs_last_lines(tmp_path):
    bench = Bench(tmp_path)
    bench.log.write_text("".join(f"line {i}\n" for i in range(9)) + "address in use\n")
    bench.exits(code=98)
    failure = str(bench.supervised.failure)
    assert "program h1-server in node h1 ended with exit code 98" in failure
    assert "expected was exit code 0" in failure
    assert "| address in use" in failure
    assert "line 3" not in failure


def test_death_by_signal_is_named(tmp_path):
    bench = Bench(tmp_path)
    bench.exits(signal=11)
    assert "was killed by SIGSEGV" in str(bench.supervised.failure)


def test_any_exit_code_is_right_if_none_is_expected(tmp_path):
    bench = Bench(tmp_path, expect=None)
    bench.exits(code=7)
    assert bench.supervised.state == "ended"


def test_a_service_that_ends_by_itself_fails_even_with_the_expected_code(tmp_path):
    bench = Bench(tmp_path, until_end=True)
    bench.exits(code=0)
    assert "though it should live until the end of the run" in str(bench.supervised.failure)


def test_a_service_that_is_stopped_has_not_failed(tmp_path):
    bench = Bench(tmp_path, until_end=True)
    bench.supervised.stop()
    assert bench.node.started[0].signals == [15]
    bench.exits(signal=15)
    assert (bench.supervised.state, bench.supervised.failure) == ("ended", None)


def test_who_does_not_hear_sigterm_gets_sigkill_after_the_grace(tmp_path):
    bench = Bench(tmp_path, until_end=True)
    bench.supervised.stop()
    bench.go(GRACE)
    assert bench.node.started[0].signals == [15, 9]


def test_restart_on_failure_pauses_longer_each_time(tmp_path):
    bench = Bench(tmp_path, restart="on-failure")
    pauses = []
    for _ in range(3):
        before = bench.clock.now
        bench.exits(code=1)
        count = len(bench.node.started)
        while len(bench.node.started) == count:
            bench.go(SECOND // 100)
        pauses.append(round((bench.clock.now - before) / 1e9, 1))
    assert pauses == [0.1, 0.2, 0.4]
    bench.exits(code=0)
    assert bench.supervised.state == "ended"


def test_restart_always_also_after_success(tmp_path):
    bench = Bench(tmp_path, restart="always", until_end=True)
    bench.exits(code=0)
    bench.go(SECOND)
    assert len(bench.node.started) == 2


def test_a_stop_while_waiting_to_be_restarted_holds(tmp_path):
    bench = Bench(tmp_path, restart="always")
    bench.exits(code=1)
    bench.supervised.stop()
    bench.go(10 * SECOND)
    assert len(bench.node.started) == 1
    assert bench.supervised.state == "ended"


def test_ready_when_its_log_says_so(tmp_path):
    bench = Bench(tmp_path, ready={"log": "listening on \\d+"})
    bench.go(SECOND)
    assert bench.supervised.state == "running"
    assert bench.supervised.holds_up
    bench.log.write_text("listening on 80\n")
    bench.go(SECOND)
    assert bench.supervised.state == "ready"
    assert not bench.supervised.holds_up


def test_ready_when_a_port_listens(tmp_path):
    bench = Bench(tmp_path, ready={"port": 80})
    bench.go(SECOND)
    assert bench.supervised.state == "running"
    bench.node.ports.add(80)
    bench.go(SECOND)
    assert bench.supervised.state == "ready"


def test_ready_when_a_command_succeeds_and_asked_again_until_then(tmp_path):
    bench = Bench(tmp_path, ready={"command": "test -e /tmp/up"})
    assert bench.node.started[-1].argv == ["test", "-e", "/tmp/up"]
    bench.exits(code=1)
    assert bench.supervised.state == "running"
    bench.go(SECOND)
    assert len(bench.node.started) == 3
    bench.exits(code=0)
    assert bench.supervised.state == "ready"


def test_too_late_to_be_ready_says_what_was_waited_for(tmp_path):
    bench = Bench(tmp_path, ready={"port": 80, "within": "2 s"})
    bench.go(3 * SECOND)
    assert "was not ready within 2 s: waited for a listener on port 80" in str(bench.supervised.failure)


def test_a_program_that_cannot_be_started(tmp_path):
    bench = Bench(tmp_path)
    bench.exits(code=0)
    bench.node.refuses = True
    bench.supervised.start()
    assert "could not be started: no such program" in str(bench.supervised.failure)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("ping -c 1 h2", ["ping", "-c", "1", "h2"]),
        ("echo 'a b'", ["echo", "a b"]),
        ("sh -c 'a; b'", ["sh", "-c", "a; b"]),
        ('echo "$HOME"', ["/bin/sh", "-c", 'echo "$HOME"']),
        ("X=1 env", ["/bin/sh", "-c", "X=1 env"]),
        ("iperf3 --port=5", ["iperf3", "--port=5"]),
        ("a | b", ["/bin/sh", "-c", "a | b"]),
        (["a", "|"], ["a", "|"]),
    ],
)
def test_words(said, words):
    assert words_of(said) == words


@pytest.mark.parametrize(("name", "number"), [("TERM", 15), ("SIGHUP", 1), ("usr1", 10), ("9", 9)])
def test_signals_by_name(name, number):
    assert signal_number(name) == number


def test_an_unknown_signal_is_refused():
    with pytest.raises(RunError, match="no signal NONSENSE"):
        signal_number("NONSENSE")


def test_a_readiness_pattern_against_a_hostile_line_takes_no_time_to_speak_of(tmp_path):
    """Python's own matcher would take longer than the universe is old."""
    bench = Bench(tmp_path, ready={"log": "(a+)+$", "within": "3 s"})
    bench.log.write_text("a" * 5000 + "!\n" + "b" * 3_000_000)
    bench.go(SECOND)
    assert bench.supervised.state == "running"
    bench.go(3 * SECOND)
    assert bench.supervised.state == "failed"


def test_a_readiness_pattern_is_found_in_a_long_log_and_across_its_pieces(tmp_path):
    bench = Bench(tmp_path, ready={"log": "^server (is )+ready$", "within": "9 s"})
    with bench.log.open("w") as log:
        log.write("x" * (PIECE - 10) + "\nserver is is")
        log.flush()
        bench.go(SECOND)
        assert bench.supervised.state == "running"
        log.write(" ready\n" + "y" * PIECE)
    bench.go(SECOND)
    assert bench.supervised.state == "ready"


def test_the_begin_of_a_line_is_not_found_within_one(tmp_path):
    bench = Bench(tmp_path, ready={"log": "^ready", "within": "9 s"})
    with bench.log.open("w") as log:
        for _ in range(3):
            log.write("x" * (PIECE - WINDOW) + "ready" + "x" * (WINDOW - 5))
            log.flush()
            bench.go(SECOND)
    assert bench.supervised.state == "running"


@pytest.mark.parametrize(
    ("pieces", "pattern", "ready"),
    [
        ([b"aaaa", b"aaaa", b"!\n"], "(a+)+$", False),
        ([b"rea", b"dy\n"], "^ready$", True),
        ([b"ready", b" soon\n"], "ready$", False),
        ([b"ready> "], "ready>", True),
        ([b"up\nhal", b"f"], "^up$", True),
        ([b"listening on 8", b"0\n"], r"on 8$", False),
    ],
)
def test_the_end_of_a_piece_is_no_end_of_a_line(tmp_path, pieces, pattern, ready):
    log = tmp_path / "log"
    reading = Reading(log, 0)
    found = []
    for piece in pieces:
        with log.open("ab") as sink:
            sink.write(piece)
        found.append(reading.has(pattern))
    assert any(found) == ready
