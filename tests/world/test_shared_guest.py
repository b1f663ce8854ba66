"""Several nodes in one guest: namespaces of its kernel, each with links, programs and an end of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom import RunError, Scenario
from airloom.lab.repl import Prompt
from airloom.nodes.all_nodes import KINDS
from helpers.nodes import PYTHON, eventually, still

pytestmark = [pytest.mark.world, pytest.mark.timeout(300)]

SPEAK = """
import json, socket, sys
control = socket.socket(socket.AF_UNIX)
control.connect("\\0airloom/radio")
control.sendall(sys.argv[1].encode() + b"\\n")
print(b"".join(iter(lambda: control.recv(4096), b"")).decode(), end="")
"""


def lab(tmp_path: Path, kind: str = "uml", **more: Any) -> airloom.Lab:
    """``a`` and ``b`` behind the router ``r``, all in one guest, and ``c`` of this system's behind it too."""
    for lacking in KINDS[kind].lacks():
        pytest.skip(f"{lacking.message}: {lacking.cure}")
    nodes: dict[str, Any] = {name: {"inside": "box"} for name in ("a", "r", "b")} | {"c": {}}
    nodes["a"] |= {"files": {"/etc/airloom/mark": "of a"}, "sysctl": {"net.ipv4.ip_default_ttl": 33}}
    parts: dict[str, Any] = {
        "guests": {"box": {"kind": kind}},
        "nodes": nodes,
        "links": [{"ends": [name, "r"], "delay": "5 ms"} for name in ("a", "b", "c")],
    }
    return airloom.Lab(Scenario.model_validate({"name": "shared", **parts, **more}), out=tmp_path / "out")


@contextlib.contextmanager
def failing_lab(tmp_path: Path, why: str) -> Iterator[airloom.Lab]:
    """The same, which says at its end that a node has failed."""
    with pytest.raises(RunError, match=why), lab(tmp_path) as up:
        yield up


def reached(up: airloom.Lab, source: str, target: str) -> bool:
    return up[source].run(f"ping -c 4 -i 0.4 -W 2 {target}", timeout=60).ok


def test_a_guest_has_as_many_interfaces_as_its_nodes_need(tmp_path: Path) -> None:
    """A chain of 12 nodes has 22 interfaces, each a device of the guest with a descriptor of its own."""
    for lacking in KINDS["uml"].lacks():
        pytest.skip(f"{lacking.message}: {lacking.cure}")
    names = [f"n{number}" for number in range(12)]
    scenario = Scenario.model_validate(
        {
            "name": "many",
            "guests": {"box": {"kind": "uml"}},
            "nodes": {name: {"inside": "box"} for name in names},
            "links": [{"ends": list(ends)} for ends in pairwise(names)],
        }
    )
    with airloom.Lab(scenario, out=tmp_path / "out") as up:
        assert reached(up, "n0", "n11")


def test_its_nodes_are_apart_and_have_its_kernel(tmp_path: Path) -> None:
    with lab(tmp_path) as up:

        def said(node: str, script: str) -> str:
            return up[node].run(["sh", "-c", script], timeout=60, check=True).stdout.strip()

        boots = {name: said(name, "cat /proc/sys/kernel/random/boot_id") for name in up.nodes}
        assert boots["a"] == boots["b"] == boots["r"] != boots["c"]
        assert [said(name, "hostname") for name in "arb"] == ["a", "r", "b"]
        networks = {said(name, "readlink /proc/self/ns/net") for name in "arb"}
        assert len(networks) == 3
        assert re.findall(r"eth\d", said("r", "ip -br link")) == ["eth0", "eth1", "eth2"]
        assert said("a", "cat /etc/airloom/mark; ls /etc/airloom") == "of amark"
        assert not up["b"].run("test -e /etc/airloom/mark", timeout=60).ok
        said("a", "echo mine > /tmp/mine")
        assert not up["b"].run("test -e /tmp/mine", timeout=60).ok
        # Each sees its own processes alone.
        up["a"].start("sleep 4711")
        assert "sleep 4711" in said("a", "ps ax")
        assert "sleep 4711" not in said("b", "ps ax")
        # The engine's links are between them, though one kernel has both ends.
        ping = said("a", f"ping -c 3 -i 0.4 {up.addresses['b']}")
        assert "ttl=63" in said("b", f"ping -c 1 {up.addresses['c']}")
        assert float(re.findall(r"min/avg/max/mdev = ([\d.]+)", ping)[0]) >= 20
        assert "ttl=32" in said("c", f"ping -c 1 {up.addresses['a']}")
        counted = up["a"].counters()["eth0"]
        assert counted["rx_packets"] >= 4
        shown = io.StringIO()
        Prompt(up, interactive=False, stdout=shown).onecmd("dump")
        assert "a (uml)" in shown.getvalue()
        assert up.ledger()["host_lost"] == {}


