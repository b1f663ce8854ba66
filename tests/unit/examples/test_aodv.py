"""The example AODV daemon: its messages, its table, and the timing of its search."""

import sys
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "examples" / "aodv"))

import messages
import routes

addresses = st.integers(0, 2**32 - 1).map(IPv4Address)
numbers = st.integers(0, 2**32 - 1)
small = st.integers(0, 255)

requests = st.builds(
    messages.RouteRequest, small, numbers, addresses, numbers, addresses, numbers,
    st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
replies = st.builds(messages.RouteReply, small, addresses, numbers, addresses, numbers)
errors = st.builds(messages.RouteError, st.dictionaries(addresses, numbers, min_size=1, max_size=255))


@given(st.one_of(requests, replies, errors))
def test_messages_survive_the_wire(message):
    assert messages.parse(message.pack()) == message


@given(st.binary(max_size=100))
def test_foreign_bytes_are_refused_or_read(octets):
    try:
        messages.parse(octets)
    except ValueError:
        return
    assert octets[0] in (1, 2, 3)


def test_layout_is_that_of_the_rfc():
    reply = messages.RouteReply(3, IPv4Address("10.0.0.9"), 7, IPv4Address("10.0.0.1"), 6000)
    assert reply.pack().hex() == "02000003" + "0a000009" + "00000007" + "0a000001" + "00001770"


@pytest.mark.parametrize(
    ("a", "b", "is_newer"), [(2, 1, True), (1, 2, False), (1, 1, False), (0, 0xFFFFFFFF, True)]
)
def test_sequence_numbers_are_circular(a, b, is_newer):
    assert messages.newer(a, b) is is_newer


def table():
    kernel = {}
    return routes.Table(kernel.__setitem__, lambda a: kernel.pop(a, None)), kernel


def test_fresher_or_shorter_news_wins():
    target, near, far = map(IPv4Address, ("10.0.0.9", "10.0.0.2", "10.0.0.3"))
    known, kernel = table()
    assert known.learn(target, 5, 4, far, 10.0)
    assert not known.learn(target, 4, 1, near, 10.0), "older news is not taken, however short"
    assert known.learn(target, 5, 2, near, 10.0), "as fresh and shorter"
    assert kernel[target] == near
    assert known.learn(target, 6, 9, far, 10.0), "fresher, however long"
    assert kernel[target] == far


def test_a_route_in_use_lives_on_and_an_idle_one_goes():
    target, hop = IPv4Address("10.0.0.9"), IPv4Address("10.0.0.2")
    known, kernel = table()
    known.learn(hop, None, 1, hop, 3.0)
    known.learn(target, 1, 2, hop, 3.0)
    known.refresh(target, 6.0)
    assert known.expired(4.0) == []
    assert {route.destination for route in known.expired(7.0)} == {target, hop}
    known.invalidate(known.get(target), 20.0)
    assert target not in kernel
    assert known.active(target) is None
    assert known.get(target).sequence == 1, "remembered for its sequence number"
    known.expired(21.0)
    assert known.get(target) is None


def test_a_daemon_that_ends_leaves_no_route():
    near, gone = IPv4Address("10.0.0.2"), IPv4Address("10.0.0.3")
    known, kernel = table()
    known.learn(near, None, 1, near, 3.0)
    known.learn(gone, None, 1, gone, 3.0)
    known.invalidate(known.get(gone), 20.0)
    known.clear()
    assert kernel == {}
    assert known.get(near) is None
