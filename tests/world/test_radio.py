"""Radios under real programs: iperf3, ping and ``airloom radio`` in real nodes."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import statistics
import time
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom.lab.repl import Prompt
from airloom.scenario.model import Scenario
from helpers.nodes import PYTHON, airloom_in_nodes

_engine = pytest.importorskip("airloom._engine")

pytestmark = [pytest.mark.world, pytest.mark.timeout(180)]

PACKAGE = {"PYTHONPATH": str(Path(airloom.__file__).parents[1]), "PATH": os.environ["PATH"]}


def pair(**radio: Any) -> dict[str, Any]:
    return {
        "media": {"air": {"radio": {"rate": "54 Mbit/s", **radio}}},
        "nodes": {
            "n1": {"position": ["0 m", "0 m"], "radios": {"wlan0": {}}},
            "n2": {"position": ["10 m", "0 m"], "radios": {"wlan0": {}}},
        },
    }


def lab(tmp_path: Path, **parts: Any) -> airloom.Lab:
    return airloom.Lab(Scenario(name="radio", **parts), out=tmp_path / "results")


def throughput(out: Path, flows: list[tuple[str, str]], rate: str, **parts: Any) -> list[float]:
    """Mbit/s of UDP payload of flows that offer more than the air can carry, side by side."""
    # First they learn each other's addresses, which would be hard once the air is full.
    measurements: list[dict[str, Any]] = [
        {"name": f"ping-{source}", "ping": {"from": source, "to": to, "count": 2, "interval": "100 ms"}}
        for source, to in flows
    ]
    for source, to in flows:
        load = {"from": source, "to": to, "rate": rate, "duration": "2500 ms", "at": "1500 ms"}
        measurements.append({"name": f"{source}-{to}", "traffic": load})
    result = airloom.run(Scenario(name="load", measurements=measurements, **parts), out=out)
    found = {one.name: one.mean for one in result.result.measurements if one.metric == "throughput"}
    return [(found[f"{source}-{to}"] or 0.0) / 1e6 for source, to in flows]


# Mbit/s of one sender alone with 1470 octets in a datagram, by the timing of the standard
# (see tests/engine/test_bridge_media.py).
CLOSED_FORM: dict[str, dict[float, float]] = {
    "802.11a": {6: 5.27, 9: 7.59, 12: 9.82, 18: 13.78, 24: 17.26, 36: 23.08, 48: 27.64, 54: 29.89},
    "802.11b": {1: 0.90, 2: 1.69, 5.5: 3.91, 11: 6.25},
    "802.11g": {54: 29.89},
    "802.11bg": {54: 29.89},
}


SATURATED_S = 2.5
"""Length of a flow."""
QUEUED_S = 0.08
"""Time for which a queue of frames keeps the air busy while their sender waits for a processor.

