"""The sockets of nodes' radios against programs that say anything: the others are always served."""

from __future__ import annotations

import json
import socket
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloom.errors import RunError
from airloom.nodes.kinds.netns import NetnsNode
from airloom.runs import radio_control, radio_requests
from airloom.runs.radio_requests import LONGEST, Change, Search, Show, parse

RADIO = {
    "medium": "air",
    "on": True,
    "mhz": 5180,
    "queued": 0,
    "counts": {},
    "airtime": 0,
    "access_point": None,
    "peers": {},
    "settings": {
        "mac": [2, 0, 0, 0, 0, 1],
        "phy": "802.11a",
        "width_mhz": 20,
        "channel": 36,
        "power_dbm": 16.0,
        "rate": "minstrel",
        "rts_octets": None,
        "membership": {"ad-hoc": {"ssid": ""}},
    },
}
WORDS = ("info", "link", "station", "scan", "set")


class World:
    """Two nodes with a radio each; looking around takes no time."""

    def __init__(self) -> None:
        self.plan = SimpleNamespace(media={})
        self.nodes: dict[str, Any] = {}
        self.changes: list[tuple[str, Any]] = []
        self.times = 0
        self.broken = False

    def radios(self) -> list[dict[str, Any]]:
        if self.broken:
            raise ZeroDivisionError
        return [{**RADIO, "port": f"{node}:wlan0"} for node in ("a", "b")]

    def now(self) -> int:
        return 0

    def set_radio(self, port: str, change: Any) -> None:
        self.changes.append((port, change))
        self.times += "scan" in change

    def scanned(self, port: str) -> dict[str, Any]:
        return {"times": self.times, "found": []}


