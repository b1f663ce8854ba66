"""Records RTP in a node: for each packet its time in ns, sequence, timestamp and, received, its payload.

The times are the kernel's: when a packet arrived, or left.

usage: recorder.py PORT [sent]

With ``sent`` it watches the packets that leave the node for this port, as a capture does, and takes none.
"""

import base64
import socket
import struct
import sys

STAMP = 35
"""SO_TIMESTAMPNS of Linux, which Python has no name for."""
TIME = struct.Struct("qq")
ALL, IPV4, UDP, OUTGOING = 0x0003, 0x0800, 17, 4


def show(now: int, packet: bytes, *payload: str) -> None:
    """Prints a line of an RTP packet."""
    sequence, stamp = int.from_bytes(packet[2:4], "big"), int.from_bytes(packet[4:8], "big")
    print("packet", now, sequence, stamp, *payload, flush=True)


def taken(taker: socket.socket) -> tuple[int, bytes, tuple[int, ...]]:
    """The next packet: its time in ns of CLOCK_REALTIME, its octets, and its address."""
    octets, notes, _, address = taker.recvmsg(1 << 16, 64)
    seconds, nanos = next(TIME.unpack(data) for level, kind, data in notes if kind == STAMP)
    return seconds * 10**9 + nanos, octets, address


def received(port: int) -> None:
    """Takes the packets of a port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taker:
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        taker.setsockopt(socket.SOL_SOCKET, STAMP, 1)
        taker.bind(("", port))
        print("listening", flush=True)
        while True:
            now, packet, _ = taken(taker)
            show(now, packet, base64.b64encode(packet[12:]).decode())


def sent(port: int) -> None:
    """Watches the packets for a port that leave by any interface."""
    # Packets that leave are shown only to sockets of all protocols.
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ALL)) as watcher:
        watcher.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        watcher.setsockopt(socket.SOL_SOCKET, STAMP, 1)
        print("listening", flush=True)
        while True:
            now, octets, (_, kind, direction, *_) = taken(watcher)
            if direction != OUTGOING or kind != IPV4 or octets[9] != UDP:
                continue
            head = 4 * (octets[0] & 15)
            if int.from_bytes(octets[head + 2 : head + 4], "big") == port:
                show(now, octets[head + 8 :])


if __name__ == "__main__":
    (sent if sys.argv[2:] == ["sent"] else received)(int(sys.argv[1]))