A verdict accepts that a program waits for a fifth of the time, a few tens of milliseconds at a time.
"""
DATAGRAM = 1470


def saturated(phy: str, ideal: dict[float, float], out: Path) -> dict[float, float]:
    """Mbit/s of iperf3 flows by rate, two at a time, each on a medium of its own, as its receiver says.

    Without the end: iperf3's receiver counts until it is told that this was it, which a full queue may
    lose, so that it is told 0.2 s later.
    """
    media: dict[str, Any] = {}
    nodes: dict[str, Any] = {}
    measurements: list[dict[str, Any]] = []
    free = [0.0, 0.0]
    for number, mbit in enumerate(ideal):
        channel = 36 if phy == "802.11a" else 1
        queue = max(20, round(QUEUED_S * ideal[mbit] * 1e6 / (8 * DATAGRAM)))
        radio = {"phy": phy, "rate": f"{mbit:g} Mbit/s", "channel": channel, "queue": queue}
        media[f"air{number}"] = {"radio": radio}
        for end, x in (("a", "0 m"), ("b", "10 m")):
            node = {"position": [x, "0 m"], "radios": {"wlan0": {"medium": f"air{number}"}}}
            nodes[f"{end}{number}"] = node
        start = min(free)
        free[free.index(start)] += SATURATED_S + 0.5
        load = {"from": f"a{number}", "to": f"b{number}", "protocol": "udp", "size": f"{DATAGRAM} B"}
        load |= {"rate": f"{mbit * 1.2:g} Mbit/s", "duration": f"{SATURATED_S:g} s", "at": f"{start:g} s"}
        measurements.append({"name": f"udp{number}", "iperf3": load})
    scenario = Scenario(name="rates", media=media, nodes=nodes, measurements=measurements)
    result = airloom.run(scenario, out=out)
    found = {}
    for number, mbit in enumerate(ideal):
        rows = result.samples(f"udp{number}")
        rates = rows[rows.metric == "throughput"].sort_values("t_ns").value.tolist()
        steady = rates[2:23]
        found[mbit] = statistics.fmean(steady) / 1e6
    return found


@pytest.mark.measures
@pytest.mark.timeout(200)
@pytest.mark.parametrize("phy", CLOSED_FORM)
def test_one_saturated_flow_of_each_rate_reaches_the_closed_form(tmp_path: Path, phy: str) -> None:
    ideal = CLOSED_FORM[phy]
    assert saturated(phy, ideal, tmp_path / "out") == pytest.approx(ideal, rel=0.03)


@pytest.mark.measures
def test_four_categories_share_the_air_as_the_stepped_engine_says(tmp_path: Path) -> None:
    # Category: code point and Mbit/s offered. Voice and video get theirs, the others divide the rest.
    categories = {"voice": (46, 6), "video": (34, 8), "best": (0, 40), "back": (8, 40)}
    engine = _engine.Engine(1)
    engine.add_medium("air", {})
    for number, name in enumerate(["sink", *categories]):
        engine.add_memory_port(name)
        settings = {"rate": {"constant": 54_000_000}, "qos": True, "tail_drop": 50}
        settings["mac"] = [2, 0, 0, 0, 0, number]
        engine.add_radio("air", name, settings, {"static": {"x": 5.0, "y": 1.0 * number}}, name)
    offers = []
    for number, (name, (dscp, mbit)) in enumerate(categories.items(), 1):
        head = bytes([2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, number, 8, 0, 0x45, dscp << 2])
        octets = head.ljust(14 + 28 + 1470, b"\0")
        offers += [(at, name, octets) for at in range(0, 3_000_000_000, 1470 * 8000 // mbit)]
    for at, name, octets in sorted(offers):
        engine.offer(name, at, octets)
    received = [octets[11] for _, _, octets in engine.step(3_000_000_000)]
    expected = {name: received.count(n) * 1470 * 8 / 3e6 for n, name in enumerate(categories, 1)}
    assert expected["best"] > 2 * expected["back"] > 1, expected

    parts = pair(qos=True, queue=50)
    parts["nodes"] = {
        name: {"position": ["5 m", f"{number} m"], "radios": {"wlan0": {}}}
        for number, name in enumerate(["sink", *categories])
    }
    measurements: list[dict[str, Any]] = [
        {"name": f"ping-{name}", "ping": {"from": name, "to": "sink", "count": 1}} for name in categories
    ]
    for name, (dscp, mbit) in categories.items():
        load = {"from": name, "to": "sink", "rate": f"{mbit} Mbit/s", "size": "1470 B", "dscp": dscp}
        measurements.append({"name": name, "traffic": {**load, "duration": "3 s", "at": "2 s"}})
    result = airloom.run(Scenario(name="edca", measurements=measurements, **parts), out=tmp_path / "out")
    found = {one.name: one.mean / 1e6 for one in result.result.measurements if one.metric == "throughput"}
    # Best effort and background are small differences of large numbers.
    assert [found[name] for name in ("voice", "video")] == pytest.approx([6, 8], rel=0.03)
    assert found == pytest.approx(expected, rel=0.15, abs=0.3)
    assert sum(found.values()) == pytest.approx(sum(expected.values()), rel=0.05)


@pytest.mark.quick
def test_ping_reaches_who_is_in_range_and_nobody_else(tmp_path: Path) -> None:
    parts = pair()
    parts["media"]["air"]["propagation"] = {"model": "disk", "range": "60 m"}
    parts["nodes"]["far"] = {"position": ["200 m", "0 m"], "radios": {"wlan0": {}}}
    with lab(tmp_path, **parts) as up:
        assert up["n1"].run("ping -c 2 -i 0.2 -W 1 n2").ok
        assert not up["n1"].run("ping -c 1 -W 1 far").ok


def test_a_node_sees_and_sets_its_own_radio_only(tmp_path: Path) -> None:
    with lab(tmp_path, **pair()) as up:
        up["n1"].run("ping -c 2 -i 0.2 -W 1 n2", check=True)

        def radio(node: str, words: str) -> Any:
            done = up[node].run(airloom_in_nodes() + " radio " + words, env=PACKAGE, timeout=60)
            assert done.ok, done.stderr
            return json.loads(done.stdout or "null") if "--json" in words else done.stdout

        (before,) = radio("n1", "info --json")
        assert (before["channel"], before["rate_bit_s"]) == (36, 54_000_000)
        (station,) = radio("n1", "station --json")
        (peer,) = radio("n2", "info --json")
        assert station["mac"] == peer["mac"]
        assert station["attempts"] >= 2
        radio("n1", "set channel 40")
        radio("n1", "set rate 12 Mbit/s")
        radio("n1", "set power 10 dBm")
        (after,) = radio("n1", "info --json")
        assert (after["channel"], after["rate_bit_s"], after["power_dbm"]) == (40, 12_000_000, 10.0)
        assert radio("n2", "info --json")[0]["channel"] == 36
        assert not up["n1"].run("ping -c 1 -W 1 n2").ok
        # Both in the cell of another name on one channel; each alone in its cell hears nobody.
        radio("n1", "set channel 36")
        radio("n1", "set ssid other")
        assert radio("n1", "info --json")[0]["ssid"] == "other"
        assert not up["n1"].run("ping -c 1 -W 1 n2").ok
        (cell,) = radio("n2", "scan passive 36 --json")
        assert (cell["ssid"], cell["mode"], cell["channel"]) == ("other", "ad-hoc", 36)
        radio("n2", "set ssid other")
        assert up["n1"].run("ping -c 1 -W 2 n2").ok

        refused = up["n1"].run(airloom_in_nodes() + " radio set channel 7", env=PACKAGE)
        assert refused.code == 1
        assert "[radio.channel]" in refused.stderr
        other = up["n1"].run(airloom_in_nodes() + " radio --radio n2:wlan0 set channel 44", env=PACKAGE)
        assert other.code == 1
        assert "[radio.unknown]" in other.stderr
        # Nor by speaking to the socket itself.
        rude = (
            "import json,socket; s=socket.socket(socket.AF_UNIX); s.connect('\\0airloom/radio');"
            "s.sendall(json.dumps({'do':'set','radio':'wlan0','node':'n2','port':'n2:wlan0',"
            "'key':'channel','value':44}).encode()+b'\\n'); print(s.recv(999))"
        )
        assert "radio.request" in up["n1"].run([PYTHON, "-c", rude], check=True).stdout
        assert [radio(node, "info --json")[0]["channel"] for node in ("n1", "n2")] == [36, 36]


def test_who_looks_around_takes_its_time_and_its_data_waits(tmp_path: Path) -> None:
    with lab(tmp_path, **pair()) as up:
        up["n1"].run("ping -c 1 -W 2 n2", check=True)
        pings = up["n1"].start("ping -c 60 -i 0.05 n2")
        start = time.monotonic()
        assert up.radio("n2").scan() == []
        took = time.monotonic() - start
        assert up.radio("n2").info()["channel"] == 36
        shown = io.StringIO()
        Prompt(up, interactive=False, stdout=shown).onecmd("air 0.5")
        assert re.search(r"air channel 36 +\[[#.]+\] busy \d+ %", shown.getvalue())
        assert re.search(r"n1:wlan0 > n2:wlan0: 54 Mbit/s, \d+ frames/s, retries \d+ %", shown.getvalue())
        pings.wait(30)
        seconds = [float(text) / 1e3 for text in re.findall(r"time=([\d.]+)", pings.output)]
        up["n1"].run(airloom_in_nodes() + " radio down", env=PACKAGE, check=True)
        refused = up["n1"].run(airloom_in_nodes() + " radio scan", env=PACKAGE)
        assert "[radio.off]" in refused.stderr
    # 28 channels for 30 ms each, of which one is its own.
    assert took >= 28 * 0.030
    assert len(seconds) < 60 or max(seconds) > 0.2


def test_a_line_of_nonsense_in_one_node_leaves_the_others_served(tmp_path: Path) -> None:
    say = (
        "import socket; control = socket.socket(socket.AF_UNIX); control.connect('\\0airloom/radio');"
        'control.sendall(b\'{"do":"scan","channels":[Infinity]}\\n\'); print(control.recv(4096).decode())'
    )
    with lab(tmp_path, **pair()) as up:
        refused = up["n1"].run([PYTHON, "-c", say], timeout=60)
        assert "radio." in refused.stdout, refused.stderr
        assert up["n2"].run(airloom_in_nodes() + " radio info", env=PACKAGE, timeout=60).ok


def test_outside_a_node_there_is_no_control_socket(tmp_path: Path) -> None:
    with lab(tmp_path, nodes={"h1": {}, "h2": {}}, links=[{"ends": ["h1", "h2"]}]) as up:
        done = up["h1"].run(airloom_in_nodes() + " radio info", env=PACKAGE)
        assert done.code == 1
        assert "[radio.none]" in done.stderr


def test_stations_reach_each_other_and_the_wires_through_an_access_point(tmp_path: Path) -> None:
    def radio(mode: str) -> dict[str, Any]:
        return {"wlan0": {"mode": mode, "ssid": "lab"}}

    parts = {
        "media": {"air": {"radio": {"rate": "24 Mbit/s"}}},
        "nodes": {
            "ap": {"position": ["0 m", "0 m"], "radios": radio("ap")},
            "s1": {"position": ["10 m", "0 m"], "radios": radio("station")},
            "s2": {"position": ["0 m", "10 m"], "radios": radio("station")},
            "server": {},
        },
        "links": [{"ends": ["ap", "server"], "delay": "1 ms"}],
    }
    with lab(tmp_path, **parts) as up:
        reach = "for i in $(seq 50); do ping -c 1 -W 1 {} >/dev/null 2>&1 && exit 0; sleep 0.1; done; exit 1"
        assert up["s1"].run(reach.format("server")).ok
        assert up["s1"].run(reach.format("s2")).ok
        link = json.loads(up["s1"].run(airloom_in_nodes() + " radio link --json", env=PACKAGE).stdout)
        own = json.loads(up["ap"].run(airloom_in_nodes() + " radio info --json", env=PACKAGE).stdout)
        (seen,) = json.loads(up["s1"].run(airloom_in_nodes() + " radio scan --json", env=PACKAGE).stdout)
        assert (seen["ssid"], seen["channel"], seen["mode"]) == ("lab", 36, "ap")
        assert seen["mac"] == own[0]["mac"]
        up["s1"].run(airloom_in_nodes() + " radio set ssid elsewhere", env=PACKAGE, check=True)
        assert up.radio("s1").link()["connected"] is None
    assert link[0]["connected"] == own[0]["mac"]


def test_a_network_of_802_11n(tmp_path: Path) -> None:
    air = {"phy": "802.11n", "width": "40 MHz", "guard_interval": "400 ns", "rate": "MCS 7"}
    parts = {
        "media": {"air": {"radio": air}},
        "nodes": {
            "ap": {"position": ["0 m", "0 m"], "radios": {"wlan0": {"mode": "ap", "ssid": "lab"}}},
            "s1": {"position": ["10 m", "0 m"], "radios": {"wlan0": {"mode": "station", "ssid": "lab"}}},
        },
    }
    with lab(tmp_path, **parts) as up:
        reach = "for i in $(seq 50); do ping -c 1 -W 1 ap >/dev/null 2>&1 && exit 0; sleep 0.1; done; exit 1"
        assert up["s1"].run(reach).ok
        (link,) = up.radio("s1").stations()
        assert link["rate_bit_s"] == 150_000_000
        told = up["s1"].run(airloom_in_nodes() + " radio info", env=PACKAGE).stdout
        assert "width: 40 MHz" in told
        assert "rate: MCS 7" in told
        refused = up["s1"].run(airloom_in_nodes() + " radio set rate aarf", env=PACKAGE)
        assert "the rates and rate control of 802.11n" in refused.stderr
        up["s1"].run(airloom_in_nodes() + " radio set rate 'MCS 12'", env=PACKAGE, check=True)
        assert up["s1"].run("ping -c 1 -W 1 ap").ok
        (link,) = up.radio("s1").stations()
        assert link["rate_bit_s"] == 180_000_000


@pytest.mark.measures
def test_two_senders_share_the_air(tmp_path: Path) -> None:
    parts = pair(queue=50)
    parts["nodes"]["n3"] = {"position": ["0 m", "10 m"], "radios": {"wlan0": {}}}
    found = throughput(tmp_path / "out", [("n1", "n2"), ("n3", "n2")], "40 Mbit/s", **parts)
    # Two saturated stations together carry a little more than one: less idle backoff, few
    # collisions.
    assert sum(found) == pytest.approx(31.0, rel=0.06)
    assert found[0] / sum(found) == pytest.approx(0.5, abs=0.06)


@pytest.mark.measures
def test_hidden_senders_lose_where_a_request_to_send_helps(tmp_path: Path) -> None:
    def carried(name: str, rts: str) -> float:
        parts = pair(rate="6 Mbit/s", rts=rts, queue=50)
        parts["media"]["air"]["propagation"] = {"model": "disk", "range": "60 m"}
        parts["nodes"]["n1"]["position"] = ["-50 m", "0 m"]
        parts["nodes"]["n2"]["position"] = ["0 m", "0 m"]
        parts["nodes"]["n3"] = {"position": ["50 m", "0 m"], "radios": {"wlan0": {}}}
        return sum(throughput(tmp_path / name, [("n1", "n2"), ("n3", "n2")], "4 Mbit/s", **parts))

    hidden, announced = carried("plain", "never"), carried("rts", "0 B")
    assert announced > 1.3 * hidden


def _sent(node: Any, interface: str) -> int:
    """Returns how many packets the node's kernel gave to an interface."""
    return int(node.run(f"cat /sys/class/net/{interface}/statistics/tx_packets", check=True).stdout)


