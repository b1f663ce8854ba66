"""Which ports a capture takes, and about how large it becomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.errors import ScenarioError
from airloom.planning.capture import Capture, Source, chosen, sources
from airloom.planning.gate import check
from airloom.planning.plan import Plan


def plan_of(folder: Path, measurements: str, **more: str) -> Plan:
    path = folder / "s.yaml"
    path.write_text(
        "name: s\nnodes: {a: {}, b: {}}\nswitches: {s: {}}\n"
        f"links: [{{ends: [a, s], rate: 10 Mbit/s}}, {{ends: [s, b]}}]\nmeasurements: [{measurements}]\n"
        + "".join(f"{key}: {value}\n" for key, value in more.items())
    )
    return check(path).plans[0]


TCP = "{name: tcp, iperf3: {from: a, to: b, duration: 8 s}}"


def test_true_is_one_of_everything() -> None:
    assert Capture.of(False) is None
    assert Capture.of(True) == Capture()
    assert Capture.of(Capture(snap=96)) == Capture(snap=96)
    assert (Capture().place, Capture(merged=True).place) == ("captures", "capture.pcapng")


def test_a_node_stands_for_its_ports(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, TCP)
    assert Capture().wanted(plan) is None
    assert Capture(("a", "b:eth0", "a:eth0")).wanted(plan) == ["a:eth0", "b:eth0"]


def test_a_link_stands_for_the_port_at_its_first_end_that_is_one(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, TCP)
    assert Capture(("a-s",)).wanted(plan) == ["a:eth0"]
    assert Capture(("s-b", "a")).wanted(plan) == ["b:eth0", "a:eth0"]


def test_radios_and_media_are_told_from_ports(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "name: s\nmedia: {air: {radio: {phy: 802.11a, channel: 36}}}\nswitches: {s: {}, t: {}}\n"
        "nodes: {a: {position: [0 m, 0 m], radios: {wlan0: }}, b: {}}\n"
        "links: [{ends: [s, t]}, {ends: [t, b]}]\n"
    )
    found = sources(check(path).plans[0])
    assert {name: one.what for name, one in found.items()} == {
        "air": "medium",
        "a": "node",
        "b": "node",
        "a:wlan0": "radio",
        "b:eth0": "port",
        "s-t": "link",
        "t-b": "link",
    }
    assert found["a"] == Source("node", ("a:wlan0",))
    assert chosen((), found) is None
    assert chosen(("air", "t-b"), found) == ["air", "b:eth0"]
    with pytest.raises(ScenarioError, match="no frame of link s-t passes a port of a node"):
        chosen(("s-t",), found)


@pytest.mark.parametrize(
    ("capture", "code", "said"),
    [
        (Capture(("a:eth1",)), "capture.port", "there is no port, node, link or medium 'a:eth1' to capture"),
        (Capture(snap=3), "capture.snap", "the snap length is not from 14 to 262144 octets, but 3"),
    ],
)
def test_what_is_refused(tmp_path: Path, capture: Capture, code: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        capture.wanted(plan_of(tmp_path, TCP))
    assert (caught.value.code, caught.value.message, caught.value.exit_code) == (code, said, 2)
    assert caught.value.cure


def test_stages_need_a_whole_capture(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "{name: f, traffic: {from: a, to: b, rate: 1 Mbit/s, stages: true}}")
    assert Capture(merged=True).wanted(plan) is None
    for capture in (Capture(("a",)), Capture(snap=200)):
        with pytest.raises(ScenarioError, match="must be whole"):
            capture.wanted(plan)


def test_the_size_follows_load_time_ports_and_snap_length(tmp_path: Path) -> None:
    tcp = plan_of(tmp_path, TCP)
    # 10 Mbit/s for 8 s are 10 MB at each of two ports, with acknowledgments and pcapng's blocks.
    assert Capture().octets(tcp) == pytest.approx(20e6, rel=0.1)
    assert Capture(("b",)).octets(tcp) == pytest.approx(10e6, rel=0.1)
    assert Capture(snap=96).octets(tcp) == pytest.approx(20e6 * (144 + 57) / 1514, rel=0.1)
    ping = plan_of(tmp_path, "{name: p, ping: {from: a, to: b, count: 10, interval: 100 ms, size: 100 B}}")
    assert Capture().octets(ping) == pytest.approx(2 * 2 * 10 * (142 + 48))
    udp = plan_of(
        tmp_path, "{name: u, iperf3: {from: a, to: b, protocol: udp, rate: 1 Mbit/s, duration: 4 s}}"
    )
    assert Capture().octets(udp) == pytest.approx(2 * 4 * 1e6 / 8, rel=0.08)
