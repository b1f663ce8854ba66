"""Files that users of other tools have, each with the value that arithmetic or a standard gives.

Movements of ns-2 and SUMO, graphs in GML and of SNDlib, a table of rate and delay, a capture.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import airloom
from airloom.scenario.reader import read
from helpers.pcap_files import ethernet, udp_packet, write

pytestmark = [pytest.mark.world, pytest.mark.measures, pytest.mark.timeout(170)]

CARS = """name: cars
media: {{air: {{propagation: {{model: disk, range: 60 m}}, radio: {{phy: 802.11a, rate: 6 Mbit/s}}}}}}
nodes:
  car0: {{radios: {{wlan0: {{}}}}, mobility: {{model: {0}, file: moves, node: {1}}}}}
  car1: {{radios: {{wlan0: {{}}}}, mobility: {{model: {0}, file: moves, node: {2}}}}}
measurements:
  - {{name: meet, ping: {{at: 100 ms, from: car0, to: car1, count: {3}, interval: 100 ms}}}}
"""


def figures(result: airloom.RunResult) -> dict[str, float]:
    return {f"{one.name}.{one.metric}": one.mean or 0.0 for one in result.result.measurements}


def run(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> airloom.RunResult:
    monkeypatch.chdir(folder)
    return airloom.run(read(text), out=folder / "run")


@pytest.mark.parametrize("switched", [True, False])
def test_cars_of_a_traffic_converter_meet_while_they_drive(
    switched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One drives from 0 s, another 10 m beside it from 3 s, some 30 m behind; each is put there at 10^9 m/s.

    Echoes each 100 ms come back from 3 s on: 59 of them until 9 s, when the second is switched off.
    """
    lines = []
    for car, begin, y in ((0, 0.0, 50.0), (1, 3.0, 60.0)):
        node = f"$node_({car})"
        lines += [f"{node} set {axis}_ 0.000000" for axis in "XYZ"]
        lines.append(f'$ns_ at {begin:.6f} "{node} setdest 100.0 {y} 999999999.0" ;# start of the trip')
        lines.append(f'$ns_ at {begin + 0.01:.6f} "{node} setdest 200.0 {y} 10.0" ;#')
        if switched:
            lines.insert(0, f'$ns_ at 0.0 "{node} switch OFF" ;# not there yet')
            lines.append(f'$ns_ at {begin + 0.01:.6f} "{node} switch ON" ;# inside')
    if switched:
        lines.append('$ns_ at 9.0 "$node_(1) switch OFF" ;# end')
    (tmp_path / "moves").write_text("\n".join(lines) + "\n")
    result = run(tmp_path, CARS.format("ns-2", 0, 1, 105), monkeypatch)
    came = result.samples("meet", "rtt")["t_ns"].to_numpy() / 1e9
    # The time of a sample is that of a request or a reply; none was on the way for longer than 0.1 s.
    assert came.min() > 2.9
    assert 50 <= (came < 9).sum() <= 61
    assert (came > 9.1).sum() == 0 or not switched


def test_cars_of_sumo_are_out_of_reach_when_they_have_gone_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One stands, the other leaves at 20 m/s: 60 m are reached after 3 s, thus 29 or 30 echoes."""
    steps = "".join(
        f'<timestep time="{at}.00"><vehicle id="van" x="0.0" y="0.0" speed="0.0"/>'
        f'<vehicle id="car" x="{20 * at}.0" y="0.0" speed="20.0"/></timestep>'
        for at in range(7)
    )
    (tmp_path / "moves").write_text(f"<fcd-export>{steps}</fcd-export>")
    found = figures(run(tmp_path, CARS.format("sumo", "van", "car", 50), monkeypatch))
    assert 27 <= found["meet.received"] <= 30


def test_a_graph_of_shadow_has_its_latency(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edge of 12 ms with a jitter of 2 ms: round trips of 20 to 28 ms."""
    (tmp_path / "lan.gml").write_text(
        'graph [\n  directed 0\n  node [ id 0 label "Oslo" ]\n  node [ id 1 label "Bergen" ]\n'
        '  edge [ source 0 target 0 latency "1 ms" packet_loss 0.0 ]\n'
        '  edge [ source 0 target 1 latency "12 ms" jitter "2 ms" packet_loss 0.0 ]\n]\n'
    )
    text = "name: gml\ntopology: {generator: graph, file: lan.gml}\n"
    text += "measurements: [{name: rtt, ping: {from: Oslo, to: Bergen, count: 20, interval: 50 ms}}]\n"
    found = figures(run(tmp_path, text, monkeypatch))
    assert found["rtt.received"] == 20
    assert 20e6 <= found["rtt.rtt_min"] < 24e6 < found["rtt.rtt_max"]


