"""Media that change in a running engine are as those of a fresh one: random pairs, in memory."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from airloom import _engine
from airloom.errors import ScenarioError
from airloom.lab.live_plan import live_plan
from airloom.planning.difference import Present, compare
from airloom.planning.plan import Plan
from airloom.runs import engine_setup, growing
from airloom.runs.emulation import World
from airloom.scenario.model import Scenario

APPLIED, LOOK = 10**7, 10**9
"""Engine times in ns: of the change, and of the look at both engines."""
NAMES = ("a", "b", "c", "d")

_WALK = {"model": "random-walk", "area": ["80 m", "80 m"], "speed": "3 m/s"}
_PLACES = st.one_of(
    st.sampled_from([{"position": ["0 m", "0 m"]}, {"position": ["30 m", "4 m"]}]),
    st.sampled_from([{"mobility": _WALK}, {"mobility": {**_WALK, "speed": "5 m/s"}}]),
)
_RADIO = st.fixed_dictionaries(
    {},
    optional={
        "power": st.sampled_from(["5 dBm", "12 dBm"]),
        "channel": st.sampled_from([36, 44]),
        "phy": st.sampled_from(["802.11a", "802.11g"]),
        "rts": st.sampled_from(["500 B", "never"]),
        "mode": st.sampled_from(["ap", "ad-hoc"]),
        "ssid": st.sampled_from(["one", "two"]),
        "up": st.booleans(),
    },
)
_LAWS = st.fixed_dictionaries(
    {},
    optional={
        "propagation": st.sampled_from(
            [{"model": "friis"}, {"model": "log-distance", "exponent": 3.5}, {"model": "two-ray"}]
        ),
        "shadowing": st.sampled_from([{"sigma": "4 dB", "decorrelation": "20 m"}]),
        "fading": st.sampled_from([{"model": "rayleigh"}]),
        "floor": st.sampled_from(["-110 dBm"]),
        "noise": st.sampled_from([[{"channel": 36, "power": "-20 dBm", "position": ["3 m", "0 m"]}]]),
    },
)
_EVENTS = st.lists(
    st.sampled_from(
        [
            {"at": "5 ms", "radio": "a:wlan0", "tune": {"power": "3 dBm"}},
            {"at": "500 ms", "radio": "a:wlan0", "tune": {"power": "4 dBm"}},
            {"at": "700 ms", "node": "a", "position": ["7 m", "7 m"]},
            {"at": "800 ms", "radio": "a:wlan0", "action": "down"},
        ]
    ),
    max_size=2,
    unique_by=str,
)


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    media = {
        name: draw(_LAWS) for name in draw(st.lists(st.sampled_from(["air", "sky"]), min_size=1, unique=True))
    }
    names = draw(st.lists(st.sampled_from(NAMES[1:]), unique=True))
    nodes = {}
    for name in ("a", *sorted(names)):
        radio = {"medium": draw(st.sampled_from(sorted(media))), **draw(_RADIO)}
        nodes[name] = {**draw(_PLACES), "radios": {"wlan0": radio}}
    return {"name": "air", "nodes": nodes, "media": media, "events": draw(_EVENTS)}


def plan_of(raw: dict[str, Any]) -> Plan:
    return live_plan(Scenario.model_validate(raw))


def begun(plan: Plan) -> World:
    """An engine that runs the media of a plan, stepped, with ports in memory."""
    world = World(plan)
    world._engine = engine = _engine.Engine(plan.seed)
    for port in (f"{name}:wlan0" for name in NAMES):
        engine.add_memory_port(port)
    for medium in plan.media.values():
        engine_setup.add_medium(engine, medium)
    world.laws = {name: medium.settings for name, medium in plan.media.items()}
    world.schedule(plan)
    return world


def state(world: World) -> dict[str, Any]:
    radios = {one["port"]: one for one in world.engine.radios()}
    kept = ("medium", "on", "wanted_on", "position", "mhz", "slice", "settings")
    found: dict[str, Any] = {port: {key: one[key] for key in kept} for port, one in radios.items()}
    for a, one in radios.items():
        for b, other in radios.items():
            if a != b and one["medium"] == other["medium"]:
                found[f"{a}>{b}"] = world.engine.signal(a, b)
    return found


def present(world: World, plan: Plan, now: int) -> Present:
    return Present(plan, now, {}, radios={r["port"]: r for r in world.engine.radios()}, laws=world.laws)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
@given(scenarios(), scenarios())
def test_the_engine_is_as_one_that_began_so(one, other):
    try:
        before, after = plan_of(one), plan_of(other)
    except ScenarioError:
        assume(False)
    world, fresh = begun(before), begun(after)
    first, then = begun(before), begun(after)
    fresh.engine.step(LOOK)
    then.engine.step(APPLIED)
    first.engine.step(APPLIED)
    world.engine.step(APPLIED)
    there = state(world)
    assert there == state(first)
    found = compare(present(world, before, APPLIED), after)
    past = [event for event in (*found.events.removed, *found.events.added) if event.at <= APPLIED]
    assert bool(past) == any(problem.code == "apply.event" for problem in found.problems)
    assume(not found.problems)
    world.now = lambda: APPLIED  # type: ignore[method-assign]
    since = world.withdraw_changes()
    growing.clear_media(world, found)
    world.plan = after
    growing.set_media(world, found)
    world.schedule(after, since)
    world.engine.step(APPLIED + 1)
    then.engine.step(APPLIED + 1)
    assert state(world) == state(then)
    again = Present(
        after, APPLIED + 1, {}, radios={r["port"]: r for r in world.engine.radios()}, laws=world.laws
    )
    assert not compare(again, after)
    world.engine.step(LOOK)
    assert state(world) == state(fresh)
