"""Captures that a reader follows while an engine runs: a client, the server, and an engine in memory."""

from __future__ import annotations

import os
import re
import struct
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import pytest

from airloom import _engine
from airloom.errors import LabError
from airloom.host import pcap
from airloom.lab import running
from airloom.lab.client import Client
from airloom.lab.server import LiveServer
from airloom.planning.capture import Source

A, B = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
PROGRAM = [(0x28, 0, 0, 12), (0x15, 0, 1, 0x88B6), (0x06, 0, 0, 262144), (0x06, 0, 0, 0)]
"""Lets frames of EtherType 0x88B6 pass."""


def frame(kind: int = 0x88B5, length: int = 60) -> bytes:
    return (B + A + kind.to_bytes(2, "big")).ljust(length, b"\0")


class Host:
    """Two ports with a link without properties, stepped by the test."""

    def __init__(self) -> None:
        self.engine = _engine.Engine(1)
        self.engine.add_memory_port("h1:eth0")
        self.engine.add_memory_port("h2:eth0")
        self.engine.connect("h1-h2", "h1:eth0", "h2:eth0", {}, {})
        self.at = 0

    def sources(self) -> Mapping[str, Source]:
        return {
            "h1": Source("node", ("h1:eth0",)),
            "h1:eth0": Source("port", ("h1:eth0",)),
            "h2:eth0": Source("port", ("h2:eth0",)),
            "h1-h2": Source("link", ("h1:eth0",)),
            "s1-s2": Source("link", ()),
            "bare:eth0": Source("port", ("bare:eth0",)),
        }

    def info(self) -> dict[str, Any]:
        return {}

    def control(self, node: str, action: str) -> NoReturn:
        raise AssertionError

    def admit(self, *_: Any) -> NoReturn:
        raise AssertionError

    def send(self, *frames: bytes) -> None:
        """Sends frames from h1, a millisecond apart, and lets time pass until after the last."""
        for octets in frames:
            self.at += 1_000_000
            self.engine.offer("h1:eth0", self.at, octets)
        self.at += 1_000_000_000
        self.engine.step(self.at)


class Open:
    """A laboratory that is open to clients."""

    def __init__(self) -> None:
        self.host = Host()
        self.name = f"c{os.getpid()}-{threading.get_ident()}"
        self.server = LiveServer(self.name, self.host, self.host)

    def client(self) -> Client:
        return Client(running.find(self.name))


@pytest.fixture
def lab() -> Iterator[Open]:
    made = Open()
    yield made
    made.server.close()


