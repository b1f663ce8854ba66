"""A live laboratory in virtual time: it stands still but for what waits, and a script repeats it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom.errors import RunError, ScenarioError
from airloom.host import pcap
from airloom.nodes.virtual_time import Pacer, PassedFrame
from airloom.results import RunReader
from airloom.runs import emulation
from helpers.kernels import needs_virtual_time
from helpers.nodes import eventually
from helpers.virtual import assert_same, scenario

pytestmark = [pytest.mark.world, pytest.mark.timeout(300)]

MS = 1_000_000
SECOND = 1000 * MS
WIRE = {"small": 67_200, "echo": 97_600}
"""ns on 10 Mbit/s of the shortest frame, and of ping's with 98 octets; each with 24 more of the wire."""

PYTHON = [sys.executable, "-c"]
LISTENS = 'import socket; print(socket.create_server(("", 80)).accept()[0].recv(99))'
SAYS = 'import socket; socket.create_connection(("h2", 80)).sendall(b"hello")'


def lab(out: Path, **parts: Any) -> airloom.Lab:
    return airloom.Lab(scenario(**parts), out=out)


def trips(text: str) -> list[float]:
    """The round trips that ping shows, in ms."""
    return [float(trip) for trip in re.findall(r"time=([\d.]+)", text)]


def answered(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"icmp_seq=(\d+) ttl", text)]


@needs_virtual_time
def test_time_stands_still_and_passes_as_it_is_told(tmp_path: Path) -> None:
    program = {"node": "h2", "name": "clock", "at": "3 s", "run": "date +%s.%N"}
    with lab(tmp_path / "out", programs=[program]) as up:
        assert up.now() == 0
        assert (up.run_for("1 s"), up.now()) == (SECOND, SECOND)
        assert up.run_until("1500 ms") == 1500 * MS
        assert up.run_until(1500 * MS + 7) == 1500 * MS + 7
        with pytest.raises(ScenarioError, match="have passed"):
            up.run_until("1 s")
        assert up["h1"].run("sleep 2").ok
        assert 3_500 * MS < up.now() < 3_510 * MS
        clock = (tmp_path / "out/nodes/h2/clock.log").read_text()
        up["h1"].start("sh -c 'sleep 2; touch /tmp/there'")
        before = up.now()
        assert up.run_until(lambda: up["h1"].run("test -e /tmp/there").ok, every="1500 ms") == up.now()
        assert 3_000 * MS < up.now() - before < 3_010 * MS, "it is there at the third look"
        with pytest.raises(TimeoutError, match="does not hold within 500 ms"):
            up.run_until(lambda: False, every="70 ms", within="500 ms")
    begun = RunReader(tmp_path / "out").details.calendar_ns
    since = round(float(clock) * 1e9) - 1_577_836_800 * SECOND - begun
    assert 3000 * MS <= since < 3010 * MS, "it ran at its time, while another one was waited for"
    assert up.result.verdict.status == "valid"


def play(up: airloom.Lab) -> list[Any]:
    """Uses what a laboratory has, and says what came of it and when."""
    said: list[Any] = [up.now()]
    said += [up["h1"].run("ping -c 3 -i 0.2 h2").stdout, up.now()]
    up.link("h1", "h2").set(delay="50 ms", loss="20 %")
    said += [up["h1"].run("ping -c 5 -i 0.2 h2").stdout, up.now()]
    server = up["h2"].start("python3 -c 'import uuid; print(uuid.uuid4())'", name="random")
    said += [server.wait(), server.output, up.now()]
    listener = up["h2"].start([*PYTHON, LISTENS], name="listener", ready={"port": 80, "within": "20 s"})
    said += [
        up.now(),
        up["h1"].run([*PYTHON, SAYS], check=True).code,
        listener.wait(5),
        listener.output,
    ]
    up.link("h1", "h2").set(loss="0 %", delay="1 ms")
    reading = up.measure(traffic={"from": "h1", "to": "h2", "rate": "1 Mbit/s", "duration": "500 ms"})
    said += [(one.name, one.value) for one in reading.metrics()]
    said += [up.ledger(), up["h2"].counters(), up.now()]
    done = up["h1"].run("ping h2", timeout=2)
    said += [done.timed_out, done.stdout, up.now()]
    up["h2"].stop()
    said += [up["h1"].run("ping -c 1 -W 1 h2").stdout, up.run_for("1 s")]
    return said


@needs_virtual_time
def test_one_script_gives_the_same_each_time(tmp_path: Path) -> None:
    said = []
    for name in ("one", "two"):
        with airloom.Lab(scenario(), out=tmp_path / name, capture=True) as up:
            said.append(play(up))
    assert said[0] == said[1]
    assert_same(tmp_path / "one", tmp_path / "two")
    pinged, slower, limited = (said[0][place] for place in (1, 3, -4))
    assert trips(pinged)[1:] == [20.2, 20.2]
    assert set(trips(slower)) <= {100.0, 100.195, 100.2}
    assert len(answered(limited)) == 2
    assert said[0][-5] is True


