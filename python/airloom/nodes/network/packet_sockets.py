"""Packet sockets of Open vSwitches: buffer sizes and drop counters.

The userspace datapath reads each port from a packet socket. A full socket drops frames, which no
interface counter includes: the kernel counts them per socket (sock_diag(7), packet(7)). The default
buffer is 208 kB, the frames of 17 ms at 100 Mbit/s, and Open vSwitch does not request more.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
from collections.abc import Iterable
from pathlib import Path

from airloom.host.network_namespace import within

BUFFER = 8 << 20
"""Buffer size in octets for each port."""
_PIDFD_GETFD = 438
_SO_RCVBUFFORCE = 33
_DAEMON = "ovs-vswitchd"

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY, _NLMSG_DONE, _NLMSG_ERROR = 20, 3, 2
_NLM_F_REQUEST, _NLM_F_DUMP = 0x001, 0x300
_SHOW_INFO, _SHOW_MEMINFO = 0x01, 0x10
_PACKET_DIAG_INFO, _PACKET_DIAG_MEMINFO = 0, 6
_MEMINFO_DROPS = 8


def enlarge(namespaces: Iterable[int]) -> None:
    """Enlarges the socket buffers of Open vSwitch ports in namespaces, if permitted here."""
    wanted = {(found.st_dev, found.st_ino) for found in map(os.fstat, namespaces)}
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            if (process / "comm").read_text().strip() != _DAEMON:
                continue
            mine = (process / "ns/net").stat()
            if (mine.st_dev, mine.st_ino) in wanted:
                _enlarge(int(process.name))


def _enlarge(process: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    daemon = os.pidfd_open(process)
    try:
        for entry in os.listdir(f"/proc/{process}/fd"):
            if not os.readlink(f"/proc/{process}/fd/{entry}").startswith("socket:"):
                continue
            descriptor = libc.syscall(_PIDFD_GETFD, daemon, int(entry), 0)
            if descriptor < 0:
                return
            with socket.socket(fileno=descriptor) as theirs:
                if theirs.family == socket.AF_PACKET:
                    theirs.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, BUFFER)
    finally:
        os.close(daemon)


def lost(namespace: int) -> dict[str, int]:
    """Interface: frames dropped because its packet sockets were full."""

    def ask() -> dict[str, int]:
        names = dict(socket.if_nameindex())
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as netlink:
            body = struct.pack("=BBHIIII", socket.AF_PACKET, 0, 0, 0, _SHOW_INFO | _SHOW_MEMINFO, 0, 0)
            flags = _NLM_F_REQUEST | _NLM_F_DUMP
            head = struct.pack("=IHHII", 16 + len(body), _SOCK_DIAG_BY_FAMILY, flags, 1, 0)
            netlink.sendall(head + body)
            found: dict[str, int] = {}
            while True:
                octets = netlink.recv(1 << 16)
                at = 0
                while at < len(octets):
                    size, kind = struct.unpack_from("=IH", octets, at)
                    if kind in (_NLMSG_DONE, _NLMSG_ERROR):
                        return found
                    index, drops = _of_socket(octets[at + 16 : at + size])
                    if drops and index in names:
                        found[names[index]] = found.get(names[index], 0) + drops
                    at += (size + 3) & ~3

    return within(namespace, ask)


def _of_socket(message: bytes) -> tuple[int, int]:
    """Interface index and number of drops of a struct packet_diag_msg with its attributes."""
    index = drops = 0
    at = 16
    while at + 4 <= len(message):
        size, kind = struct.unpack_from("=HH", message, at)
        if size < 4:
            break
        if kind == _PACKET_DIAG_INFO:
            index = struct.unpack_from("=I", message, at + 4)[0]
        elif kind == _PACKET_DIAG_MEMINFO and size >= 4 + 4 * (_MEMINFO_DROPS + 1):
            drops = struct.unpack_from("=I", message, at + 4 + 4 * _MEMINFO_DROPS)[0]
        at += (size + 3) & ~3
    return index, drops
