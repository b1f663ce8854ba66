"""Counts the TCP frames that a raw socket in a node sees, and those of them that no wire carries.

Run as a program with the interface's name and the name or address of a peer, or nothing: with a peer it
sends 2 MB to it by TCP, without one it receives until a connection ends. It prints JSON: ``frames``,
``long`` (above 1514 octets) and ``wrong`` (with a TCP checksum that is not of their octets).
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading

PORT, OCTETS, LONGEST = 5001, 2_000_000, 1514
SO_RCVBUFFORCE = 33


def checksum(octets: bytes) -> int:
    """Returns the Internet checksum (RFC 1071)."""
    octets += b"\0" * (len(octets) % 2)
    total = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def transfer(peer: str | None) -> None:
    """Sends to a peer, or receives from whoever connects."""
    if peer is not None:
        with socket.create_connection((peer, PORT), timeout=30) as connection:
            connection.sendall(bytes(OCTETS))
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)
        return
    with socket.create_server(("", PORT)) as server:
        connection, _ = server.accept()
        with connection:
            while connection.recv(1 << 16):
                pass


def main(interface: str, peer: str | None = None) -> None:
    """Counts during one transfer."""
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    raw.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 23)
    raw.bind((interface, 3))
    raw.settimeout(1.0)
    mover = threading.Thread(target=transfer, args=(peer,), daemon=True)
    mover.start()
    counts = {"frames": 0, "long": 0, "wrong": 0}
    while True:
        try:
            frame = raw.recv(1 << 17)
        except TimeoutError:
            if not mover.is_alive():
                break
            continue
        if frame[12:14] != b"\x08\x00" or frame[23] != 6:
            continue
        header = 14 + 4 * (frame[14] & 15)
        segment = frame[header : 14 + struct.unpack_from("!H", frame, 16)[0]]
        pseudo = frame[26:34] + struct.pack("!BBH", 0, 6, len(segment))
        counts["frames"] += 1
        counts["long"] += len(frame) > LONGEST
        counts["wrong"] += checksum(pseudo + segment) != 0
    print(json.dumps(counts))


if __name__ == "__main__":
    main(*sys.argv[1:])