@needs_virtual_time
def test_a_link_changes_at_the_present_instant(tmp_path: Path) -> None:
    with lab(tmp_path / "out") as up:
        up["h1"].run("ping -c 1 h2", check=True)
        at = up.run_until("2 s")
        program = up["h1"].start("ping -n -i 0.1 -c 30 h2")
        # Requests leave each 100.3 ms, after one without an answer 110 ms later.
        up.run_until(at + 1050 * MS)
        link = up.link("h1", "h2")
        link.set(carrier="keep")
        link.down()
        up.run_until(at + 1550 * MS)
        link.up()
        up.run_until(at + 2 * SECOND)
        link.set(delay="30 ms")
        program.wait()
    assert answered(program.output) == [*range(1, 12), *range(17, 31)]
    assert trips(program.output) == [20.2] * 15 + [60.2] * 10


def steps(out: Path) -> list[PassedFrame]:
    """All frames of one ping."""
    found: list[PassedFrame] = []
    with lab(out) as up:
        up.run_for("1 s")
        ping = up["h1"].start("ping -c 1 h2")
        while ping.code is None:
            frames = up.step(within="200 ms")
            assert all(one.at == up.now() for one in frames)
            found += frames
        assert up.step(within="0 s") == []
    return found


@needs_virtual_time
def test_it_steps_from_frame_to_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = steps(tmp_path / "windows")
    here = [one for one in found if one.octets in (42, 98)]
    ways = [(one.port, one.sent) for one in here]
    there = [("h1:eth0", True), ("h2:eth0", False), ("h2:eth0", True), ("h1:eth0", False)]
    assert ways == there * 2, found
    wire = [one.at for one in here]
    assert [wire[1] - wire[0], wire[3] - wire[2]] == [10 * MS + WIRE["small"]] * 2
    assert [wire[5] - wire[4], wire[7] - wire[6]] == [10 * MS + WIRE["echo"]] * 2
    monkeypatch.setattr(emulation, "Pacer", partial(Pacer, plain=True))
    assert steps(tmp_path / "plain") == found


def tune(up: airloom.Lab) -> list[Any]:
    """Changes the radios of a laboratory while time stands still; says what came of it and when."""
    at, radio = up.run_until("1 s"), up.radio("h1")
    assert radio.is_up
    radio.down()
    assert (radio.is_up, up.now()) == (False, at), "at once"
    assert not up["h1"].run("ping -c 1 -W 1 h2").ok
    radio.up()
    for one in up.radios:
        one.set(channel=40)
    assert up.radio("h2").info()["channel"] == 40
    said = [up["h1"].run("ping -c 3 -i 0.1 h2", check=True).stdout]
    before = up.now()
    heard = radio.scan(40)
    assert 30 * MS <= up.now() - before < 60 * MS
    up["h2"].move("3000 m", "0 m")
    assert up.positions()["h2"][0] == 3000
    assert not up["h1"].run("ping -c 1 -W 1 h2").ok
    return [*said, heard, up.now()]


@needs_virtual_time
def test_radios_change_at_the_present_instant(tmp_path: Path) -> None:
    node = {"radios": {"wlan0": {}}}
    parts: dict[str, Any] = {
        "links": [],
        "media": {"air": {"radio": {"phy": "802.11a", "channel": 36, "rate": "6 Mbit/s"}}},
        "nodes": {"h1": {**node, "position": ["0 m", "0 m"]}, "h2": {**node, "position": ["10 m", "0 m"]}},
    }
    said = []
    for name in ("one", "two"):
        with lab(tmp_path / name, **parts) as up:
            said.append(tune(up))
    assert said[0] == said[1]


@needs_virtual_time
def test_a_command_reads_its_input_to_the_end(tmp_path: Path) -> None:
    inputs = ["", "hello", "hello" * 100_000]
    found = []
    for name in ("one", "two"):
        with lab(tmp_path / name) as up:
            done = [up["h1"].run("wc -c", input=text, timeout=5) for text in inputs]
            found.append([[int(one.stdout) for one in done], up.now()])
    assert found[0][0] == [len(text) for text in inputs]
    assert found[0] == found[1]


@needs_virtual_time
def test_a_shared_guest_stops_with_its_nodes_at_the_same_instants_each_time(tmp_path: Path) -> None:
    parts: dict[str, Any] = {
        "kind": "uml",
        "guests": {"left": {}, "right": {}},
        "nodes": {"h1": {"inside": "left"}, "r": {"inside": "left"}, "h2": {"inside": "right"}},
        "links": [{"ends": ["h1", "r"]}, {"ends": ["r", "h2"]}],
    }
    said = []
    for name in ("one", "two"):
        with lab(tmp_path / name, **parts) as up:
            programs = [up[node].start("sleep 1000") for node in ("h1", "r")]
            up.guest("left").stop()
            states = [up.guest("left").state, up["h1"].state, up["h2"].state]
            assert not up["h2"].run("ping -c 1 -W 1 r").ok
            up["h2"].kill()
            said.append([*states, *(one.code for one in programs), up.now(), up.run_for("1 s")])
    assert said[0][:5] == ["stopped", "stopped", "up", 143, 143]
    assert said[0] == said[1]
    assert said[0][5] < 1_100 * MS, "nothing but ping waited"


