"""Mounts of the host in nodes, and ports of nodes that the host offers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom import HostError, Scenario
from helpers.images import busybox, oci
from helpers.nodes import eventually

pytestmark = pytest.mark.world
HOST = "127.0.0.1"


@pytest.fixture
def port() -> Iterator[int]:
    """A free TCP and UDP port of this machine."""
    with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        tcp.bind((HOST, 0))
        number = tcp.getsockname()[1]
        udp.bind((HOST, number))
    return number


def scenario(**node: Any) -> Scenario:
    links = [{"ends": ["a", "b"]}]
    return Scenario.model_validate({"name": "x", "nodes": {"a": node, "b": {}}, "links": links})


def said(port: int, words: bytes, kind: socket.SocketKind = socket.SOCK_STREAM) -> bytes:
    """What a server on this machine's port answers; empty if it does not."""
    try:
        with socket.socket(type=kind) as made:
            made.settimeout(5)
            made.connect((HOST, port))
            made.sendall(words)
            if kind is socket.SOCK_STREAM:
                made.shutdown(socket.SHUT_WR)
            return made.recv(100)
    except OSError:
        return b""


UPPER = """\
import socket, threading
udp = socket.socket(type=socket.SOCK_DGRAM)
udp.bind(("", 7))
tcp = socket.create_server(("", 7))
def serve():
    while True:
        words, client = udp.recvfrom(100)
        udp.sendto(words.upper(), client)
threading.Thread(target=serve, daemon=True).start()
while True:
    call, _ = tcp.accept()
    words = b""
    while piece := call.recv(1000):
        words += piece
    call.sendall(words.upper())
    call.close()
"""
"""Answers with capital letters, TCP after the client has ended."""


@pytest.mark.parametrize("kind", ["netns", "container"])
def test_a_node_reads_what_it_is_given_and_writes_only_where_it_may(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data = tmp_path / "data"
    data.mkdir()
    (data / "in").write_text("from the host")
    (tmp_path / "one").write_text("one file")
    results = tmp_path / "results"
    results.mkdir()
    mounts = [
        {"source": str(data), "target": "/srv/data"},
        {"source": str(tmp_path / "one"), "target": "/etc/airloom-one"},
        {"source": str(results), "target": "/tmp/deep/results", "mode": "rw"},
    ]
    more = {"image": str(oci(tmp_path / "image", [busybox()]))} if kind == "container" else {}
    with airloom.Lab(scenario(kind=kind, mounts=mounts, **more), out=tmp_path / "out") as lab:
        a, b = lab["a"], lab["b"]
        assert a.run("cat /srv/data/in /etc/airloom-one").stdout == "from the hostone file"
        a.run("sh -c 'echo done > /tmp/deep/results/word'")
        assert (results / "word").read_text() == "done\n"
        for place in ("/srv/data/new", "/etc/airloom-one"):
            failed = a.run(f"sh -c 'echo no > {place}; true'")
            assert "ead-only" in failed.stderr
        assert b.run("sh -c 'ls /srv/data /etc/airloom-one || true'").stdout == ""
    assert sorted(path.name for path in data.iterdir()) == ["in"]
    assert not Path("/srv/data").exists()
    assert not Path("/etc/airloom-one").exists()


def test_a_published_port_reaches_the_node(tmp_path: Path, port: int) -> None:
    publish = [{"port": 7, "host_port": port, "protocol": protocol} for protocol in ("tcp", "udp")]
    with airloom.Lab(scenario(publish=publish, files={"/tmp/upper.py": UPPER}), out=tmp_path / "out") as lab:
        assert said(port, b"nobody listens yet") == b""
        lab["a"].start("python3 /tmp/upper.py")
        eventually(lambda: said(port, b"words") == b"WORDS", "no answer over TCP")
        assert said(port, b"datagram", socket.SOCK_DGRAM) == b"DATAGRAM"
        long = b"x" * 300_000
        with socket.create_connection((HOST, port), 10) as made:
            made.sendall(long)
            made.shutdown(socket.SHUT_WR)
            received = b""
            while piece := made.recv(1 << 16):
                received += piece
        assert received == long.upper()
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind((HOST, port))


def test_a_port_in_use_is_said_before_a_node_is_made(tmp_path: Path, port: int) -> None:
    with socket.create_server((HOST, port)), pytest.raises(HostError) as caught:
        airloom.run(scenario(publish=[{"port": 80, "host_port": port}]), out=tmp_path / "out")
    assert caught.value.code == "host.port"
    assert caught.value.where == "nodes.a.publish[0]"
    assert f"tcp port {port} of 127.0.0.1 cannot be had: Address already in use" in caught.value.message


def test_the_port_is_free_after_the_controller_was_killed(tmp_path: Path, port: int) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(scenario(publish=[{"port": 80, "host_port": port}]).to_yaml() + "duration: 100 s\n")
    command = [sys.executable, "-m", "airloom", "run", str(file), "--out", str(tmp_path / "out"), "-q"]
    run = subprocess.Popen(command, start_new_session=True)

    def taken() -> bool:
        with socket.socket() as made:
            return made.connect_ex((HOST, port)) == 0

    try:
        eventually(taken, "the port is not open")
    finally:
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
    eventually(lambda: not taken(), "the port is still open")
