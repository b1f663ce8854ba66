from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloom import _engine
from airloom.errors import RunError, ScenarioError
from airloom.lab import client as live
from airloom.lab import messages, running
from airloom.lab.server import LiveServer
from airloom.planning.capture import Source


class Program:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def wait(self) -> int:
        code = self.process.wait()
        return 128 - code if code < 0 else code

    def signal(self, number: int) -> None:
        self.process.send_signal(number)


class Laboratory:
    """Runs the programs in this process; the server cannot tell the difference."""

    def __init__(self) -> None:
        self.programs: list[Program] = []
        self.engine = _engine.Engine(1)
        self.engine.add_memory_port("h1:eth0")

    def sources(self) -> dict[str, Source]:
        return {"h1": Source("node", ("h1:eth0",))}

    def info(self) -> dict[str, Any]:
        return {"nodes": ["h1"]}

    def control(self, node: str, action: str) -> None:
        raise ZeroDivisionError

    def apply(
        self, source: Path, *, overrides: Sequence[str], seed: int | None, dry_run: bool
    ) -> Sequence[object]:
        if seed is not None:
            error = ScenarioError("apply.fixed", "the seed stays", where="seed")
            error.further = (ScenarioError("apply.node", "the node stays", where="nodes.h1"),)
            raise error
        return [f"{source} {overrides} {seed} {dry_run}"]

    def described_links(self) -> list[dict[str, Any]]:
        return [{"name": f"l{n}", "text": "x" * 100} for n in range(20_000)]

    def ledger(self) -> Mapping[str, Any]:
        return self.engine.ledger()

    def change_link(self, link: str, direction: str, properties: Mapping[str, Any], up: bool | None) -> None:
        raise ScenarioError("link.unknown", f"{link} {direction} {properties} {up}")

    def admit(
        self, node: str, argv: Sequence[str], env: Mapping[str, str], descriptors: Sequence[int], tty: bool
    ) -> Program:
        if node != "h1":
            raise ScenarioError("node.unknown", f"there is no node {node}", cure="nodes are: h1")
        stdin, stdout, stderr = descriptors
        process = subprocess.Popen(list(argv), stdin=stdin, stdout=stdout, stderr=stderr, env=dict(env))
        self.programs.append(Program(process))
        return self.programs[-1]


@pytest.fixture
def lab():
    name = f"t{os.getpid()}-{threading.get_ident()}"
    host = Laboratory()
    server = LiveServer(name, host, host)
    yield name, host
    server.close()
    assert name not in [lab.name for lab in running.running()]


def run(name: str, argv: list[str], node: str = "h1") -> tuple[int, bytes]:
    reading, writing = os.pipe()
    with live.Client(running.find(name)) as client:
        try:
            client.start(node, argv, {"WORD": "hello"}, [0, writing, 2], tty=False)
        finally:
            os.close(writing)
        code = client.wait()
    with os.fdopen(reading, "rb") as pipe:
        return code, pipe.read()


def test_output_and_exit_code_come_through(lab):
    assert run(lab[0], ["/bin/sh", "-c", "echo $WORD; exit 7"]) == (7, b"hello\n")


def test_descriptions_are_larger_than_a_message(lab):
    with live.Client(running.find(lab[0])) as client:
        links = client.links()
    assert len(json.dumps(links)) > messages.LONGEST
    assert links == lab[1].described_links()
    with live.Client(running.find(lab[0])) as client:
        assert client.ledger() == lab[1].engine.ledger()


def test_a_description_without_a_file_is_refused(lab):
    with live.Client(running.find(lab[0])) as client:
        client._send(messages.Links())
        with pytest.raises(RunError, match="has one descriptor"):
            client._receive("written")


def test_a_change_of_a_link_comes_through(lab):
    with live.Client(running.find(lab[0])) as client, pytest.raises(ScenarioError) as caught:
        client.change_link("h1-h2", "forward", {"delay": "1 ms", "queue": {"packets": 3}}, up=True)
    assert str(caught.value).startswith("h1-h2 forward {'delay': '1 ms', 'queue': {'packets': 3}} True")
    with live.Client(running.find(lab[0])) as client, pytest.raises(RunError, match="direction"):
        client.change_link("h1-h2", "sideways")


