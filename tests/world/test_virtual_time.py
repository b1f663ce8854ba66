"""Virtual time with real kernels and programs: exact, and the same in every run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

import airloom
from airloom.errors import HostError, RunError
from airloom.nodes import virtual_time
from airloom.nodes.kinds.uml import require_virtual_time
from airloom.nodes.virtual_time import Pacer
from airloom.runs import emulation
from helpers.kernels import needs_virtual_time
from helpers.virtual import assert_same, run, scenario

pytestmark = [pytest.mark.world, pytest.mark.timeout(300)]

PING = {"name": "rtt", "ping": {"from": "h1", "to": "h2", "count": 10, "interval": "200 ms"}}
FLOW = {"name": "flow", "traffic": {"from": "h1", "to": "h2", "rate": "5 Mbit/s", "duration": "1 s"}}


@pytest.fixture
def busy() -> Iterator[None]:
    """Loops that take all processors."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@needs_virtual_time
def test_every_round_trip_has_its_exact_time(tmp_path: Path) -> None:
    found = run(tmp_path / "out", measurements=[PING])
    # 98 octets, 24 more of preamble, check sequence and gap, at 10 Mbit/s: 97.6 us; two links of 10 ms.
    trips = [float(trip) for trip in re.findall(r"time=([\d.]+)", _output(tmp_path / "out", "rtt"))]
    assert len(trips) == 10
    assert set(trips[1:]) == {20.2}, "what ping shows of 20.1952 ms"
    assert found["rtt.rtt_min"] == pytest.approx(20_195_200, abs=1_000)
    assert found["rtt.loss"] == 0


def _output(out: Path, name: str) -> str:
    return (out / "measurements" / name / "client.out").read_text()


@needs_virtual_time
def test_a_flow_has_its_rate_and_every_packet_its_delay(tmp_path: Path, busy: None) -> None:
    # The ping first: a datagram that waits for the neighbour's address arrives late.
    found = run(tmp_path / "out", measurements=[PING, FLOW])
    assert found["flow.throughput"] == pytest.approx(5e6, rel=1e-3)
    # 1470 octets of payload are a frame of 1512 and 1536 of the wire: 1.2288 ms, and 10 ms of the link.
    assert found["flow.delay_mean"] == pytest.approx(11_228_800, abs=2_000)
    assert found["flow.delay_max"] - found["flow.delay_min"] <= 1_000
    assert found["flow.loss"] == 0


@needs_virtual_time
def test_two_runs_are_the_same_to_the_octet_under_any_load(tmp_path: Path, busy: None) -> None:
    parts: dict[str, Any] = {
        "nodes": {"h1": {}, "r": {}, "h2": {}},
        "links": [
            {"ends": ["h1", "r"], "rate": "10 Mbit/s", "delay": "3 ms", "loss": "5 %"},
            {"ends": ["r", "h2"], "rate": "5 Mbit/s", "delay": "1 ms"},
        ],
        "programs": [{"node": "h2", "run": "sh -c 'cat /proc/sys/kernel/random/uuid; date +%N'"}],
        "events": [
            {"at": "1 s", "link": "h1-r", "action": "down"},
            {"at": "2 s", "link": "h1-r", "action": "up"},
        ],
        "measurements": [
            PING,
            {"name": "tcp", "iperf3": {"from": "h1", "to": "h2", "duration": "1 s", "congestion": "cubic"}},
        ],
    }
    run(tmp_path / "one", capture=True, **parts)
    run(tmp_path / "two", capture=True, **parts)
    assert_same(tmp_path / "one", tmp_path / "two")
    run(tmp_path / "other", capture=True, **parts, seed=2)
    logs = [next((tmp_path / name / "nodes/h2").glob("h2-*.log")).read_text() for name in ("one", "other")]
    assert logs[0].splitlines()[0] != logs[1].splitlines()[0], "another seed draws another number"