def test_a_network_of_sndlib_has_the_delay_of_its_distance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Berlin to Hamburg: 255 km at two thirds of the speed of light, 1.28 ms one way."""
    places = {"Berlin": (13.40, 52.52), "Hamburg": (9.99, 53.55)}
    nodes = "".join(
        f'<node id="{name}"><coordinates><x>{x}</x><y>{y}</y></coordinates></node>'
        for name, (x, y) in places.items()
    )
    (tmp_path / "net.xml").write_text(
        '<?xml version="1.0"?><network xmlns="http://sndlib.zib.de/network" version="1.0"><networkStructure>'
        f'<nodes coordinatesType="geographical">{nodes}</nodes><links><link id="L1"><source>Berlin</source>'
        "<target>Hamburg</target></link></links></networkStructure></network>"
    )
    text = "name: sndlib\ntopology: {generator: graph, file: net.xml}\n"
    text += "measurements: [{name: rtt, ping: {from: Hamburg, to: Berlin, count: 10}}]\n"
    found = figures(run(tmp_path, text, monkeypatch))
    assert 2.5e6 < found["rtt.rtt_min"] < 3.0e6


def test_each_packet_has_the_delay_and_rate_of_its_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """150 changes, one each 20 ms: 95 % of the packets are within 0.5 ms of their series."""
    rates = [5 + 7 * number % 20 for number in range(150)]
    delays = [20 + 10 * number % 100 for number in range(150)]
    rows = (f"{20 * n}, {rates[n]}, {delays[n]}" for n in range(150))
    (tmp_path / "path.txt").write_text("\n".join(["time [ms], rate [Mbit/s], delay [ms]", *rows]) + "\n")
    text = (
        "name: series\nnodes: {a: {}, b: {}}\n"
        "links: [{ends: [a, b], series: path.txt, jitter_reorders: true}]\n"
        "measurements: [{name: f, traffic: {at: 10 ms, from: a, to: b, interval: 5 ms, size: 200 B, "
        "duration: 2.9 s}}]\n"
    )
    result = run(tmp_path, text, monkeypatch)
    samples = result.samples("f", "delay")
    # The time of a sample is that of the packet's arrival.
    sent = samples["t_ns"].to_numpy() - samples["value"].to_numpy()
    slot = np.clip(sent.astype(int) // 20_000_000, 0, 149)
    wanted = np.array(delays)[slot] * 1e6 + 8e9 * 266 / (np.array(rates)[slot] * 1e6)
    wrong = np.abs(samples["value"].to_numpy() - wanted)
    assert np.mean(wrong < 0.5e6) > 0.95


def test_a_capture_crosses_a_link_with_its_own_gaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames of 242 to 1442 octets at 100 Mbit/s and 5 ms: 5.02 to 5.12 ms, none lost, gaps as captured."""
    dice = random.Random(5)
    at, rows = 10**18, []
    for number in range(600):
        at += round(dice.expovariate(1 / 2e6))
        packet = udp_packet(bytes(dice.choice((200, 600, 1000, 1400))), number=number)
        rows.append((at, ethernet(packet)))
    write(tmp_path / "x.pcap", rows)
    text = (
        "name: replay\nnodes: {a: {}, b: {}}\nlinks: [{ends: [a, b], rate: 100 Mbit/s, delay: 5 ms}]\n"
        "measurements: [{name: f, traffic: {from: a, to: b, pattern: replay, capture: x.pcap, speed: 2}}]\n"
    )
    result = run(tmp_path, text, monkeypatch)
    found = figures(result)
    assert (found["f.sent"], found["f.lost"]) == (600, 0)
    assert 5.02e6 < found["f.delay_p50"] < 5.3e6
    samples = result.samples("f", "delay").sort_values("t_ns")
    sent = samples["t_ns"].to_numpy() - samples["value"].to_numpy()
    gaps = np.diff([captured for captured, _ in rows]) / 2
    assert np.median(np.abs(np.diff(sent) - gaps)) < 0.1e6
