"""The disciplines of links beside the kernel's own in a router guest, in virtual time.

What differs between the two worlds is the implementation only. A flow of UDP beyond the rate tells the law
itself; TCP amplifies each difference, so its figures agree less. `docs/inside/models.md` has the figures and
the reasons of differences.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from helpers.kernels import needs_option, needs_virtual_time
from helpers.qdiscs import AT_ONCE, Pair, Seen, by_engine, by_kernel

pytestmark = [pytest.mark.world, pytest.mark.timeout(400), needs_virtual_time]

MS = 1e6


def managed(word: str, option: str = "", **settings: Any) -> dict[bool, Pair]:
    """A discipline without and with ECN, by its words for `tc`."""
    queue = {"discipline": word.split()[0].replace("_", "-"), "packets": 1000, **settings}
    return {
        ecn: Pair({**queue, "ecn": ecn}, f"{word} {'ecn' if ecn else 'noecn'}", option)
        for ecn in (False, True)
    }


RED = {
    "discipline": "red",
    "packets": 1000,
    "red_min": "15 kB",
    "red_max": "45 kB",
    "red_weight": 1 / 128,
    "red_packet": "1000 B",
}
# A burst of 55 packets makes `tc` choose the weight 1/128.
RED_WORDS = "red limit 1500000 min 15000 max 45000 avpkt 1000 burst 55 probability 0.1 bandwidth 10mbit"
CAKE = Pair(
    {"discipline": "cake"}, "cake bandwidth 10mbit overhead 38 mpu 84", "CONFIG_NET_SCH_CAKE", shapes=True
)
PAIRS: dict[str, dict[bool, Pair]] = {
    "drop-tail": {False: Pair({"packets": 60}, "pfifo limit 60")},
    "codel": managed("codel limit 1000 target 5ms interval 100ms", "CONFIG_NET_SCH_CODEL"),
    "fq-codel": managed("fq_codel limit 1000 quantum 1514"),
    # The kernel's timer has ticks of 10 ms, and one of two ticks fires with the third.
    "pie": managed(
        "pie limit 1000 target 15ms tupdate 20ms alpha 2 beta 20", "CONFIG_NET_SCH_PIE", pie_update="30 ms"
    ),
    "red": {
        False: Pair(RED, RED_WORDS, "CONFIG_NET_SCH_RED"),
        True: Pair({**RED, "ecn": True, "red_above": "mark"}, f"{RED_WORDS} ecn", "CONFIG_NET_SCH_RED"),
    },
    "cake": {False: CAKE, True: CAKE},
}
CASES = [(name, ecn) for name, ways in PAIRS.items() for ecn in ways]
SEEDS = {"pie": (1, 2, 3, 4), "red": (1, 2)}
"""Seeds whose figures are averaged, of disciplines that signal by chance.

With one seed, delays of TCP are up to 2.5 % from their mean, and any change of a guest's programs draws anew.
"""
APART = {"drop-tail": 0, "codel": 2.1 * MS, "fq-codel": 2.1 * MS, "pie": 10 * MS, "red": 0, "cake": 10 * MS}
"""How far delays may be apart: a tenth of the time by which drops begin earlier, since a tenth is too much.

