"""What a command asks of tc, and what is answered for a link's queue."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest

from airloom.mininet import traffic_control
from airloom.mininet.link_queue import Request, answer, request_of, words_of
from airloom.planning.links.link_settings import LinkSettings
from airloom.runs.link_loads import LinkLoad

LOAD = LinkLoad(0, queue=7, queue_octets=10_598, sent=100, sent_octets=151_400, dropped=3, marked=5, busy=0)


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("tc -s qdisc show dev s0-eth2", Request("s0-eth2", True, False)),
        ("tc qdisc show dev s0-eth2", Request("s0-eth2", False, False)),
        ("/sbin/tc -s -d qdisc ls dev s1-eth1", Request("s1-eth1", True, False)),
        ("tc -j -s qdisc", Request(None, True, True)),
        ("tc -s q", Request(None, True, False)),
        ("tc qdisc add dev s0-eth2 root netem delay 10ms", None),
        ("tc -s class show dev s0-eth2", None),
        ("tc -s qdisc show dev s0-eth2 | grep backlog", None),
        ("while true; do tc -s qdisc show dev s0-eth2; done", None),
        ("ip link show", None),
        ("", None),
    ],
)
def test_only_a_plain_question_for_queues_is_one(command: str, wanted: Request | None) -> None:
    assert request_of(words_of(command)) == wanted


def interface(**params: Any) -> Any:
    shaping = {name: value for name, value in params.items() if name in traffic_control.SHAPES}
    shaped = traffic_control.direction(**shaping) if shaping else LinkSettings()
    return SimpleNamespace(name="s0-eth2", link=object(), shaped=shaped, params=params, load=lambda: LOAD)


def kinds(text: str) -> list[str]:
    return re.findall(r"^qdisc (\S+) (?:\S+) (?:root|parent \S+)", text, re.MULTILINE)


def test_the_disciplines_are_those_that_mininet_sets() -> None:
    show = Request(None, True, False)
    assert kinds(answer(show, [interface()])) == ["noqueue"]
    assert kinds(answer(show, [interface(bw=10)])) == ["htb"]
    assert kinds(answer(show, [interface(bw=10, delay="5ms")])) == ["htb", "netem"]
    assert kinds(answer(show, [interface(delay="5ms")])) == ["netem"]
    assert kinds(answer(show, [interface(bw=10, use_hfsc=True, loss=1)])) == ["hfsc", "netem"]
    assert kinds(answer(show, [interface(bw=10, use_tbf=True)])) == ["tbf"]
    assert kinds(answer(show, [interface(bw=10, enable_ecn=True, max_queue_size=99)])) == [
        "htb",
        "red",
        "netem",
    ]


def test_an_assignment_finds_backlog_drops_and_marks() -> None:
    text = answer(Request("s0-eth2", True, False), [interface(bw=10, enable_ecn=True, max_queue_size=50)])
    assert re.findall(r"backlog\s[^\s]+\s([\d]+)p", text) == ["7", "7", "7"]
    assert re.findall(r"backlog\s([\d]+)b", text) == ["10598"] * 3
    assert re.findall(r"dropped\s([\d]+)", text) == ["3"] * 3
    assert "marked 5 " in text
    assert "limit 50" in text


def test_without_statistics_and_as_json() -> None:
    one = interface(bw=10, delay="5ms")
    assert "backlog" not in answer(Request(None, False, False), [one])
    root, child = json.loads(answer(Request(None, True, True), [one]))
    assert (root["kind"], root["root"], root["qlen"], root["backlog"]) == ("htb", True, 7, 10_598)
    assert (child["kind"], child["parent"], child["drops"]) == ("netem", "5:1", 3)