def test_the_host_is_out_of_their_reach(tmp_path: Path) -> None:
    canary = Path(__file__).with_name(f".canary-{os.getpid()}-shared")
    canary.write_text("alive")
    inode = canary.stat().st_ino
    name = Path("/etc/hostname").read_text()
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, lab(tmp_path) as up:
            connect = f"import socket; socket.create_connection({server.getsockname()!r}, 1)"
            for node in "ab":
                up[node].run(f"echo dead > {canary}; rm -f {canary}; echo dead > /etc/hostname", timeout=60)
                assert "pytest" not in up[node].run("cat /proc/[0-9]*/cmdline", timeout=60).stdout
                assert not up[node].run([PYTHON, "-c", connect], timeout=60).ok
        assert (canary.read_text(), canary.stat().st_ino) == ("alive", inode)
        assert Path("/etc/hostname").read_text() == name
    finally:
        canary.unlink()


def test_one_is_paused_stopped_and_killed_and_the_others_go_on(tmp_path: Path) -> None:
    with lab(tmp_path) as up:
        count = {name: up[name].start("while :; do echo x; sleep 0.05; done", name="count") for name in "ab"}

        def said(name: str) -> int:
            return len(count[name].output.split())

        def goes_on(name: str) -> None:
            """Waits until a program has written ten more lines."""
            before = said(name)
            eventually(lambda: said(name) >= before + 10, f"{name} does not go on")

        goes_on("a")
        goes_on("b")
        up["a"].pause()
        assert up["a"].state == "paused"
        before = still(lambda: said("a"))
        goes_on("b")
        assert said("a") == before
        # The kernel is the others' too, and goes on, as that of a node of this system's.
        assert reached(up, "c", "a")
        up["a"].resume()
        goes_on("a")
        for end in (up["a"].stop, up["a"].kill):
            up["a"].run("ip link set eth0 address 02:aa:00:00:00:01", timeout=60, check=True)
            program = up["a"].start("sleep 1000")
            end()
            assert program.wait(10) in (128 + signal.SIGTERM, 128 + signal.SIGKILL)
            assert up["a"].state == "stopped"
            assert not up["c"].run(f"ping -c 1 -W 1 {up.addresses['a']}", timeout=60).ok
            with pytest.raises(RunError, match="node a is stopped"):
                up["a"].run("true")
            assert reached(up, "b", "c")
            up["a"].restart()
            assert up["a"].run("hostname", timeout=60).stdout == "a\n"
            assert reached(up, "b", "a")


