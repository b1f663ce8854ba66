"""Serves a live page in a thread of this process, with an event loop of its own."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from airloom.errors import HostError, LabError, ScenarioError
from airloom.live import require
from airloom.live.page import Page

DEFAULT = "127.0.0.1:0"
"""This machine only, on a free port."""
LAST_S = 3.0
"""How long browsers may take to receive the end of the run."""
STARTED_S = 30.0


@dataclass(frozen=True, slots=True)
class Served:
    """Where a page is served."""

    operator: str
    """URL with which consoles can be opened."""
    viewer: str
    """URL with which they cannot."""
    local: bool
    """Whether only this machine can reach it."""


def address_of(text: str) -> tuple[str, int]:
    """Parses ``ADDRESS:PORT``, ``[ADDRESS]:PORT`` or ``:PORT``. Raises :class:`ScenarioError`."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    try:
        if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise ValueError
        host = "127.0.0.1" if host == "localhost" else str(ipaddress.ip_address(host))
    except ValueError:
        raise ScenarioError(
            "web.address",
            f"{text!r} is no address and port to serve the live page at",
            cure="write 127.0.0.1:8080, [::1]:8080, or 0.0.0.0:8080 for all interfaces; port 0 is a free one",
        ) from None
    return host, int(port)


@contextmanager
def serving(page: Page, address: str = DEFAULT) -> Iterator[Served]:
    """Serves the page during the block; browsers are told of the end of it.

    Raises :class:`ScenarioError` for an invalid address and :class:`HostError` if nothing can listen
    there.
    """
    host, port = address_of(address)
    require()
    import uvicorn

    from airloom.host.http_protocol import PatientProtocol
    from airloom.live.access import Access
    from airloom.live.app import create

    access = Access(host)
    app = create(page, access)
    server = uvicorn.Server(
        uvicorn.Config(
            app, log_level="critical", access_log=False, server_header=False, lifespan="off",
            ws="websockets-sansio", ws_max_size=1 << 16, limit_concurrency=256, timeout_graceful_shutdown=1,
            loop="asyncio", http=PatientProtocol, proxy_headers=False,
        )
    )  # fmt: skip
    with _listening(host, port) as listener:
        thread = threading.Thread(
            target=server.run, kwargs={"sockets": [listener]}, name="airloom-web", daemon=True
        )
        thread.start()
        _wait(lambda: server.started or not thread.is_alive(), STARTED_S)
        bound = listener.getsockname()
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        url = f"http://{shown}:{bound[1]}"
        try:
            yield Served(
                url + access.link("operator"),
                url + access.link("viewer"),
                ipaddress.ip_address(bound[0]).is_loopback,
            )
        except LabError as error:
            page.end(str(error))
            raise
        finally:
            if page.ended is None:
                page.end()
            _wait(lambda: app.state.stream.listeners == 0, LAST_S)
            server.should_exit = True
            thread.join(LAST_S)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise HostError(
            "web.address",
            f"the live page cannot be served at {host}:{port}: {error.strerror}",
            cure="name another address and port with --web-at; port 0 is a free one",
        ) from None


def _wait(done: Callable[[], bool], limit: float) -> None:
    until = time.monotonic() + limit
    while not done() and time.monotonic() < until:
        time.sleep(0.02)
