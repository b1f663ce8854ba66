"""A laboratory that is up, from another process of Python: ``Lab.attach``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import airloom
from airloom import Lab, RunError, ScenarioError
from airloom.lab.attached import AttachedLab
from airloom.mininet import session
from airloom.mininet.link import TCLink
from airloom.mininet.net import Mininet
from airloom.mininet.topo import SingleSwitchTopo

pytestmark = [pytest.mark.world, pytest.mark.timeout(180)]

SCENARIO = {
    "name": "attached",
    "nodes": {"h1": {}, "h2": {}},
    "links": [{"ends": ["h1", "h2"], "delay": "2 ms"}],
}


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Lab]:
    with Lab(airloom.Scenario.model_validate(SCENARIO), out=tmp_path / "out") as lab:
        yield lab


@pytest.fixture
def lab(up: Lab) -> Iterator[AttachedLab]:
    with Lab.attach(os.getpid()) as lab:
        yield lab


@pytest.fixture
def net() -> Iterator[Mininet]:
    made = Mininet(topo=SingleSwitchTopo(2), link=TCLink)
    made.start()
    yield made
    made.stop()
    session.close()


def test_another_process_uses_a_laboratory_and_leaves_it_up(up: Lab) -> None:
    script = f"""
import airloom
with airloom.Lab.attach({os.getpid()}) as lab:
    print(lab.nodes, lab["h1"].run("ping -c 1 h2", check=True).code)
    lab.link("h1", "h2").set(delay="30 ms", direction="forward")
    lab["h1"].start("sleep 1000")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("['h1', 'h2'] 0\n", "")
    assert up.is_up
    assert up.link("h1", "h2").describe() == "unlimited, 30 ms / unlimited, 2 ms"
    assert up.run_until(lambda: not up["h1"].run("pgrep sleep").ok, within="60 s")


def test_a_command_has_its_input_output_and_time_limit(lab: AttachedLab) -> None:
    assert (lab.name, lab.pid) == ("attached", os.getpid())
    done = lab["h1"].run("sh -c 'cat; hostname; echo $WORD >&2; exit 4'", input="in ", env={"WORD": "said"})
    assert (done.code, done.stdout, done.stderr, done.timed_out) == (4, "in h1\n", "said\n", False)
    late = lab["h1"].run("sh -c 'echo begun; exec sleep 1000'", timeout=1)
    assert (late.code, late.timed_out) == (128 + signal.SIGKILL, True)
    with pytest.raises(RunError, match="exit code 3: oops"):
        lab["h2"].run("sh -c 'echo oops; exit 3'", check=True)
    with pytest.raises(RunError, match="there is no node h9"):
        lab["h9"]


def test_a_program_goes_on_until_it_is_stopped(lab: AttachedLab) -> None:
    program = lab["h1"].start(
        "sh -c 'trap \"echo bye; exit 5\" TERM; echo ready; while :; do sleep 0.1; done'"
    )
    while program.output != "ready\n":
        assert program.code is None
    with pytest.raises(TimeoutError, match="has not ended within 0 s"):
        program.wait(0)
    assert program.stop(grace=60) == program.code == 5
    assert program.output.startswith("ready\n")
    assert program.output.endswith("bye\n")


def test_a_link_is_read_and_changed(up: Lab, lab: AttachedLab) -> None:
    link = lab.link("h2", "h1")
    assert (link.a, link.b, link.is_up) == ("h1:eth0", "h2:eth0", True)
    lab["h1"].run("ping -c 2 -i 0.01 h2", check=True)
    assert link.load().sent == up.link("h1", "h2").load().sent >= 2
    assert lab.ledger()["links"].keys() == up.ledger()["links"].keys()
    link.set(rate="5 Mbit/s")
    assert link.describe() == "5 Mbit/s, 2 ms"
    link.down()
    assert not link.is_up
    assert not up.link("h1", "h2").is_up
    link.up()
    assert link.is_up
    with pytest.raises(ScenarioError, match="delay"):
        link.set(delay=20)
    with pytest.raises(ScenarioError, match="link h1-h2: Object of type object is not JSON"):
        link.set(delay=object())
    with pytest.raises(RunError, match="there is no link h1-h9"):
        lab.link("h1-h9")


def test_a_node_is_switched(up: Lab, lab: AttachedLab) -> None:
    lab["h2"].pause()
    assert up["h2"].state == "paused"
    lab["h2"].resume()
    lab["h2"].kill()
    assert up["h2"].state == "stopped"
    lab["h2"].restart()
    assert up["h2"].state == "up"


def test_what_was_detached_or_has_ended_says_so(tmp_path: Path) -> None:
    with Lab(airloom.Scenario.model_validate(SCENARIO), out=tmp_path / "out"):
        lab = Lab.attach(str(os.getpid()))
        lab.detach()
        with pytest.raises(RunError, match="attached was detached"):
            lab.ledger()
        again = Lab.attach(os.getpid())
    with pytest.raises(RunError) as caught:
        again.nodes  # noqa: B018
    assert caught.value.code == "live.gone"
    with pytest.raises(RunError) as caught:
        Lab.attach(os.getpid())
    assert caught.value.code in ("live.none", "live.unknown")


def test_the_network_of_a_mininet_script(net: Mininet) -> None:
    with Lab.attach(os.getpid()) as lab:
        assert lab.nodes == session.session().nodes
        assert lab["h1"].run("ping -c 1 10.0.0.2", check=True).ok
        assert [link.name for link in lab.links] == ["h1-eth0-s1-eth1", "h2-eth0-s1-eth2"]
        link = lab.link("h1", "s1")
        link.set(rate="8 Mbit/s", delay="3 ms", direction="forward")
        assert link.describe() == "8 Mbit/s, 3 ms / unlimited"
        assert net["h1"].intf().shaped.text == "8 Mbit/s, 3 ms"
        assert link.load().sent == net["h1"].intf().load().sent > 0
        link.down()
        assert not link.is_up
        assert net.ping([net["h1"], net["h2"]], timeout=1) == 100
        link.up()
        assert net.ping([net["h1"], net["h2"]], timeout=5) == 0
        with pytest.raises(RunError, match="no link h9"):
            lab.link("h9")
        with pytest.raises(RunError, match="end and start by the script"):
            lab["h1"].kill()
