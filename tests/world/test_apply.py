"""A changed scenario applied to a running laboratory."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import airloom
from airloom import RunError, Scenario, ScenarioError
from airloom.cli import app
from helpers.laboratories import everything, observed
from helpers.leftovers import Traces
from helpers.nodes import eventually

pytestmark = pytest.mark.world


def scenario(**parts: Any) -> Scenario:
    return Scenario.model_validate({"name": "changing", **parts})


def star(hosts: int, *more: dict[str, Any], **parts: Any) -> Scenario:
    """Hosts h1, h2, ... at the switch s1, and more links."""
    names = [f"h{number}" for number in range(1, hosts + 1)]
    return scenario(
        nodes={name: {} for name in names} | parts.pop("nodes", {}),
        switches={"s1": {}} | parts.pop("switches", {}),
        links=[*({"ends": [name, "s1"], "delay": "1 ms"} for name in names), *more],
        **parts,
    )


CHAIN = scenario(
    nodes={"a": {}, "r": {}, "b": {}},
    links=[{"ends": ["a", "r"], "rate": "10 Mbit/s"}, {"ends": ["r", "b"], "delay": "2 ms"}],
)
OTHER_CHAIN = scenario(
    nodes={"a": {}, "q": {}, "r": {}, "b": {"sysctl": {"net.ipv4.ip_default_ttl": "33"}}},
    links=[
        {"ends": ["a", "q"], "forward": {"loss": "10 %"}},
        {"ends": ["q", "r"]},
        {"ends": ["r", "b"], "delay": "3 ms", "mtu": 1400},
    ],
)
SIX = scenario(
    nodes={"a": {}, "r": {}, "b": {}},
    addresses={"ipv6": "fd00::/16"},
    links=[
        {"ends": ["a", "r"]},
        {"ends": ["r", "b"]},
        {"ends": ["a", "b"], "addresses": [["fd77::1/64"], ["fd77::2/64"]]},
    ],
)


def fresh(source: Scenario, out: Path) -> dict[str, Any]:
    with airloom.Lab(source, out=out) as lab:
        return observed(lab)


def reaches(lab: airloom.Lab, source: str, target: str) -> bool:
    return lab[source].run(f"ping -n -c 5 -i 0.2 -W 1 {lab.addresses[target]}").ok


PAIRS = {
    "a host more": (star(2), star(3, {"ends": ["h1", "h2"], "delay": "3 ms"})),
    "a link less in the middle": (
        star(3, {"ends": ["h1", "h2"]}, {"ends": ["h2", "h3"]}),
        star(3, {"ends": ["h2", "h3"], "rate": "5 Mbit/s"}),
    ),
    "another router": (CHAIN, OTHER_CHAIN),
    "the same name with other ends": (
        star(3, {"ends": ["h1", "h2"], "name": "side"}),
        star(3, {"ends": ["h3", "h2"], "name": "side"}, switches={"s2": {}}),
    ),
    "with IPv6": (CHAIN, SIX),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", PAIRS)
def test_what_was_applied_is_what_a_fresh_start_is(name, tmp_path):
    one, other = PAIRS[name]
    with airloom.Lab(one, out=tmp_path / "live") as lab:
        first = observed(lab)
        assert lab.apply(other)
        assert observed(lab) == fresh(other, tmp_path / "other")
        nodes = lab.nodes
        assert all(reaches(lab, nodes[0], node) for node in nodes[1:])
        assert lab.apply(other) == ()
        lab.apply(one)
        assert observed(lab) == first
        assert all(reaches(lab, lab.nodes[0], node) for node in lab.nodes[1:])
    assert lab.result.verdict.status in ("valid", "degraded")


def pids(lab: airloom.Lab, *nodes: str) -> list[str]:
    """Of each node: the number of its program, and the namespace of processes that this is of."""
    ask = ["sh", "-c", "pgrep -x sleep && readlink /proc/self/ns/pid"]
    return [lab[node].run(ask).stdout for node in nodes]


def test_what_has_not_changed_goes_on(tmp_path):
    programs = [{"node": f"h{i}", "run": "sleep 1000", "until_end": True} for i in (1, 2, 3)]
    with airloom.Lab(star(3, programs=programs), out=tmp_path / "out") as lab:
        eventually(lambda: all(pids(lab, "h1", "h2", "h3")), "the programs run")
        before = pids(lab, "h1", "h2", "h3")
        ping = lab["h2"].start(f"ping -n -q -i 0.05 {lab.addresses['h3']}")
        lab.apply(star(3, {"ends": ["h1", "h2"]}, programs=programs))
        assert pids(lab, "h1", "h2", "h3") == before
        lab.apply(star(3, programs=programs[1:]))
        assert pids(lab, "h1", "h2", "h3") == ["", *before[1:]]
        again = star(3, programs=programs[1:], nodes={"h2": {"files": {"/etc/motd": "hello\n"}}})
        (step,) = lab.apply(again)
        assert str(step) == "! node h2: restarted alone, as its files change"
        assert ping.wait(10) != 0
        eventually(lambda: bool(pids(lab, "h2")[0]), "its program runs again")
        assert lab["h2"].run("cat /etc/motd").stdout == "hello\n"
        assert pids(lab, "h3") == before[2:]
        assert reaches(lab, "h1", "h2")
        ping = lab["h1"].start(f"ping -n -q -c 40 -i 0.05 {lab.addresses['h3']}")
        lab.apply(star(4, nodes={"h2": {"files": {"/etc/motd": "hello\n"}}}, programs=programs[1:]))
        assert ping.wait(30) == 0
        assert " 0% packet loss" in ping.output


def test_a_refusal_changes_nothing_and_names_all_of_it(tmp_path):
    with airloom.Lab(star(2), out=tmp_path / "out") as lab:
        before = observed(lab)
        other = star(3, seed=7, events=[{"at": "0 s", "node": "h1", "action": "pause"}])
        with pytest.raises(ScenarioError) as caught:
            lab.apply(other)
        said = [error.message for error in (caught.value, *caught.value.further)]
        assert said[0] == "`seed` cannot change while the laboratory runs"
        assert said[1].startswith("the event at 0 s (node h1 pause) cannot be added: it is ")
        lab["h2"].stop()
        with pytest.raises(ScenarioError, match="node h2 is stopped"):
            lab.apply(star(2, {"ends": ["h1", "h2"]}))
        lab["h2"].restart()
        assert lab.apply(star(3), dry_run=True)
        assert observed(lab) == before


def test_a_new_node_that_cannot_be_made_leaves_all_as_it_was(tmp_path):
    wrong = {"h4": {"sysctl": {"net.ipv4.no_such": "1"}}}
    with airloom.Lab(star(2), out=tmp_path / "out") as lab:
        before = observed(lab)
        for _ in range(2):
            with pytest.raises(RunError, match=r"node h4: .*no_such"):
                lab.apply(star(3, {"ends": ["h1", "h4"]}, nodes=wrong))
            assert observed(lab) == before
        assert lab.apply(star(3))
        assert reaches(lab, "h1", "h3")


def test_an_error_after_that_ends_the_laboratory(tmp_path):
    lab = airloom.Lab(star(2), out=tmp_path / "out").__enter__()
    with pytest.raises(RunError, match=r"a change failed: .*no_such"):
        lab.apply(star(2, nodes={"h2": {"sysctl": {"net.ipv4.no_such": "1"}}}))
    with pytest.raises(RunError, match="not up"):
        lab.apply(star(3))
    with pytest.raises(RunError, match=r"a change failed: .*no_such"):
        lab.__exit__(None, None, None)
    assert lab.result.verdict.status == "invalid"


def test_what_was_set_by_hand_is_set_back(tmp_path):
    with airloom.Lab(star(2), out=tmp_path / "out") as lab:
        lab.link("h1", "s1").set(delay="30 ms", direction="forward")
        lab.link("h2", "s1").down()
        assert [str(step) for step in lab.apply(star(2))] == [
            "~ link h1-s1: forward unlimited, 30 ms -> unlimited, 1 ms",
            "~ link h2-s1: carrier up",
        ]
        assert reaches(lab, "h1", "h2")


def test_a_node_that_was_changed_keeps_that_when_it_starts_again(tmp_path):
    with airloom.Lab(star(2), out=tmp_path / "out") as lab:
        other = star(2, {"ends": ["h1", "h2"], "addresses": [["10.9.0.1/24"], ["10.9.0.2/24"]]})
        lab.apply(other)
        after = observed(lab)
        lab["h1"].restart()
        assert observed(lab) == after
        assert lab["h2"].run("ping -n -c 5 -i 0.2 -W 1 10.9.0.1").ok


def test_a_node_is_restarted_with_its_programs(tmp_path):
    program = {"node": "h1", "run": "sleep 1000", "until_end": True}
    with airloom.Lab(star(2, programs=[program]), out=tmp_path / "out") as lab:
        eventually(lambda: bool(pids(lab, "h1")[0]), "the program runs")
        lab.control("h1", "stop")
        with pytest.raises(RunError, match="stopped"):
            lab["h1"].run("true")
        lab.control("h1", "start")
        eventually(lambda: bool(pids(lab, "h1")[0]), "the program runs again")
        with pytest.raises(RunError, match="up"):
            lab.control("h1", "start")
        lab["h1"].run("touch /tmp/here", check=True)
        lab.control("h1", "restart")
        eventually(lambda: bool(pids(lab, "h1")[0]), "the program runs again")
        assert not lab["h1"].run("test -e /tmp/here").ok
        assert reaches(lab, "h2", "h1")


def test_radios_are_set_and_moved(tmp_path):
    def air(power: str, x: str) -> Scenario:
        places = {"a": ["0 m", "0 m"], "b": [x, "0 m"]}
        nodes = {name: {"position": at, "radios": {"wlan0": {}}} for name, at in places.items()}
        return scenario(nodes=nodes, media={"air": {"radio": {"power": power}}})

    with airloom.Lab(air("16 dBm", "10 m"), out=tmp_path / "out") as lab:
        lab.apply(air("9 dBm", "20 m"))
        eventually(lambda: lab.positions()["b"] == (20.0, 0.0, 0.0), "b has moved")
        assert lab.radio("a").info()["power_dbm"] == 9.0
        assert lab.apply(air("9 dBm", "20 m")) == ()


def test_the_command_shows_the_steps_and_applies_them(tmp_path):
    first, second = tmp_path / "one.yaml", tmp_path / "two.yaml"
    first.write_text(star(2).to_yaml())
    second.write_text(star(3).to_yaml())

    def apply(*words: str) -> Any:
        return CliRunner().invoke(app, ["apply", *words, "--lab", str(os.getpid())], catch_exceptions=True)

    with airloom.Lab(first, out=tmp_path / "out") as lab:
        said = apply(str(second), "--dry-run")
        steps = ["+ node h3: netns, eth0 10.0.0.3/24", "+ link h3-s1: h3:eth0 <-> s1, unlimited, 1 ms"]
        assert said.output.splitlines() == [*steps, "nothing was changed (--dry-run)"]
        assert lab.nodes == ["h1", "h2"]
        said = apply(str(second))
        assert said.output.splitlines() == [*steps, "applied to changing"]
        assert lab.nodes == ["h1", "h2", "h3"]
        assert reaches(lab, "h1", "h3")
        assert "nothing to change" in apply(str(second)).output
        refused = apply(str(second), "--seed", "5")
        assert isinstance(refused.exception, ScenarioError)
        assert refused.exception.exit_code == 2
        assert "`seed` cannot change" in refused.exception.message
        second.write_text("name: changing\nnodes: {h1: {}, h2: {}}\nlinks: [{ends: [h1, h5]}]\n")
        refused = apply(str(second))
        assert isinstance(refused.exception, ScenarioError)
        assert "h5" in refused.exception.message


KILLS = int(os.environ.get("AIRLOOM_TEST_KILLS", "3"))
"""Laboratories that are killed; more by hand."""

_CONTROLLER = """
import sys, airloom
from airloom import Scenario
one, other = (Scenario.load(path) for path in sys.argv[1:3])
with airloom.Lab(one, out=sys.argv[3]) as lab:
    print("up", flush=True)
    for number in range(1000):
        lab.apply(one if number % 2 else other)
        print(number, flush=True)
