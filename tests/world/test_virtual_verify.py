"""`airloom run --verify`: the same run twice, the second time on a disturbed machine."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.kernels import needs_virtual_time
from helpers.virtual import scenario

pytestmark = [pytest.mark.world, pytest.mark.timeout(300)]

PING = {"name": "rtt", "ping": {"from": "h1", "to": "h2", "count": 5, "interval": "200 ms"}}


def airloom(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "airloom", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)


def verified(folder: Path, **parts: Any) -> subprocess.CompletedProcess[str]:
    file = folder / "scenario.yaml"
    file.write_text(scenario(**parts).to_yaml())
    return airloom("run", file, "--verify", "--quiet", "--out", folder / "out")


@needs_virtual_time
def test_the_same_runs_are_said_to_be_identical(tmp_path: Path) -> None:
    done = verified(tmp_path, measurements=[PING])
    assert done.returncode == 0, done.stderr
    found = re.search(r"identical: (\d+) files, (\d+) frames", done.stdout)
    assert found is not None
    assert int(found[1]) > 5
    assert int(found[2]) >= 20, "two frames of each of five pings, at both nodes"
    assert (tmp_path / "out-verified/result.json").exists()


@pytest.fixture
def counter() -> Iterator[Path]:
    """A file of this machine whose octets are others each time: what no run may depend on.

    A guest has a /tmp of its own, but sees where this interpreter is installed.
    """
    folder = tempfile.TemporaryDirectory(dir=sys.prefix)
    Path(folder.name).chmod(0o755)
    path, ended = Path(folder.name) / "counter", threading.Event()

    def count() -> None:
        number = 1000
        while not ended.wait(0.02):
            # In one act, so that a program always finds a whole number.
            new = path.with_suffix(".new")
            new.write_text(str(number))
            new.rename(path)
            number += 1

    path.write_text("0")
    thread = threading.Thread(target=count)
    thread.start()
    yield path
    ended.set()
    thread.join()
    folder.cleanup()


@needs_virtual_time
def test_what_a_program_takes_from_this_machine_is_found_and_named(tmp_path: Path, counter: Path) -> None:
    text = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(open({str(counter)!r}, "rb").read(), ("10.0.0.2", 7000))
"""
    reads = {
        "node": "h1",
        "at": "700 ms",
        "run": [sys.executable, "-c", text],
    }
    done = verified(tmp_path, programs=[reads], measurements=[PING])
    assert done.returncode == 1, done.stdout
    said = " ".join(done.stderr.split())
    assert re.search(
        r"the two runs differ first at 0\.7\d+ s on node h1: frame \d+ of h1:eth0: octet \d+", said
    )
    assert "captures/h1.eth0.pcapng" in said
    assert "[virtual.different]" in said


def test_wall_time_and_resuming_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(scenario(time="wall").to_yaml())
    done = airloom("run", file, "--verify", "--out", tmp_path / "out")
    assert (done.returncode, "add --time virtual" in done.stderr) == (2, True), done.stderr
    done = airloom("run", file, "--verify", "--resume", "--time", "virtual", "--out", tmp_path / "out")
    assert (done.returncode, "leave out --resume" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "out").exists()
