"""Three classes of tests by what they rest on, and what a failure of each says.

*exact*: neither real nodes nor the wall clock. It has one try.

*world*: real nodes or commands, and a function of them: marked ``world``, or in ``tests/e2e``. What a busy
machine can fail says nothing until the test has failed alone: its outcome has ``again``, and
``tools/run-tests`` runs it once more after all others have ended.

*measures*: marked ``measures``; compares a rate, a time or a loss with what it should be. A try that fails
while a verdict below its ``tmp_path`` says that the machine disturbed it is followed by another; the last
one runs while no other test measures. If the machine disturbed every one the test is *inconclusive*: neither
passed nor failed. If all its verdicts are valid it fails at once; without a verdict it is like *world*.

Outcomes of all processes go to the file of ``--outcomes``, a line of JSON for each test. The time limit of a
test includes all its tries.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol

if TYPE_CHECKING:
    from airloom.verdict import Verdict

MOST = 3
"""Maximum number of tries of one test that measures."""
LONGEST = 400
"""Characters of a reason or an assertion in the list of tests."""
_TESTS = Path(__file__).parents[1]
_CLASS, _AGAIN, _TRIED, _ASSERTION = "class", "again", "tried again", "assertion"
"""Names of properties of a test's reports."""
INCONCLUSIVE = "inconclusive"
_UNFINISHED = "run.unfinished"
"""Code of the verdict of a run that has not finished."""
_QUEUE, _MACHINE = Path(__file__), Path(__file__).parent
"""What tests that measure lock: the queue until they may start, the machine while they run."""
_DOUBTFUL = {"claim.undecided", "traffic.pacing"}
"""Codes of verdicts that a busy machine brings about, beside those of the machine itself."""
_DOUBT = pytest.StashKey[str]()
_SEEN = pytest.StashKey[bool]()


def class_of(item: pytest.Item) -> str:
    """Returns ``exact``, ``world`` or ``measures``."""
    if item.get_closest_marker("measures") is not None:
        return "measures"
    world = item.get_closest_marker("world") is not None or _TESTS / "e2e" in item.path.parents
    return "world" if world else "exact"


class Tries:
    """Runs the tests of one process by the rule of their class."""

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        kind = class_of(item)
        item.user_properties.append((_CLASS, kind))
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        most = MOST if kind == "measures" else 1
        for number in range(1, most + 1):
            item.stash[_DOUBT], item.stash[_SEEN] = "", False
            with measuring(alone=number == MOST) if kind == "measures" else nullcontext():
                reports = runtestprotocol(item, log=False, nextitem=nextitem)
            doubt = item.stash[_DOUBT]
            if not doubt or number == most:
                break
            item.user_properties.append((_TRIED, doubt))
            # A test releases its request and its fixtures at its end.
            item._initrequest()  # type: ignore[attr-defined]
        for report in reports:
            if report.failed and report.when == "call" and doubt:
                report.outcome = INCONCLUSIVE  # type: ignore[assignment]
                report.longrepr = doubt
            elif report.failed and kind != "exact" and not item.stash[_SEEN]:
                report.user_properties = [*report.user_properties, (_AGAIN, True)]
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        error = call.excinfo
        report = yield
        if error is not None and report.failed:
            said = f"{call.when}: " if call.when != "call" else ""
            said += (error.exconly().splitlines() or [error.typename])[0]
            report.user_properties = [*report.user_properties, (_ASSERTION, shortened(said))]
            folder = getattr(item, "funcargs", {}).get("tmp_path")
            if class_of(item) == "measures" and call.when == "call" and folder is not None:
                verdicts = verdicts_of(folder)
                doubt = doubt_of(verdicts)
                item.stash[_DOUBT] = doubt and f"{shortened(doubt)} ({shortened(said)})"
                item.stash[_SEEN] = bool(verdicts)
        return report


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


def verdicts_of(folder: Path) -> list[Verdict]:
    """Returns the verdicts of finished runs and networks below a folder that can be read."""
    from airloom.verdict import Verdict

    verdicts = []
    for path in (*sorted(folder.rglob("result.json")), *sorted(folder.rglob("verdict-*.json"))):
        with suppress(OSError, ValueError, KeyError, TypeError):  # A test may damage the results of its run.
            read = json.loads(path.read_text())
            verdicts.append(Verdict.model_validate(read["verdict"] if path.name == "result.json" else read))
    return [one for one in verdicts if _UNFINISHED not in one.codes]