def test_info(lab):
    with live.Client(running.find(lab[0])) as client:
        info = client.info()
    assert info.pop("label")
    assert info == {"nodes": ["h1"]}


def test_an_error_crosses_with_its_code_and_cure(lab):
    with pytest.raises(ScenarioError, match="there is no node h9") as caught:
        run(lab[0], ["true"], node="h9")
    assert (caught.value.code, caught.value.cure) == ("node.unknown", "nodes are: h1")


def test_steps_and_all_refusals_cross(lab, tmp_path):
    with live.Client(running.find(lab[0])) as client:
        steps = client.apply(tmp_path / "two.yaml", ["seed=3"], dry_run=True)
    assert steps == [f"{tmp_path / 'two.yaml'} ['seed=3'] None True"]
    with live.Client(running.find(lab[0])) as client, pytest.raises(ScenarioError) as caught:
        client.apply(tmp_path / "two.yaml", seed=7)
    assert [(one.code, one.where, one.exit_code) for one in (caught.value, *caught.value.further)] == [
        ("apply.fixed", "seed", 2),
        ("apply.node", "nodes.h1", 2),
    ]


def test_a_signal_reaches_the_program(lab):
    with live.Client(running.find(lab[0])) as client:
        client.start("h1", ["/bin/sleep", "100"], {}, [0, 1, 2], tty=False)
        client.signal(15)
        assert client.wait() == 128 + 15


def test_a_client_that_leaves_takes_its_program_along(lab):
    name, host = lab
    with live.Client(running.find(name)) as client:
        client.start("h1", ["/bin/sleep", "100"], {}, [0, 1, 2], tty=False)
    assert host.programs[0].wait() == 128 + 9


def test_an_unknown_laboratory_is_named_with_those_that_are_up(lab):
    with pytest.raises(RunError, match="no laboratory is called nowhere") as caught:
        running.find("nowhere")
    assert lab[0] in (caught.value.cure or "")


def test_nonsense_is_answered_with_an_error(lab):
    with live.Client(running.find(lab[0])) as client:
        messages.send(client._socket, {"do": "exec"})
        with pytest.raises(RunError, match="not understood"):
            client.wait()


def test_a_mistake_of_the_laboratory_is_answered_and_ends_nothing(lab):
    with live.Client(running.find(lab[0])) as client, pytest.raises(RunError, match="ZeroDivisionError"):
        client.control("h1", "pause")
    assert run(lab[0], ["true"]) == (0, b"")


def heard(octets: list[bytes], address: str, descriptors: list[int]) -> list[Any]:
    """What the laboratory answers to packets, one after the other, without the client's own checks."""
    answers = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
        channel.settimeout(60)
        channel.connect(address)
        for packet in octets:
            try:
                socket.send_fds(channel, [packet], descriptors)
                answer = channel.recv(1 << 20)
            except (BrokenPipeError, ConnectionResetError):
                break
            answers.append(json.loads(answer) if answer else None)
    return answers


@pytest.fixture(scope="module")
def lasting():
    host = Laboratory()
    server = LiveServer(f"l{os.getpid()}", host, host)
    yield server
    server.close()


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
_MESSAGES = st.dictionaries(
    st.sampled_from(
        ("do", "node", "argv", "env", "tty", "action", "signal", "key", "names", "snap", "filters")
    ),
    _VALUES,
    max_size=6,
)
_DO = st.sampled_from(("hello", "info", "exec", "node", "signal", "sources", "capture", "end"))


@pytest.mark.slow
@given(first=st.binary(min_size=1, max_size=300), known=st.booleans(), message=_MESSAGES, do=_DO)
def test_whatever_a_client_says_the_laboratory_is_there_for_the_next(lasting, first, known, message, do):
    hello = json.dumps({"do": "hello", "key": lasting._key.text}).encode()
    packets = [hello, json.dumps({**message, "do": do}).encode()] if known else [first, first]
    heard(packets, lasting.address, [0])
    assert heard([hello, b'{"do": "info"}'], lasting.address, [])[1]["info"]["nodes"] == ["h1"]


