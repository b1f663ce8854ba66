"""Modelled processors in virtual time: work of guests takes the time that its prices say."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom.lab.lab import Completed
from airloom.nodes.virtual_time import Pacer
from airloom.runs import emulation
from helpers.kernels import needs_virtual_turns
from helpers.virtual import assert_same, run, scenario

pytestmark = [pytest.mark.world, pytest.mark.timeout(300), needs_virtual_turns]

US, MS = 1_000, 1_000_000
SHARED: dict[str, Any] = {
    "nodes": {"a": {}, "b": {}, "c": {}},
    "links": [{"ends": [name, "c"], "rate": "1 Gbit/s", "delay": "1 ms"} for name in "ab"],
}


def flows(rate: str = "60 Mbit/s", size: str = "1000 B") -> list[dict[str, Any]]:
    said = {"to": "c", "rate": rate, "size": size, "duration": "500 ms", "at": "100 ms"}
    return [{"name": name, "traffic": {**said, "from": name}} for name in "ab"]


def figures(done: Completed) -> dict[str, float]:
    assert done.verdict.status == "valid", done.verdict
    return {f"{one.name}.{one.metric}": one.mean or 0.0 for one in done.result.measurements}


def test_an_answer_takes_the_work_of_a_frame_in_and_of_an_interrupt() -> None:
    price, interrupt = 300 * US, 50 * US
    processors = {"p": {"nodes": ["h2"], "frame": "300 us", "interrupt": "50 us"}}
    ping = [{"node": "h1", "at": "10 ms", "run": "ping -c 4 -i 0.05 -q h2"}]
    came: list[int] = []
    waited = []
    with airloom.Lab(scenario(processors=processors, programs=ping, duration="400 ms")) as lab:
        while (frames := lab.step()) and frames[0].at < 400 * MS:
            for frame in frames:
                if not frame.port.startswith("h2:") or frame.octets != 98:
                    continue
                if not frame.sent:
                    came.append(frame.at)
                else:
                    waited.append(frame.at - came.pop(0))
    # The answer leaves when the work before it is done; its own price keeps the processor busy afterwards.
    assert waited == [price + interrupt] * 4


def test_a_processor_limits_the_frames_of_its_guests_together(tmp_path: Path) -> None:
    processors = {"host": {"nodes": ["a", "b"], "frame": "100 us"}}
    done = airloom.run(scenario(**SHARED, processors=processors, measurements=flows()), out=tmp_path / "out")
    found = figures(done)
    # 15,000 frames a second are offered, and 10,000 are worked off: 8 Mbit/s for each 1,000.
    both = found["a.throughput"] + found["b.throughput"]
    assert both == pytest.approx(80e6, rel=0.02)
    assert found["a.throughput"] == pytest.approx(found["b.throughput"], rel=0.05)
    used = {one.guest: one for one in done.details.processor_use}
    assert sum(one.nanoseconds for one in used.values()) >= 100 * US * sum(
        one.frames for one in used.values()
    )
    assert any("processor host was busy for" in note for note in done.verdict.notes)


@pytest.mark.parametrize("scheduler", ["fair", "priority"])
def test_a_scheduler_divides_a_busy_processor(tmp_path: Path, scheduler: str) -> None:
    host: dict[str, Any] = {"nodes": ["a", "b"], "frame": "100 us", "scheduler": scheduler, "quantum": "1 ms"}
    if scheduler == "fair":
        host["weights"] = {"a": 3}
    done = airloom.run(
        scenario(**SHARED, processors={"host": host}, measurements=flows("100 Mbit/s")),
        out=tmp_path / "out",
    )
    assert done.verdict.status == "valid", done.verdict
    # Both sources are behind, and send what they owe afterwards. Until then 5,000 frames are worked off.
    a, b = (int((done.samples(name, "delay").t_ns < 600 * MS).sum()) for name in "ab")
    assert a + b == pytest.approx(5_000, rel=0.03)
    if scheduler == "fair":
        assert a == pytest.approx(3 * b, rel=0.05)
    else:
        # The first of the list wants more than there is.
        assert b < 0.02 * a


def test_two_runs_are_the_same_and_so_is_one_message_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processors = {
        "host": {"nodes": ["a", "b"], "preset": "orbit-uml", "context_switch": "5 us"},
        "sink": {"nodes": ["c"], "interrupt": "20 us", "copy_rate": "2 Gbit/s", "scheduler": "fair"},
    }
    measured: list[dict[str, Any]] = [
        {"name": "rtt", "ping": {"from": "c", "to": "b", "count": 5, "interval": "70 ms"}},
        {"name": "tcp", "iperf3": {"from": "a", "to": "c", "duration": "200 ms", "congestion": "cubic"}},
    ]
    for name, plain in (("one", False), ("two", False), ("steps", True)):
        monkeypatch.setattr(emulation, "Pacer", partial(Pacer, plain=plain))
        run(tmp_path / name, capture=True, **SHARED, processors=processors, measurements=measured)
    assert_same(tmp_path / "one", tmp_path / "two")
    assert_same(tmp_path / "one", tmp_path / "steps")