CoDel's second drop comes 50 ms after the first in the kernel, by a single step of Newton's method, and not
71 ms. CAKE's first drop of a flow does not wait for an interval of 100 ms there. The kernel's PIE reads the
delay of a packet that leaves, which came up to 100 ms ago.
"""


def udp(name: str, rate: str, **more: Any) -> dict[str, Any]:
    flow = {"at": "1 s", "from": "h1", "to": "h2", "rate": rate, "rate_of": "wire", "duration": "10 s"}
    return {"name": name, "traffic": {**flow, "size": "1472 B", **more}}


def both(
    tmp_path: Path,
    pair: Pair,
    load: list[Any],
    *,
    ecn: bool = False,
    seeds: tuple[int, ...] = (1,),
    **parts: Any,
) -> tuple[Seen, Seen]:
    """What both worlds show, as means over the seeds."""
    parts |= {"ecn": ecn, "load": load}
    # The kernel first: without the option the test ends there.
    kernel = [by_kernel(tmp_path / f"kernel-{seed}", pair, seed=seed, **parts) for seed in seeds]
    engine = [by_engine(tmp_path / f"engine-{seed}", pair, seed=seed, **parts) for seed in seeds]
    return Seen.mean(engine), Seen.mean(kernel)


@pytest.mark.parametrize(("name", "ecn"), CASES)
def test_an_unresponsive_flow_is_signalled_as_often(tmp_path: Path, name: str, ecn: bool) -> None:
    load = [udp("flow", "11 Mbit/s", ecn=2 if ecn else 0)]
    engine, kernel = both(tmp_path, PAIRS[name][ecn], load, ecn=ecn, seeds=SEEDS.get(name, (1,))[:2])
    assert engine.signals == pytest.approx(kernel.signals, rel=0.02, abs=5)
    assert engine.figures["flow.received"] == pytest.approx(kernel.figures["flow.received"], rel=0.005)
    for metric in ("flow.delay_p50", "flow.delay_p95"):
        apart = APART[name] + MS
        assert engine.figures[metric] == pytest.approx(kernel.figures[metric], rel=0.02, abs=apart)


def tcp(congestion: str) -> list[dict[str, Any]]:
    """A connection, and datagrams that find the queue it makes."""
    ends = {"at": "1 s", "from": "h1", "to": "h2", "duration": "15 s"}
    return [
        {"name": "tcp", "iperf3": {**ends, "congestion": congestion}},
        {"name": "probe", "traffic": {**ends, "interval": "20 ms", "size": "1472 B"}},
    ]


@pytest.mark.parametrize(("name", "ecn"), CASES)
def test_tcp_finds_the_same_queue(tmp_path: Path, name: str, ecn: bool) -> None:
    engine, kernel = both(tmp_path, PAIRS[name][ecn], tcp("cubic"), ecn=ecn, seeds=SEEDS.get(name, (1,)))
    assert engine.figures["tcp.goodput"] == pytest.approx(kernel.figures["tcp.goodput"], rel=0.02)
    # The means of the seeds are 2 % apart by chance.
    within = 0.08 if name in SEEDS else 0.05
    for metric in ("probe.delay_p50", "probe.delay_mean"):
        assert engine.figures[metric] == pytest.approx(kernel.figures[metric], rel=within, abs=MS)
    if ecn:
        assert engine.marked > 0
        assert kernel.marked > 0
    # Whether PIE loses once more decides its p95: 41 to 63 ms with 20 to 31 losses.
    if name != "pie":
        metric = "probe.delay_p95"
        assert engine.figures[metric] == pytest.approx(kernel.figures[metric], rel=0.1, abs=MS)
        assert engine.signals == pytest.approx(kernel.signals, rel=0.25, abs=8)


EF = "filter add dev eth1 parent 10: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 10:1"
LIMITS = tuple(f"qdisc add dev eth1 parent 10:{one} pfifo limit 100" for one in (1, 2))
CLASSED = {
    "priority": Pair(
        {"discipline": "priority", "classes": [{"dscp": [46], "packets": 100}, {"packets": 100}]},
        "prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
        "CONFIG_NET_SCH_PRIO or CONFIG_NET_CLS_U32",
        further=(*LIMITS, EF),
    ),
    "drr": Pair(
        {
            "discipline": "drr",
            "classes": [
                {"dscp": [46], "packets": 100, "quantum": "3028 B"},
                {"packets": 100, "quantum": "1514 B"},
            ],
        },
        "drr",
        "CONFIG_NET_SCH_DRR or CONFIG_NET_CLS_U32",
        further=(
            "class add dev eth1 parent 10: classid 10:1 drr quantum 3028",
            "class add dev eth1 parent 10: classid 10:2 drr quantum 1514",
            *LIMITS,
            EF,
            "filter add dev eth1 parent 10: protocol all prio 2 u32 match u32 0 0 flowid 10:2",
        ),
    ),
    "policer": Pair(
        {"packets": 60},
        "pfifo limit 60",
        "CONFIG_NET_ACT_POLICE or CONFIG_NET_CLS_MATCHALL",
        link={"policer": {"rate": "8 Mbit/s", "burst": "15000 B"}},
        further=(
            "qdisc add dev eth1 clsact",
            "filter add dev eth1 egress matchall action police rate 8mbit burst 15000 conform-exceed drop",
        ),
    ),
}


@pytest.mark.parametrize("name", CLASSED)
def test_classes_and_policers_share_alike(tmp_path: Path, name: str) -> None:
    low = udp("low", "8 Mbit/s", dscp=46)
    engine, kernel = both(tmp_path, CLASSED[name], [low, udp("rest", "8 Mbit/s")])
    for flow in ("low", "rest"):
        metric = f"{flow}.received"
        assert engine.figures[metric] == pytest.approx(kernel.figures[metric], rel=0.01, abs=3)
        metric = f"{flow}.delay_p50"
        assert engine.figures[metric] == pytest.approx(kernel.figures[metric], rel=0.02, abs=MS)


TBF = Pair(
    {"packets": 60},
    "tbf rate 10mbit burst 30760 limit 1000000 overhead 24",
    shapes=True,
    # With the frame that waits for its tokens, which has left the queue of a link.
    further=("qdisc add dev eth1 parent 10:1 handle 11: pfifo limit 61",),
    link={"burst": "30760 B"},
    far=AT_ONCE,
)


def test_a_token_bucket_lets_the_same_bursts_pass(tmp_path: Path) -> None:
    # 20 frames of tokens, 81 frames more than the rate carries in each burst.
    load = [udp("bursts", "23 Mbit/s", pattern="on-off", on="100 ms", off="150 ms")]
    engine, kernel = both(tmp_path, TBF, load)
    assert engine.dropped == pytest.approx(kernel.dropped, rel=0.02, abs=5)
    for metric in ("bursts.delay_p50", "bursts.delay_p95", "bursts.delay_mean"):
        assert engine.figures[metric] == pytest.approx(kernel.figures[metric], rel=0.02)


# What Mininet's TCLink has tc do for `enable_ecn`; the burst makes the weight 1/2.
MARKING = Pair(
    {
        "discipline": "red",
        "packets": 1000,
        "red_min": "30000 B",
        "red_max": "35000 B",
        "red_weight": 0.5,
        "red_packet": "1500 B",
        "red_probability": 1.0,
        "ecn": True,
        "red_above": "mark",
    },
    "red limit 1000000 min 30000 max 35000 avpkt 1500 burst 20 probability 1 bandwidth 10mbit ecn",
    "CONFIG_NET_SCH_RED",
)


@needs_option("CONFIG_TCP_CONG_DCTCP", b"dctcp")
def test_dctcp_finds_the_same_threshold(tmp_path: Path) -> None:
    # Marked by capable packets alone: datagrams that are not would be dropped.
    load = tcp("dctcp")
    load[1]["traffic"]["ecn"] = 2
    engine, kernel = both(tmp_path, MARKING, load, ecn=True, seeds=(1, 2), congestion="dctcp")
    assert engine.dropped == kernel.dropped == 0
    assert engine.figures["tcp.goodput"] == pytest.approx(kernel.figures["tcp.goodput"], rel=0.02)
    for metric, within in (("probe.delay_p50", 0.05), ("probe.delay_p95", 0.1)):
        assert engine.figures[metric] == pytest.approx(kernel.figures[metric], rel=within, abs=MS)
    # The kernel's marks differ by up to 15 % between seeds.
    assert engine.marked == pytest.approx(kernel.marked, rel=0.2)