def test_the_guest_as_a_whole_is_paused_stopped_and_killed(tmp_path: Path) -> None:
    with lab(tmp_path) as up:
        box = up.guest("box")
        assert box.nodes == ["a", "r", "b"]
        count = up["a"].start("while :; do echo x; sleep 0.05; done", name="count")
        eventually(lambda: bool(count.output), "the program does not run")
        box.pause()
        assert [up[name].state for name in "arbc"] == ["paused"] * 3 + ["up"]
        before = still(lambda: len(count.output))
        # Its kernel is halted too.
        assert not up["c"].run(f"ping -c 1 -W 1 {up.addresses['r']}").ok
        assert len(count.output) == before
        for act in (up["a"].pause, up["a"].resume, up["a"].stop, lambda: up["a"].run("true")):
            with pytest.raises(RunError, match="node a is paused: its guest box is"):
                act()
        box.resume()
        eventually(lambda: len(count.output) > before, "it does not go on")
        assert reached(up, "c", "a")
        up.control("box", "kill")
        assert count.wait(10) == 128 + signal.SIGKILL
        assert [box.state, *(up[name].state for name in "arbc")] == ["stopped"] * 4 + ["up"]
        assert not up["c"].run(f"ping -c 1 -W 1 {up.addresses['r']}").ok
        up.control("box", "start")
        assert reached(up, "c", "a")
        box.pause()
        box.stop()
        assert [box.state, *(up[name].state for name in "arb")] == ["stopped"] * 4
        up["r"].restart()
        assert [box.state, *(up[name].state for name in "arb")] == ["up", "stopped", "up", "stopped"]
        assert up["c"].run(f"ping -c 4 -i 0.4 -W 2 {up.addresses['r']}", timeout=60).ok
        box.pause()
        up["r"].kill()
        assert up["r"].state == "stopped"
        box.resume()
        up["r"].restart()
        assert up["c"].run(f"ping -c 4 -i 0.4 -W 2 {up.addresses['r']}", timeout=60).ok
        with pytest.raises(RunError, match="box is no node but the guest of a, r, b"):
            up["box"].run("true")
        with pytest.raises(RunError, match=r"there is no guest bix.*did you mean box"):
            up.guest("bix")


def test_events_are_about_the_guest_as_a_whole_too(tmp_path: Path) -> None:
    ticks = "while :; do echo $(cut -d' ' -f1 /proc/uptime); sleep 0.1; done"
    parts: dict[str, Any] = {
        "guests": {"box": {"kind": "uml"}},
        "nodes": {"a": {"inside": "box"}, "b": {"inside": "box"}, "c": {}},
        "switches": {"s1": {}},
        "links": [{"ends": [name, "s1"]} for name in "abc"],
        "programs": [
            {"node": name, "run": ticks, "name": f"count-{name}", "until_end": True} for name in "ab"
        ],
        "events": [
            {"at": at, "node": "box", "action": action}
            for at, action in (("1 s", "pause"), ("2 s", "resume"), ("3 s", "kill"), ("4 s", "start"))
        ],
        "duration": "10 s",
        "measurements": [
            {"name": "rtt", "ping": {"from": "c", "to": "b", "count": 12, "interval": "250 ms"}}
        ],
    }
    result = airloom.run(Scenario.model_validate({"name": "whole", **parts}), out=tmp_path / "out")
    (longest,) = [one for one in result.result.measurements if one.metric == "rtt_max"]
    # A request of the pause is answered after it.
    assert longest.mean is not None
    assert longest.mean > 200e6
    for name in "ab":
        text = (tmp_path / f"out/nodes/{name}/count-{name}.log").read_text()
        told = [float(line) for line in text.split()]
        # It ran again, in a kernel that had started anew.
        assert any(later < earlier for earlier, later in pairwise(told))


def test_the_end_of_the_guest_is_that_of_its_nodes(tmp_path: Path) -> None:
    with failing_lab(tmp_path, "its guest box has ended") as up:
        up["b"].run("true", timeout=60, check=True)
        with contextlib.suppress(RunError):  # it may die before it answers that the program has started
            up["a"].start(["sh", "-c", "echo c > /proc/sysrq-trigger"])
        eventually(lambda: all(up[name].state == "failed" for name in "arb"), "not all of them fail")
        for name in "arb":
            with pytest.raises(RunError, match=rf"node {name} is failed.*guest box has ended.*Kernel panic"):
                up[name].run("true")
        assert up["c"].run("true").ok
        for name in "arb":
            up[name].restart()
        assert reached(up, "c", "a")
        assert reached(up, "b", "a")
        console = next((tmp_path / "out").rglob("console.log"))
    assert "Kernel panic" in console.read_text()


def test_the_end_of_one_nodes_first_process_is_that_of_the_node_alone(tmp_path: Path) -> None:
    with failing_lab(tmp_path, "node b failed: its first process on the host") as up:
        left = up["b"].start("sleep 4712")
        os.kill(up["b"]._handle._made.pid, signal.SIGKILL)  # type: ignore[attr-defined]
        eventually(lambda: up["b"].state == "failed", "it does not fail")
        assert left.wait(10) != 0
        assert reached(up, "a", "c")
        up["b"].restart()
        assert reached(up, "b", "a")
        assert not up["b"].run("pgrep -f 'sleep 4712'", timeout=60).ok


