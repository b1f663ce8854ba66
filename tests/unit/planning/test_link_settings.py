"""Settings of links: their encoding for the engine, their text, and the ranges that the engine knows."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from airloom import _engine
from airloom.errors import ScenarioError
from airloom.planning.gate import check
from airloom.planning.links import encoding
from airloom.planning.links.link_settings import (
    Law,
    LinkSettings,
    PolicerSettings,
    QueueSettings,
    RateTrace,
    Receiver,
)
from airloom.planning.rules import ranges
from airloom.scenario import read
from airloom.scenario.model import Direction
from helpers import REPOSITORY

EVERYTHING = LinkSettings(
    rate=10_000_000,
    burst=64_000,
    peak=1_000_000_000,
    policer=PolicerSettings(8_000_000, 32_000),
    delay=5_000_000,
    jitter=Law("normal", {"sigma_ns": 1000}),
    jitter_reorders=True,
    loss=Law("gilbert-elliott", {"good_to_bad": 0.1, "bad_to_good": 0.2, "loss_good": 0.0, "loss_bad": 1.0}),
    duplicate=0.01,
    corrupt=0.02,
    reorder=0.03,
    mtu=1500,
    overhead=38,
    queue=QueueSettings(None, 30_000, None, Law("codel", {"target_ns": 1, "interval_ns": 2}), True),
    segments="carried",
    coalesce=0,
    late="slip",
    carrier="keep",
    gap=4_000,
    receiver=Receiver(7_000, 50_000, Law("exponential", {"mean_ns": 20_000}), 1_000_000),
)


def test_the_engine_takes_every_setting() -> None:
    encoded = EVERYTHING.engine()
    # A token bucket is one setting: rate, burst and peak.
    assert len(encoded) == len(LinkSettings.__dataclass_fields__) - 2
    _engine.check_link("a-b", encoded)
    _engine.check_link("a-b", LinkSettings(rate=RateTrace((1, 2), 2, 1504)).engine())


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("{discipline: pie, pie_target: 10 ms, ecn: true}", "pie"),
        ("{discipline: dualpi2, dualpi2_target: 10 ms, dualpi2_ramp: 0 s}", "dualpi2"),
        ("{discipline: cake}", "cake"),
        ("{discipline: cake, target: 1 ms, cake_isolation: flows, cake_tins: besteffort}", "cake"),
        ("{discipline: cake, cake_isolation: dual-srchost, cake_tins: diffserv4}", "cake"),
        ("{discipline: cake, cake_isolation: dual-dsthost}", "cake"),
        ("{discipline: step, step_packets: 0}", "step"),
        ("{discipline: step, step_size: 30 kB, step_time: 1 ms}", "step"),
        ("{discipline: priority, classes: [{dscp: [46, 34]}, {packets: 50}]}", "priority"),
        ("{discipline: drr, classes: [{dscp: [46], quantum: 6 kB}, {}]}", "drr"),
    ],
)
def test_the_engine_takes_every_discipline(said: str, word: str) -> None:
    text = f"name: x\nnodes: {{a: {{}}, b: {{}}}}\nlinks: [{{ends: [a, b], rate: 1 Mbit/s, queue: {said}}}]\n"
    (plan,) = check(read(text)).plans
    (link,) = plan.links.values()
    assert list(link.forward.engine()["queue"]["discipline"]) == [word]
    assert link.forward.queue is not None
    assert word in link.forward.queue.text


def test_what_is_left_out_is_the_engines_default() -> None:
    assert LinkSettings().engine() == {}
    assert LinkSettings(queue=QueueSettings()).engine() == {
        "queue": {
            "packets": 1000,
            "octets": None,
            "time_ns": None,
            "discipline": "drop-tail",
            "ecn": False,
        }
    }


@pytest.mark.parametrize(
    ("queue", "text"),
    [
        (QueueSettings(), "drop-tail, 1000 packets"),
        (QueueSettings(1, 30_000, 50_000_000), "drop-tail, 1 packet, 30 kB, 50 ms"),
        (QueueSettings(None, None, 5_000_000, Law("fq-codel"), True), "fq-codel, 5 ms, ECN"),
    ],
)
def test_a_queue_says_its_discipline_and_its_limits(queue: QueueSettings, text: str) -> None:
    assert queue.text == text


def arrival(link: dict[str, object]) -> int:
    """When a frame of 100 octets arrives, in ns."""
    engine = _engine.Engine(1)
    engine.add_memory_port("a")
    engine.add_memory_port("b")
    engine.connect("a-b", "a", "b", link, {})
    engine.offer("a", 0, bytes.fromhex("02aaaaaaaaaa02bbbbbbbbbb88b5") + bytes(86))
    ((_, at, _),) = engine.step(10**9)
    return at


def test_the_overhead_that_is_left_out_is_the_engines() -> None:
    rate = {"rate": {"bits-per-second": 8_000_000}}
    assert arrival(LinkSettings(rate=8_000_000).engine()) == arrival({**rate, "overhead": 24})
    assert arrival(LinkSettings(rate=8_000_000, overhead=25).engine()) == arrival(rate) + 1000


@pytest.mark.parametrize(
    ("link", "text"),
    [
        (LinkSettings(), "unlimited"),
        (LinkSettings(rate=100_000_000, delay=1_000_000), "100 Mbit/s, 1 ms"),
        (LinkSettings(rate=RateTrace((0,), 10**6, 1504), loss=0.015), "a trace, loss 1.5 %"),
        (
            EVERYTHING,
            "10 Mbit/s, burst 64 kB, policer 8 Mbit/s, 5 ms, jitter normal, bursty loss, duplicate 1 %, "
            "corrupt 2 %, reorder 3 %",
        ),
    ],
)
def test_settings_in_words(link: LinkSettings, text: str) -> None:
    assert link.text == text


def test_a_trace_has_a_mean_rate() -> None:
    link = LinkSettings(rate=RateTrace((500_000, 1_000_000), 1_000_000, 1000))
    # 997 of the 1000 octets of an opportunity are those of packets.
    assert (link.mean_rate, link.constant_rate, link.traced) == (15_952_000, None, True)
    assert LinkSettings(rate=5).mean_rate == 5
    assert LinkSettings().mean_rate is None


def test_a_change_keeps_the_equipment() -> None:
    after = encoding.changed(EVERYTHING, Direction(rate="unlimited", delay="1 ms"))
    assert after.rate is None
    assert (after.gap, after.receiver, after.queue) == (
        EVERYTHING.gap,
        EVERYTHING.receiver,
        EVERYTHING.queue,
    )


def test_each_code_of_the_engine_leads_to_a_key_of_a_scenario() -> None:
    source = (REPOSITORY / "engine" / "src" / "check.rs").read_text("utf-8").partition("#[cfg(test)]")[0]
    codes = set(re.findall(r'"(link\.[a-z0-9_.-]+)"', source))
    assert len(codes) > 25
    assert ranges._KEYS.keys() <= codes
    assert ranges._ZERO.keys() <= codes
    assert ranges._CODES.keys() <= codes


def test_several_settings_out_of_their_ranges_are_all_told() -> None:
    link = "{ends: [a, b], delay: 25 h, overhead: 2 kB, rate: 2 Tbit/s}"
    with pytest.raises(ScenarioError) as caught:
        check(read(f"name: x\nnodes: {{a: {{}}, b: {{}}}}\nlinks: [{link}]\n"))
    codes = {error.code for error in (caught.value, *caught.value.further)}
    assert codes == {"link.delay", "link.overhead", "link.rate.range"}


@pytest.mark.slow
def test_the_engine_is_loaded_only_if_there_is_something_to_ask() -> None:
    program = """
import sys
from airloom.planning.gate import check
from airloom.scenario import read
check(read("name: x\\nnodes: {a: {}, b: {}}\\nlinks: [{ends: [a, b]%s}]\\n"))
print("airloom._engine" in sys.modules)
"""
    for said, loaded in (("", "False"), (", delay: 1 ms", "True")):
        done = subprocess.run(
            [sys.executable, "-c", program % said], check=True, capture_output=True, text=True
        )
        assert done.stdout.strip() == loaded
