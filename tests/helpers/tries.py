"""Retries of a test of real nodes or commands, if the verdict of one of its runs reports a busy machine.

A test marked ``world``, or of ``tests/e2e``, that fails by an assertion is tried again in a new folder if a
run below its ``tmp_path``, or a network of a Mininet script whose verdict is a file there, has a verdict
other than ``valid``. A test whose runs are all ``valid`` fails at once; so does one whose run has not
finished, which says nothing of the machine. Without any verdict the machine is asked: such a test is tried
again if tasks waited for a processor during more than ``PRESSURE`` of its time. The last try counts with any
verdict; that of a test that measures the machine runs alone, as others of them may be what made it busy. All
tries beyond the first are listed after the tests; more than ``BUDGET`` of them fail the suite. The time
limit of a test includes all its tries.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

MOST = 3
"""Maximum number of tries of one test."""
BUDGET = 10
"""Maximum number of tries beyond the first, of all tests together."""
PRESSURE = 0.5
"""Share of a test's time in which tasks waited for a processor: the kernel's pressure stall information."""
_COMMANDS = Path(__file__).parents[1] / "e2e"
_STALLED = Path("/proc/pressure/cpu")
_PROPERTY = "tried again"
_UNFINISHED = "run.unfinished"
"""Code of the verdict of a run that has not finished."""
_QUEUE, _MACHINE = Path(__file__), Path(__file__).parent
"""What tests that measure lock: the queue until they may start, the machine while they run."""
_DOUBT = pytest.StashKey[str]()
_BEGIN = pytest.StashKey[tuple[float, float]]()


class Tries:
    """Runs tests, and tries again those that a busy machine may have failed."""

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if item.get_closest_marker("world") is None and _COMMANDS not in item.path.parents:
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        measures = item.get_closest_marker("measures") is not None
        for number in range(1, MOST + 1):
            item.stash[_DOUBT] = ""
            item.stash[_BEGIN] = time.monotonic(), stalled()
            with measuring(alone=number == MOST) if measures else nullcontext():
                reports = runtestprotocol(item, log=False, nextitem=nextitem)
            doubt = item.stash[_DOUBT]
            if not doubt or number == MOST:
                break
            item.user_properties.append((_PROPERTY, doubt))
            # A test releases its request and its fixtures at its end.
            item._initrequest()  # type: ignore[attr-defined]
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        error = call.excinfo
        if call.when == "call" and error is not None and error.errisinstance(AssertionError):
            folder = getattr(item, "funcargs", {}).get("tmp_path")
            verdicts = verdicts_of(folder) if folder is not None else []
            doubt = doubt_of(verdicts) if verdicts else doubt_since(*item.stash.get(_BEGIN, (0.0, 0.0)))
            item.stash[_DOUBT] = doubt and f"{doubt} ({error.exconly().splitlines()[0]})"
        return (yield)


@contextmanager
def measuring(alone: bool) -> Iterator[None]:
    """Runs a test beside others that measure this machine, of all processes, or while none of them runs.

    A test that runs alone keeps the lock of the queue: no other test starts while it waits for those that
    run, else it might wait for ever.
    """
    with ExitStack() as locks:
        queue = locks.enter_context(ExitStack())
        queue.enter_context(_locked(_QUEUE, fcntl.LOCK_EX))
        locks.enter_context(_locked(_MACHINE, fcntl.LOCK_EX if alone else fcntl.LOCK_SH))
        if not alone:
            queue.close()
        yield


@contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    """Locks a file or a folder, which need not be writable."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(file, how)
        yield
    finally:
        # To close it is not enough: a process that was forked meanwhile has it open too.
        fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)


def verdicts_of(folder: Path) -> list[dict[str, Any]]:
    """Returns the verdicts of runs and networks below a folder that can be read."""
    verdicts = []
    for path in (*sorted(folder.rglob("result.json")), *sorted(folder.rglob("verdict-*.json"))):
        with suppress(OSError, ValueError, KeyError, TypeError):  # A test may damage the results of its run.
            read = json.loads(path.read_text())
            verdict = read["verdict"] if path.name == "result.json" else read
            verdicts.append({"status": verdict["status"], **verdict})
    return verdicts


def doubt_of(verdicts: Iterable[dict[str, Any]]) -> str:
    """Returns why finished runs can't be trusted; empty if all can."""
    doubts = [
        f"{verdict['status']}: {'; '.join(verdict.get('reasons', ()))}"
        for verdict in verdicts
        if verdict["status"] != "valid" and _UNFINISHED not in verdict.get("codes", ())
    ]
    return "; ".join(dict.fromkeys(doubts))


def doubt_since(begin: float, before: float) -> str:
    """Returns for how much of the time since then tasks waited for a processor; empty if that is normal."""
    share = (stalled() - before) / max(time.monotonic() - begin, 1e-3)
    return f"without a verdict: processors were short for {share:.0%} of its time" if share > PRESSURE else ""


def stalled() -> float:
    """Returns the seconds in which a task of this machine waited for a processor; 0 without PSI."""
    try:
        return int(_STALLED.read_text().split("total=", 1)[1].split()[0]) / 1e6
    except (OSError, IndexError, ValueError):
        return 0.0


class Summary:
    """Counts the tries of all tests, in all worker processes, and checks the budget."""

    def __init__(self) -> None:
        self.tried: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            said = [str(doubt) for name, doubt in report.user_properties if name == _PROPERTY]
            self.tried += [f"{report.nodeid}: {doubt}" for doubt in said]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if len(self.tried) > BUDGET and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.tried:
            return
        terminalreporter.section(f"{len(self.tried)} of at most {BUDGET} more tries")
        for line in self.tried:
            terminalreporter.line(line)
        if len(self.tried) > BUDGET:
            terminalreporter.line("FAILED: more tries than the suite may have", red=True)


def register(config: pytest.Config) -> None:
    """Registers the plugins: tries in each process, their count where the summary is written."""
    config.pluginmanager.register(Tries(), "airloom-tries")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Summary(), "airloom-summary")
