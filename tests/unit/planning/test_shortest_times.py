"""Every time that a scenario can name, as short as it can be written: refused, or harmless."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from airloom.errors import ScenarioError
from airloom.planning.gate import check
from airloom.scenario.model import Model, Scenario
from airloom.units.quantities import Duration

TWO = "nodes: {a: , b: }\nlinks: [{ends: [a, b]%s}]\n"
SWITCHED = "nodes: {a: , b: }\nswitches: {s: {%s}}\nlinks: [{ends: [a, s]}, {ends: [s, b]}]\n"
RADIOS = (
    "nodes:\n  a: {position: [0 m, 0 m], radios: {wlan0: {}}}\n"
    "  b: {position: [9 m, 0 m], radios: {wlan0: {%s}}}\n"
)
WALK = "media: {air: {}}\nnodes: {a: {%s, radios: {wlan0: {}}}}\nduration: 1 s\n"
SLICED = "nodes:\n  a: {position: [0 m, 0 m], radios: {wlan0: , wlan1: }}\n"
PING = "{name: m, ping: {from: a, to: b, %s}}"
FLOW = "{name: m, traffic: {from: a, to: b, %s}}"
TCP = "{name: m, iperf3: {from: a, to: b, %s}}"
READY = "{name: m, test: {kind: rrul, from: a, to: b, %s}}"


def link(said: str) -> str:
    return TWO % f", {said}"


def measured(form: str, said: str) -> str:
    return TWO % "" + f"measurements: [{form % said}]\n"


def walking(said: str) -> str:
    return WALK % said


def air(medium: str, rest: str = RADIOS % "") -> str:
    return f"media: {{air: {{{medium}}}}}\n" + rest


def hopping(hops: str) -> str:
    sets = "sets: {A: {channels: [36, 44]}}"
    grant = "slices: {one: {grant: {nodes: [a], channels: [36, 44, 52], hops: {set: A, sequence: 1}}}}\n"
    return f"media: {{air: {{hops: {{{sets}, {hops}}}}}}}\n" + SLICED + grant


def slotted(slots: str) -> str:
    grant = "slices: {one: {grant: {nodes: [a], channels: [36], slots: [0]}}}\n"
    return f"media: {{air: {{slots: {{frame: 4, {slots}}}}}}}\n" + SLICED + grant


def carded(card: str) -> str:
    radios = "wlan0: {card: x, channel: 36, ssid: i}, wlan1: {card: x, channel: 40, ssid: j}"
    node = f"position: [0 m, 0 m], radios: {{{radios}}}"
    return f"media: {{air: {{cards: {{x: {{{card}}}}}}}}}\nnodes: {{a: {{{node}}}}}\n"


def noisy(noise: str) -> str:
    one = f"noise: [{{position: [5 m, 0 m], power: 10 dBm, channel: 36, {noise}}}]"
    return air(one)


def adapted(adapter: str) -> str:
    node = f"interfaces: {{eth0: {{adapter: {{{adapter}}}}}}}"
    return f"nodes: {{a: {{{node}}}, b: }}\nlinks: [{{ends: [a, b]}}]\n"


def routed(routing: str) -> str:
    return "topology: {generator: chain, nodes: 3}\n" + f"routing: {{protocol: ospf, {routing}}}\n"


def turned(said: str) -> str:
    return "kind: uml\n" + TWO % "" + f"turns: {{t: {{nodes: [a, b], {said}}}}}\n"


def worked(said: str) -> str:
    return "time: virtual\n" + TWO % "" + f"processors: {{p: {{nodes: [a, b], {said}}}}}\n"


def program(said: str) -> str:
    return TWO % "" + f"programs: [{{node: a, run: 'true', {said}}}]\n"


SHORT = {
    ("Scenario", "duration"): TWO % "" + "duration: TIME\n",
    ("UniformJitter", "uniform"): link("jitter: {uniform: TIME}, delay: 1 ms"),
    ("NormalJitter", "normal"): link("jitter: {normal: TIME}, delay: 1 ms"),
    ("ParetoJitter", "pareto"): link("jitter: {pareto: TIME}"),
    ("ExponentialJitter", "exponential"): link("jitter: {exponential: TIME}"),
    ("Queue", "time"): link("rate: 1 Mbit/s, queue: {time: TIME}"),
    ("Queue", "target"): link("queue: {discipline: codel, target: TIME}"),
    ("Queue", "interval"): link("queue: {discipline: codel, interval: TIME}"),
    ("Queue", "pie_target"): link("rate: 1 Mbit/s, queue: {discipline: pie, pie_target: TIME}"),
    ("Queue", "pie_update"): link("rate: 1 Mbit/s, queue: {discipline: pie, pie_update: TIME}"),
    ("Queue", "pie_burst"): link("rate: 1 Mbit/s, queue: {discipline: pie, pie_burst: TIME}"),
    ("Queue", "dualpi2_target"): link("rate: 1 Mbit/s, queue: {discipline: dualpi2, dualpi2_target: TIME}"),
    ("Queue", "dualpi2_update"): link("rate: 1 Mbit/s, queue: {discipline: dualpi2, dualpi2_update: TIME}"),
    ("Queue", "dualpi2_step"): link("rate: 1 Mbit/s, queue: {discipline: dualpi2, dualpi2_step: TIME}"),
    ("Queue", "dualpi2_ramp"): link("rate: 1 Mbit/s, queue: {discipline: dualpi2, dualpi2_ramp: TIME}"),
    ("Queue", "step_time"): link("rate: 1 Mbit/s, queue: {discipline: step, step_time: TIME}"),
    ("Engine", "link_interval"): TWO % "" + "engine: {link_interval: TIME}\n",
    ("Engine", "guest_budget"): TWO % "" + "engine: {guest_budget: TIME}\n",
    ("Direction", "delay"): link("delay: TIME"),
    ("Direction", "coalesce"): link("coalesce: TIME"),
    ("Link", "visibility"): link("visibility: [[0 s, TIME]]") + "duration: 1 s\n",
    ("Switch", "convergence"): SWITCHED % "forwarding: shortest-path, convergence: TIME",
    ("Switch", "ageing"): SWITCHED % "ageing: TIME",
    ("Switch", "latency"): SWITCHED % "latency: TIME",
    (
        "GraphAttributes",
        "delay_unit",
    ): "topology: {generator: graph, file: FOLDER/g.gml, attributes: {delay_unit: TIME}}\n",
    ("Event", "at"): TWO % "" + "events: [{at: TIME, link: a-b, action: down}]\n",
    ("Ping", "interval"): measured(PING, "interval: TIME"),
    ("Ping", "at"): measured(PING, "at: TIME"),
    ("Iperf3", "duration"): measured(TCP, "duration: TIME"),
    ("Iperf3", "at"): measured(TCP, "at: TIME"),
    ("Traffic", "interval"): measured(FLOW, "duration: 10 ms, interval: TIME"),
    ("Traffic", "duration"): measured(FLOW, "rate: 1 Mbit/s, duration: TIME"),
    ("Traffic", "on"): measured(FLOW, "pattern: on-off, rate: 1 Mbit/s, off: 1 ms, on: TIME"),
    ("Traffic", "off"): measured(FLOW, "pattern: on-off, rate: 1 Mbit/s, on: 1 ms, off: TIME"),
    ("Traffic", "at"): measured(FLOW, "rate: 1 Mbit/s, at: TIME"),
    ("Limits", "lateness_p99"): TWO % "" + "limits: {lateness_p99: TIME}\n",
    ("Limits", "lateness_max"): TWO % "" + "limits: {lateness_max: TIME}\n",
    ("Radio", "capture_window"): air("", RADIOS % "capture_window: TIME"),
    ("Radio", "guard_interval"): air("", RADIOS % "guard_interval: TIME"),
    ("Noise", "at"): noisy("at: TIME"),
    ("Noise", "until"): noisy("until: TIME"),
    ("Noise", "on"): noisy("on: TIME, off: 1 ms"),
    ("Noise", "off"): noisy("on: 1 ms, off: TIME"),
    ("Card", "dwell"): carded("dwell: TIME"),
    ("Card", "switch"): carded("switch: TIME"),
    ("Card", "scan_age"): carded("scan_age: TIME"),
    ("Slots", "length"): slotted("guard: 0 s, length: TIME"),
    ("Slots", "guard"): slotted("guard: TIME"),
    ("Hops", "dwell"): hopping("switch: 0 s, dwell: TIME"),
    ("Hops", "switch"): hopping("switch: TIME"),
    ("Waypoint", "at"): walking("mobility: {model: path, points: [{at: TIME, position: [0 m, 0 m]}]}"),
    ("Mobility", "pause"): walking(
        "mobility: {model: random-waypoint, area: [9 m, 9 m], speed: 1 m/s, pause: TIME}"
    ),
    ("Mobility", "interval"): walking(
        "mobility: {model: random-walk, area: [9 m, 9 m], speed: 1 m/s, interval: TIME}"
    ),
    ("Mobility", "start"): walking("mobility: {model: ns-2, file: FOLDER/walk.ns2, node: 0, start: TIME}"),
    ("Adapter", "moderation"): adapted("moderation: TIME"),
    ("Adapter", "tick"): adapted("tick: TIME"),
    ("Adapter", "gap"): adapted("gap: TIME"),
    ("Notifications", "time"): "kind: uml\n"
    + TWO % ""
    + "guest: {notifications: {mode: time, time: TIME}}\n",
    ("Ready", "within"): program("ready: {port: 1, within: TIME}"),
    ("Program", "at"): program("at: TIME"),
    ("Turns", "quantum"): turned("quantum: TIME"),
    ("Turns", "phase"): turned("phase: TIME"),
    ("Processor", "interrupt"): worked("interrupt: TIME"),
    ("Processor", "frame"): worked("frame: TIME"),
    ("Processor", "context_switch"): worked("interrupt: 1 us, context_switch: TIME"),
    ("Processor", "quantum"): worked("frame: 1 us, quantum: TIME"),
    ("Test", "duration"): measured(READY, "duration: TIME"),
    ("Test", "idle"): measured(READY, "idle: TIME"),
    ("Test", "sample"): measured(READY, "sample: TIME"),
    ("Test", "at"): measured(READY, "at: TIME"),
    ("Routing", "hello"): routed("hello: TIME"),
    ("Routing", "dead"): routed("dead: TIME"),
}
"""A scenario for each key that is a time, with a mark where the time stands."""

REFUSED = {
    ("Queue", "pie_update"),
    ("Queue", "dualpi2_update"),
    ("Engine", "link_interval"),
    ("Queue", "interval"),
    ("Ping", "interval"),
    ("Traffic", "interval"),
    ("Radio", "guard_interval"),
    ("Noise", "on"),
    ("Noise", "off"),
    ("Card", "dwell"),
    ("Slots", "length"),
    ("Hops", "dwell"),
    ("Mobility", "interval"),
    ("Notifications", "time"),
    ("Test", "sample"),
    ("Turns", "quantum"),
    ("Processor", "quantum"),
    ("Routing", "hello"),
    ("Routing", "dead"),
}
"""Keys of which something happens again and again, or with few values: 1 ns is refused by its own name."""


def parts(model: type[Model], seen: set[type[Model]]) -> Iterator[type[Model]]:
    """Yields the model and every model that stands in it."""
    if model in seen:
        return
    seen.add(model)
    yield model
    for field in model.model_fields.values():
        for inner in inside(field.annotation):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                yield from parts(typing.cast("type[Model]", inner), seen)


def inside(kind: Any) -> Iterator[Any]:
    """Yields a type and every type that it is made of."""
    yield kind
    for each in typing.get_args(kind):
        yield from inside(each)


def times() -> set[tuple[str, str]]:
    return {
        (model.__name__, name)
        for model in parts(Scenario, set())
        for name, field in model.model_fields.items()
        if Duration in inside(field.annotation)
    }


def test_no_time_of_the_model_is_left_out() -> None:
    inherited = {("Link", "delay"), ("Link", "coalesce")}
    assert times() - inherited == SHORT.keys()


@pytest.mark.timeout(10)
@pytest.mark.parametrize("written", ["0 s", "1 ns"])
@pytest.mark.parametrize("key", SHORT, ids=".".join)
def test_a_time_as_short_as_can_be_is_refused_by_name_or_harmless(
    key: tuple[str, str], written: str, tmp_path: Path
) -> None:
    (tmp_path / "g.gml").write_text(
        'graph [ node [ id 1 label "x" ] node [ id 2 label "y" ] edge [ source 1 target 2 latency 3 ] ]'
    )
    (tmp_path / "walk.ns2").write_text(
        '$node_(0) set X_ 1.0\n$node_(0) set Y_ 1.0\n$ns_ at 1.0 "$node_(0) setdest 5.0 5.0 1.0"\n'
    )
    text = SHORT[key].replace("TIME", written).replace("FOLDER", str(tmp_path))
    path = tmp_path / "scenario.yaml"
    path.write_text("name: test\n" + text)
    found = refusal(path)
    if found is not None:
        assert found.exit_code == 2
        assert not found.code.startswith(("key.", "value.form")), str(found)
    if written == "1 ns":
        assert (found is not None) == (key in REFUSED), str(found)


def refusal(path: Path) -> ScenarioError | None:
    try:
        check(path)
    except ScenarioError as error:
        return error
    return None