class Service:
    """The service of that world, and ways to talk to it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = World()
        listeners = {}
        for node in ("a", "b"):
            listener = listeners[node] = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind("")  # the kernel chooses an abstract name
            listener.listen(32)
            listener.setblocking(False)
        self.addresses = {node: listener.getsockname() for node, listener in listeners.items()}
        monkeypatch.setattr(radio_control, "_open", lambda _: listeners)
        self.world.nodes = {node: Mock(spec=NetnsNode) for node in listeners}
        radios = [SimpleNamespace(node=node) for node in listeners]
        self.service = radio_control.RadioControl(self.world)  # type: ignore[arg-type]
        self.service.follow(SimpleNamespace(media={"air": SimpleNamespace(radios=radios)}))  # type: ignore[arg-type]

    def connect(self, node: str) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(self.addresses[node])
        connection.settimeout(60)
        return connection

    def say(self, node: str, octets: bytes) -> Any:
        with self.connect(node) as connection:
            connection.sendall(octets)
            connection.shutdown(socket.SHUT_WR)
            return heard(connection)

    def ask(self, node: str, request: Any) -> Any:
        return self.say(node, json.dumps(request).encode() + b"\n")


def heard(connection: socket.socket) -> Any:
    try:
        text = b"".join(iter(lambda: connection.recv(65536), b""))
    except ConnectionResetError:  # it had said more than was read
        return None
    return json.loads(text) if text else None


@pytest.fixture(scope="module")
def sockets():
    with pytest.MonkeyPatch.context() as patch:
        found = Service(patch)
    yield found
    found.service.close()


def test_a_channel_without_end_ends_nothing(sockets):
    answer = sockets.say("a", b'{"do":"scan","channels":[Infinity]}\n')
    assert answer["error"]["code"] in ("radio.channel", "radio.request")
    assert sockets.ask("b", {"do": "info"})["answer"][0]["radio"] == "wlan0"


@given(octets=st.binary(max_size=LONGEST + 10))
def test_any_octets_leave_the_other_nodes_served(sockets, octets):
    sockets.say("a", octets)
    assert sockets.ask("b", {"do": "info"})["answer"][0]["channel"] == 36


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
_KEYS = st.sampled_from(("do", "radio", "channels", "passive", "key", "value")) | st.text(max_size=8)
_REQUESTS = st.fixed_dictionaries({"do": st.sampled_from(WORDS)}).flatmap(
    lambda fixed: st.dictionaries(_KEYS, _VALUES, max_size=5).map(lambda more: {**more, **fixed})
)


@pytest.mark.slow
@given(request=_REQUESTS | _VALUES)
def test_any_json_is_answered_and_leaves_the_other_nodes_served(sockets, request):
    answer = sockets.ask("a", request)
    assert set(answer) in ({"answer"}, {"error"})
    assert answer.get("error", {}).get("code") != "radio.failed"
    assert sockets.ask("b", {"do": "link"})["answer"][0]["radio"] == "wlan0"


@given(key=st.sampled_from(("channel", "power", "rate", "rts", "ssid", "up")), value=_VALUES)
def test_any_value_of_a_setting_is_answered(sockets, key, value):
    answer = sockets.ask("a", {"do": "set", "key": key, "value": value})
    assert answer.get("error", {}).get("code") != "radio.failed"


def test_a_line_that_is_too_long_is_refused(sockets):
    answer = sockets.say("a", b" " * (LONGEST + 1))
    assert answer is None or answer["error"]["code"] == "radio.request"
    with pytest.raises(RunError, match="at most 4096 octets"):
        parse(b" " * (LONGEST + 1))


def test_what_follows_the_line_plays_no_part(sockets):
    assert sockets.say("a", b'{"do": "info"}\n{"do": ')["answer"][0]["mac"] == "02:00:00:00:00:01"


def test_a_mistake_of_this_program_ends_no_other_connection(sockets):
    sockets.world.broken = True
    try:
        assert sockets.ask("a", {"do": "info"})["error"]["code"] == "radio.failed"
    finally:
        sockets.world.broken = False
    assert "answer" in sockets.ask("b", {"do": "info"})


def test_one_node_cannot_take_the_connections_of_another(monkeypatch):
    sockets = Service(monkeypatch)
    held = [sockets.connect("a") for _ in range(40)]
    try:
        assert "answer" in sockets.ask("b", {"do": "info"})
    finally:
        for connection in held:
            connection.close()
        sockets.service.close()


def test_a_connection_that_says_nothing_is_closed(monkeypatch):
    monkeypatch.setattr(radio_control, "TIMEOUT", 0.05)
    sockets = Service(monkeypatch)
    with sockets.connect("a") as silent:
        assert heard(silent) is None
    sockets.service.close()


def test_requests_are_what_they_say():
    assert parse(b'{"do": "info"}') == Show(do="info")
    assert parse(b'{"do": "scan", "channels": [36], "radio": "wlan0"}') == Search(
        channels=[36], radio="wlan0"
    )
    assert parse(b'{"do": "set", "key": "up", "value": true}') == Change(do="set", key="up", value=True)


@pytest.mark.parametrize(
    "line",
    [
        b'{"do": "scan", "channels": [0]}',
        b'{"do": "scan", "channels": [201]}',
        b'{"do": "scan", "channels": ["36"]}',
        b'{"do": "scan", "channels": [36.5]}',
        b'{"do": "scan", "channels": [1e400]}',
        b'{"do": "scan", "channels": 36}',
    ],
)
def test_channels_out_of_range_have_their_own_code(line):
    with pytest.raises(RunError) as caught:
        parse(line)
    assert caught.value.code == "radio.channel"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b'{"do": "dance"}',
        b'{"do": "info", "more": 1}',
        b'{"do": "set", "key": "up"}',
        b'{"do": "info", "radio": 7}',
        b"[" * 4000,
        b"\xff",
    ],
)
def test_what_is_no_request_is_refused(line):
    with pytest.raises(RunError) as caught:
        parse(line)
    assert caught.value.code == "radio.request"


def test_a_request_made_here_is_held_to_the_same_bounds():
    with pytest.raises(RunError) as caught:
        radio_requests.search("wlan0", (300,), passive=False)
    assert caught.value.code == "radio.channel"
