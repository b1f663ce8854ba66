"""The routes of the live page.

``/`` and its files; ``/state``: everything as JSON; ``/events``: the same as server-sent events
(``drawing``, ``entries``, ``state``, ``ended``); ``/console/NODE``: a WebSocket, for operators.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from airloom.errors import LabError
from airloom.live import console
from airloom.live.access import Access, Gate
from airloom.live.page import Page

WEB = Path(__file__).parent / "web"
FILES = {
    name: WEB / name
    for name in (
        "style.css", "live.js", "map.js", "panels.js", "chart.js", "curves.js", "units.js", "console.js",
        "icon.svg",
        "xterm/xterm.mjs", "xterm/addon-fit.mjs", "xterm/xterm.css", "xterm/LICENSE",
    )
}  # fmt: skip
PERIOD_S = 0.5
"""Least time between two readings of the state."""
SHARE = 0.02
"""Largest share of one processor that readings may take."""
MOST_STREAMS = 64
MOST_CONSOLES = 32
_TYPES = {".mjs": "text/javascript", ".js": "text/javascript", "": "text/plain"}


class Stream:
    """Reads the state for all browsers together, and only while there is one."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.listeners = 0
        self.consoles = 0
        self.state: dict[str, Any] | None = None
        self._next = 0.0
        self._reading: asyncio.Task[None] | None = None

    async def fresh(self) -> dict[str, Any] | None:
        """Waits for the next reading, which every caller of the moment gets."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        await asyncio.shield(self._reading)
        return self.state

    async def _read(self) -> None:
        while (wait := self._next - time.monotonic()) > 0 and self.page.ended is None:
            await asyncio.sleep(min(wait, 0.1))
        self.state, took = await asyncio.to_thread(self._now)
        self._next = time.monotonic() + max(PERIOD_S, took / SHARE)

    def _now(self) -> tuple[dict[str, Any] | None, float]:
        """The state, and the processor time that it took, in s; verdicts have a limit of their own."""
        begun = time.thread_time()
        try:
            state = self.page.state()
            took = time.thread_time() - begun
            return (None if state is None else state | {"verdict": self.page.verdict()}), took
        except LabError:
            return None, time.thread_time() - begun

    async def events(self, role: str) -> AsyncIterator[str]:
        """Yields server-sent events until the run has ended."""
        generation, entry = 0, 0
        yield _event("role", {"role": role})
        while True:
            state = await self.fresh()
            ended = self.page.ended
            if self.page.generation != generation:
                generation = self.page.generation
                yield _event("drawing", self.page.drawing)
            entries = self.page.entries(entry)
            if entries:
                entry = entries[-1]["number"]
                yield _event("entries", entries)
            if state is not None:
                yield _event("state", state)
            if ended is not None:
                yield _event("ended", ended)
                return


class _Events(StreamingResponse):
    """The events of one browser, which has a place from before the first event until after the last."""

    def __init__(self, stream: Stream, role: str) -> None:
        super().__init__(stream.events(role), 200, {"x-accel-buffering": "no"}, "text/event-stream")
        self._stream = stream
        stream.listeners += 1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stream.listeners -= 1


def create(page: Page, access: Access) -> Starlette:
    """Returns the application of a page."""
    stream = Stream(page)

    async def index(request: Request) -> Response:
        html = (WEB / "index.html").read_text(encoding="utf-8")
        return HTMLResponse(html.replace("@NONCE@", access.nonce))

    async def state(request: Request) -> Response:
        return JSONResponse(
            {
                "role": request.state.role,
                "drawing": page.drawing,
                "entries": page.entries(0),
                "state": await stream.fresh(),
                "ended": page.ended,
            }
        )

    async def events(request: Request) -> Response:
        if stream.listeners >= MOST_STREAMS:
            return PlainTextResponse("Too many browsers watch.\n", 503, {"retry-after": "5"})
        return _Events(stream, request.state.role)

    async def file(request: Request) -> Response:
        found = FILES.get(request.path_params["name"])
        if found is None:
            return PlainTextResponse("There is no such file.\n", 404)
        return FileResponse(found, media_type=_TYPES.get(found.suffix))

    async def shell(socket: WebSocket) -> None:
        run = page.run
        if socket.state.role != "operator" or run is None or stream.consoles >= MOST_CONSOLES:
            await socket.close(1008)
            return
        stream.consoles += 1
        try:
            await socket.accept()
            await console.serve(socket, run, socket.path_params["node"])
        finally:
            stream.consoles -= 1

    routes = [
        Route("/", index),
        Route("/state", state),
        Route("/events", events),
        WebSocketRoute("/console/{node}", shell),
        Route("/{name:path}", file),
    ]
    app = Starlette(routes=[Mount(access.path, routes=routes)], middleware=[Middleware(Gate, access=access)])
    app.state.stream = stream
    return app


def _event(kind: str, data: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps(data, allow_nan=False)}\n\n"
