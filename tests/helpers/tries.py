"""Retries of a test that measures the machine, if the run's verdict reports a busy machine.

A test uses the fixture ``tries``, and judges each run before it asserts::

    def test_a_rate(tries):
        for attempt in tries:
            with attempt:
                result = attempt.run(scenario)
                assert rate(result) == pytest.approx(10e6, rel=0.03)

A failed assertion in a run with verdict ``valid`` fails the test at once. The last try counts with
any verdict. All tries beyond the first are listed after the tests; more than ``BUDGET`` of them
fail the suite. The time limit of a test includes all its tries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

import airloom

MOST = 3
"""Maximum number of tries of one test."""
BUDGET = 10
"""Maximum number of tries beyond the first, of all tests together."""
_PROPERTY = "tried again"


class Attempt:
    """One try: its ``number`` from 1, and its own ``folder``, which does not exist yet."""

    def __init__(self, number: int, folder: Path) -> None:
        self.number = number
        self.folder = folder
        self.failed: AssertionError | None = None
        """The failed assertion, if it does not fail the test."""
        self._doubts: list[str] = []

    def run(self, scenario: airloom.Scenario, name: str = "run", **options: Any) -> airloom.RunResult:
        """Runs a scenario in a folder ``name`` of the try's own, and judges the run."""
        result = airloom.run(scenario, out=self.folder / name, **options)
        self.judge(result.verdict.status, result.verdict.reasons)
        return result

    def judge(self, status: str, reasons: Sequence[str] = ()) -> None:
        """Records the verdict of a run and its reasons; the try is as doubtful as any of its runs."""
        if status != "valid":
            self._doubts.append(f"{status}: {'; '.join(reasons)}")

    @property
    def doubt(self) -> str:
        """Returns why a run can't be trusted; empty if all can, or without a verdict."""
        return "; ".join(self._doubts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, AssertionError) and self.doubt and self.number < MOST:
            self.failed = error
        return self.failed is not None


class Tries:
    """The tries of one test, until the first that passes or has a valid verdict."""

    def __init__(self, folder: Path, properties: list[tuple[str, object]]) -> None:
        self._folder = folder
        self._properties = properties

    def __iter__(self) -> Iterator[Attempt]:
        for number in range(1, MOST + 1):
            attempt = Attempt(number, self._folder / f"try-{number}")
            yield attempt
            if attempt.failed is None:
                return
            self._properties.append((_PROPERTY, attempt.doubt))


@pytest.fixture
def tries(tmp_path: Path, request: pytest.FixtureRequest) -> Tries:
    """See the module's docstring."""
    return Tries(tmp_path, request.node.user_properties)


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
