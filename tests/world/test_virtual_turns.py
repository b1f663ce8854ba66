"""Guests that take turns in virtual time: a guest acts in its slots alone, to the nanosecond."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom.nodes.virtual_time import Pacer
from airloom.runs import emulation
from helpers.kernels import needs_virtual_turns
from helpers.virtual import assert_same, run, scenario

pytestmark = [pytest.mark.world, pytest.mark.timeout(300), needs_virtual_turns]

MS = 1_000_000
QUANTUM = 50 * MS
SHARED: dict[str, Any] = {
    "nodes": {"a": {}, "b": {}, "c": {}},
    "links": [{"ends": [name, "c"], "rate": "10 Mbit/s", "delay": "3 ms"} for name in "ab"],
    "turns": {"t": {"nodes": ["a", "b"], "quantum": "50 ms"}},
}


def is_turn(place: int, at: int) -> bool:
    return at // QUANTUM % 2 == place


def next_turn(place: int, at: int) -> int:
    return at if is_turn(place, at) else (at // QUANTUM + 1) * QUANTUM


def test_a_guest_answers_at_once_in_its_turn_and_else_at_the_begin_of_the_next() -> None:
    pings = [{"node": "c", "at": "10 ms", "run": f"ping -c 6 -i 0.037 -q {name}"} for name in "ab"]
    answered: dict[str, list[tuple[int, int]]] = {"a": [], "b": []}
    with airloom.Lab(scenario(**SHARED, programs=pings, duration="400 ms")) as lab:
        came: dict[str, list[int]] = {"a": [], "b": []}
        while (frames := lab.step()) and frames[0].at < 400 * MS:
            for frame in frames:
                name = frame.port.partition(":")[0]
                if name not in came or frame.octets != 98:
                    continue
                if not frame.sent:
                    came[name].append(frame.at)
                elif came[name]:
                    answered[name].append((came[name].pop(0), frame.at))
    for place, name in enumerate("ab"):
        assert len(answered[name]) == 6
        for arrived, sent in answered[name]:
            assert sent == next_turn(place, arrived)
        assert {is_turn(place, arrived) for arrived, _ in answered[name]} == {True, False}


def flows() -> list[dict[str, Any]]:
    said = {"to": "c", "rate": "2 Mbit/s", "size": "500 B", "duration": "1 s"}
    return [{"name": name, "traffic": {**said, "from": name}} for name in "ab"]


def test_a_flow_leaves_in_the_turns_of_its_sender_and_loses_nothing(tmp_path: Path) -> None:
    done = airloom.run(scenario(**SHARED, measurements=flows()), out=tmp_path / "out")
    assert done.verdict.status == "valid", done.verdict
    figures = {f"{one.name}.{one.metric}": one.mean or 0.0 for one in done.result.measurements}
    # 500 octets of payload are 566 of the wire: 452.8 us, and 3 ms of the link.
    least = 3 * MS + 452_800
    for place, name in enumerate("ab"):
        assert figures[f"{name}.loss"] == 0
        arrivals = [int(at) for at in done.samples(name, "delay").t_ns]
        assert len(arrivals) == 500
        assert all(is_turn(place, at - least) for at in arrivals)
    # It waits for the other's turn half of the time, up to 50 ms.
    assert figures["a.throughput"] == pytest.approx(2e6, rel=0.02)


def test_two_runs_with_turns_are_the_same_and_so_is_one_message_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[dict[str, Any]] = [
        {"name": "rtt", "ping": {"from": "c", "to": "b", "count": 5, "interval": "70 ms"}},
        {"name": "tcp", "iperf3": {"from": "a", "to": "c", "duration": "500 ms", "congestion": "cubic"}},
    ]
    for name, plain in (("one", False), ("two", False), ("steps", True)):
        monkeypatch.setattr(emulation, "Pacer", partial(Pacer, plain=plain))
        run(tmp_path / name, capture=True, **SHARED, measurements=measured)
    assert_same(tmp_path / "one", tmp_path / "two")
    assert_same(tmp_path / "one", tmp_path / "steps")