@needs_virtual_time
@pytest.mark.parametrize("plain", [False, True])
def test_a_paused_guest_does_all_that_was_due_when_it_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: bool
) -> None:
    monkeypatch.setattr(emulation, "Pacer", partial(Pacer, plain=plain))
    said = []
    for name in ("one", "two"):
        with lab(tmp_path / name) as up:
            up["h1"].run("ping -c 1 h2")  # for the address
            ping = up["h1"].start("ping -i 0.1 -c 8 h2")
            begin = up.now()
            up.run_until(begin + 250 * MS)
            up["h2"].pause()
            with pytest.raises(RunError, match="h2 is paused"):
                up["h2"].run("true")
            up.run_until(begin + 550 * MS)
            up["h2"].resume()
            assert ping.wait() == 0
            said.append((trips(ping.output), up.now()))
    # Sent after 0, 100, ... ms. Those of 300, 400 and 500 ms are answered after 550 ms.
    usual = said[0][0][0]
    assert said[0][0] == pytest.approx([usual] * 3 + [250, 150, 50] + [usual] * 2, abs=usual)
    assert said[0] == said[1]


@needs_virtual_time
def test_the_pause_of_a_node_leaves_the_others_of_its_guest_alone(tmp_path: Path) -> None:
    parts: dict[str, Any] = {
        "kind": "uml",
        "guests": {"both": {}},
        "nodes": {"h1": {"inside": "both"}, "r": {"inside": "both"}},
        "links": [{"ends": ["h1", "r"]}],
        "events": [
            {"at": "1 s", "node": "r", "action": "pause"},
            {"at": "2 s", "node": "r", "action": "resume"},
        ],
    }
    with lab(tmp_path / "out", **parts) as up:
        counts = "sh -c 'while :; do echo; sleep 0.1; done'"
        programs = [up[node].start(counts) for node in ("h1", "r")]
        up.run_until("2900 ms")
        lines = [one.output.count("\n") for one in programs]
    assert lines[0] == pytest.approx(29, abs=1)
    assert lines[1] == pytest.approx(19, abs=2)


@needs_virtual_time
def test_what_cannot_be_in_virtual_time_is_refused_by_name(tmp_path: Path) -> None:
    with lab(tmp_path / "out") as up:
        for act, word in (
            (up["h1"].restart, "'start'"),
            (partial(up.add, "h3", links=[]), "one more node"),
        ):
            with pytest.raises(RunError, match=f"{word} is not built for virtual time"):
                act()
        with pytest.raises(RunError, match="waits for its keyboard"):
            up.admit("h1", ["sh"], {}, [0, 1, 2], True)
        assert up["h1"].run("ping -c 1 h2").ok


@needs_virtual_time
def test_a_program_of_the_scenario_that_fails_ends_what_waits(tmp_path: Path) -> None:
    program = {"node": "h2", "at": "1 s", "run": "sh -c 'echo no; exit 3'"}
    ended = pytest.raises(RunError, match=r"program .* in node h2 ended with exit code 3")
    with ended, lab(tmp_path / "out", programs=[program]) as up:
        up["h1"].run("sleep 5")
    spins = pytest.raises(RunError, match="guest h1 has run for")
    with spins, lab(tmp_path / "spins", engine={"guest_budget": "1 s"}) as up:
        up["h1"].run("sh -c 'while :; do :; done'")


def test_the_time_of_the_wall_clock_does_not_stand_still_at_a_frame(tmp_path: Path) -> None:
    with airloom.Lab(scenario(kind="netns", guest={}), time="wall", out=tmp_path / "out") as up:
        before = up.now()
        assert up.run_for("50 ms") >= before + 50 * MS
        assert up.run_until(lambda: up["h1"].run("ping -c 1 h2").ok) > before
        with pytest.raises(RunError, match="does not stand still at a frame") as error:
            up.step()
        assert error.value.cure == 'make the laboratory with time="virtual"'


@needs_virtual_time
def test_frames_are_captured_by_another_terminal_while_time_passes(tmp_path: Path) -> None:
    path = tmp_path / "h1.pcapng"
    words = ["capture", "--lab", str(os.getpid()), "h1:eth0", "--out", str(path)]
    with lab(tmp_path / "out") as up:
        client = subprocess.Popen(
            [sys.executable, "-m", "airloom", *words], stderr=subprocess.PIPE, text=True, cwd=tmp_path
        )
        with client:
            eventually(lambda: path.exists() and path.stat().st_size > 0, "it captures")
            assert up.now() == 0, "a capture lets no time pass"
            assert up["h1"].run("ping -n -c 3 -i 1 h2").ok
            client.send_signal(signal.SIGINT)
            assert client.stderr is not None
            said = client.stderr.read()
        assert client.returncode == 0, said
    got = [one for one in pcap.frames(path) if one.octets[23:24] == b"\x01"]
    assert [one.direction for one in got] == ["out", "in"] * 3, said
    sent = [one.at for one in got if one.direction == "out"]
    assert all(abs(after - before - SECOND) < 100 * MS for before, after in pairwise(sent))
