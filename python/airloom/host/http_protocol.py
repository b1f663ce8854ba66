"""HTTP/1.1 connections of services in which silent clients hold no place.

A client has :data:`PATIENCE_S` for each head and each body that it sends; then it is disconnected.
Connections that the service waits for have :data:`MOST_WAITING` places of their own, and those that are
not older than :data:`NEW_S` half of what the service has at a time (``limit_concurrency``). If there are
more, the oldest one of the address with the most of them is ended, so that whoever opens many ends their
own. A connection whose octets have arrived, but are not read yet, is not ended: it waits for the service.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import select
import ssl
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE_S = 5.0
"""Seconds for a head, and again for a body."""
MOST_WAITING = 128
"""Connections of which a head or a body is not complete, or which are idle between two requests."""
NEW_S = 1.0
"""Seconds for which many clients that call at once may each be without a complete head."""
_DESCRIPTORS = 4096
"""Files that a service may have open, where the machine allows as many."""


class Waiting:
    """The connections of one service that wait for their clients, by address, the oldest first."""

    def __init__(self) -> None:
        self._of: defaultdict[str, dict[PatientProtocol, float]] = defaultdict(dict)
        """When each of them began to wait, in seconds of the loop's clock."""
        self._number = 0

    def add(self, one: PatientProtocol, address: str) -> None:
        """Adds a connection; ends others if there are too many."""
        now = one.loop.time()
        if one not in self._of[address]:
            self._of[address][one] = now
            self._number += 1
        most_new = (one.limit_concurrency or _DESCRIPTORS) // 2
        while self._number > min(MOST_WAITING, most_new):
            most = max(self._of.values(), key=len)
            oldest = next((waiting for waiting in most if waiting.silent()), None)
            if oldest is None or (self._number <= most_new and now - most[oldest] < NEW_S):
                return
            oldest.give_up()

    def remove(self, one: PatientProtocol, address: str) -> None:
        """Removes a connection, if it is there."""
        here = self._of.get(address, {})
        if one in here:
            del here[one]
            self._number -= 1
        if not here:
            self._of.pop(address, None)


class PatientProtocol(H11Protocol):
    """uvicorn's HTTP with limits on what a silent client holds."""

    _patience: asyncio.TimerHandle | None = None
    _waits: tuple[Any, bool] | None = None
    """The last request, and whether its body is waited for."""
    _address = "local"

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to wait for the first head."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else "local"
        self._follow()

    def connection_lost(self, exc: Exception | None) -> None:
        """Gives the place back."""
        self._end()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Follows what has come in."""
        super().handle_events()
        self._follow()

    def handle_websocket_upgrade(self, event: Any) -> None:
        """The connection is a WebSocket from now on, whose own limits hold."""
        self._end()
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        """Waits for the next head, unless it is there already."""
        super().on_response_complete()
        self._follow()

    def silent(self) -> bool:
        """Whether nothing has arrived from the client that is not read yet."""
        opened = self.transport.get_extra_info("socket")
        if opened is None or opened.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(opened.fileno(), select.POLLIN)
        return not poll.poll(0)

    def give_up(self) -> None:
        """Ends the connection without an answer."""
        self._end()
        self.transport.abort()

    def _follow(self) -> None:
        """Keeps the time and the place of a connection that waits for its client."""
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            self._end()
            return
        cycle = self.cycle
        body = cycle is not None and not cycle.response_complete
        if body and not cycle.more_body:
            self._end()
            return
        waits = (cycle, body)
        if self._waits == waits:
            return
        self._end()
        self._waits = waits
        # Between two requests it may be idle first, for which uvicorn has a limit of its own.
        idle = 0 if body or cycle is None else self.timeout_keep_alive
        self._patience = self.loop.call_later(PATIENCE_S + idle, self.give_up)
        self._waiting().add(self, self._address)

    def _end(self) -> None:
        self._waits = None
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
            self._waiting().remove(self, self._address)

    def _waiting(self) -> Waiting:
        """The connections of this server, which its state identifies."""
        found = getattr(self.server_state, "waiting", None)
        if found is None:
            found = Waiting()
            self.server_state.waiting = found  # type: ignore[attr-defined]
        return found


def allow_descriptors() -> None:
    """Lets this process have as many connections as it serves, if the machine does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@contextlib.contextmanager
def quick_handshakes(context: ssl.SSLContext | None) -> Iterator[None]:
    """Context manager: servers that the running loop makes meanwhile wait as long for a TLS handshake."""
    loop = asyncio.get_running_loop()
    if context is None:
        yield
        return
    made = loop.create_server

    async def create_server(*words: Any, **options: Any) -> Any:
        return await made(*words, **options, ssl_handshake_timeout=PATIENCE_S)

    loop.create_server = create_server  # type: ignore[method-assign]
    try:
        yield
    finally:
        loop.create_server = made  # type: ignore[method-assign]