"""


@pytest.mark.timeout(120 + 20 * KILLS)
def test_a_kill_in_the_middle_leaves_nothing(tmp_path):
    program = [{"node": "h1", "run": "sleep 1000", "until_end": True}]
    paths = [tmp_path / "one.yaml", tmp_path / "two.yaml"]
    paths[0].write_text(star(3, programs=program).to_yaml())
    radio = {"position": ["0 m", "0 m"], "radios": {"wlan0": {}}}
    other = star(
        4,
        {"ends": ["h1", "h2"]},
        nodes={"h2": {"files": {"/etc/motd": "x"}}, "a": radio, "b": radio},
        media={"air": {}},
        events=[{"at": "1000 s", "link": "h3-s1", "action": "down"}],
    )
    paths[1].write_text(other.to_yaml())
    for number in range(KILLS):
        words = [sys.executable, "-c", _CONTROLLER, *map(str, paths), str(tmp_path / f"out{number}")]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as controller:
            assert controller.stdout is not None
            assert controller.stdout.readline() == "up\n"
            for _ in range(2):
                assert controller.stdout.readline().strip().isdigit()
            time.sleep(random.uniform(0.0, 0.1))  # at any place of the next one
            traces = Traces.of(controller.pid, tmp_path)
            controller.kill()
            with contextlib.suppress(BrokenPipeError):
                controller.stdout.read()
        traces.wait_gone()


@pytest.mark.skipif(shutil.which("linux.uml") is None, reason="no linux.uml")
def test_a_node_becomes_one_of_another_kind_alone(tmp_path):
    with airloom.Lab(star(2), out=tmp_path / "out") as lab:
        first = lab["h2"].run("readlink /proc/self/ns/pid").stdout
        steps = lab.apply(star(3, nodes={"h1": {"kind": "uml"}}))
        assert "! node h1: restarted alone, as its kind changes, its machine changes" in map(str, steps)
        assert lab["h1"].kind == "uml"
        assert reaches(lab, "h3", "h1")
        lab.apply(star(2, {"ends": ["h1", "h2"]}, nodes={"h1": {"kind": "uml"}}))
        assert reaches(lab, "h2", "h1")
        assert lab["h1"].run("ip addr show eth1", check=True, timeout=60)
        lab.apply(star(2))
        assert reaches(lab, "h1", "h2")
        assert lab["h2"].run("readlink /proc/self/ns/pid").stdout == first, "h2 was never restarted"


@pytest.mark.skipif(shutil.which("ovs-vswitchd") is None, reason="no Open vSwitch")
def test_an_open_vswitch_gets_a_port(tmp_path):
    def network(hosts: int) -> Scenario:
        return star(hosts, switches={"s1": {"kind": "openvswitch"}})

    with airloom.Lab(network(2), out=tmp_path / "out") as lab:
        assert reaches(lab, "h1", "h2")
        lab.apply(network(3))
        assert reaches(lab, "h1", "h3")
        assert reaches(lab, "h1", "h2")


# On the air


def on_air(*names: str, more: dict[str, Any] | None = None, **medium: Any) -> Scenario:
    """Radios at rest, 5 m apart, on the medium `air`."""
    places = {name: [f"{5 * number} m", "0 m"] for number, name in enumerate(names)}
    nodes = {name: {"position": at, "radios": {"wlan0": {}}} for name, at in places.items()}
    return scenario(nodes=nodes, media={"air": {"radio": medium.pop("radio", {}), **medium}}, **(more or {}))


_FADING = {"model": "log-distance", "exponent": 3.5}
_NOISE = [{"channel": 36, "power": "-20 dBm", "position": ["3 m", "0 m"]}]
_LATER = [
    {"at": "900 s", "radio": "a:wlan0", "tune": {"power": "3 dBm"}},
    {"at": "1000 s", "node": "b", "position": ["9 m", "9 m"]},
]
AIR_PAIRS = {
    "laws, noise and frame errors": (
        on_air("a", "b"),
        on_air("a", "b", propagation=_FADING, noise=_NOISE, fading={"model": "rayleigh"}),
    ),
    "a radio more, and another physical layer": (
        on_air("a", "b"),
        on_air("a", "b", "c", radio={"phy": "802.11g", "channel": 6}),
    ),
    "a medium instead of links": (star(2), on_air("h1", "h2")),
    "events to come": (on_air("a", "b"), on_air("a", "b", more={"events": _LATER})),
}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", AIR_PAIRS)
def test_on_the_air_it_is_as_after_a_fresh_start(name, tmp_path):
    one, other = AIR_PAIRS[name]
    with airloom.Lab(other, out=tmp_path / "other") as lab:
        wanted = everything(lab)
    with airloom.Lab(one, out=tmp_path / "live") as lab:
        first = everything(lab)
        assert lab.apply(other)
        eventually(lambda: everything(lab) == wanted, "it is as after a fresh start")
        assert lab.apply(other) == ()
        assert reaches(lab, lab.nodes[0], lab.nodes[1])
        lab.apply(one)
        eventually(lambda: everything(lab) == first, "it is as before")
        assert reaches(lab, lab.nodes[0], lab.nodes[1])


def test_slices_get_other_limits_come_and_go(tmp_path):
    def sliced(power: str, *names: str) -> Scenario:
        channels = {"one": [36], "two": [44]}
        grants = {n: {"grant": {"nodes": ["a", "b"], "channels": channels[n], "power": power}} for n in names}
        radios = {f"wlan{number}": {} for number in range(2)}
        nodes = {
            n: {"position": at, "radios": radios} for n, at in (("a", ["0 m", "0 m"]), ("b", ["5 m", "0 m"]))
        }
        return scenario(nodes=nodes, media={"air": {}}, slices=grants)

    with airloom.Lab(sliced("10 dBm", "one"), out=tmp_path / "out") as lab:
        assert lab.apply(sliced("7 dBm", "one"))
        assert lab.radio("a-one").info()["power_dbm"] == 7.0
        lab.apply(sliced("7 dBm", "one", "two"))
        assert reaches(lab, "a-two", "b-two")
        with pytest.raises(RunError, match="outside the grant"):
            lab.radio("a-two").set(channel=36)
        lab.apply(sliced("7 dBm", "two"))
        assert lab.slices == ["two"]
        assert {one["slice"] for one in lab._up().world.radios()} == {"two"}
        assert reaches(lab, "a-two", "b-two")


def test_an_event_that_was_taken_out_does_not_happen(tmp_path):
    def at(*powers: str) -> Scenario:
        times = {"3 dBm": "6 s", "4 dBm": "6500 ms"}
        events = [{"at": times[p], "radio": "a:wlan0", "tune": {"power": p}} for p in powers]
        return on_air("a", "b", more={"events": events})

    with airloom.Lab(at("3 dBm"), out=tmp_path / "out") as lab:
        steps = [str(step) for step in lab.apply(at("4 dBm"))]
        assert steps == [
            "- event at 6 s: radio a:wlan0: power 3 dBm",
            "+ event at 6.5 s: radio a:wlan0: power 4 dBm",
        ]
        lab.run_until("7 s")
        eventually(lambda: lab.radio("a").info()["power_dbm"] == 4.0, "the new one has happened")
        told = [text for _, text, kind in lab._up().runner.happenings if kind == "event"]
        assert "radio a:wlan0: power 3 dBm" not in told
        with pytest.raises(ScenarioError, match=r"cannot be taken out: it is .* already"):
            lab.apply(at())


def test_published_ports_go_to_other_nodes(tmp_path):
    def offering(**ports: int) -> Scenario:
        serve = "socat TCP-LISTEN:80,fork,reuseaddr SYSTEM:hostname"
        programs = [{"node": n, "run": serve, "until_end": True} for n in ("h1", "h2")]
        nodes = {n: {"publish": [{"port": 80, "host_port": p}]} for n, p in ports.items()}
        return star(2, nodes={"h1": {}, "h2": {}} | nodes, programs=programs)

    def says(port: int) -> str:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as client:
            return client.recv(100).decode().strip()
        return ""

    first, second = free_port(), free_port()
    with airloom.Lab(offering(h1=first), out=tmp_path / "out") as lab:
        eventually(lambda: says(first) == "h1", "h1 answers")
        lab.apply(offering(h2=first, h1=second))
        eventually(lambda: says(first) == "h2" and says(second) == "h1", "both answer")
        with (
            socket.create_server(("127.0.0.1", third := free_port())),
            pytest.raises(airloom.HostError, match=f"port {third} of 127.0.0.1 cannot be had"),
        ):
            lab.apply(offering(h2=first, h1=third))
        assert says(second) == "h1", "nothing has changed"
        lab.apply(offering())
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", first), 5)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
