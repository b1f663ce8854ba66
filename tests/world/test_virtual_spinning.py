"""Programs in virtual time that do not wait: they are charged time, and see everything at its instant."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom.errors import ScenarioError
from airloom.host import pcap
from airloom.results import details
from helpers.kernels import needs_virtual_time
from helpers.virtual import assert_same, run, scenario

pytestmark = [pytest.mark.world, pytest.mark.timeout(300)]


def program(text: str) -> str:
    return f"{sys.executable} -c '{text}'"


@needs_virtual_time
def test_a_program_that_reads_its_clock_for_a_second_is_charged_it(tmp_path: Path) -> None:
    text = "import time; until = time.monotonic() + 1\nwhile time.monotonic() < until: pass"
    spinning = {"node": "h2", "at": "1 s", "name": "spins", "run": program(text)}
    done = airloom.run(scenario(programs=[spinning], duration="3 s"), out=tmp_path / "one")
    (spun,) = details.read(tmp_path / "one/details.json").spun
    assert (spun.guest, spun.program) == ("h2", Path(sys.executable).name[:15])
    # At most 128 us each, once the price has doubled seven times.
    assert 7_800 <= spun.calls <= 10_000
    assert spun.nanoseconds == pytest.approx(1e9, rel=0.02)
    (note,) = (note for note in done.verdict.notes if note.startswith("virtual.spun"))
    assert f"{spun.calls:,} times" in note
    assert "guest h2" in note
    run(tmp_path / "two", programs=[spinning], duration="3 s")
    assert_same(tmp_path / "one", tmp_path / "two")


POLLER = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 7000))
s.setblocking(False)
seen = 0
while seen < 10:
    try:
        s.recv(100)
    except BlockingIOError:
        continue
    print(time.time_ns(), flush=True)
    seen += 1
"""
SENDER = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(10):
    s.sendto(b"x" * 18, ("10.0.0.2", 7000))
    time.sleep(0.0537)
"""


@needs_virtual_time
def test_a_program_that_polls_sees_a_frame_at_its_instant(tmp_path: Path) -> None:
    done = airloom.run(
        scenario(
            programs=[
                {"node": "h2", "at": "0 s", "name": "poller", "run": [sys.executable, "-c", POLLER]},
                {"node": "h1", "at": "500 ms", "name": "sender", "run": [sys.executable, "-c", SENDER]},
            ],
            duration="3 s",
        ),
        out=tmp_path / "out",
        capture=True,
    )
    assert any(note.startswith("virtual.spun") for note in done.verdict.notes)
    frames = pcap.frames(tmp_path / "out/captures/h2.eth0.pcapng")
    arrived = [frame.at for frame in frames if frame.octets[36:38] == (7000).to_bytes(2, "big")]
    log = tmp_path / "out/nodes/h2/poller.log"
    seen = [int(line) for line in log.read_text().split()]
    assert len(arrived) == len(seen) == 10
    # A failed call costs 1 us, and two readings of the clock 512 ns; one charge would be 128 us.
    late = [at - when for at, when in zip(seen, arrived, strict=True)]
    assert all(0 <= one <= 4_000 for one in late), late


@needs_virtual_time
def test_processes_that_keep_each_other_awake_are_charged_too(tmp_path: Path) -> None:
    # Each of them waits for the other, so that only all calls of the guest tell that time must pass.
    text = """
import os
a, b = os.pipe(), os.pipe()
mine, other = (a[0], b[1]) if os.fork() else (b[0], a[1])
if mine == a[0]:
    os.write(b[1], b"x")
for turn in range(20000):
    os.read(mine, 1)
    os.write(other, b"x")
"""
    turns = {"node": "h2", "at": "0 s", "name": "turns", "run": [sys.executable, "-c", text]}
    run(tmp_path / "out", programs=[turns], duration="1 s")
    spun = next(
        one for one in details.read(tmp_path / "out/details.json").spun if one.program.startswith("python")
    )
    # 40,000 reads and as many writes, of which 65,536 are free, less those at the start.
    assert 10_000 <= spun.calls <= 20_000
    # Interrupts may end the time of a call.
    assert spun.nanoseconds == pytest.approx(spun.calls * 1_000, rel=0.01)


@needs_virtual_time
def test_iperf3_by_tcp_runs_to_its_end_through_lost_control_messages(tmp_path: Path) -> None:
    parts: dict[str, Any] = {
        "links": [{"ends": ["h1", "h2"], "rate": "10 Mbit/s", "delay": "10 ms", "loss": "2 %"}],
        "measurements": [
            {"name": "tcp", "iperf3": {"from": "h1", "to": "h2", "duration": "2 s", "congestion": "cubic"}}
        ],
    }
    found = run(tmp_path / "one", capture=True, **parts)
    assert found["tcp.goodput"] > 1e6
    spun = details.read(tmp_path / "one/details.json").spun
    assert {one.program for one in spun} == {"iperf3"}
    run(tmp_path / "two", capture=True, **parts)
    assert_same(tmp_path / "one", tmp_path / "two")


def test_a_budget_of_no_time_is_refused() -> None:
    with pytest.raises(ScenarioError, match="guest_budget: '0 s' must be above 0"):
        scenario(engine={"guest_budget": "0 s"})
