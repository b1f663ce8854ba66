"""What a killed process is said to have left behind."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.leftovers import Traces

pytestmark = pytest.mark.world


@contextlib.contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs a command before it waits; the command has ended here."""
    words = [*command, "sh", "-c", "echo up; exec sleep 100"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            yield process
        finally:
            process.kill()


def test_a_number_of_a_namespace_that_another_one_gets_is_not_left(tmp_path: Path) -> None:
    with started("unshare", "--uts") as process:
        traces = Traces.of(process.pid, tmp_path)
    assert [name.partition(":")[0] for name in traces.namespaces] == ["uts"]
    with started("unshare", "--uts"):
        assert traces.left() == []
    traces.wait_gone()


def test_a_namespace_that_another_process_is_in_is_left(tmp_path: Path) -> None:
    with started("unshare", "--net") as process:
        traces = Traces.of(process.pid, tmp_path)
        with started("nsenter", "--net", "--target", str(process.pid)):
            process.kill()
            process.wait()
            assert traces.left() == [f"namespace {name}" for name in traces.namespaces]
    traces.wait_gone()


def test_a_process_that_lives_is_left(tmp_path: Path) -> None:
    with started("env") as process:
        traces = Traces.of(process.pid, tmp_path)
        assert traces.left() == [f"process {process.pid}"]
    traces.wait_gone()