@pytest.mark.parametrize("forward", ["user", "kernel"])
def test_a_chain_finds_its_routes_on_demand(tmp_path: Path, forward: str) -> None:
    example = Path(airloom.__file__).parents[2] / "examples" / "aodv"
    topology = {
        "generator": "chain",
        "nodes": 4,
        "spacing": "50 m",
        "radio": {"phy": "802.11b", "channel": 1, "rate": "11 Mbit/s"},
        "node": {"forwarding": True, "routing": "none"},
    }
    media = {"air": {"propagation": {"model": "disk", "range": "60 m"}}}
    with lab(tmp_path, media=media, topology=topology) as up:
        assert up["n1"].run("ip route").stdout == ""
        # Nodes see the folder of results wherever it is, the source tree only if it is not below /tmp.
        daemon = shutil.copytree(example, up.folder / "aodv")
        run = [PYTHON, str(daemon), "--interface", "wlan0", "--forward", forward]
        daemons = {name: up[name].start(run) for name in up.nodes}
        reach = "for i in $(seq 20); do ping -c 1 -W 1 n4 >/dev/null 2>&1 && exit 0; sleep 0.2; done; exit 1"
        assert up["n1"].run(reach).ok
        hops = up["n1"].run("ping -c 1 -W 2 n4", check=True).stdout
        assert "ttl=62" in hops  # two routers between
        before = _sent(up["n2"], "aodv0")
        said = up["n1"].run("ping -c 20 -i 0.02 n4", check=True).stdout
        answered = int(said.partition(" received")[0].rpartition(" ")[2])
        # Requests and replies pass the daemon of the node between, or its kernel alone, which
        # sends no more than solicitations of IPv6 routers to the daemon.
        through = _sent(up["n2"], "aodv0") - before
        assert through >= 2 * answered if forward == "user" else through < 5
        assert answered >= 10
        # A router that has lost its table answers data by a route error, and a new search follows.
        assert "lost 10.0.0.4" not in daemons["n1"].output
        daemons["n2"].stop()
        assert up["n2"].run("ip route").stdout == ""
        up["n2"].start(run)
        assert up["n1"].run(reach).ok
        assert "lost 10.0.0.4" in daemons["n1"].output
        up["n3"].move("100 m", "500 m")
        assert up.positions()["n3"] == (100.0, 500.0, 0.0)
        assert not up["n1"].run("ping -c 1 -W 1 n4").ok
        up["n3"].stop()
        lost = up.ledger()["host_lost"]
    assert lost == {}