def doubt_of(verdicts: Iterable[Verdict]) -> str:
    """Returns how the machine disturbed runs; empty if it disturbed none."""
    from airloom.verdict import disturbed

    doubtful = [one for one in verdicts if disturbed(one) or not _DOUBTFUL.isdisjoint(one.codes)]
    doubts = [f"{one.status}: {'; '.join(one.reasons)}" for one in doubtful]
    return "; ".join(dict.fromkeys(doubts))


def shortened(text: str) -> str:
    """Returns a text of at most ``LONGEST`` characters."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a test."""

    test: str
    kind: str
    """``exact``, ``world`` or ``measures``."""
    outcome: str
    """``passed``, ``failed``, ``skipped`` or ``inconclusive``."""
    seconds: float
    said: str = ""
    """The first line of the first error, or why the test is inconclusive."""
    again: bool = False
    """Whether a failure says nothing until the test has failed alone."""
    tried: tuple[str, ...] = ()
    """Why the machine disturbed tries before the last."""


class Outcomes:
    """Collects the outcomes of tests of all processes, and writes them."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._reports: dict[str, list[pytest.TestReport]] = {}

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        return (INCONCLUSIVE, "I", INCONCLUSIVE.upper()) if report.outcome == INCONCLUSIVE else None

    def pytest_sessionstart(self) -> None:
        if self.path is not None:
            self.path.write_text("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reports = self._reports.setdefault(report.nodeid, [])
        reports.append(report)
        # A test ends with its teardown, or with its process, of which pytest-xdist reports no phase.
        if self.path is not None and report.when not in ("setup", "call"):
            with self.path.open("a") as file:
                file.write(f"{json.dumps(asdict(_outcome(report.nodeid, reports)))}\n")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        outcomes = self.outcomes()
        tried = [f"{one.test}: {why}" for one in outcomes for why in one.tried]
        if tried:
            terminalreporter.section(f"{len(tried)} more tries of tests that measure")
        for line in tried:
            terminalreporter.line(line)
        doubted = [one for one in outcomes if one.outcome == INCONCLUSIVE]
        if doubted:
            terminalreporter.section(f"{len(doubted)} inconclusive: the machine disturbed every try")
        for one in doubted:
            terminalreporter.line(f"{one.test}: {one.said}")

    def outcomes(self) -> list[Outcome]:
        """Returns the outcomes so far, in the order in which tests began to report."""
        return [_outcome(test, reports) for test, reports in self._reports.items()]


def _outcome(test: str, reports: list[pytest.TestReport]) -> Outcome:
    found = {report.outcome for report in reports}
    outcome = next((one for one in ("failed", INCONCLUSIVE, "skipped") if one in found), "passed")
    properties = [pair for report in reports for pair in report.user_properties]
    named = dict(reversed(properties))
    failed = [report for report in reports if report.failed]
    said = str(named.get(_ASSERTION, ""))
    if outcome == INCONCLUSIVE:
        said = str(next(report.longrepr for report in reports if report.outcome == INCONCLUSIVE))
    # A process of pytest-xdist that ended during a test leaves a report without properties.
    crashed = bool(failed) and _CLASS not in named
    kind = str(named.get(_CLASS) or ("world" if test.startswith(("tests/world/", "tests/e2e/")) else "exact"))
    return Outcome(
        test=test,
        kind=kind,
        outcome=outcome,
        seconds=sum(report.duration for report in reports),
        said=said or (str(failed[0].longrepr).strip().splitlines() or [""])[-1] if failed else said,
        again=bool(failed)
        and kind != "exact"
        and all(dict(one.user_properties).get(_AGAIN) or crashed for one in failed),
        tried=tuple(dict.fromkeys(str(value) for name, value in properties if name == _TRIED)),
    )


def register(parser: pytest.Parser) -> None:
    """Registers the option."""
    parser.addoption("--outcomes", type=Path, help="write the outcome of each test to this file, as JSON")


def configure(config: pytest.Config) -> None:
    """Registers the plugins: rules in each process, outcomes where the summary is written."""
    config.pluginmanager.register(Tries(), "airloom-tries")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Outcomes(config.getoption("outcomes")), "airloom-outcomes")
