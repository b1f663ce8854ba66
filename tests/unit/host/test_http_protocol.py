"""Services whose clients say nothing, or half of it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from airloom.host import http_protocol
from airloom.host.http_protocol import MOST_WAITING, PatientProtocol

uvicorn = pytest.importorskip("uvicorn")
pytestmark = pytest.mark.timeout(120)


HOLDS, GOES_ON = threading.Event(), threading.Event()
"""The service stands still for the path ``/hold``, between the two."""


async def answers(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the length of the body, or with the client's address."""
    if scope["path"] == "/hold":
        HOLDS.set()
        GOES_ON.wait(60)
    octets, more = 0, True
    while more:
        message = await receive()
        octets += len(message.get("body", b""))
        more = message.get("more_body", False)
        if message["type"] == "http.disconnect":
            return
    text = scope["client"][0].encode() if scope["path"] == "/who" else str(octets).encode()
    headers = [(b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": text})


@contextlib.contextmanager
def service(**options: Any) -> Iterator[int]:
    """Serves it on a free port."""
    config = uvicorn.Config(
        answers, log_level="critical", lifespan="off", loop="asyncio", http=PatientProtocol, ws="none",
        timeout_keep_alive=2, **options,
    )  # fmt: skip
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(30)


def connect(port: int) -> socket.socket:
    one = socket.create_connection(("127.0.0.1", port))
    one.settimeout(60)
    return one


def ask(one: socket.socket, body: bytes = b"x" * 10) -> bytes:
    head = f"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    one.sendall(head + body)
    return answer(one)


def answer(one: socket.socket) -> bytes:
    """Returns an answer with all of its body."""
    octets = b""
    while b"\r\n\r\n" not in octets or octets.endswith(b"\r\n\r\n"):
        piece = one.recv(4096)
        if not piece:
            break
        octets += piece
    return octets


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"G",
        b"GET / HTTP/1.1\r\nhost: x\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf",
    ],
    ids=["nothing", "a letter", "half a head", "half a body"],
)
def test_a_client_that_goes_silent_is_disconnected(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    monkeypatch.setattr(http_protocol, "PATIENCE_S", 0.3)
    with service() as port, connect(port) as silent:
        silent.sendall(said)
        with contextlib.suppress(ConnectionResetError):
            assert silent.recv(4096) == b""


def test_octets_one_by_one_gain_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "PATIENCE_S", 0.5)
    with service() as port, connect(port) as slow:
        end = time.monotonic() + 60
        with contextlib.suppress(OSError):
            slow.sendall(b"GET / HTTP/1.1\r\nx: ")
            while time.monotonic() < end:
                slow.sendall(b"y")
                time.sleep(0.05)
        assert time.monotonic() < end


def test_a_client_may_be_idle_between_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "PATIENCE_S", 0.3)
    with service() as port, connect(port) as one:
        for _ in range(2):
            assert ask(one).endswith(b"\r\n10")
            time.sleep(0.8)
        # Half of a third one ends after the time to be idle and the patience.
        one.sendall(b"GET / HT")
        with contextlib.suppress(ConnectionResetError):
            assert one.recv(4096) == b""


def test_silent_strangers_take_no_place() -> None:
    """With more connections than the service has at a time, requests are still answered."""
    with service(limit_concurrency=MOST_WAITING + 20) as port, contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connect(port)) for _ in range(MOST_WAITING + 100)]
        for one in silent[::2]:
            with contextlib.suppress(OSError):
                one.sendall(b"GET / HTTP/1.1\r\n")
        for _ in range(3):
            with connect(port) as own:
                assert ask(own).startswith(b"HTTP/1.1 200")


def test_many_clients_that_call_at_once_are_all_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than may be silent: each has a moment from its connection to its request."""
    monkeypatch.setattr(http_protocol, "NEW_S", 60.0)
    monkeypatch.setattr(http_protocol, "PATIENCE_S", 60.0)
    with service(limit_concurrency=2000) as port, contextlib.ExitStack() as stack:
        many = [stack.enter_context(connect(port)) for _ in range(4 * MOST_WAITING)]
        for one in many:
            assert ask(one).endswith(b"\r\n10")


def test_no_client_is_ended_whose_request_is_not_read_yet() -> None:
    """The service is stopped while requests arrive that are more than may be silent."""
    with service(limit_concurrency=4 * MOST_WAITING) as port, contextlib.ExitStack() as stack:
        holding = stack.enter_context(connect(port))
        holding.sendall(b"GET /hold HTTP/1.1\r\nhost: x\r\n\r\n")
        assert HOLDS.wait(60)
        many = [stack.enter_context(connect(port)) for _ in range(3 * MOST_WAITING)]
        for one in many:
            one.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\nx")
        GOES_ON.set()
        for one in many:
            assert answer(one).endswith(b"\r\n1")


def test_nobody_is_believed_about_an_address() -> None:
    head = b"GET /who HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 192.0.2.7\r\n\r\n"
    for options, told in (
        ({"proxy_headers": False, "forwarded_allow_ips": []}, b"127.0.0.1"),
        ({"proxy_headers": True, "forwarded_allow_ips": ["127.0.0.1"]}, b"192.0.2.7"),
    ):
        with service(**options) as port, connect(port) as one:
            one.sendall(head)
            assert answer(one).endswith(b"\r\n\r\n" + told)


def test_a_tls_handshake_has_the_same_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "PATIENCE_S", 0.3)

    async def serve() -> bytes:
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        loop = asyncio.get_running_loop()
        with http_protocol.quick_handshakes(context):
            server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0, ssl=context)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
            try:
                return await asyncio.wait_for(reader.read(), 30)
            finally:
                writer.close()

    assert asyncio.run(serve()) == b""
