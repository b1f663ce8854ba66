"""The load of links over time: what a sampler makes of the engine's counters, and a reading now."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airloom import _engine
from airloom.errors import ScenarioError
from airloom.lab.handles import LiveLink
from airloom.planning.gate import check
from airloom.runs import link_loads
from airloom.runs.link_loads import LinkLoad, LinkWatch
from airloom.scenario.reader import read

MS = 1_000_000
TEXT = """
name: loads
nodes: {a: {}, b: {}, c: {}}
switches: {s: {}}
links:
  - {name: slow, ends: [a, s], rate: 8 Mbit/s, overhead: 0 B, queue: {packets: 5}}
  - {name: fast, ends: [s, b]}
  - {name: idle, ends: [s, c], rate: 1 Mbit/s}
engine: {link_interval: 1 ms}
"""


class World:
    """The engine of a plan with memory ports, stepped by hand."""

    def __init__(self, text: str) -> None:
        (self.plan,) = check(read(text)).plans
        self.pacer, self.running = None, True
        self.engine = _engine.Engine(1)
        for name in ("a:eth0", "b:eth0", "c:eth0"):
            self.engine.add_memory_port(name)
        self.engine.add_switch("s", self.plan.switches["s"].settings)
        for link in self.plan.links.values():
            self.engine.connect(link.name, link.a, link.b, link.forward.engine(), link.backward.engine())

    def link_settings(self, name: str) -> dict[str, Any]:
        plan = self.plan.links[name]
        return {"forward": plan.forward, "backward": plan.backward}

    def offer(self, at: int, frames: int, octets: int = 1000) -> None:
        frame = bytes.fromhex("02000000000202000000000188b5") + bytes(octets - 14)
        for _ in range(frames):
            self.engine.offer("a:eth0", at, frame)


def sampled(world: World, until: int) -> dict[tuple[str, str], list[float]]:
    watch: Any = LinkWatch(world)  # type: ignore[arg-type]
    for at in range(until + 1):
        world.engine.step(at * MS)
        watch._sample()
    return {(whose, metric): values for _, metric, _, whose, _, values in watch.series()}


def test_queue_drops_rate_and_utilization_of_each_interval() -> None:
    world = World(TEXT)
    # Ten frames of 1 ms at 2 ms: one on the wire, five wait, four are dropped.
    world.offer(2 * MS, 10)
    found = sampled(world, 10)
    # The engine's clock stands at the end of each step, so the first sample with frames is that at 2 ms.
    assert found["slow forward", "queue"] == [5, 4, 3, 2, 1, 0, 0, 0, 0]
    assert found["slow forward", "queue_octets"] == [5000, 4000, 3000, 2000, 1000, 0, 0, 0, 0]
    assert found["slow forward", "dropped"] == [4, 0, 0, 0, 0, 0, 0, 0, 0]
    assert found["slow forward", "utilization"] == [0, 1, 1, 1, 1, 1, 1, 0, 0]
    assert found["slow forward", "rate"] == [0, 8e6, 8e6, 8e6, 8e6, 8e6, 8e6, 0, 0]


def test_a_link_without_a_rate_has_no_queue_and_an_idle_one_no_samples() -> None:
    world = World(TEXT)
    world.offer(2 * MS, 3)
    found = sampled(world, 6)
    assert {metric for whose, metric in found if whose == "fast forward"} == {"rate", "dropped", "marked"}
    assert sum(found["fast forward", "rate"]) * 1e-3 / 8 == pytest.approx(3000)
    # The switch floods to the unknown address, and the idle link is not idle; nothing goes back.
    assert not [whose for whose, _ in found if whose.endswith("backward")]


def test_a_reading_now_and_the_utilization_between_two() -> None:
    world = World(TEXT)
    numbers = link_loads.numbers_of(world.engine)
    world.offer(0, 4)
    world.engine.step(MS // 2)
    before = link_loads.load_of(world.engine, numbers, "slow", "forward")
    assert (before.queue, before.queue_octets, before.busy, before.sent) == (3, 3000, MS // 2, 0)
    world.engine.step(8 * MS + MS // 2)
    after = link_loads.load_of(world.engine, numbers, "slow", "forward")
    assert (after.queue, after.sent, after.sent_octets, after.busy) == (0, 4, 4000, 4 * MS)
    assert after.utilization_since(before) == pytest.approx(3.5 / 8)
    assert link_loads.load_of(world.engine, numbers, "slow", "backward").sent == 0


@pytest.mark.parametrize(("said", "links", "period"), [(None, 3, 0.1), ("20 ms", 3, 0.02), (None, 150, 1.0)])
def test_the_interval_is_the_scenarios_or_follows_the_number_of_links(
    said: str | None, links: int, period: float
) -> None:
    interval = (
        None
        if said is None
        else int(read(f"name: x\nengine: {{link_interval: {said}}}").engine.link_interval or 0)
    )
    scenario = SimpleNamespace(engine=SimpleNamespace(link_interval=interval))
    plan = SimpleNamespace(scenario=scenario, links=dict.fromkeys(range(links)))
    watch: Any = LinkWatch(SimpleNamespace(plan=plan))  # type: ignore[arg-type]
    assert watch._period == pytest.approx(period)


def test_zero_is_no_samples() -> None:
    world = World(TEXT.replace("1 ms}", "0 s}"))
    world.offer(2 * MS, 3)
    assert sampled(world, 5) == {}


def test_the_numbers_are_those_of_the_ledger() -> None:
    world = World(TEXT)
    world.offer(0, 10)
    world.engine.step(3 * MS)
    account = world.engine.ledger()["links"]["slow"]["forward"]
    load = link_loads.load_of(world.engine, link_loads.numbers_of(world.engine), "slow", "forward")
    assert load == LinkLoad(
        3 * MS,
        account["queue"],
        account["queue_octets"],
        account["left"],
        account["left_octets"],
        sum(account["dropped"].values()),
        account["marked"],
        account["busy_ns"],
    )


def test_a_live_link_reads_either_direction() -> None:
    world: Any = World(TEXT)
    live = LiveLink(world.plan.links["slow"], world)
    world.offer(0, 4)
    world.engine.step(MS // 2)
    assert (live.load().queue, live.load("backward").queue) == (3, 0)
    with pytest.raises(ScenarioError, match="sideways"):
        live.load("sideways")
