"""What the first process of a node may say, and what becomes of one that says something else."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloom.errors import RunError
from airloom.nodes.process import reports
from airloom.nodes.process.channel import Channel, Dispatcher, ProtocolError
from airloom.nodes.process.init import InitClient

READY = {"event": "ready", "notes": []}


def framed(text: bytes) -> bytes:
    return struct.pack("<I", len(text)) + text


@pytest.fixture
def dispatcher() -> Iterator[Dispatcher]:
    dispatcher = Dispatcher()
    yield dispatcher
    dispatcher.close()


def first_process(name: str, dispatcher: Dispatcher) -> tuple[InitClient, socket.socket]:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return InitClient(name, Channel(near), dispatcher, "install it"), far


@pytest.mark.parametrize(
    "octets",
    [
        b"\xff\xff\xff\xff",
        framed(b"no JSON"),
        framed(b"[" * 100_000),
        framed(b"\xff\xfe"),
        framed(b"[]"),
        framed(b'{"event": 3}'),
        framed(b'{"event": "made", "name": "other"}'),
        framed(b'{"event": "ready", "notes": [{}]}'),
        framed(b'{"event": "started", "id": 1}'),
        framed(b'{"event": "refused", "id": 1, "what": "x", "errno": 1e300}'),
        framed(b'{"event": "exited", "id": 1, "code": null, "signal": 1000, "user_ns": 0, "system_ns": 0}'),
        framed(b'{"event": "cpu", "id": 1, "user_ns": Infinity, "system_ns": 0}'),
    ],
)
def test_one_that_does_not_speak_as_agreed_ends_alone(dispatcher: Dispatcher, octets: bytes) -> None:
    (evil, says), (good, far) = (first_process(name, dispatcher) for name in ("evil", "good"))
    with says, far:
        says.sendall(octets)
        with pytest.raises(RunError, match="node evil: its first process violates the protocol:"):
            evil.ready()
        assert evil.is_gone
        far.sendall(framed(json.dumps(READY).encode()))
        assert good.ready() == ()
        assert says.recv(1) == b""


def test_what_people_read_is_short_and_says_nothing_to_a_terminal() -> None:
    message = {"event": "ready", "notes": ["\x1b]0;owned\x07\x1b[2Jwords\n" + "x" * 10_000]}
    reports.check(message)
    (note,) = message["notes"]
    assert note.startswith(" ]0;owned  [2Jwords x")
    assert len(note) == 1000


@given(
    st.dictionaries(
        st.sampled_from(["event", "id", "notes", "why", "what", "errno", "pid", "code", "signal", "text"]),
        st.one_of(
            st.none(),
            st.integers(),
            st.floats(),
            st.text(),
            st.lists(st.text(), max_size=3),
            st.sampled_from(["ready", "broken", "started", "refused", "exited", "content"]),
        ),
    )
)
def test_a_report_is_agreed_on_or_refused(message: dict[str, object]) -> None:
    message.setdefault("event", "ready")
    if not isinstance(message["event"], str):
        message["event"] = "exited"
    try:
        reports.check(message)
    except ProtocolError:
        return
    assert set(reports._FIELDS[str(message["event"])]) <= set(message) | {"code", "signal", "text"}


def test_the_thread_that_reads_all_of_them_lives_on(dispatcher: Dispatcher) -> None:
    evil, says = first_process("evil", dispatcher)
    with says:
        says.sendall(framed(b"{"))
        with pytest.raises(RunError):
            evil.ready()
    assert "airloom-nodes" in {thread.name for thread in threading.enumerate()}
