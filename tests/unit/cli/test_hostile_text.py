"""Text of a user that looks like markup, a URL or a terminal's control: each command ends in words."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from airloom.cli import app
from airloom.errors import LabError

pytestmark = pytest.mark.timeout(240)

VALUES = [
    "[/red]", "[red]x[/blue]", "[link=x]", "http://[::1", "http://[/red]", "http://h:99999", "://",
    "http://x y", "\x1b[31m", "é", "a\nb", "[" * 50, "%s{0}", "-",
]  # fmt: skip
COMMANDS = [
    ["image", "pull", "VALUE"],
    ["image", "make", "TMP/VALUE", "sh"],
    ["image", "make", "TMP/x.oci", "VALUE"],
    ["grid", "login", "--url", "VALUE", "--token", "t"],
    ["grid", "login", "--url", "http://127.0.0.1:9", "--token", "VALUE"],
    ["grid", "lab", "VALUE"],
    ["grid", "serve", "VALUE"],
    ["grid", "serve", "x", "--proxy", "VALUE"],
    ["grid", "rspec", "scenario", "VALUE"],
    ["oml", "send", "TMP", "--to", "VALUE"],
    ["oml", "collect", "--out", "TMP/o", "--listen", "VALUE"],
    ["check", "VALUE"],
    ["run", "VALUE"],
    ["report", "VALUE"],
    ["compare", "VALUE", "VALUE"],
    ["experiment", "run", "VALUE"],
    ["experiment", "unpack", "VALUE", "-o", "TMP/u"],
    ["experiment", "pack", "VALUE", "-o", "TMP/p.zip"],
    ["bench", "VALUE"],
    ["calibrate", "VALUE"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(words))
def test_every_option_takes_hostile_text(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for value in VALUES:
        words = [word.replace("VALUE", value).replace("TMP", str(tmp_path)) for word in command]
        done = CliRunner().invoke(app, words)
        error = done.exception
        assert error is None or isinstance(error, (SystemExit, LabError)), (words, repr(error))
        assert done.exit_code != 0 or command[:2] == ["image", "make"], words
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set(), "a refused command leaves no signal blocked"
