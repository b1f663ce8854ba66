"""The difference from what runs to a changed scenario, as steps and as refusals."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from airloom.errors import ScenarioError
from airloom.lab.live_plan import live_plan
from airloom.planning.difference import Difference, Present, compare
from airloom.planning.plan import Plan
from airloom.scenario.model import Scenario

HOSTS, SWITCHES = ("h1", "h2", "h3", "h4"), ("s1", "s2")


def plan_of(**parts: Any) -> Plan:
    return live_plan(Scenario.model_validate({"name": "lab", **parts}))


def present(plan: Plan, **more: Any) -> Present:
    """A laboratory that runs as its plan says."""
    in_force = {name: {"forward": one.forward, "backward": one.backward} for name, one in plan.links.items()}
    known = {name: switch.settings for name, switch in plan.switches.items()}
    return Present(plan, more.pop("now", 10**9), more.pop("settings", in_force), switches=known, **more)


def star(*links: dict[str, Any], **more: Any) -> Plan:
    """h1, h2 and h3 at a switch, each link with the properties given for it."""
    own = dict(enumerate(links, 1))
    hosts = more.pop("nodes", {f"h{i}": {} for i in (1, 2, 3)})
    ends = [{"ends": [f"h{i}", "s1"], **own.get(i, {})} for i in (1, 2, 3) if f"h{i}" in hosts]
    return plan_of(nodes=hosts, switches={"s1": {}}, links=[*ends, *more.pop("links", [])], **more)


def steps(before: Plan, after: Plan, **more: Any) -> list[str]:
    found = compare(present(before, **more), after)
    assert not found.problems
    return [str(step) for step in found.steps]


def refusals(before: Plan, after: Plan, **more: Any) -> list[str]:
    return [f"{one.message} ({one.cure})" for one in compare(present(before, **more), after).problems]


def test_a_default_that_is_written_out_is_no_difference():
    assert steps(star({}), star({"delay": "0 ms", "loss": "0 %"}, kind="netns")) == []
    said = star(nodes={"h1": {"kind": "netns", "interfaces": {"eth0": {"mtu": 1500}}}, "h2": {}, "h3": {}})
    assert steps(star(), said) == []


def test_each_way_of_a_link_is_compared():
    after = star({"delay": "2 ms", "forward": {"rate": "10 Mbit/s"}}, {"loss": "1 %"})
    assert steps(star({"delay": "2 ms"}), after) == [
        "~ link h1-s1: forward unlimited, 2 ms -> 10 Mbit/s, 2 ms",
        "~ link h2-s1: both directions unlimited -> unlimited, loss 1 %",
    ]


def test_what_was_changed_by_hand_is_changed_back():
    plan = star({"delay": "2 ms"})
    other = star({"delay": "9 ms"}).links["h1-s1"]
    now = present(plan).settings | {
        "h1-s1": {"forward": other.forward, "backward": plan.links["h1-s1"].backward}
    }
    assert steps(plan, plan, settings=now) == ["~ link h1-s1: forward unlimited, 9 ms -> unlimited, 2 ms"]
    assert steps(plan, plan, down=frozenset({"h2-s1"})) == ["~ link h2-s1: carrier up"]


def test_events_that_have_been_stay_in_force():
    def scenario(delay: str) -> Plan:
        events = [{"at": f"{at} s", "link": "h1-s1", "set": {"rate": f"{at} Mbit/s"}} for at in (1, 5)]
        return star({"delay": delay, "rate": "9 Mbit/s"}, events=events)

    before, after = scenario("2 ms"), scenario("3 ms")
    then = before.links["h1-s1"].forward
    now = present(before).settings
    assert compare(present(before, now=0, settings=now), after).events.reschedules
    found = compare(present(before, now=2 * 10**9, settings=now), after)
    assert {(one[1], one[2].rate, one[2].delay) for one in found.links_set} == {
        ("forward", 1_000_000, 3_000_000),
        ("backward", 1_000_000, 3_000_000),
    }
    assert then.rate == 9_000_000


def test_a_node_changes_in_place_or_is_restarted_alone():
    before = star()
    assert steps(before, star(nodes={"h1": {"files": {"/etc/motd": "hello"}}, "h2": {}, "h3": {}})) == [
        "! node h1: restarted alone, as its files change"
    ]
    two = star(links=[{"ends": ["h1", "h2"]}])
    assert steps(before, two) == [
        "~ node h1: eth1 added (10.0.1.1/30); forwards packets",
        "~ node h2: eth1 added (10.0.1.2/30); forwards packets",
        "~ node h3: routes: 0 removed, 1 added",
        "+ link h1-h2: h1:eth1 <-> h2:eth1, unlimited",
    ]
    assert "- link h1-h2: h1:eth1 <-> h2:eth1" in steps(two, before)


def test_programs_are_compared_by_name():
    def scenario(*runs: str, **more: Any) -> Plan:
        return star(programs=[{"node": "h1", "run": run, **more} for run in runs])

    assert steps(scenario("sleep 9"), scenario("sleep 9", "date")) == ["+ program h1-date: date in h1"]
    assert steps(scenario("sleep 9", "date"), scenario("sleep 9")) == ["- program h1-date: in h1"]
    changed = compare(present(scenario("sleep 9")), scenario("sleep 8"))
    assert [str(step) for step in changed.steps] == [
        "~ program h1-sleep: ends, and starts anew: sleep 8 in h1"
    ]
    assert (changed.programs_removed, changed.programs_added) == (["h1-sleep"], ["h1-sleep"])


def test_radios_are_set_and_moved():
    def scenario(power: str, x: str, phy: str = "802.11a") -> Plan:
        places = {"a": [x, "0 m"], "b": ["5 m", "0 m"]}
        nodes = {name: {"position": at, "radios": {"wlan0": {}}} for name, at in places.items()}
        return plan_of(nodes=nodes, media={"air": {"radio": {"power": power, "phy": phy}}})

    found = compare(present(scenario("10 dBm", "0 m")), scenario("12 dBm", "0 m"))
    assert found.radio.changes == [("a:wlan0", {"power": 12.0}), ("b:wlan0", {"power": 12.0})]
    same = scenario("10 dBm", "0 m")
    moved = {"a:wlan0": state_of(same, "a", position=(3.0, 0.0, 0.0), wanted_on=False)}
    assert steps(same, same, radios=moved) == [
        "~ radio a:wlan0: up",
        "~ radio a:wlan0: position (3 m, 0 m, 0 m) -> (0 m, 0 m, 0 m)",
    ]
    assert steps(same, same, radios={"a:wlan0": state_of(same, "a", wanted_on=False, cut=True)}) == []
    assert steps(same, scenario("10 dBm", "0 m", "802.11g"))[0] == (
        "! radio a:wlan0: made anew alone, as phy changes"
    )


def state_of(plan: Plan, node: str, **more: Any) -> dict[str, Any]:
    """The state of a radio in the engine, as its plan wants it."""
    (radio,) = (one for medium in plan.media.values() for one in medium.radios if one.node == node)
    at = tuple(float(radio.motion["static"].get(axis, 0.0)) for axis in "xyz")
    settings = {"rts_octets": None, **radio.settings}
    return {"position": at, "wanted_on": True, "cut": False, "settings": settings, **more}


def air(*names: str, events: list[dict[str, Any]] | None = None, **medium: Any) -> Plan:
    """Radios at rest in a row on the medium `air`."""
    nodes = {
        name: {"position": [f"{5 * i} m", "0 m"], "radios": {"wlan0": {}}} for i, name in enumerate(names)
    }
    return plan_of(nodes=nodes, media={"air": medium}, events=events or [])


def test_media_come_go_and_get_other_laws():
    wired = plan_of(nodes={"a": {}, "b": {}}, links=[{"ends": ["a", "b"]}])
    assert [one for one in steps(wired, air("a", "b")) if "node" not in one] == [
        "- link a-b: a:eth0 <-> b:eth0",
        "+ medium air",
        "+ radio a:wlan0: on air",
        "+ radio b:wlan0: on air",
    ]
    assert "- medium air" in steps(air("a", "b"), wired)
    noise = [{"channel": 36, "power": "-10 dBm", "position": ["1 m", "0 m"]}]
    found = compare(present(air("a", "b")), air("a", "b", fading={"model": "rayleigh"}, noise=noise))
    assert [str(one) for one in found.steps] == [
        "~ medium air: fading",
        "~ medium air: noise: 0 -> 1 sources",
    ]
    assert (found.radio.media_set, found.radio.noise_set) == (["air"], ["air"])
    unheard = {"model": "none", "loss": [{"distance": "9 m", "rate": "0 %"}]}
    free = air("a", "b", access=unheard, radio={"rate": "11 Mbit/s"})
    (said, *_) = refusals(air("a", "b"), free, laws={"air": air("a", "b").media["air"].settings})
    assert said.startswith("the channel access of the medium air cannot change while the laboratory runs")


def test_a_movement_changes_and_a_radio_comes():
    def moving(speed: str) -> Plan:
        walk = {"model": "random-walk", "area": ["50 m", "50 m"], "speed": speed}
        nodes = {"a": {"mobility": walk, "radios": {"wlan0": {}}}, "b": {"position": ["0 m", "0 m"]}}
        return plan_of(nodes=nodes | {"b": nodes["b"] | {"radios": {"wlan0": {}}}}, media={"air": {}})

    found = compare(present(moving("1 m/s")), moving("2 m/s"))
    assert [str(one) for one in found.steps] == ["~ radio a:wlan0: movement"]
    assert [one.port for one in found.radio.moved] == ["a:wlan0"]
    found = compare(present(air("a", "b")), air("a", "b", "c"))
    assert [(name, one.port) for name, one in found.radio.added] == [("air", "c:wlan0")]
    assert found.events.reschedules


def test_events_to_come_go_and_come_and_those_that_have_been_stay():
    def at(*times: int, power: str = "5 dBm") -> Plan:
        events = [{"at": f"{at} s", "radio": "a:wlan0", "tune": {"power": power}} for at in times]
        return air("a", "b", events=events)

    now = 3 * 10**9
    in_force = {"a:wlan0": state_of(at(), "a")}
    in_force["a:wlan0"]["settings"]["power_dbm"] = 5.0
    assert steps(at(1, 5), at(1, 7), now=now, radios=in_force) == [
        "- event at 5 s: radio a:wlan0: power 5 dBm",
        "+ event at 7 s: radio a:wlan0: power 5 dBm",
    ]
    assert refusals(at(1, 5), at(5), now=now, radios=in_force) == [
        "the event at 1 s (radio a:wlan0: power 5 dBm) cannot be taken out: it is 3 s already "
        "(leave it in the file as it is)"
    ]
    (said,) = refusals(at(5), at(2, 5), now=now)
    assert "cannot be added: it is 3 s already (give it a later time)" in said
    assert compare(present(at(5), now=now), at(5)).events.reschedules is False


def test_limits_of_slices_change_in_place():
    def sliced(power: str, *names: str) -> Plan:
        grants = {"one": [36], "two": [44]}
        slices = {n: {"grant": {"nodes": ["a", "b"], "channels": grants[n], "power": power}} for n in names}
        nodes = {
            n: {"position": ["0 m", "0 m"], "radios": {f"wlan{i}": {} for i in (0, 1)}} for n in ("a", "b")
        }
        return plan_of(nodes=nodes, media={"air": {}}, slices=slices)

    one = sliced("10 dBm", "one", "two")
    lower = steps(one, sliced("7 dBm", "one", "two"))
    assert any("grant of one: power" in step for step in lower)
    gone = steps(one, sliced("10 dBm", "one"))
    assert "- node a-two" in gone
    assert any(step.startswith("- radio a-two:") for step in gone)


def test_published_ports_change_in_place():
    def offering(**ports: int) -> Plan:
        return star(nodes={n: {"publish": [{"port": 80, "host_port": p}]} for n, p in ports.items()})

    assert steps(offering(h1=8001, h2=8002), offering(h1=8002, h2=8003)) == [
        "- host port 8001: tcp port 80 of h1",
        "- host port 8002: tcp port 80 of h2",
        "+ host port 8002: tcp port 80 of h1",
        "+ host port 8003: tcp port 80 of h2",
    ]


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ({"seed": 7}, "`seed` cannot change while the laboratory runs"),
        (
            {"events": [{"at": "1 s", "node": "h1", "action": "pause"}]},
            "cannot be added: it is 1 s already",
        ),
        ({"nodes": {"h1": {"cpu": 0.5}, "n1": {"kind": "native"}}}, "node n1 cannot be added: its links are"),
    ],
)
def test_what_cannot_change_is_named_with_the_cure(after, message):
    (first, *_) = refusals(star(), star(**after))
    assert message in first


def test_a_node_that_is_off_is_started_first():
    said = refusals(star(), star(links=[{"ends": ["h1", "h2"]}]), states={"h1": "stopped", "h2": "paused"})
    assert said == [
        "node h1 is stopped, so that it cannot change (airloom node h1 start)",
        "node h2 is paused, so that it cannot change (airloom node h2 resume)",
    ]


def test_a_switch_with_shortest_paths_keeps_its_links():
    def ring(*ends: tuple[str, str]) -> Plan:
        path = {"forwarding": "shortest-path"}
        return plan_of(switches={"s1": path, "s2": path}, nodes={"h1": {}}, links=[{"ends": e} for e in ends])

    (said,) = refusals(ring(("h1", "s1"), ("s1", "s2")), ring(("h1", "s1")))
    assert "link s1-s2 cannot be removed: it ends at a switch with shortest paths" in said


# Random pairs: the steps lead from one to the other, and nothing is left out.

_LINK = st.fixed_dictionaries(
    {},
    optional={
        "delay": st.sampled_from(["1 ms", "2 ms"]),
        "rate": st.sampled_from(["10 Mbit/s", "20 Mbit/s"]),
        "loss": st.sampled_from(["1 %"]),
        "queue": st.sampled_from([{"packets": 50}, {"discipline": "codel"}]),
        "forward": st.sampled_from([{"delay": "5 ms"}, {"rate": "5 Mbit/s"}]),
    },
)
_NODE = st.fixed_dictionaries(
    {},
    optional={
        "forwarding": st.booleans(),
        "sysctl": st.sampled_from([{"net.ipv4.ip_default_ttl": "32"}]),
        "files": st.sampled_from([{"/etc/motd": "one"}, {"/etc/motd": "two"}]),
    },
)


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    hosts = draw(st.lists(st.sampled_from(HOSTS), min_size=2, unique=True))
    switches = draw(st.lists(st.sampled_from(SWITCHES), unique=True))
    places = [*hosts, *switches]
    pairs = draw(
        st.lists(st.tuples(st.sampled_from(places), st.sampled_from(places)), max_size=6, unique=True)
    )
    links = [{"ends": list(pair), **draw(_LINK)} for pair in pairs if pair[0] != pair[1]]
    runs = draw(st.lists(st.tuples(st.sampled_from(hosts), st.sampled_from(["sleep 5", "date"])), max_size=3))
    return {
        "nodes": {name: draw(_NODE) for name in hosts},
        "switches": {name: {"ageing": draw(st.sampled_from(["100 s", "300 s"]))} for name in switches},
        "links": links,
        "programs": [{"node": node, "run": run} for node, run in runs],
    }


def state(plan: Plan) -> dict[str, dict[str, Any]]:
    """What a fresh laboratory of a plan has."""
    return {
        "nodes": dict(plan.nodes),
        "switches": {name: switch.settings for name, switch in plan.switches.items()},
        "ends": {name: (link.a, link.b) for name, link in plan.links.items()},
        "settings": {
            (name, way): getattr(link, way)
            for name, link in plan.links.items()
            for way in ("forward", "backward")
        },
        "programs": {one.name: one for one in plan.scenario.programs},
    }


def carried_out(found: Difference) -> dict[str, dict[str, Any]]:
    """What a laboratory has after the steps, and nothing else, were carried out."""
    has, new = state(found.before), state(found.after)
    gone = {"nodes": found.nodes_removed, "ends": found.links_removed, "programs": found.programs_removed}
    come = {
        "nodes": [*found.nodes_added, *found.nodes_changed, *found.nodes_restarted],
        "switches": found.switches_set,
        "ends": found.links_added,
        "programs": found.programs_added,
    }
    for part, names in gone.items():
        for name in names:
            del has[part][name]
    for part, names in come.items():
        has[part] |= {name: new[part][name] for name in names}
    for name in found.links_removed:
        for way in ("forward", "backward"):
            del has["settings"][name, way]
    for name in found.links_added:
        link = found.after.links[name]
        has["settings"] |= {(name, "forward"): link.forward, (name, "backward"): link.backward}
    has["settings"] |= {(name, way): value for name, way, value in found.links_set}
    # A switch without links does nothing.
    has["switches"] = {name: value for name, value in has["switches"].items() if name in new["switches"]}
    return has


def without_links(has: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Leaves out the names of links that interfaces have only for information."""
    from airloom.planning.difference import _interfaces

    nodes = {
        name: (_interfaces(node), node.routes, node.forwarding, node.files, node.sysctl)
        for name, node in has["nodes"].items()
    }
    return {**has, "nodes": nodes}


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
@given(scenarios(), scenarios())
def test_the_steps_lead_to_what_a_fresh_start_has(one, other):
    try:
        before, after = plan_of(**one), plan_of(**other)
    except ScenarioError:
        assume(False)
    found = compare(present(before), after)
    assert not found.problems
    assert without_links(carried_out(found)) == without_links(state(after))
    assert bool(found) == (without_links(state(before)) != without_links(state(after)))
    assert not compare(present(after), after)
