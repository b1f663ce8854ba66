"""The generator between two real namespaces joined by a veth pair."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from airloom import run
from airloom.host import binaries
from airloom.measure import Ended, Outcome, Place, tool_for
from airloom.measure.flow import FlowReading, join
from airloom.measure.records import FlowRecord, read
from airloom.measure.sockets import is_listening
from airloom.scenario.model import Measurement
from helpers.nodes import still

pytestmark = [
    pytest.mark.world,
    pytest.mark.skipif(os.geteuid() != 0, reason="making namespaces by hand needs root"),
]

MS = 1_000_000
ADDRESSES = (("10.0.0.1", "fd00::1"), ("10.0.0.2", "fd00::2"))


class Pair:
    """Two namespaces, each held by a process that ends when this one does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.traffic = str(binaries.find("airloom-traffic"))
        self._started: list[subprocess.Popen[bytes]] = []
        self.holders = [
            subprocess.Popen(["unshare", "-n", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            for _ in range(2)
        ]
        for holder in self.holders:
            self._await(lambda pid=holder.pid: Path(f"/proc/{pid}/ns/net").readlink() != own_namespace())
        two = str(self.holders[1].pid)
        # In a namespace of its own, so that the host sees no interface even for a moment.
        self.run(0, "ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", two)
        for side in (0, 1):
            v4, v6 = ADDRESSES[side]
            self.run(side, "ip", "link", "set", "lo", "up")
            self.run(side, "ip", "link", "set", "eth0", "up")
            self.run(side, "ip", "address", "add", f"{v4}/24", "dev", "eth0")
            self.run(side, "ip", "address", "add", f"{v6}/64", "dev", "eth0", "nodad")

    def close(self) -> None:
        for process in [*self._started, *self.holders]:
            process.kill()
            process.communicate()

    def words(self, side: int, *words: str) -> list[str]:
        return ["nsenter", "-t", str(self.holders[side].pid), "-n", "--", *words]

    def run(self, side: int, *words: str) -> str:
        done = subprocess.run(
            self.words(side, *words), capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout

    def start(self, side: int, *words: str, out: Path | None = None) -> subprocess.Popen[bytes]:
        with out.open("wb") if out else contextlib.nullcontext(subprocess.PIPE) as stdout:
            process = subprocess.Popen(self.words(side, *words), stdout=stdout, stderr=subprocess.PIPE)
        self._started.append(process)
        return process

    def receive(self, *options: str, port: int = 5000, protocol: str = "udp") -> subprocess.Popen[bytes]:
        """A receiver that is ready; its record goes to ``rx``."""
        more = ("--protocol", protocol, "--record", str(self.folder / "rx"), "--json")
        process = self.start(1, self.traffic, "receive", "--port", str(port), *more, *options)
        kind = "tcp" if protocol == "tcp" else "udp"
        self._await(lambda: is_listening(self.holders[1].pid, kind, port))
        return process

    def send(self, *options: str, to: str = "10.0.0.2", port: int = 5000) -> tuple[int, dict]:
        """A sender that has ended: its exit code and summary; its record goes to ``tx``."""
        more = ("--record", str(self.folder / "tx"), "--json")
        process = self.start(0, self.traffic, "send", "--to", to, "--port", str(port), *more, *options)
        out, _ = process.communicate(timeout=60)
        return process.returncode, json.loads(out)

    def octets(self) -> int:
        """What the second namespace's interface has received."""
        (link,) = json.loads(self.run(1, "ip", "-s", "-j", "link", "show", "eth0"))
        return link["stats64"]["rx"]["bytes"]

    def await_flow(self) -> None:
        """Waits until some packets of a flow must have been received."""
        enough = self.octets() + 50_000
        self._await(lambda: self.octets() > enough)

    def records(self) -> tuple[FlowRecord, FlowRecord]:
        return read(self.folder / "tx"), read(self.folder / "rx")

    def flow(
        self, *options: str, receive: tuple[str, ...] = (), protocol: str = "udp", **more
    ) -> FlowReading:
        receiver = self.receive(*receive, protocol=protocol)
        code, _ = self.send("--protocol", protocol, *options, **more)
        receiver.communicate(timeout=60)
        assert (code, receiver.returncode) == (0, 0)
        return join(*self.records())

    @staticmethod
    def _await(condition) -> None:
        while not condition():
            time.sleep(0.01)


def own_namespace() -> Path:
    return Path("/proc/self/ns/net").readlink()


@pytest.fixture
def pair(tmp_path):
    pair = Pair(tmp_path)
    yield pair
    pair.close()


def metrics(reading):
    return {metric.name: metric.value for metric in reading.metrics()}


@pytest.mark.measures
@pytest.mark.parametrize("to", ["10.0.0.2", "fd00::2"])
def test_constant_rate(pair, to):
    reading = pair.flow("--rate", "10 Mbit/s", "--size", "1250 B", "--duration", "1 s", to=to)
    found = metrics(reading)
    assert found["sent"] == found["received"] == 1000
    assert found["offered"] == pytest.approx(10e6, rel=0.05), "late packets at the ends shift it a little"
    assert (found["lost"], found["duplicates"], found["reordered"]) == (0, 0, 0)
    assert found["octets"] == 1_250_000
    assert np.all(reading.delays > 0), "no packet arrives before it is sent"
    sender, receiver = pair.records()
    assert np.all(np.diff(sender.scheduled) == MS), "the schedule does not drift"
    assert np.all(sender.sent >= sender.scheduled), "no packet is early"
    assert sender.complete
    assert receiver.complete
    assert (receiver.announced, receiver.kernel_stamps) == (1000, True)


def test_a_frame_has_the_size_that_was_asked_for(pair):
    before = pair.octets()
    reading = pair.flow("--frame", "1518 B", "--interval", "1 ms", "--count", "500")
    carried = pair.octets() - before
    assert reading.departure_octets.tolist() == [1472] * 500
    # The counter leaves out the FCS. Beside the flow there are end marks, ARP and neighbour discovery.
    assert 0 <= carried - 500 * 1514 < 3000


def test_rate_of_frames_and_of_the_wire(pair):
    pair.flow("--frame", "1518 B", "--rate", "10 Mbit/s", "--rate-of", "wire", "--count", "50")
    sender, _ = pair.records()
    assert np.all(np.diff(sender.scheduled) == 1538 * 800)


RELAY = """
import socket, sys
from_sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
from_sender.bind(("10.0.0.2", 4000))
held = None
for number in range(int(sys.argv[1])):
    packet = from_sender.recv(2048)
    if number % 10 == 3:
        continue
    if number % 10 == 5:
        held = packet
        continue
    from_sender.sendto(packet, ("10.0.0.2", 5000))
    if number % 10 == 7:
        from_sender.sendto(packet, ("10.0.0.2", 5000))
        from_sender.sendto(held, ("10.0.0.2", 5000))
while True:
    from_sender.sendto(from_sender.recv(2048), ("10.0.0.2", 5000))
"""


def test_loss_duplicates_and_order_are_exactly_those_of_a_relay(pair):
    receiver = pair.receive()
    pair.start(1, sys.executable, "-c", RELAY, "200")
    pair._await(lambda: is_listening(pair.holders[1].pid, "udp", 4000))
    code, _ = pair.send("--interval", "2 ms", "--count", "200", "--size", "100 B", port=4000)
    receiver.communicate(timeout=60)
    assert (code, receiver.returncode) == (0, 0)
    reading = join(*pair.records())
    found = metrics(reading)
    assert (found["sent"], found["lost"], found["duplicates"], found["reordered"]) == (200, 20, 20, 20)
    assert set(reading.extents) == {2}, "number 5 comes behind 6 and 7"


def test_tcp_octets_and_records(pair):
    options = ("--rate", "20 Mbit/s", "--size", "10000 B", "--duration", "500 ms", "--congestion", "cubic")
    reading = pair.flow(*options, protocol="tcp")
    sender, receiver = pair.records()
    assert sender.octets.sum() == receiver.octets.sum() == sender.announced == receiver.announced == 1_250_000
    for record in (sender, receiver):
        assert np.array_equal(record.sequence, np.cumsum(record.octets) - record.octets)
    assert reading.received == reading.sent == 125
    assert np.all(reading.delays > 0)


@pytest.mark.measures
def test_tcp_without_a_limit_is_cut_at_its_time(pair):
    reading = pair.flow("--rate", "max", "--duration", "200 ms", protocol="tcp")
    sender, receiver = pair.records()
    assert sender.announced == receiver.announced == reading.departure_octets.sum()
    span = sender.sent[-1] - sender.start
    assert 0 < span < 200 * MS


def test_rtp_and_marking(pair):
    more = ("--size", "172 B", "--interval", "20 ms", "--count", "20", "--rtp-clock", "8000")
    reading = pair.flow(*more, "--dscp", "46", "--ecn", "2", protocol="rtp")
    sender, receiver = pair.records()
    assert sender.rtp_clock == 8000
    assert set(receiver.flags.tolist()) == {(46 << 2 | 2) << 8}
    assert reading.jitter_rtp.size == 19
    reading = pair.flow(*more, "--dscp", "46", protocol="rtp", to="fd00::2")
    assert set(pair.records()[1].flags.tolist()) == {46 << 2 << 8}


def test_traces_and_random_patterns_repeat(pair):
    trace = pair.folder / "trace"
    trace.write_text("0 100\n3000000 200\n3000000 300\n10000000 18\n")
    reading = pair.flow("--pattern", "trace", "--trace", str(trace))
    sender, _ = pair.records()
    assert reading.arrival_octets.tolist() == [100, 200, 300, 18]
    assert (sender.scheduled - sender.start).tolist() == [0, 3 * MS, 3 * MS, 10 * MS]
    schedules = []
    for seed in ("5", "5", "6"):
        pair.flow("--pattern", "poisson", "--interval", "1 ms", "--count", "100", "--seed", seed)
        sender, _ = pair.records()
        schedules.append((sender.scheduled - sender.start).tolist())
    assert schedules[0] == schedules[1] != schedules[2]


@pytest.mark.parametrize("protocol", ["udp", "rtp", "tcp"])
def test_an_absent_receiver(pair, protocol):
    code, summary = pair.send("--protocol", protocol, "--interval", "1 ms", "--duration", "10 s")
    assert code == 4
    assert "no receiver at 10.0.0.2:5000" in summary["error"]
    code, summary = pair.send("--protocol", protocol, "--interval", "1 ms", "--count", "5", to="192.0.2.1")
    assert code == 3
    assert "unreachable" in summary["error"]


def test_a_port_that_is_taken(pair):
    pair.receive()
    second = pair.start(1, pair.traffic, "receive", "--port", "5000")
    _, said = second.communicate(timeout=60)
    assert second.returncode == 3
    assert b"Address already in use" in said


def test_a_stopped_receiver_writes_out_its_file(pair):
    receiver = pair.receive()
    sender = pair.start(
        0,
        pair.traffic,
        "send",
        "--to",
        "10.0.0.2",
        "--port",
        "5000",
        "--interval",
        "1 ms",
        "--duration",
        "60 s",
    )
    pair.await_flow()
    receiver.send_signal(signal.SIGTERM)
    out, _ = receiver.communicate(timeout=60)
    assert receiver.returncode == 0
    summary = json.loads(out)
    record = read(pair.folder / "rx")
    assert summary["ended_by"] == "signal"
    assert record.complete
    assert record.sequence.size == summary["packets"] > 0
    sender.communicate(timeout=60)
    assert sender.returncode == 4, "its receiver has gone"


def test_a_stopped_sender_still_marks_its_end(pair):
    receiver = pair.receive()
    words = (pair.traffic, "send", "--to", "10.0.0.2", "--port", "5000", "--json")
    sender = pair.start(0, *words, "--interval", "1 ms", "--duration", "60 s")
    pair.await_flow()
    sender.send_signal(signal.SIGTERM)
    out, _ = sender.communicate(timeout=60)
    receiver.communicate(timeout=60)
    assert (sender.returncode, receiver.returncode) == (0, 0)
    summary = json.loads(out)
    assert summary["ended_by"] == "signal"
    assert read(pair.folder / "rx").announced == summary["packets"]


def test_a_killed_receiver_leaves_a_readable_file(pair):
    receiver = pair.receive()
    pair.send("--interval", "1 ms", "--count", "100")
    # When nothing comes for a moment, it writes out what it has.
    pair._await(lambda: (pair.folder / "rx").stat().st_size == 64 + 100 * 32)
    receiver.kill()
    receiver.communicate(timeout=60)
    record = read(pair.folder / "rx")
    assert record.sequence.size == 100
    assert not record.complete


def test_a_receiver_ends_when_nothing_comes(pair):
    receiver = pair.receive("--wait", "100 ms")
    out, _ = receiver.communicate(timeout=60)
    assert (receiver.returncode, json.loads(out)["ended_by"]) == (5, "idle")
    assert read(pair.folder / "rx").complete


def test_a_full_disk_is_told(pair):
    receiver = pair.start(1, pair.traffic, "receive", "--port", "5000", "--record", "/dev/full", "--json")
    pair._await(lambda: is_listening(pair.holders[1].pid, "udp", 5000))
    code, _ = pair.send("--interval", "1 ms", "--count", "10")
    out, _ = receiver.communicate(timeout=60)
    assert (code, receiver.returncode) == (0, 6)
    assert "No space left" in json.loads(out)["error"]


def test_a_socket_without_room_counts_what_it_lost(pair):
    receiver = pair.receive("--buffer", "16 KiB")
    receiver.send_signal(signal.SIGSTOP)
    pair.send("--rate", "max", "--count", "2000", "--size", "1000 B")
    receiver.send_signal(signal.SIGTERM)
    receiver.send_signal(signal.SIGCONT)
    receiver.communicate(timeout=60)
    found = metrics(join(*pair.records()))
    # The end marks had no room either.
    assert found["lost"] > 0
    assert found["lost"] <= found["host_lost"] <= found["lost"] + 5


@pytest.mark.measures
def test_arrival_times_do_not_wait_for_the_receiver_to_wake(pair):
    receiver = pair.receive()
    receiver.send_signal(signal.SIGSTOP)
    pair.send("--interval", "1 ms", "--count", "300")
    receiver.send_signal(signal.SIGCONT)
    receiver.communicate(timeout=60)
    reading = join(*pair.records())
    assert reading.received == 300
    # Read up to 400 ms later, they are stamped when they came; a busy machine delays single ones.
    assert np.median(reading.delays) < 20 * MS


def wakes(process: subprocess.Popen[bytes]) -> int:
    """How often a program has waited so far: `nsenter` becomes the program it starts."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


@pytest.mark.measures
def test_packets_gather_and_their_records_do_not_tell(pair):
    options = ("--pattern", "poisson", "--interval", "2 ms", "--count", "1000", "--seed", "3", "--ecn", "1")
    found = []
    for stamps in ((), ("--user-stamps",)):
        receiver = pair.receive(*stamps, "--linger", "2 s")
        code, _ = pair.send(*options)
        woken = wakes(receiver)
        out, _ = receiver.communicate(timeout=60)
        assert (code, receiver.returncode) == (0, 0)
        sender, record = pair.records()
        summary = json.loads(out)
        assert (summary["packets"], summary["socket_drops"], summary["foreign"]) == (1000, 0, 0)
        assert summary["announced"] == record.announced == 1000
        assert np.all(np.diff(record.received) >= 0), "in the order in which they came"
        assert np.all(record.received >= sender.sent)
        found.append((woken, record, record.received - sender.sent))
    (few, gathered, delays), (many, single, _) = found
    assert few < 200 < many, "two seconds of pauses of 50 ms, and a wake for almost each packet"
    for field in ("sequence", "octets", "flags"):
        assert np.array_equal(getattr(gathered, field), getattr(single, field)), field
    assert np.median(delays) < 5 * MS, "the pause is not in them; a busy machine delays single ones"


@pytest.mark.measures
def test_a_burst_into_a_pause_finds_room(pair):
    # So slow that it is read every 50 ms, and then what one device takes at once.
    slow, burst = [f"{n * 10 * MS} 1470" for n in range(30)], [f"{295 * MS} 1470"] * 5000
    trace = pair.folder / "trace"
    trace.write_text("\n".join(slow + burst + [f"{400 * MS} 1470"]))
    receiver = pair.receive()
    code, summary = pair.send("--pattern", "trace", "--trace", str(trace))
    out, _ = receiver.communicate(timeout=60)
    assert (code, receiver.returncode) == (0, 0)
    assert summary["packets"] == 5031
    assert json.loads(out)["socket_drops"] == 0


@pytest.mark.measures
def test_a_waiting_receiver_sleeps(pair):
    receiver = pair.receive()
    pair._await(lambda: wakes(receiver) > 0)
    before = still(lambda: wakes(receiver))
    time.sleep(0.5)
    assert wakes(receiver) - before <= 1
    receiver.send_signal(signal.SIGTERM)
    out, _ = receiver.communicate(timeout=60)
    assert (receiver.returncode, json.loads(out)["ended_by"]) == (5, "signal")


def test_another_flow_in_a_pause_is_foreign(pair):
    receiver = pair.receive("--flow", "7")
    words = (pair.traffic, "send", "--to", "10.0.0.2", "--port", "5000", "--interval", "5 ms")
    other = pair.start(0, *words, "--flow", "8", "--count", "100")
    code, _ = pair.send("--flow", "7", "--interval", "5 ms", "--count", "150")
    other.communicate(timeout=60)
    out, _ = receiver.communicate(timeout=60)
    assert (code, receiver.returncode) == (0, 0)
    summary = json.loads(out)
    # With the other's end marks, all but perhaps the last of which it has sent by then.
    assert (summary["packets"], summary["announced"]) == (150, 150)
    assert 100 <= summary["foreign"] <= 105


@pytest.mark.parametrize(
    "asked",
    [
        {"ping": {"from": "a", "to": "b", "count": 5, "interval": "10 ms"}},
        {"ping": {"from": "a", "to": "b", "count": 2}},
        {"iperf3": {"from": "a", "to": "b", "duration": "1 s", "congestion": "cubic"}},
        {"iperf3": {"from": "a", "to": "b", "duration": "1 s", "reverse": True}},
        pytest.param(
            {
                "iperf3": {
                    "from": "a",
                    "to": "b",
                    "duration": "1 s",
                    "protocol": "udp",
                    "rate": "5 Mbit/s",
                    "size": "1000 B",
                }
            },
            marks=pytest.mark.measures,
        ),
        {"traffic": {"from": "a", "to": "b", "duration": "1 s", "rate": "5 Mbit/s"}},
        {"traffic": {"from": "a", "to": "b", "duration": "1 s", "rate": "5 Mbit/s", "protocol": "tcp"}},
    ],
    ids=lambda asked: "-".join([*asked, *[str(v) for v in list(next(iter(asked.values())).values())[2:]]]),
)
@pytest.mark.parametrize("family", [0, 1], ids=["ipv4", "ipv6"])
def test_every_tool_by_the_one_protocol(pair, asked, family):
    measurement = Measurement.model_validate({"name": "m", **asked})
    addresses = {name: [ADDRESSES[side][family]] for side, name in enumerate("ab")}
    tool = tool_for(measurement, Place("m", addresses, 5201, 1, traffic=pair.traffic))
    processes, started = {}, {}
    zero, zero_realtime = time.monotonic_ns(), time.time_ns()
    for step in tool.steps():
        side = "ab".index(step.node)
        started[step.role] = time.monotonic_ns()
        process = pair.start(side, *step.command(pair.folder), out=pair.folder / step.stdout)
        processes[step.role] = process
        if step.ready is not None:
            ready = step.ready
            pair._await(
                lambda side=side, ready=ready: is_listening(
                    pair.holders[side].pid, ready.protocol, ready.port
                )
            )
    ended = {}
    for step in reversed(tool.steps()):
        _, said = processes[step.role].communicate(timeout=60)
        (pair.folder / step.stderr).write_bytes(said)
        code = processes[step.role].returncode
        assert code in step.expect, said
        ended[step.role] = Ended(started[step.role], time.monotonic_ns(), code=code)
    reading = tool.read(Outcome(pair.folder, zero, zero_realtime, ended))
    found = metrics(reading)
    samples = reading.samples().to_pandas()
    assert samples.t_ns.between(0, time.monotonic_ns() - zero).all()
    if measurement.ping:
        assert found["received"] == measurement.ping.count
        assert (samples.metric == "rtt").sum() == measurement.ping.count
        assert 0 < found["rtt_min"] <= found["rtt_mean"] <= found["rtt_max"]
    else:
        assert found["throughput"] > 1e6
        assert {"throughput", "offered"} <= set(samples.metric)
    if measurement.iperf3 and measurement.iperf3.protocol == "udp":
        assert found["throughput"] == pytest.approx(5e6, rel=0.1)
        assert found["lost"] == 0


def test_iperf3_out_of_reach_carries_nothing(tmp_path):
    path = tmp_path / "scenario.yaml"
    path.write_text(
        "name: apart\nnodes: {a: , b: }\nlinks: [{ends: [a, b], loss: 100 %}]\n"
        "measurements: [{name: tcp, iperf3: {from: a, to: b, duration: 1 s}}]\n"
    )
    found = run(path, out=tmp_path / "out")
    figures = {one.metric: one.mean for one in found.result.measurements}
    assert (figures["goodput"], figures["octets"]) == (0, 0)
    assert any(note.startswith("tcp reached nobody (") for note in found.verdict.notes)
