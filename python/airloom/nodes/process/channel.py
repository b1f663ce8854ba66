"""Messages with descriptors over stream sockets to the supervisor and the first processes.

A message is a JSON object preceded by its length (four octets, little-endian);
``init/src/message.rs`` lists all messages. One thread, the :class:`Dispatcher`, reads all sockets
of a run.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import selectors
import socket
import struct
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any

_HEAD = struct.Struct("<I")
_PIECE = 1 << 16
_MOST_DESCRIPTORS = 253
"""Descriptors that one packet can carry: the kernel's ``SCM_MAX_FD``."""
_LONGEST = 64 << 20
"""Maximum length of a message in octets: the text of a file, with every octet escaped."""

Message = dict[str, Any]


class ProtocolError(Exception):
    """Data received on a channel is malformed or not part of the protocol."""


class Channel:
    """One end of a socket; sending is safe from any thread."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._lock = threading.Lock()
        self._octets = bytearray()

    def send(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        """Sends one complete message. Raises :class:`OSError` if the other end is closed."""
        body = json.dumps(message, separators=(",", ":")).encode()
        octets = _HEAD.pack(len(body)) + body
        with self._lock:
            # More descriptors than one packet carries come with single octets before the rest.
            while len(descriptors) > _MOST_DESCRIPTORS:
                self._send(octets[:1], descriptors[:_MOST_DESCRIPTORS])
                octets, descriptors = octets[1:], descriptors[_MOST_DESCRIPTORS:]
            sent = self._send(octets, descriptors)
            if sent < len(octets):
                self.socket.sendall(octets[sent:], socket.MSG_NOSIGNAL)

    def _send(self, octets: bytes, descriptors: Sequence[int]) -> int:
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
        return self.socket.sendmsg([octets], [rights] if descriptors else [], socket.MSG_NOSIGNAL)

    def receive(self) -> list[Message] | None:
        """Reads once and returns the messages that are complete; None at the end of the stream.

        Raises :class:`ProtocolError` for malformed data.
        """
        try:
            piece = self.socket.recv(_PIECE)
        except OSError:
            return None
        if not piece:
            return None
        self._octets += piece
        messages = []
        while len(self._octets) >= _HEAD.size:
            end = _HEAD.size + _HEAD.unpack_from(self._octets)[0]
            if end > _LONGEST:
                raise ProtocolError(f"a message of {end} octets")
            if len(self._octets) < end:
                break
            messages.append(_message(self._octets[_HEAD.size : end]))
            del self._octets[:end]
        return messages

    def close(self) -> None:
        """Shuts down both directions; the reading thread closes the descriptor."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


def _message(octets: bytes | bytearray) -> Message:
    try:
        message = json.loads(octets)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"no JSON: {error}") from None
    if not isinstance(message, dict) or not isinstance(message.get("event"), str):
        raise ProtocolError("a message that reports nothing")
    return message


Heard = Callable[[Message], None]
"""Message handler. It raises :class:`ProtocolError` for a message that is not part of the protocol."""
Ended = Callable[[str | None], None]
"""End handler. It gets the error in the last message; None if there was none."""


class Dispatcher:
    """Reads many channels on one thread and calls their handlers."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._joining: list[tuple[Channel, Heard, Ended]] = []
        self._closing = False
        self._wakeup = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._selector.register(self._wakeup, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="airloom-nodes", daemon=True)
        self._thread.start()

    def join(self, channel: Channel, heard: Heard, ended: Ended) -> None:
        """Adds a channel: ``heard`` is called for each message, and ``ended`` once at the end or
        after a protocol error.
        """
        with self._lock:
            if not self._closing:
                self._joining.append((channel, heard, ended))
                os.eventfd_write(self._wakeup, 1)
                return
        ended(None)

    def close(self) -> None:
        """Closes all channels, calls their ``ended`` handlers, and ends the thread."""
        with self._lock:
            if self._closing:
                return
            self._closing = True
            os.eventfd_write(self._wakeup, 1)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        try:
            while self._serve():
                pass
        finally:
            for key in list(self._selector.get_map().values()):
                if key.fileobj is not self._wakeup and key.data is not None:
                    self._end(*key.data)
            self._selector.close()
            os.close(self._wakeup)

    def _serve(self) -> bool:
        for key, _ in self._selector.select():
            if key.data is None:
                os.eventfd_read(self._wakeup)
                with self._lock:
                    joining, self._joining = self._joining, []
                    closing = self._closing
                for entry in joining:
                    self._selector.register(entry[0].socket, selectors.EVENT_READ, entry)
                if closing:
                    return False
                continue
            channel, heard, ended = key.data
            try:
                messages = channel.receive()
                for message in messages or ():
                    _call(heard, message)
            except ProtocolError as error:
                channel.close()
                self._end(channel, heard, ended, str(error))
                continue
            if messages is None:
                self._end(channel, heard, ended)
        return True

    def _end(self, channel: Channel, _: Heard, ended: Ended, why: str | None = None) -> None:
        self._selector.unregister(channel.socket)
        channel.socket.close()
        _call(ended, why)


def _call(listener: Callable[..., None], words: object) -> None:
    """Prints an exception of one handler, so that the other handlers still receive their messages."""
    try:
        listener(words)
    except ProtocolError:
        raise
    except Exception:
        traceback.print_exc()
