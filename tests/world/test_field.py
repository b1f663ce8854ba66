"""Needs that users of other tools reported, each with the value that arithmetic or a standard gives.

The reports are public issues of Mininet, Mininet-WiFi, tcconfig, containerlab, EMANE and others: wrong
bursts, losses nobody set, rates that ignore the air, handovers that end a connection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import airloom
from airloom.scenario.reader import read

pytestmark = [pytest.mark.world, pytest.mark.measures, pytest.mark.timeout(170)]

Figures = dict[str, float]


@dataclass(frozen=True)
class Case:
    """A scenario, and what must hold of its figures."""

    text: str
    holds: Callable[[Figures], bool]
    files: dict[str, str] | None = None
    more: str = ""
    """Further lines of the scenario, at the margin."""


def _near(share: float, value: float, wanted: float) -> bool:
    return abs(value - wanted) <= share * wanted


TWO_CELLS = """
        media:
          air:
            propagation: {model: log-distance, exponent: 3}
            radio: {phy: 802.11g, rate: 54 Mbit/s}
        nodes:
          ap1: {position: [0 m, 0 m], radios: {wlan0: {mode: ap, ssid: one, channel: 1}}}
          sta1: {position: [5 m, 0 m], radios: {wlan0: {mode: station, ssid: one, channel: 1}}}
          ap2: {position: [0 m, 10 m], radios: {wlan0: {mode: ap, ssid: two, channel: CHANNEL}}}
          sta2: {position: [5 m, 10 m], radios: {wlan0: {mode: station, ssid: two, channel: CHANNEL}}}
        measurements:
          - {name: h1, ping: {at: 100 ms, from: ap1, to: sta1, count: 2}}
          - {name: h2, ping: {at: 100 ms, from: ap2, to: sta2, count: 2}}
          - {name: one, traffic: {at: 2 s, from: ap1, to: sta1, rate: 40 Mbit/s, size: 1470 B, duration: 2 s}}
          - {name: two, traffic: {at: 2 s, from: ap2, to: sta2, rate: 40 Mbit/s, size: 1470 B, duration: 2 s}}
