"""Radios under real programs: iperf3, ping and ``airloom radio`` in real nodes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom.scenario.model import Scenario

pytestmark = [pytest.mark.world, pytest.mark.timeout(180)]

RADIO = f"{sys.executable} -m airloom radio "
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


def throughput(tmp_path: Path, flows: list[tuple[str, str]], rate: str, **parts: Any) -> list[float]:
    """Mbit/s of UDP payload of flows that offer more than the air can carry, side by side."""
    # First they learn each other's addresses, which would be hard once the air is full.
    measurements: list[dict[str, Any]] = [
        {"name": f"ping-{source}", "ping": {"from": source, "to": to, "count": 2}} for source, to in flows
    ]
    for source, to in flows:
        load = {"from": source, "to": to, "rate": rate, "duration": "4 s", "at": "3 s"}
        measurements.append({"name": f"{source}-{to}", "traffic": load})
    result = airloom.run(Scenario(name="load", measurements=measurements, **parts), out=tmp_path / "results")
    found = {one.name: one.mean for one in result.result.measurements if one.metric == "throughput"}
    return [(found[f"{source}-{to}"] or 0.0) / 1e6 for source, to in flows]


# What one sender alone can carry, by the standard's timing (see tests/engine/test_bridge_media.py).
CLOSED_FORM = [
    ("802.11a", 6, 5.27),
    ("802.11a", 24, 17.26),
    ("802.11a", 54, 29.89),
    ("802.11b", 2, 1.69),
    ("802.11b", 11, 6.25),
]


@pytest.mark.parametrize(("phy", "mbit", "ideal"), CLOSED_FORM)
def test_one_saturated_flow_reaches_the_closed_form(
    tmp_path: Path, phy: str, mbit: int, ideal: float
) -> None:
    load = {
        "from": "n1",
        "to": "n2",
        "protocol": "udp",
        "rate": f"{mbit * 1.2:g} Mbit/s",
        "size": "1470 B",
        "duration": "4 s",
    }
    parts = pair(phy=phy, rate=f"{mbit} Mbit/s", channel=36 if phy == "802.11a" else 1, queue=50)
    scenario = Scenario(name="load", measurements=[{"name": "udp", "iperf3": load}], **parts)
    result = airloom.run(scenario, out=tmp_path / "results")
    (found,) = (one.mean for one in result.result.measurements if one.metric == "throughput")
    assert found / 1e6 == pytest.approx(ideal, rel=0.03)


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
            done = up[node].run(RADIO + words, env=PACKAGE, timeout=60)
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

        refused = up["n1"].run(RADIO + "set channel 7", env=PACKAGE)
        assert refused.code == 1
        assert "[radio.channel]" in refused.stderr
        other = up["n1"].run(RADIO + "--radio n2:wlan0 set channel 44", env=PACKAGE)
        assert other.code == 1
        assert "[radio.unknown]" in other.stderr
        # Nor by speaking to the door itself.
        rude = (
            "import json,socket; s=socket.socket(socket.AF_UNIX); s.connect('\\0airloom/radio');"
            "s.sendall(json.dumps({'do':'set','radio':'wlan0','node':'n2','port':'n2:wlan0',"
            "'key':'channel','value':44}).encode()+b'\\n'); print(s.recv(999))"
        )
        up["n1"].run([sys.executable, "-c", rude], check=True)
        assert radio("n2", "info --json")[0]["channel"] == 36
        assert radio("n1", "info --json")[0]["channel"] == 44


def test_outside_a_node_there_is_no_door(tmp_path: Path) -> None:
    with lab(tmp_path, nodes={"h1": {}, "h2": {}}, links=[{"ends": ["h1", "h2"]}]) as up:
        done = up["h1"].run(RADIO + "info", env=PACKAGE)
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
        link = json.loads(up["s1"].run(RADIO + "link --json", env=PACKAGE).stdout)
        own = json.loads(up["ap"].run(RADIO + "info --json", env=PACKAGE).stdout)
        (seen,) = json.loads(up["s1"].run(RADIO + "scan --json", env=PACKAGE).stdout)
        assert (seen["ssid"], seen["channel"]) == ("lab", 36)
        up["s1"].run(RADIO + "set ssid elsewhere", env=PACKAGE, check=True)
        assert up.radio("s1").link()["connected"] is None
    assert link[0]["connected"] == own[0]["mac"]


def test_two_senders_share_the_air(tmp_path: Path) -> None:
    parts = pair(queue=50)
    parts["nodes"]["n3"] = {"position": ["0 m", "10 m"], "radios": {"wlan0": {}}}
    found = throughput(tmp_path, [("n1", "n2"), ("n3", "n2")], "40 Mbit/s", **parts)
    # Two saturated stations together carry a little more than one: less idle backoff, few collisions.
    assert sum(found) == pytest.approx(31.0, rel=0.06)
    assert found[0] / sum(found) == pytest.approx(0.5, abs=0.06)


def test_hidden_senders_lose_where_a_request_to_send_helps(tmp_path: Path) -> None:
    def carried(folder: str, rts: str) -> float:
        parts = pair(rate="6 Mbit/s", rts=rts, queue=50)
        parts["media"]["air"]["propagation"] = {"model": "disk", "range": "60 m"}
        parts["nodes"]["n1"]["position"] = ["-50 m", "0 m"]
        parts["nodes"]["n2"]["position"] = ["0 m", "0 m"]
        parts["nodes"]["n3"] = {"position": ["50 m", "0 m"], "radios": {"wlan0": {}}}
        return sum(throughput(tmp_path / folder, [("n1", "n2"), ("n3", "n2")], "4 Mbit/s", **parts))

    hidden, announced = carried("plain", "never"), carried("rts", "0 B")
    assert announced > 1.3 * hidden


def test_a_chain_finds_its_routes_on_demand(tmp_path: Path) -> None:
    daemon = Path(airloom.__file__).parents[2] / "examples" / "aodv"
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
        for name in up.nodes:
            up[name].start([sys.executable, str(daemon), "--interface", "wlan0"])
        reach = "for i in $(seq 20); do ping -c 1 -W 1 n4 >/dev/null 2>&1 && exit 0; sleep 0.2; done; exit 1"
        assert up["n1"].run(reach).ok
        hops = up["n1"].run("ping -c 1 -W 2 n4", check=True).stdout
        assert "ttl=62" in hops  # two routers between
        up["n3"].move("100 m", "500 m")
        assert up.positions()["n3"] == (100.0, 500.0, 0.0)
        assert not up["n1"].run("ping -c 1 -W 1 n4").ok
        up["n3"].stop()
        lost = up.ledger()["host_lost"]
    assert lost == {}
