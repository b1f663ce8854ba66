"""Messages with descriptors: as many as a guest with many devices needs."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from airloom.nodes.process.channel import Channel


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket]]:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with near, far:
        yield Channel(near), far


@pytest.mark.parametrize("count", [0, 1, 253, 254, 600])
def test_all_descriptors_come_before_the_end_of_their_message(
    ends: tuple[Channel, socket.socket], count: int
) -> None:
    channel, far = ends
    sent = [os.memfd_create("one") for _ in range(count)]
    try:
        for number, descriptor in enumerate(sent):
            os.write(descriptor, str(number).encode())
        message = {"op": "machine", "descriptors": count}
        sender = threading.Thread(target=channel.send, args=(message, sent))
        sender.start()
        octets, received = b"", []
        while len(octets) < 4 or len(octets) < 4 + struct.unpack("<I", octets[:4])[0]:
            piece, descriptors, flags, _ = socket.recv_fds(far, 65_536, 253)
            assert not flags & socket.MSG_CTRUNC
            octets, received = octets + piece, received + descriptors
        sender.join()
        assert json.loads(octets[4:]) == message
        assert [int(os.pread(one, 8, 0)) for one in received] == list(range(count))
    finally:
        for one in (*sent, *received):
            os.close(one)