"""
"""Two cells within earshot, one station each, both with full load."""

EIGHT_FLOWS = "measurements:\n" + "".join(
    f"  - {{name: f{n}, traffic: {{at: 1 s, from: n{n}, to: n{n + 8}, rate: 3.4 Mbit/s, duration: 2 s}}}}\n"
    for n in range(1, 9)
)
"""From each host of one half of a fat tree with k = 4 to one of the other half."""


def _most_arrives(f: Figures) -> bool:
    """More than one path carries, of those flows."""
    return sum(f[f"f{n}.received"] for n in range(1, 9)) > 0.6 * sum(f[f"f{n}.sent"] for n in range(1, 9))


CASES = {
    # Twenty packets at once: 19 times 1538 octets at 500 kbit/s from the first to the last.
    "a burst leaves by store and forward": Case(
        """
        nodes: {a: {}, b: {}}
        links: [{ends: [a, b], rate: 500 kbit/s, delay: 10 ms}]
        measurements: [{name: probe, traffic: {from: a, to: b, pattern: trace, trace: probe.txt}}]
        """,
        lambda f: f["probe.received"] == 20 and _near(0.01, f["probe.delay_max"], 0.0246 * 20e9 + 10e6),
        {"probe.txt": "".join("0 1472\n" for _ in range(20))},
    ),
    # Down for 0.2 of each 0.5 s.
    "a link that flaps loses two fifths": Case(
        """
        nodes: {a: {}, b: {}}
        links: [{name: w, ends: [a, b], rate: 10 Mbit/s, delay: 2 ms, carrier: keep, visibility: up.txt}]
        measurements:
          - {name: flow, traffic: {at: 1 ms, from: a, to: b, interval: 1 ms, size: 200 B, duration: 4 s}}
        """,
        lambda f: _near(0.03, f["flow.loss"], 0.4),
        {"up.txt": "".join(f"{n * 0.5} s, {n * 0.5 + 0.3} s\n" for n in range(12))},
    ),
    # 1000 of 4000 packets meet 50 %.
    "loss that is unset is over, and a rate that changes loses nothing": Case(
        """
        nodes: {a: {}, b: {}}
        links: [{name: w, ends: [a, b], rate: 10 Mbit/s, delay: 5 ms}]
        events:
          - {at: 1 s, link: w, set: {loss: 50 %}}
          - {at: 2 s, link: w, set: {loss: 0 %}}
          - {at: 3 s, link: w, set: {rate: 20 Mbit/s}}
          - {at: 3.5 s, link: w, set: {rate: 10 Mbit/s}}
        measurements:
          - {name: flow, traffic: {at: 1 ms, from: a, to: b, interval: 1 ms, size: 300 B, duration: 4 s}}
        """,
        lambda f: 430 <= f["flow.lost"] <= 570,
    ),
    "many packets under way lose none": Case(
        """
        nodes: {a: {}, b: {}}
        links: [{ends: [a, b], rate: 200 Mbit/s, delay: 300 ms}]
        measurements: [{name: flow, traffic: {from: a, to: b, rate: 60 Mbit/s, size: 1470 B, duration: 2 s}}]
        """,
        lambda f: f["flow.lost"] == 0 and f["flow.received"] > 9_000,
    ),
    # Half of the round trip on each link between two routers.
    "regions are as far apart as measured, also by IPv6": Case(
        """
        addresses: {ipv6: "fd00::/48"}
        nodes: {r1: , r2: , r3: , h1: , h2: , h3: }
        links:
          - {ends: [h1, r1], rate: 50 Mbit/s}
          - {ends: [h2, r2], rate: 50 Mbit/s}
          - {ends: [h3, r3], rate: 50 Mbit/s}
          - {ends: [r1, r2], delay: 6 ms}
          - {ends: [r1, r3], delay: 45 ms}
          - {ends: [r2, r3], delay: 48 ms}
        measurements:
          - {name: near, ping: {from: h1, to: h2, count: 8, interval: 200 ms}}
          - {name: far, ping: {from: h2, to: h3, count: 8, interval: 200 ms, family: ipv6}}
        """,
        lambda f: 12e6 <= f["near.rtt_min"] < 14e6 and 96e6 <= f["far.rtt_min"] < 98e6,
    ),
    # 36,000 km are 120.1 ms.
    "a radio channel has the delay of its length": Case(
        """
        media:
          air:
            access: {model: none, loss: [{distance: 0 m, rate: 0 %}, {distance: 50000 km, rate: 0 %}]}
            radio: {rate: 10 Mbit/s}
        nodes:
          ground: {position: [0 m, 0 m], radios: {wlan0: {}}}
          bird: {position: [0 m, 36000 km], radios: {wlan0: {}}}
        measurements: [{name: echo, ping: {from: ground, to: bird, count: 4}}]
        """,
        lambda f: 240.1e6 <= f["echo.rtt_min"] < 242e6,
    ),
    # Friis at 2437 MHz, 16 dBm and -82 dBm: 98 dB, which are 778 m.
    "radios hear each other within the range of Friis": Case(
        """
        media: {air: {propagation: {model: friis}, radio: {phy: 802.11g, channel: 6, rate: 6 Mbit/s}}}
        nodes:
          a: {position: [0 m, 0 m], radios: {wlan0: {}}}
          b: {position: [760 m, 0 m], radios: {wlan0: {}}}
        measurements: [{name: echo, ping: {from: a, to: b, count: 10, interval: 100 ms}}]
        """,
        lambda f: f["echo.received"] == 10,
    ),
    "and not beyond it": Case(
        """
        media: {air: {propagation: {model: friis}, radio: {phy: 802.11g, channel: 6, rate: 6 Mbit/s}}}
        nodes:
          a: {position: [0 m, 0 m], radios: {wlan0: {}}}
          b: {position: [800 m, 0 m], radios: {wlan0: {}}}
        measurements: [{name: echo, ping: {from: a, to: b, count: 10, interval: 100 ms}}]
        """,
        lambda f: f["echo.received"] == 0,
    ),
    # A datagram of 1470 octets takes 393.5 us: 29.88 Mbit/s, shared evenly.
    "the air limits what a fast wire sends to two stations": Case(
        """
        media: {air: {radio: {phy: 802.11g, channel: 6, rate: 54 Mbit/s, ssid: home}}}
        nodes:
          server: {}
          ap: {position: [0 m, 0 m], radios: {wlan0: {mode: ap}}}
          s1: {position: [3 m, 0 m], radios: {wlan0: {mode: station}}}
          s2: {position: [0 m, 3 m], radios: {wlan0: {mode: station}}}
        links: [{ends: [server, ap], rate: 100 Mbit/s}]
        measurements:
          - {name: h1, ping: {at: 100 ms, from: server, to: s1, count: 2}}
          - {name: h2, ping: {at: 100 ms, from: server, to: s2, count: 2}}
          - {name: one, traffic: {at: 2 s, from: server, to: s1, rate: 45 Mbit/s, size: 1470 B}}
          - {name: two, traffic: {at: 2 s, from: server, to: s2, rate: 45 Mbit/s, size: 1470 B}}
        """,
        lambda f: (
            _near(0.08, f["one.throughput"] + f["two.throughput"], 29.88e6)
            and _near(0.15, f["one.throughput"], 14.9e6)
        ),
    ),
    "a station that walks keeps its connection to a server on the wire": Case(
        """
        media: {air: {propagation: {model: log-distance, exponent: 3.5}, radio: {phy: 802.11g, ssid: campus}}}
        nodes:
          server: {}
          ap1: {position: [0 m, 0 m], radios: {wlan0: {mode: ap, channel: 1}}}
          ap2: {position: [60 m, 0 m], radios: {wlan0: {mode: ap, channel: 6}}}
          sta:
            radios: {wlan0: {mode: station, channel: 1, scan: [1, 6], probe: true, leave: -70 dBm}}
            mobility:
              model: path
              points:
                - {at: 0 s, position: [5 m, 0 m]}
                - {at: 2 s, position: [5 m, 0 m]}
                - {at: 8 s, position: [58 m, 0 m]}
        switches: {lan: {}}
        links:
          - {ends: [server, lan], rate: 100 Mbit/s}
          - {ends: [ap1, lan], rate: 100 Mbit/s}
          - {ends: [ap2, lan], rate: 100 Mbit/s}
        measurements:
          - {name: walk, ping: {at: 1 s, from: server, to: sta, count: 120, interval: 100 ms}}
          - {name: after, ping: {at: 13 s, from: server, to: sta, count: 10, interval: 100 ms}}
        """,
        lambda f: f["after.received"] == 10 and f["walk.loss"] < 0.25,
    ),
    # 1448 of 1538 octets of 100 Mbit/s, through a router before which packets may have 9000.
    "a jumbo host behind 1500 octets finds the path's size": Case(
        """
        nodes: {h1: {}, r: {}, h2: {}}
        links:
          - {ends: [h1, r], rate: 1 Gbit/s, delay: 1 ms, mtu: 9000}
          - {ends: [r, h2], rate: 50 Mbit/s, delay: 1 ms, mtu: 1500}
        measurements: [{name: tcp, iperf3: {from: h1, to: h2, duration: 4 s, congestion: cubic}}]
        """,
        lambda f: f["tcp.throughput"] > 0.75 * 50e6 * 1448 / 1538,
    ),
    # As much as the policer of 4 Mbit/s lets pass, of frames of 1042 octets; the bucket is 10 of them.
    "a policer passes its rate and drops the rest without delay": Case(
        """
        nodes: {a: {}, b: {}}
        links: [{ends: [a, b], rate: 100 Mbit/s, delay: 5 ms, policer: {rate: 4 Mbit/s, burst: 10420 B}}]
        measurements: [{name: flow, traffic: {from: a, to: b, interval: 1 ms, size: 1000 B, duration: 3 s}}]
        """,
        lambda f: _near(0.03, f["flow.received"], 10 + 3 * 4e6 / 8 / 1042) and f["flow.delay_p50"] < 8e6,
    ),
    # 1448 of 1538 octets of 70 Mbit/s, whatever the delay; the queue holds what slow start brings.
    "a delay alone does not limit TCP": Case(
        """
        nodes: {a: {}, b: {}}
        links: [{name: w, ends: [a, b], rate: 70 Mbit/s, delay: 10 ms, queue: {packets: 5000}}]
        measurements: [{name: tcp, iperf3: {from: a, to: b, duration: 4 s, congestion: cubic}}]
        """,
        lambda f: 0.88 * 65.9e6 < f["tcp.throughput"] < 66.5e6,
    ),
    # A tree with room for all; flows that meet by their hash share a link. One path gives 38 to 49 %.
    "flows across a fat tree use its equal paths": Case(
        """
        topology: {generator: fat-tree, k: 4, link: {rate: 4 Mbit/s, delay: 100 us}}
        """,
        _most_arrives,
        more=EIGHT_FLOWS,
    ),
    "a switched fat tree does too": Case(
        """
        topology:
          {generator: fat-tree, k: 4, switched: true, switch: {forwarding: shortest-path},
           link: {rate: 4 Mbit/s, delay: 100 us}}
        """,
        _most_arrives,
        more=EIGHT_FLOWS,
    ),
    # Each datagram of TCP crosses the air twice: half of some 24 Mbit/s.
    "two stations of one access point share the air twice": Case(
        """
        media: {air: {radio: {phy: 802.11g, channel: 6, rate: 54 Mbit/s, ssid: home}}}
        nodes:
          ap: {position: [0 m, 0 m], radios: {wlan0: {mode: ap}}}
          s1: {position: [2 m, 0 m], radios: {wlan0: {mode: station}}}
          s2: {position: [0 m, 2 m], radios: {wlan0: {mode: station}}}
        measurements:
          - {name: hello, ping: {from: s1, to: s2, count: 3}}
          - {name: tcp, iperf3: {from: s1, to: s2, duration: 3 s, congestion: cubic}}
        """,
        lambda f: 10.2e6 < f["tcp.throughput"] < 12.5e6,
    ),
    # 29.88 Mbit/s are all of a channel.
    "two cells on one channel share it": Case(
        TWO_CELLS.replace("CHANNEL", "1"),
        lambda f: (
            _near(0.08, f["one.throughput"] + f["two.throughput"], 29.88e6)
            and _near(0.2, f["one.throughput"], 14.9e6)
        ),
    ),
    "two cells on channels that do not overlap do not": Case(
        TWO_CELLS.replace("CHANNEL", "6"),
        lambda f: _near(0.08, f["one.throughput"], 29.88e6) and _near(0.08, f["two.throughput"], 29.88e6),
    ),
    "two cells on channels that overlap disturb each other": Case(
        TWO_CELLS.replace("CHANNEL", "3"),
        lambda f: f["one.throughput"] < 0.7 * 29.88e6 and f["two.throughput"] < 0.7 * 29.88e6,
    ),
    "of two radios the one in the nearer cell is the faster": Case(
        """
        media: {air: {propagation: {model: log-distance, exponent: 3.5}, radio: {phy: 802.11g}}}
        nodes:
          ap1: {position: [0 m, 0 m], radios: {wlan0: {mode: ap, ssid: one, channel: 1}}}
          ap2: {position: [40 m, 0 m], radios: {wlan0: {mode: ap, ssid: two, channel: 11}}}
          sta:
            position: [5 m, 0 m]
            radios:
              wlan0: {mode: station, ssid: one, channel: 1}
              wlan1: {mode: station, ssid: two, channel: 11}
        measurements:
          - {name: h1, ping: {from: ap1, to: sta, count: 4}}
          - {name: h2, ping: {from: ap2, to: sta, count: 4}}
          - {name: near, iperf3: {from: ap1, to: sta, duration: 3 s, congestion: cubic}}
          - {name: far, iperf3: {from: ap2, to: sta, duration: 3 s, congestion: cubic}}
        """,
        lambda f: f["near.throughput"] > 1.3 * f["far.throughput"] > 2e6,
    ),
    # 10 ms, and for packets of the classic queue some 15 ms more, its target.
    "low-latency packets do not wait for the queue of TCP": Case(
        """
        nodes: {a: {}, b: {}}
        links: [{ends: [a, b], rate: 10 Mbit/s, delay: 10 ms, queue: {discipline: dualpi2}}]
        measurements:
          - {name: tcp, iperf3: {at: 1 ms, from: a, to: b, duration: 5 s, congestion: cubic}}
          - {name: low, traffic: {at: 2 s, from: a, to: b, interval: 9 ms, size: 90 B, ecn: 1, duration: 3 s}}
          - {name: classic, traffic: {at: 2 s, from: a, to: b, interval: 9 ms, size: 90 B, duration: 3 s}}
        """,
        lambda f: f["low.delay_p50"] + 4e6 < f["classic.delay_p50"] and f["tcp.throughput"] > 6.5e6,
    ),
    "no station is served faster because it is farther away": Case(
        """
        media:
          air:
            propagation: {model: log-distance, exponent: 3.5}
            radio: {phy: 802.11g, channel: 6, ssid: home}
        nodes:
          ap: {position: [0 m, 0 m], radios: {wlan0: {mode: ap}}}
          s1: {position: [4 m, 0 m], radios: {wlan0: {mode: station}}}
          s2: {position: [0 m, 28 m], radios: {wlan0: {mode: station}}}
          s3: {position: [0 m, 38 m], radios: {wlan0: {mode: station}}}
        measurements:
          - {name: one, iperf3: {from: ap, to: s1, duration: 3 s, congestion: cubic}}
          - {name: two, iperf3: {from: ap, to: s2, duration: 3 s, congestion: cubic}}
          - {name: three, iperf3: {from: ap, to: s3, duration: 3 s, congestion: cubic}}
        """,
        lambda f: 1.05 * f["one.throughput"] > f["two.throughput"] > 0.95 * f["three.throughput"] > 1e6,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_right(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    monkeypatch.chdir(tmp_path)
    for file, text in (case.files or {}).items():
        (tmp_path / file).write_text(text)
    result = airloom.run(
        read("name: field\n" + _indented(case.text) + case.more), out=tmp_path / "run"
    ).result
    figures = {f"{one.name}.{one.metric}": one.mean or 0.0 for one in result.measurements}
    assert case.holds(figures), figures


def _indented(text: str) -> str:
    lines = text.strip("\n").splitlines()
    return "".join(line[8:] + "\n" for line in lines)
