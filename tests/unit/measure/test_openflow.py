"""OpenFlow messages in captures, decoded by tshark; and which message answers which."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from airloom.host import programs
from airloom.measure import openflow
from airloom.measure.openflow import FLOW_MOD, NO_BUFFER, PACKET_IN, PACKET_OUT, Message
from airloom.measure.tool import MeasureError

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="sudo apt-get install tshark")

FRAME = bytes.fromhex("02000000000202000000000188b5") + bytes(46)


class Channel:
    """A TCP connection from port 40000 of a switch, written as a pcap file."""

    def __init__(self, path: Path, port: int) -> None:
        self.path, self.port = path, port
        self.sent = {True: 1, False: 1}
        self.at = 0
        path.write_bytes(struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1))

    def send(self, from_switch: bool, *messages: bytes) -> None:
        payload = b"".join(messages)
        ends = (40000, self.port) if from_switch else (self.port, 40000)
        tcp = struct.pack(
            "!HHIIBBHHH", *ends, self.sent[from_switch], self.sent[not from_switch], 0x50, 0x18, 65535, 0, 0
        )
        self.sent[from_switch] += len(payload)
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 40 + len(payload), 0, 0, 64, 6, 0) + 2 * b"\x7f\0\0\1"
        frame = bytes(12) + b"\x08\0" + ip + tcp + payload
        self.at += 1000
        with self.path.open("ab") as file:
            file.write(struct.pack("=IIII", 5, self.at, len(frame), len(frame)) + frame)


def message(version: int, kind: int, body: bytes = b"", xid: int = 0) -> bytes:
    return struct.pack("!BBHI", version, kind, 8 + len(body), xid) + body


def packet_in(buffer: int) -> bytes:
    """OpenFlow 1.0, 5.4.1."""
    return message(1, 10, struct.pack("!IHHBx", buffer, len(FRAME), 1, 0) + FRAME)


def packet_out(buffer: int, frame: bytes) -> bytes:
    """OpenFlow 1.0, 5.3.6: without actions, which drops the frame."""
    return message(1, 13, struct.pack("!IHH", buffer, 1, 0) + frame)


@needs_tshark
def test_messages_of_one_segment_buffers_frames_and_errors_are_read(tmp_path: Path) -> None:
    channel = Channel(tmp_path / "s1.pcap", 16653)
    channel.send(True, message(1, 0, xid=1))
    channel.send(False, message(1, 0, xid=1), message(1, 5, xid=2))
    channel.send(True, packet_in(7), packet_in(NO_BUFFER))
    channel.send(False, packet_out(7, b""))
    channel.send(False, packet_out(NO_BUFFER, FRAME))
    # OFPET_BAD_REQUEST (1), OFPBRC_BAD_TYPE (1); the data is the header of what was refused.
    channel.send(True, message(1, 1, struct.pack("!HH", 1, 1) + message(1, 99)))
    found = list(openflow.messages(channel.path, [16653]))
    assert [(one.from_switch, one.name) for one in found] == [
        (True, "HELLO"),
        (False, "HELLO"),
        (False, "FEATURES_REQUEST"),
        (True, "PACKET_IN"),
        (True, "PACKET_IN"),
        (False, "PACKET_OUT"),
        (False, "PACKET_OUT"),
        (True, "ERROR"),
    ]
    assert [one.at for one in found][:4] == [5_000_001_000, 5_000_002_000, 5_000_002_000, 5_000_003_000]
    assert {(one.port, one.version) for one in found} == {(16653, "1.0")}
    assert [one.buffer for one in found[3:7]] == [7, None, 7, None]
    assert found[-1].error == "OFPET_BAD_REQUEST, code 1"
    answers = openflow.answers(found)[16653, PACKET_OUT]
    assert answers.latencies == [1000, 2000]
    assert answers.found_by == {"buffer": 1, "frame": 1}


@needs_tshark
def test_a_damaged_capture_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s1.pcap"
    Channel(path, 6653).send(True, message(1, 0))
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(MeasureError, match=r"tshark did not decode .* cut short") as caught:
        list(openflow.messages(path, [6653]))
    assert caught.value.code == "measure.openflow.undecoded"


def test_a_missing_tshark_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "find", lambda name: None)
    with pytest.raises(MeasureError, match="tshark is not installed") as caught:
        list(openflow.messages(Path("s1.pcapng"), [6653]))
    assert caught.value.cure == "sudo apt-get install tshark"


def at(when: int, kind: int, **more: object) -> Message:
    return Message(when, 6653, kind == PACKET_IN, kind, "", "1.3", 80, **more)  # type: ignore[arg-type]


def test_a_flow_belongs_to_the_latest_frame_with_all_addresses_of_its_match() -> None:
    found = [
        at(100, PACKET_IN, addresses=("ff", "a")),
        at(200, PACKET_IN, addresses=("a", "b")),
        at(250, PACKET_IN, addresses=("c", "d")),
        at(300, FLOW_MOD, addresses=("a", "b")),
        at(310, FLOW_MOD, addresses=("e",)),
        at(320, FLOW_MOD),
    ]
    answers = openflow.answers(found)
    assert answers[6653, FLOW_MOD].latencies == [100]
    assert (6653, PACKET_OUT) not in answers


def test_frames_that_are_the_same_are_answered_in_their_order() -> None:
    found = [
        at(0, PACKET_IN, frame="x"),
        at(10, PACKET_IN, frame="x"),
        at(15, PACKET_OUT, frame="y"),
        at(30, PACKET_OUT, frame="x"),
        at(50, PACKET_OUT, frame="x"),
        at(60, PACKET_OUT, frame="x"),
    ]
    assert openflow.answers(found)[6653, PACKET_OUT].latencies == [30, 40]


def test_a_buffer_that_was_used_again_is_the_latest() -> None:
    found = [at(0, PACKET_IN, buffer=4), at(70, PACKET_IN, buffer=4), at(80, PACKET_OUT, buffer=4)]
    assert openflow.answers(found)[6653, PACKET_OUT].latencies == [10]
