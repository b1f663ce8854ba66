"""What earlier runs left on the machine is found, with its size, and what lives is not taken for it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.tools import tool

leftovers = tool("leftovers")


@pytest.fixture
def orphan() -> Iterator[int]:
    """A process with the mark of tests whose parent has ended."""
    text = (
        "import os, subprocess, sys\n"
        "env = {**os.environ, 'AIRLOOM_TEST_MARK': 'x'}\n"
        "child = subprocess.Popen(['sleep', '1000'], env=env, stdout=subprocess.DEVNULL)\n"
        "print(child.pid)\n"
    )
    pid = int(subprocess.run([sys.executable, "-c", text], stdout=subprocess.PIPE, check=True).stdout)
    yield pid
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_a_process_of_tests_without_a_parent_is_found(orphan: int) -> None:
    if leftovers.parent(orphan) != 1:
        pytest.skip("another process than the first adopts orphans here")
    (found,) = [one for one in leftovers.orphans() if one.pid == orphan]
    assert found.what == f"process {orphan}: sleep 1000"
    found.remove()
    until = time.monotonic() + 60
    while [one for one in leftovers.orphans() if one.pid == orphan]:
        assert time.monotonic() < until, "it was not ended"
        time.sleep(0.01)


def test_a_process_whose_parent_lives_is_no_leftover() -> None:
    with subprocess.Popen(["sleep", "1000"], env={**os.environ, "AIRLOOM_TEST_MARK": "x"}) as process:
        try:
            assert process.pid not in [one.pid for one in leftovers.orphans()]
        finally:
            process.kill()


def test_folders_have_their_size_and_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "FOLDERS", {str(tmp_path): ("airloom-try-*",)})
    (tmp_path / "airloom-try-1" / "deep").mkdir(parents=True)
    (tmp_path / "airloom-try-1" / "deep" / "file").write_bytes(b"x" * 100_000)
    (tmp_path / "airloom-try-file").write_bytes(b"y" * 3)
    (tmp_path / "mine").mkdir()
    found = list(leftovers.folders())
    assert [one.path.name for one in found] == ["airloom-try-1", "airloom-try-file"]
    assert found[0].octets >= 100_000
    for one in found:
        one.remove()
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]


def test_control_groups_without_a_process_are_found(tmp_path: Path) -> None:
    for name, processes in (
        ("airloom-1-a", ""),
        ("airloom-1-a/node", ""),
        ("airloom-2-b", "7\n"),
        ("other", ""),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.procs").write_text(processes)
    assert [one.path.name for one in leftovers.groups(tmp_path)] == ["airloom-1-a"]


def test_while_tests_run_nothing_is_taken_for_a_leftover(capsys: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()", "pytest"], stdin=subprocess.PIPE) as running:
        try:
            assert leftovers.tests_running()
        finally:
            running.kill()


def test_a_full_disk_is_said_with_the_amount(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(leftovers, "NEEDED", 1 << 80)
    monkeypatch.setattr(leftovers, "tests_running", lambda: 1)
    monkeypatch.setattr(sys, "argv", ["leftovers"])
    assert leftovers.main() == 1
    said = capsys.readouterr()
    assert "GB free" in said.out
    assert "remove files, or set TMPDIR" in said.err
