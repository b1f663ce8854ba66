"""Messages between a process and its helper: pickles, each after its length.

The values in a message are packed apart, so that one that cannot be read spoils only its own call.

Both processes belong to one user, run the same code, and share a stream that no other process can
reach, so that pickles are as safe as the code itself. A user trusts a machine of a fleet as this one.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any, Protocol

_LENGTH = struct.Struct("!Q")

Reference = tuple[Any, ...]
"""Stands in a message for an object that is not copied."""


class Stream(Protocol):
    """What messages are read from and written to: a connected stream socket, or :class:`Pipes`."""

    def recv_into(self, buffer: memoryview, /) -> int:
        """Reads at most the buffer's length; returns the number of octets, 0 at the end."""

    def sendall(self, data: bytes, /) -> None:
        """Writes all octets."""

    def shutdown(self, how: int, /) -> None:
        """Ends both directions."""

    def close(self) -> None:
        """Closes it."""


class Pipes:
    """Two descriptors as one stream, such as a program's standard input and output."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads = reads
        self._writes = writes

    def recv_into(self, buffer: memoryview, /) -> int:
        """As of a socket."""
        return os.readv(self._reads, [buffer])

    def sendall(self, data: bytes, /) -> None:
        """As of a socket."""
        left = memoryview(data)
        while left:
            left = left[os.write(self._writes, left) :]

    def shutdown(self, how: int, /) -> None:
        """Has no effect: :meth:`close` ends both directions."""

    def close(self) -> None:
        """Closes both descriptors."""
        os.close(self._reads)
        os.close(self._writes)


class Wire:
    """A connected stream. One thread reads; any thread writes."""

    def __init__(
        self,
        connected: Stream,
        refer: Callable[[Any], Reference | None],
        resolve: Callable[[Reference], Any],
    ) -> None:
        """``refer`` gives the reference of an object that is not copied, ``resolve`` its object."""
        self._socket = connected
        self._refer = refer
        self._resolve = resolve
        self._writing = threading.Lock()

    def pack(self, value: Any) -> bytes:
        """Returns a value's octets; raises what ``pickle`` raises for an object that cannot be copied."""
        octets = io.BytesIO()
        pickler = pickle.Pickler(octets, pickle.HIGHEST_PROTOCOL)
        pickler.persistent_id = self._refer  # type: ignore[method-assign]
        pickler.dump(value)
        return octets.getvalue()

    def unpack(self, octets: bytes) -> Any:
        """Returns a packed value."""
        unpickler = pickle.Unpickler(io.BytesIO(octets))
        unpickler.persistent_load = self._resolve  # type: ignore[method-assign]
        return unpickler.load()

    def write(self, message: tuple[Any, ...]) -> None:
        """Writes a message: words, numbers, and packed values."""
        # What starts a program elsewhere, such as srun, may keep octets until a line ends. No pickle
        # minds what is behind its end.
        octets = pickle.dumps(message, pickle.HIGHEST_PROTOCOL) + b"\n"
        with self._writing:
            self._socket.sendall(_LENGTH.pack(len(octets)))
            self._socket.sendall(octets)

    def read(self) -> tuple[Any, ...]:
        """Returns the next message; raises :class:`EOFError` at the end of the other process."""
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        message: tuple[Any, ...] = pickle.loads(self._exactly(length))
        return message

    def close(self) -> None:
        """Closes the connection; a thread that reads ends."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _exactly(self, count: int) -> bytearray:
        octets = bytearray(count)
        view = memoryview(octets)
        done = 0
        while done < count:
            try:
                got = self._socket.recv_into(view[done:])
            except OSError as error:
                raise EOFError from error
            if not got:
                raise EOFError
            done += got
        return octets