def test_who_has_not_the_key_is_sent_away(lasting):
    for packet in (
        {"do": "hello", "key": "0" * 64},
        {"do": "info"},
        {"do": "exec", "node": "h1", "argv": ["true"]},
    ):
        (answer, *_) = heard([json.dumps(packet).encode()], lasting.address, [])
        assert answer["error"]["code"] == "live.stranger"


# Listens under a name that looks like a laboratory's and prints what it is told.
SQUATTER = """
import json, os, socket, sys
if len(sys.argv) > 2:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
names = json.loads(sys.argv[1])
sockets = []
for name in names:
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.bind(("\\0" + name).replace("PID", str(os.getpid())).encode("utf-8", "surrogateescape"))
    one.listen(8)
    one.settimeout(0.5)
    sockets.append(one)
print("ready", flush=True)
sys.stdin.readline()
for one in sockets:
    try:
        while True:
            client, _ = one.accept()
            client.settimeout(0.5)
            octets, descriptors, _, _ = socket.recv_fds(client, 1 << 20, 8)
            print(len(octets), len(descriptors), flush=True)
    except OSError:
        pass
"""


@pytest.fixture
def squat():
    """Starts a process that listens under names, perhaps as nobody; its end tells what it was sent."""
    processes: list[subprocess.Popen[str]] = []

    def start(names: list[str], *, stranger: bool = False) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", SQUATTER, json.dumps(names), *(["stranger"] if stranger else [])]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def told(process: subprocess.Popen[str]) -> list[tuple[int, int]]:
    """Octets and descriptors of each packet that it was sent."""
    out, _ = process.communicate("\n", timeout=60)
    return [(int(octets), int(count)) for octets, count in (line.split() for line in out.splitlines())]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can play another user")
def test_a_stranger_who_listens_as_a_laboratory_is_told_nothing(lab, squat):
    name = lab[0]
    stranger = squat(
        [f"airloom/{name}/PID/3", f"airloom/{name}/{os.getpid()}/3", "airloom/only/PID/3"], stranger=True
    )
    assert run(name, ["true"]) == (0, b"")  # and is not ambiguous
    with pytest.raises(RunError) as caught:
        live.Client(running.Running("only", stranger.pid, f"\0airloom/only/{stranger.pid}/3"))
    assert caught.value.code == "live.stranger"
    assert sum(octets + count for octets, count in told(stranger)) == 0


def test_a_process_without_a_key_is_told_no_more_than_nothing(squat):
    """Another program of the same user that only has the right name: no descriptor, no environment."""
    other = squat(["airloom/forged/PID/999"])
    with pytest.raises(RunError) as caught:
        live.Client(running.Running("forged", other.pid, f"\0airloom/forged/{other.pid}/999"))
    assert caught.value.code == "live.stranger"
    assert sum(octets + count for octets, count in told(other)) == 0


def test_malformed_names_are_passed_over(lab, squat):
    names = [
        "airloom/x",
        "airloom/x/y/z",
        "airloom/radio",
        "airloom/a b/1/2",
        "airloom/\n/1/2",
        "airloom/\udcff/1/2",
    ]
    squat([*names, "airloom//1/2", f"airloom/x/{'9' * 40}/1"])
    assert lab[0] in [one.name for one in running.running()]
    assert run(lab[0], ["true"]) == (0, b"")


def test_nothing_of_a_laboratory_stays_when_it_is_killed():
    code = (
        "import sys; from airloom.lab.server import LiveServer; LiveServer('gone', None, None); "
        "print(1, flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    assert process.pid in [one.pid for one in running.running()]
    process.kill()
    process.communicate()
    assert process.pid not in [one.pid for one in running.running()]


def test_a_second_laboratory_of_a_name_has_a_label_of_its_own_that_stays():
    name = f"two {os.getpid()}"
    first, label = running.claimed(name)
    second, other = running.claimed(name)
    assert (label, other) == (f"two-{os.getpid()}", f"two-{os.getpid()}-2")
    first.close()
    third, again = running.claimed(name)
    assert again == label, "the second one keeps its own, so the first is free"
    second.close()
    third.close()