def test_each_of_them_has_a_control_socket_of_its_own_radios(tmp_path: Path) -> None:
    nodes: dict[str, Any] = {
        name: {"inside": "box", "position": [f"{place} m", "0 m"], "radios": {"wlan0": {}}}
        for place, name in enumerate(("n1", "n2"))
    }
    media = {"air": {"radio": {"rate": "54 Mbit/s"}}}
    with lab(tmp_path, nodes=nodes, links=[], media=media) as up:
        assert up["n1"].run("ping -c 2 -i 0.4 -W 3 n2", timeout=60).ok

        def ask(node: str, **request: Any) -> Any:
            done = up[node].run([PYTHON, "-c", SPEAK, json.dumps(request)], timeout=60, check=True)
            return json.loads(done.stdout)

        assert ask("n1", do="set", key="channel", value=40) == {"answer": None}
        other = ask("n1", do="set", key="channel", value=44, radio="n2:wlan0")
        assert other["error"]["code"] == "radio.unknown"
        assert [ask(name, do="info")["answer"][0]["channel"] for name in ("n1", "n2")] == [40, 36]
        assert not up["n1"].run("ping -c 1 -W 1 n2", timeout=60).ok


def test_one_more_node_has_a_guest_of_its_own(tmp_path: Path) -> None:
    more = {"switches": {"s1": {}}, "nodes": {"a": {"inside": "box"}, "c": {}}}
    with lab(tmp_path, **more, links=[{"ends": ["a", "s1"]}, {"ends": ["c", "s1"]}]) as up:
        with pytest.raises(RunError, match="the guest box runs, and takes no more nodes"):
            up.add("d", inside="box", links=[{"ends": ["d", "s1"]}])
        up.add("e", kind="uml", links=[{"ends": ["e", "s1"]}])
        assert up["e"].run(f"ping -c 4 -i 0.4 -W 2 {up.addresses['a']}", timeout=60).ok


def test_a_virtual_machine_has_several_too(tmp_path: Path) -> None:
    with lab(tmp_path, "qemu") as up:
        boots = {up[name].run("cat /proc/sys/kernel/random/boot_id", timeout=120).stdout for name in "arb"}
        assert len(boots) == 1
        ping = up["a"].run(f"ping -c 3 -i 0.4 -W 5 {up.addresses['b']}", timeout=120, check=True).stdout
        assert float(re.findall(r"min/avg/max/mdev = ([\d.]+)", ping)[0]) >= 20
        assert reached(up, "c", "a")
        assert up["r"].counters()["eth0"]["rx_packets"] >= 3


@pytest.mark.measures
def test_programs_and_flows_are_those_of_every_node(tmp_path: Path) -> None:
    flow = {"from": "a", "to": "b", "rate": "2 Mbit/s", "size": "500 B", "duration": "2 s", "at": "1 s"}
    parts: dict[str, Any] = {
        "guests": {"box": {"kind": "uml"}},
        "nodes": {"a": {"inside": "box"}, "b": {"inside": "box"}},
        "links": [{"ends": ["a", "b"], "rate": "10 Mbit/s", "delay": "5 ms"}],
        "programs": [
            {"node": "b", "run": "sh -c 'read line; exit 3'", "expect": 3},
            {"node": "a", "name": "says", "run": ["sh", "-c", "echo $AIRLOOM_PYTHON; echo wrong >&2"]},
        ],
        "measurements": [
            {"name": "flow", "traffic": flow},
            {"name": "rtt", "ping": {"from": "a", "to": "b", "count": 5, "interval": "100 ms"}},
        ],
    }
    result = airloom.run(Scenario.model_validate({"name": "flows", **parts}), out=tmp_path / "out")
    found = {(one.name, one.metric): one.mean for one in result.result.measurements}
    assert found["flow", "throughput"] == pytest.approx(2e6, rel=0.05)
    assert float(found["flow", "delay_mean"] or 0) > 5e-3
    logs = {path.name: path.read_text() for path in tmp_path.rglob("*.log")}
    assert sys.executable in "".join(logs.values())
    assert any("box" in str(path) for path in tmp_path.rglob("console.log"))
