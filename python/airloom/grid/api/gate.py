"""What every call passes first: a limit on its rate and size, and headers for browsers.

Each caller, a token or else an address, has a bucket of calls that fills at a constant rate. A call
with a token that is not valid is also counted for its address, in a bucket of its own: while that is
empty, such calls from the address are refused, so new invalid tokens do not get around the limit. A valid
token is not refused for that: many callers may share an address.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from airloom.grid.answers import Error

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 256 * 1024
MOST_CALLERS = 10_000
VALID = "token_valid"
"""Set in the state of a call whose token is valid."""
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


class Rate:
    """Limits the calls of each caller to ``rate`` a second, and ``burst`` at once."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic):
        self.rate = rate
        self.burst = burst
        self.clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Calls left and when that was, by caller; the caller seen longest ago is first."""
        self._lock = threading.Lock()

    def wait(self, caller: str, cost: int = 1) -> float:
        """Counts a call; returns 0, or how many seconds the caller has to wait for the next one.

        With a ``cost`` of 0 it only returns that.
        """
        now = self.clock()
        with self._lock:
            left, since = self._buckets.pop(caller, (float(self.burst), now))
            left = min(float(self.burst), left + (now - since) * self.rate)
            allowed = left >= 1
            self._buckets[caller] = (left - cost if allowed else left, now)
            while len(self._buckets) > MOST_CALLERS:
                self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self.rate


class TooLarge(HTTPException):
    """The body is larger than :data:`LARGEST_BODY`."""

    code = "body.size"

    def __init__(self) -> None:
        super().__init__(413, f"the body has more than {LARGEST_BODY} octets")


class Gate:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, rate: Rate, valid: Callable[[str], bool]):
        """``valid`` tells whether a token is valid."""
        self.app = app
        self.rate = rate
        self.valid = valid
        self._known: OrderedDict[str, None] = OrderedDict()
        """Digests of headers with tokens that were valid, the one seen longest ago first."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one call."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        unauthorized = f"401 {_address(scope)}"
        header = _authorization(scope)
        caller = _address(scope) if header is None else hashlib.sha256(header).hexdigest()
        state: dict[str, Any] = scope.setdefault("state", {})

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                if message["status"] == 401:
                    self.rate.wait(unauthorized)
                    self._known.pop(caller, None)
                elif state.get(VALID) and header is not None:
                    self._know(caller)
                own = [(key.encode(), value.encode()) for key, value in _HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *own]}
            await send(message)

        wait = 0.0
        if header is not None and caller not in self._known:
            wait = self.rate.wait(unauthorized, cost=0)
            if wait > 0 and await run_in_threadpool(self.valid, _token(header)):
                wait = 0.0
                self._know(caller)
        wait = wait or self.rate.wait(caller)
        if wait > 0:
            body = Error(code="rate.exceeded", message="too many calls", cure=f"wait {wait:.1f} s")
            await _answer(answered, 429, body, {"retry-after": str(max(1, round(wait)))})
            return
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > LARGEST_BODY:
                raise TooLarge
            return message

        await self.app(scope, counted, answered)

    def _know(self, caller: str) -> None:
        self._known[caller] = None
        self._known.move_to_end(caller)
        while len(self._known) > MOST_CALLERS:
            self._known.popitem(last=False)


def _authorization(scope: Scope) -> bytes | None:
    """Returns the header with the token, if there is one that can be valid."""
    found = [value for key, value in scope["headers"] if key == b"authorization"]
    return found[0] if len(found) == 1 and len(found[0]) < 200 else None


def _token(header: bytes) -> str:
    scheme, _, token = header.decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else "local"


async def _answer(send: Send, status: int, body: Error, headers: dict[str, str] | None = None) -> None:
    octets = json.dumps(body.plain()).encode()
    all_headers = {"content-type": "application/json", "content-length": str(len(octets)), **(headers or {})}
    encoded = [(key.encode(), value.encode()) for key, value in all_headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": octets})
