"""Captures OpenFlow control channels: the loopback interfaces of switches, as pcapng files.

A channel ends at the loopback interface of its switch (:mod:`airloom.nodes.network.controller_proxy`),
which no port of the engine sees. A packet socket in the switch's namespace does. It is open before
the switch connects, so that the file begins with the handshake. Times are the kernel's.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Self

from airloom.host.network_namespace import within

SUFFIX = ".control.pcapng"
"""End of the name of a capture, after the name of its switch."""
_LOOPBACK = "lo"
_BUFFER = 8 << 20
"""Size of the socket buffer in octets."""
_LARGEST = 1 << 17
"""Octets of the largest frame on a loopback interface, with room to spare."""
_ALL_FRAMES = 0x0003
_SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 33, 35
_SOL_PACKET, _PACKET_STATISTICS = 263, 6
_PACKET_OUTGOING = 4
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_ETHERNET = 1
_NAME, _RESOLUTION = 2, 9


@dataclass(eq=False)
class Channel:
    """The control channels of one switch, on their way into a file."""

    switch: str
    path: Path
    socket: socket.socket
    file: BinaryIO
    ports: dict[int, str] = field(default_factory=dict)
    """TCP port on the loopback interface: the bridge and the controller that it leads to."""
    missing: int = 0
    """Frames that did not fit into the socket buffer."""


class ControlCapture:
    """The captures of all control channels of a run, on one thread."""

    def __init__(self, folder: Path, switches: frozenset[str] | None = None) -> None:
        """``switches``: names of those to capture; None means all."""
        self.channels: dict[str, Channel] = {}
        self.failed: str | None = None
        """Why a file could not be written."""
        self._folder = folder
        self._switches = switches
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._wakeup = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._selector.register(self._wakeup, selectors.EVENT_READ)
        self._thread: threading.Thread | None = None
        self._closing = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, switch: str, namespace: int, port: int, whither: str) -> None:
        """Captures the channel of a switch on this port of its loopback interface."""
        if self._switches is not None and switch not in self._switches:
            return
        with self._lock:
            channel = self.channels.get(switch)
            if channel is None:
                channel = self.channels[switch] = self._open(switch, namespace)
            channel.ports[port] = whither

    def close(self) -> None:
        """Writes what is left and closes the files. A second call has no effect."""
        if self._closing:
            return
        self._closing = True
        if self._thread is not None:
            os.eventfd_write(self._wakeup, 1)
            self._thread.join()
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, self._wakeup)
            stack.callback(self._selector.close)
            for channel in self.channels.values():
                stack.callback(channel.socket.close)
                stack.callback(channel.file.close)
                self._drain(channel)
                counts = channel.socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
                channel.missing += struct.unpack("=II", counts)[1]

    def _open(self, switch: str, namespace: int) -> Channel:
        def listen() -> socket.socket:
            made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_FRAMES))
            made.bind((_LOOPBACK, _ALL_FRAMES))
            return made

        made = within(namespace, listen)
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        try:
            made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        except PermissionError:  # not the machine's root: the kernel's own limit holds
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        self._folder.mkdir(exist_ok=True)
        path = self._folder / f"{switch}{SUFFIX}"
        file = path.open("wb")
        file.write(_header(f"{switch} control"))
        channel = Channel(switch, path, made, file)
        self._selector.register(made, selectors.EVENT_READ, channel)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="airloom-control", daemon=True)
            self._thread.start()
        return channel

    def _run(self) -> None:
        while not self._closing:
            for key, _ in self._selector.select():
                if key.data is None:
                    os.eventfd_read(self._wakeup)
                else:
                    self._drain(key.data)

    def _drain(self, channel: Channel) -> None:
        try:
            while True:
                octets, extra, _, address = channel.socket.recvmsg(_LARGEST, 64)
                if address[2] == _PACKET_OUTGOING:
                    continue  # every frame on this interface leaves and arrives; the arrival is kept
                for level, kind, stamp in extra:
                    if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
                        seconds, nanoseconds = struct.unpack("=qq", stamp)
                        channel.file.write(_frame(seconds * 1_000_000_000 + nanoseconds, octets))
        except BlockingIOError:
            with contextlib.suppress(OSError):
                channel.file.flush()
        except OSError as error:
            self.failed = error.strerror or str(error)
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(channel.socket)


def _block(kind: int, body: bytes) -> bytes:
    size = 12 + len(body)
    return struct.pack("=II", kind, size) + body + struct.pack("=I", size)


def _padded(octets: bytes) -> bytes:
    return octets + b"\0" * (-len(octets) % 4)


def _header(name: str) -> bytes:
    """Section header and interface description of a pcapng file with times in nanoseconds."""
    section = _block(_SECTION, struct.pack("=IHHq", 0x1A2B3C4D, 1, 0, -1))
    said = name.encode()
    options = struct.pack("=HH", _NAME, len(said)) + _padded(said)
    options += struct.pack("=HHB3xHH", _RESOLUTION, 1, 9, 0, 0)
    return section + _block(_INTERFACE, struct.pack("=HHI", _ETHERNET, 0, 0) + options)


def _frame(at: int, octets: bytes) -> bytes:
    head = struct.pack("=IIIII", 0, at >> 32, at & 0xFFFFFFFF, len(octets), len(octets))
    return _block(_PACKET, head + _padded(octets))