@needs_virtual_time
def test_how_often_the_calendar_returns_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two returns there are few events here, and all of them there."""
    parts: dict[str, Any] = {
        "programs": [{"node": one, "run": "cat /proc/sys/kernel/random/uuid"} for one in ("h1", "h2")],
        "measurements": [{**PING, "ping": {**PING["ping"], "count": 2}}],
    }
    for name, wall_seconds in (("often", 0.0003), ("seldom", 5.0)):
        monkeypatch.setattr(virtual_time, "_SLICE", wall_seconds)
        run(tmp_path / name, capture=True, **parts)
    assert_same(tmp_path / "often", tmp_path / "seldom")


class _Counted(Pacer):
    """Keeps its counters."""

    kept: ClassVar[list[dict[str, int]]] = []

    def close(self) -> None:
        self.kept.append(self.counts())
        super().close()


BURSTS = (
    "python3 -c 'import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
    ' [(time.sleep(0.02), [s.sendto(bytes(1 + 37 * n), ("10.0.0.2", 9)) for n in range(40)])'
    " for _ in range(20)]'"
)
"""20 times 40 datagrams at one instant, the largest of them 1,444 octets long."""
SHAPES: dict[str, dict[str, Any]] = {
    "flow": {"measurements": [PING, FLOW]},
    "bursts": {"programs": [{"node": "h1", "run": BURSTS}], "duration": "2 s"},
    "jitter": {
        "links": [
            {"ends": ["h1", "h2"], "rate": "10 Mbit/s", "delay": "10 ms", "jitter": {"uniform": "2 ms"}}
        ],
        "measurements": [PING, FLOW],
    },
    "router": {
        "nodes": {"h1": {}, "r": {}, "h2": {}},
        "links": [
            {"ends": ["h1", "r"], "rate": "10 Mbit/s", "delay": "3 ms", "loss": "2 %"},
            {"ends": ["r", "h2"], "rate": "5 Mbit/s", "delay": "1 ms"},
        ],
        "events": [
            {"at": "500 ms", "link": "h1-r", "action": "down"},
            {"at": "800 ms", "link": "h1-r", "action": "up"},
        ],
        "measurements": [
            {"name": "tcp", "iperf3": {"from": "h1", "to": "h2", "duration": "1 s", "congestion": "cubic"}}
        ],
    },
    "switch": {
        "nodes": {"h1": {}, "h2": {}},
        "switches": {"s": {}},
        "links": [{"ends": [name, "s"], "rate": "10 Mbit/s", "delay": "0 ms"} for name in ("h1", "h2")],
        "measurements": [PING, FLOW],
    },
}
"""Networks that differ in what a guest may do before something comes of what it sends."""


@needs_virtual_time
@pytest.mark.parametrize("shape", SHAPES)
def test_windows_give_what_one_message_a_step_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    for name, plain in (("windows", False), ("steps", True)):
        monkeypatch.setattr(emulation, "Pacer", partial(_Counted, plain=plain))
        run(tmp_path / name, capture=True, **SHAPES[shape])
    assert_same(tmp_path / "windows", tmp_path / "steps")
    windows, steps = _Counted.kept[-2:]
    assert windows["logged"] > 0, "frames are logged"
    assert (steps["logged"], steps["listed"]) == (0, 0)
    assert 5 * windows["messages"] < steps["messages"]


@needs_virtual_time
def test_where_the_results_lie_does_not_matter(tmp_path: Path) -> None:
    """What a guest's kernel draws is the same: identifications of IPv4 packets are drawn."""
    deep = tmp_path.joinpath(*("deeper" for _ in range(10)))
    with tempfile.TemporaryDirectory(dir=Path.home()) as elsewhere:
        places = [tmp_path / "one", deep / "other", Path(elsewhere, "third")]
        for place in places:
            place.parent.mkdir(parents=True, exist_ok=True)
            run(place, capture=True, measurements=[PING])
        for other in places[1:]:
            assert_same(places[0], other)


@needs_virtual_time
def test_nodes_share_guests_in_virtual_time_too(tmp_path: Path) -> None:
    guests: dict[str, Any] = {
        "kind": "uml",
        "guests": {"left": {}, "right": {}},
        "nodes": {"h1": {"inside": "left"}, "r": {"inside": "left"}, "h2": {"inside": "right"}},
        "links": [
            {"ends": ["h1", "r"], "rate": "10 Mbit/s", "delay": "10 ms"},
            {"ends": ["r", "h2"], "rate": "10 Mbit/s", "delay": "10 ms"},
        ],
        "measurements": [PING],
    }
    assert run(tmp_path / "one", capture=True, **guests)["rtt.rtt_min"] == pytest.approx(
        40_390_400, abs=1_000
    )
    run(tmp_path / "two", capture=True, **guests)
    assert_same(tmp_path / "one", tmp_path / "two")


@needs_virtual_time
def test_a_program_that_never_waits_ends_the_run_with_its_guest(tmp_path: Path) -> None:
    spinning = {"node": "h2", "at": "1 s", "run": "sh -c 'while :; do :; done'", "expect": None}
    with pytest.raises(
        RunError,
        match=r"guest h2 has run for [\d.]+ s of processor time and does not reach the next instant; "
        r"it runs sh \(process \d+\), at 3\.",
    ):
        airloom.run(
            scenario(programs=[spinning], duration="5 s", engine={"guest_budget": "2 s"}),
            out=tmp_path / "out",
        )
    said = json.loads((tmp_path / "out/result.json").read_text())["verdict"]
    assert said["status"] == "invalid"
    assert "guest h2" in said["reasons"][0]


@needs_virtual_time
def test_a_guest_that_ends_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    halt = f"{sys.executable} -c 'import ctypes, time; time.sleep(1); ctypes.CDLL(None).reboot(0x4321fedc)'"
    with pytest.raises(RunError, match="node h2 failed: its machine"):
        airloom.run(
            scenario(programs=[{"node": "h2", "at": "1 s", "run": halt, "expect": None}], duration="5 s"),
            out=tmp_path / "out",
        )


def test_a_kernel_without_virtual_time_is_refused_with_what_builds_one(tmp_path: Path) -> None:
    kernel = tmp_path / "linux"
    kernel.write_text('#!/bin/sh\n[ "$1" = --version ] && echo 6.1.0 || echo "mem=<size>"\n')
    kernel.chmod(0o755)
    with pytest.raises(HostError, match="cannot be in virtual time: it has no option time-travel") as error:
        require_virtual_time(kernel)
    assert error.value.cure == "build one: airloom kernel build"
    said = "time-travel=ext:PATH seed=N spin=on"
    kernel = tmp_path / "older"
    kernel.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo 6.1.0 || echo "{said}"\n')
    kernel.chmod(0o755)
    with pytest.raises(HostError, match="it shares no memory with its calendar"):
        require_virtual_time(kernel)
    kernel = tmp_path / "last"
    kernel.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo 6.1.0 || echo "{said} share a window of memory"\n'
    )
    kernel.chmod(0o755)
    require_virtual_time(kernel)
    with pytest.raises(HostError, match="cannot take turns or share a processor in virtual time"):
        require_virtual_time(kernel, waits=True)
