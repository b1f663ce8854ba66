"""What a run says about processors that poll, and what the others see of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from airloom.host import idle_poll

ASKS = "from airloom.host import idle_poll; print(idle_poll.pollers()[0])"


def test_another_process_sees_that_processors_poll_until_the_end() -> None:
    with idle_poll.announced(), idle_poll.announced():
        done = subprocess.run([sys.executable, "-c", ASKS], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n", done.stderr


def test_a_process_that_was_killed_polls_no_longer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By a name of its own: another test may poll meanwhile."""
    monkeypatch.setattr(idle_poll, "_NAME", f"airloom-test-{tmp_path.name}-{id(tmp_path)}")
    assert not idle_poll.pollers()[0]
    script = (
        "import time; from airloom.host import idle_poll\n"
        f"idle_poll._NAME = {idle_poll._NAME!r}\n"
        "with idle_poll.announced():\n"
        "    print('ready', flush=True); time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert idle_poll.pollers()[0]
        process.kill()
    assert not idle_poll.pollers()[0]


def test_own_polling_is_told_from_that_of_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(idle_poll, "_NAME", f"airloom-test-{tmp_path.name}-{id(tmp_path)}")
    asks = f"from airloom.host import idle_poll; idle_poll._NAME = {idle_poll._NAME!r}\n"
    asks += "print(idle_poll.pollers())"
    with idle_poll.announced():
        assert idle_poll.pollers() == (True, False)
        done = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, timeout=60)
    assert done.stdout == "(True, True)\n", done.stderr
    assert idle_poll.pollers() == (False, False)


@pytest.mark.parametrize(("driver", "helps"), [("none\n", True), ("haltpoll\n", False), (None, False)])
def test_polling_helps_where_no_driver_does_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, driver: str | None, helps: bool
) -> None:
    path = tmp_path / "current_driver"
    if driver is not None:
        path.write_text(driver)
    monkeypatch.setattr(idle_poll, "_DRIVER", path)
    assert idle_poll.would_help() is helps