class Reader(threading.Thread):
    """Reads a pipe to its end, from :meth:`start` on."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.reading, self.writing = os.pipe()
        self.octets = b""

    def run(self) -> None:
        with os.fdopen(self.reading, "rb") as pipe:
            self.octets = pipe.read()

    def begin(self, client: Client, *names: str, **how: Any) -> None:
        """Begins a capture into the pipe."""
        client.capture(names, self.writing, **how)
        os.close(self.writing)

    def all(self) -> bytes:
        self.join()
        return self.octets


def statistics(octets: bytes) -> dict[int, tuple[int, int]]:
    """By interface: frames that were seen, and those whose copies were dropped."""
    found = {}
    while octets:
        kind, length = struct.unpack_from("=II", octets)
        if kind == 5:
            (number,) = struct.unpack_from("=I", octets, 8)
            code, size, seen = struct.unpack_from("=HHQ", octets, 20)
            assert (code, size) == (4, 8)
            code, size, dropped = struct.unpack_from("=HHQ", octets, 32)
            assert (code, size) == (5, 8)
            found[number] = (seen, dropped)
        octets = octets[length:]
    return found


def frames(octets: bytes, tmp_path: Any) -> list[pcap.Captured]:
    path = tmp_path / "read.pcapng"
    path.write_bytes(octets)
    return list(pcap.frames(path))


def test_a_reader_gets_times_directions_and_counters_of_each_interface(lab: Open, tmp_path: Any) -> None:
    lab.host.send(frame())  # before the capture
    reader = Reader()
    reader.start()
    with lab.client() as client:
        reader.begin(client)
        lab.host.send(frame(), frame())
        client.end()
        counts = client.counts()
    got = frames(reader.all(), tmp_path)
    at = 1_002_000_000
    assert [(one.port, one.at, one.direction) for one in got] == [
        ("h1:eth0", at, "out"),
        ("h2:eth0", at, "in"),
        ("h1:eth0", at + 1_000_000, "out"),
        ("h2:eth0", at + 1_000_000, "in"),
    ]
    assert statistics(reader.octets) == {0: (2, 0), 1: (2, 0)}
    assert (counts["written"], counts["skipped"], counts["failed"]) == (4, 0, False)


def test_frames_arrive_while_the_capture_goes_on(lab: Open) -> None:
    reader = Reader()
    with lab.client() as client:
        reader.begin(client, "h1-h2")
        lab.host.send(frame(length=777))
        octets = b""
        while b"h1:eth0" not in octets or len(octets) < 777:
            octets += os.read(reader.reading, 1 << 16)
        client.end()
        assert client.counts()["written"] == 1
    reader.start()
    assert statistics(reader.all()) == {0: (1, 0)}


def test_a_slow_reader_misses_frames_which_are_counted_and_the_engine_goes_on(lab: Open) -> None:
    reader = Reader()
    sent = 9000  # 13 MB: more than the capture holds for a reader that does not read
    with lab.client() as client:
        reader.begin(client, "h1:eth0")
        lab.host.send(*(frame(length=1500) for _ in range(sent)))
        reader.start()
        client.end()
        counts = client.counts()
    assert counts["skipped"] > 0
    assert counts["written"] + counts["skipped"] == sent
    assert statistics(reader.all()) == {0: (sent, counts["skipped"])}
    assert lab.host.engine.ledger()["delivered"] == sent


def test_a_reader_that_never_reads_ends_nevertheless(lab: Open) -> None:
    reader = Reader()
    with lab.client() as client:
        reader.begin(client, "h1:eth0")
        lab.host.send(*(frame(length=1500) for _ in range(200)))
        client.end()
        assert client.counts()["failed"] is True
    os.close(reader.reading)


def test_the_capture_ends_when_the_reader_goes(lab: Open) -> None:
    reader = Reader()
    with lab.client() as client:
        reader.begin(client)
        os.close(reader.reading)
        assert client.counts()["written"] == 0


def test_the_capture_ends_when_the_client_goes(lab: Open) -> None:
    reader = Reader()
    reader.start()
    with lab.client() as client:
        reader.begin(client)
        lab.host.send(frame())
    assert statistics(reader.all()) == {0: (1, 0), 1: (1, 0)}


def test_the_end_of_the_laboratory_ends_its_captures_in_order() -> None:
    lab = Open()
    readers, clients = [Reader(), Reader()], [lab.client(), lab.client()]
    for reader, client in zip(readers, clients, strict=True):
        reader.start()
        reader.begin(client, "h2:eth0")
    lab.host.send(frame())
    lab.server.close()
    for reader, client in zip(readers, clients, strict=True):
        with client:
            assert client.counts()["written"] == 1
        assert statistics(reader.all()) == {0: (1, 0)}


def test_the_end_of_the_engine_ends_its_captures_in_order(lab: Open) -> None:
    reader = Reader()
    reader.start()
    with lab.client() as client:
        reader.begin(client, "h1")
        lab.host.send(frame())
        lab.host.engine.stop()
        client.end()
        assert client.counts()["written"] == 1
    assert statistics(reader.all()) == {0: (1, 0)}


def test_a_filter_and_a_snap_length(lab: Open, tmp_path: Any) -> None:
    reader = Reader()
    reader.start()
    with lab.client() as client:
        reader.begin(client, "h1:eth0", snap=14, filters={1: PROGRAM})
        lab.host.send(frame(), frame(0x88B6), frame())
        client.end()
        assert client.counts()["written"] == 1
    (one,) = frames(reader.all(), tmp_path)
    assert (one.octets, one.length) == (frame(0x88B6)[:14], 60)


def test_a_filter_of_another_link_type_lets_nothing_pass(lab: Open) -> None:
    reader = Reader()
    reader.start()
    with lab.client() as client:
        reader.begin(client, "h1:eth0", filters={127: PROGRAM})
        lab.host.send(frame(0x88B6))
        client.end()
        assert client.counts()["written"] == 0
    reader.all()


@pytest.mark.parametrize(
    ("names", "how", "message"),
    [
        (["h1:eth1"], {}, "no port, node, link or medium 'h1:eth1'.*did you mean 'h1:eth0'"),
        (["s1-s2"], {}, "no frame of link s1-s2 passes a port"),
        (["bare:eth0"], {}, "no frame of port bare:eth0 passes a port"),
        (["h1"], {"snap": 13}, "snap length is not from 14"),
        (["h1"], {"filters": {1: PROGRAM[:2]}}, "leads out of the program"),
    ],
)
def test_what_cannot_be_captured_is_refused_and_the_next_one_can(
    lab: Open, names: list[str], how: dict[str, Any], message: str
) -> None:
    reading, writing = os.pipe()
    with lab.client() as client, pytest.raises(LabError) as caught:
        client.capture(names, writing, **how)
    assert re.search(message, str(caught.value)), caught.value
    os.close(writing)
    os.close(reading)
    reader = Reader()
    reader.start()
    with lab.client() as client:
        reader.begin(client, "h1")
        client.end()
        assert client.counts()["written"] == 0
    reader.all()


def test_what_can_be_captured_is_what_passes_a_port(lab: Open) -> None:
    with lab.client() as client:
        assert client.sources() == {"h1": "node", "h1:eth0": "port", "h2:eth0": "port", "h1-h2": "link"}


def test_a_run_is_not_found_where_programs_shall_be_started(lab: Open) -> None:
    server = LiveServer(f"{lab.name}r", lab.host, lab.host, what="run")
    try:
        assert f"{lab.name}r" not in [one.name for one in running.running()]
        found = running.find(f"{lab.name}r", "laboratory", "run")
        assert found.what == "run"
        with Client(found) as client:
            assert "h1" in client.sources()
    finally:
        server.close()
