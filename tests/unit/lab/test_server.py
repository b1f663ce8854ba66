from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from airloom.errors import RunError, ScenarioError
from airloom.lab import server as live


class Guest:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def wait(self) -> int:
        code = self.process.wait()
        return 128 - code if code < 0 else code

    def signal(self, number: int) -> None:
        self.process.send_signal(number)


class Host:
    """Runs the programs here, which is all that the door can tell."""

    def __init__(self) -> None:
        self.guests: list[Guest] = []

    def info(self) -> dict[str, Any]:
        return {"nodes": ["h1"]}

    def admit(
        self, node: str, argv: Sequence[str], env: Mapping[str, str], descriptors: Sequence[int], tty: bool
    ) -> Guest:
        if node != "h1":
            raise ScenarioError("node.unknown", f"there is no node {node}", cure="nodes are: h1")
        stdin, stdout, stderr = descriptors
        process = subprocess.Popen(list(argv), stdin=stdin, stdout=stdout, stderr=stderr, env=dict(env))
        self.guests.append(Guest(process))
        return self.guests[-1]


@pytest.fixture
def lab():
    name = f"t{os.getpid()}-{threading.get_ident()}"
    host = Host()
    server = live.LiveServer(name, host)
    yield name, host
    server.close()
    assert name not in [lab.name for lab in live.running()]


def run(name: str, argv: list[str], node: str = "h1") -> tuple[int, bytes]:
    reading, writing = os.pipe()
    with live.Visit(live.find(name)) as visit:
        try:
            visit.start(node, argv, {"WORD": "hello"}, [0, writing, 2], tty=False)
        finally:
            os.close(writing)
        code = visit.wait()
    with os.fdopen(reading, "rb") as pipe:
        return code, pipe.read()


def test_output_and_exit_code_come_through(lab):
    assert run(lab[0], ["/bin/sh", "-c", "echo $WORD; exit 7"]) == (7, b"hello\n")


def test_info(lab):
    with live.Visit(live.find(lab[0])) as visit:
        assert visit.info() == {"nodes": ["h1"]}


def test_an_error_crosses_with_its_code_and_cure(lab):
    with pytest.raises(RunError, match="there is no node h9") as caught:
        run(lab[0], ["true"], node="h9")
    assert (caught.value.code, caught.value.cure) == ("node.unknown", "nodes are: h1")


def test_a_signal_reaches_the_program(lab):
    with live.Visit(live.find(lab[0])) as visit:
        visit.start("h1", ["/bin/sleep", "100"], {}, [0, 1, 2], tty=False)
        visit.signal(15)
        assert visit.wait() == 128 + 15


def test_a_visitor_that_leaves_takes_its_program_along(lab):
    name, host = lab
    with live.Visit(live.find(name)) as visit:
        visit.start("h1", ["/bin/sleep", "100"], {}, [0, 1, 2], tty=False)
    assert host.guests[0].wait() == 128 + 9


def test_an_unknown_laboratory_is_named_with_those_that_are_up(lab):
    with pytest.raises(RunError, match="no laboratory is called nowhere") as caught:
        live.find("nowhere")
    assert lab[0] in (caught.value.cure or "")


def test_nonsense_is_answered_with_an_error(lab):
    with live.Visit(live.find(lab[0])) as visit:
        live._send(visit._socket, {"do": "exec"})
        with pytest.raises(RunError, match="not understood"):
            visit.wait()
