"""The live laboratory from Python, and the prompt on top of it."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
from typing import Any

import pytest
from typer.testing import CliRunner

import airloom
from airloom import RunError, Scenario, ScenarioError
from airloom.cli import app
from airloom.lab.client import Client
from airloom.lab.repl import Prompt
from airloom.lab.running import find
from helpers import REPOSITORY

pytestmark = pytest.mark.world


def star(**more: Any) -> Scenario:
    return Scenario.model_validate(
        {
            "name": "star",
            "nodes": {"h1": {}, "h2": {}, "h3": {}},
            "switches": {"s1": {}},
            "links": [{"ends": [f"h{i}", "s1"], "delay": "2 ms"} for i in (1, 2, 3)],
            **more,
        }
    )


@pytest.fixture
def lab(tmp_path):
    with airloom.Lab(star(), out=tmp_path / "out") as lab:
        yield lab


def rtt_ms(lab: airloom.Lab, source: str, target: str) -> float:
    done = lab[source].run(f"ping -n -q -c 3 -i 0.05 {target}", check=True)
    return float(done.stdout.rsplit("= ", 1)[1].split("/")[0])


def test_a_command_in_a_node(lab):
    done = lab["h1"].run("ping -c 1 h2")
    assert done.ok
    assert "1 received" in done.stdout
    assert lab["h1"].run("hostname").stdout == "h1\n"
    assert lab["h1"].run(["sh", "-c", "echo oops >&2; exit 4"]).code == 4
    assert lab["h1"].run("cat", input="given").stdout == "given"


def test_check_raises_with_the_last_line(lab):
    with pytest.raises(RunError, match="exit code 4: oops"):
        lab["h1"].run("sh -c 'echo oops >&2; exit 4'", check=True)


def test_a_command_has_a_time_limit(lab):
    done = lab["h1"].run("sleep 60", timeout=0.3)
    assert done.timed_out
    assert not done.ok


def test_a_program_that_goes_on(lab):
    program = lab["h2"].start("sh -c 'echo ready; sleep 60'", name="server")
    assert program.code is None
    while program.output == "":
        lab["h2"].run("true")
    assert program.stop() == 128 + signal.SIGTERM
    assert program.output == "ready\n"
    assert program.log.name == "server.log"


def test_a_program_is_ready_when_its_check_succeeds(lab):
    server = lab["h2"].start("python3 -u -m http.server 80", ready={"port": 80, "within": "20 s"})
    assert lab["h2"].listens(80)
    log = lab["h2"].start("sh -c 'sleep 0.2; echo now; sleep 60'", ready={"log": "^now$"})
    assert log.output == "now\n"
    lab["h1"].start("sh -c 'sleep 0.2; touch /tmp/there; sleep 60'", ready={"command": "test -e /tmp/there"})
    assert lab["h1"].run("test -e /tmp/there").ok
    server.stop()
    later = lab["h2"].start("sh -c 'sleep 0.2; exec python3 -m http.server 81'")
    lab["h2"].wait_port(81, timeout=20)
    assert later.code is None


def test_a_program_that_does_not_become_ready_is_an_error(lab):
    with pytest.raises(RunError, match="sh in node h2 ended with exit code 3, and was not ready") as caught:
        lab["h2"].start("sh -c 'exit 3'", ready={"port": 80})
    assert "sh.log" in (caught.value.cure or "")
    with pytest.raises(RunError, match="was not ready within 100 ms: waited for 'never' in its log"):
        lab["h2"].start("sleep 60", ready={"log": "never", "within": "100 ms"})
    assert not lab["h2"].run("pgrep -x sleep").ok
    with pytest.raises(TimeoutError, match="no program in h2 listens on udp port 9"):
        lab["h2"].wait_port(9, "udp", timeout=0.1)


@pytest.mark.parametrize(
    ("ready", "message"),
    [({}, "no check is given"), ({"prot": 80}, "prot"), ({"port": 80, "log": "x"}, "2 checks are given")],
)
def test_a_wrong_check_starts_nothing(lab, ready, message):
    with pytest.raises(ScenarioError, match=message):
        lab["h2"].start("sleep 61", ready=ready)
    assert not lab["h2"].run("pgrep -x sleep").ok


def test_the_example_of_the_quickstart_prints_its_page(tmp_path, monkeypatch, capsys):
    page = (REPOSITORY / "docs" / "start" / "quickstart.md").read_text()
    (scenario,) = re.findall(r"^`two.yaml`:\n\n```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (example,) = re.findall(r"^From Python:\n\n```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    if shutil.which("curl") is None:
        pytest.skip("no curl: sudo apt-get install curl")
    (tmp_path / "two.yaml").write_text(scenario)
    monkeypatch.chdir(tmp_path)
    exec(example, {})
    said = capsys.readouterr().out
    assert "Directory listing" in said
    assert "'throughput':" in said


def test_a_program_that_is_not_there(lab):
    with pytest.raises(RunError, match="no-such-program"):
        lab["h2"].start("no-such-program")


@pytest.mark.quick
def test_links_change_while_it_is_up(lab):
    assert 8 <= rtt_ms(lab, "h1", "h2") < 12
    link = lab.link("h1", "s1")
    link.set(delay="20 ms")
    assert 44 <= rtt_ms(lab, "h1", "h2") < 48
    link.set(direction="backward", delay="2 ms")
    assert 26 <= rtt_ms(lab, "h1", "h2") < 30
    link.set(carrier="keep")  # with a carrier, the senders' kernels go on sending
    link.down()
    assert not lab["h1"].run("ping -c 1 -W 0.3 h2").ok
    link.up()
    assert lab["h1"].run("ping -c 3 -i 0.2 h2").ok
    assert lab.ledger()["dropped"]["link-down"] > 0


def test_a_property_that_is_wrong_is_refused(lab):
    with pytest.raises(ScenarioError, match="delai"):
        lab.link("h1", "s1").set(delai="20 ms")
    with pytest.raises(ScenarioError, match="delay"):
        lab.link("h1", "s1").set(delay=20)


def test_names_that_are_wrong_get_the_nearest(lab):
    with pytest.raises(RunError, match="there is no node h12") as caught:
        lab["h12"]
    assert "did you mean" in (caught.value.cure or "")
    with pytest.raises(RunError, match="no link joins h1 and h2"):
        lab.link("h1", "h2")


def test_a_measurement_in_between(lab, tmp_path):
    reading = lab.measure("rtt", ping={"from": "h1", "to": "h3", "count": 5, "interval": "20 ms"})
    found = {metric.name: metric.value for metric in reading.metrics()}
    assert found["received"] == 5
    assert 8e6 <= found["rtt_min"] < 12e6
    with pytest.raises(ScenarioError):
        lab.measure(ping={"from": "h1"})


def test_the_results_are_those_of_a_run(tmp_path):
    with airloom.Lab(star(), out=tmp_path / "out") as lab:
        lab.measure("rtt", ping={"from": "h1", "to": "h3", "count": 3, "interval": "20 ms"})
        assert lab.verdict().status in ("valid", "degraded", "invalid")
    assert lab.result.verdict.status in ("valid", "degraded")
    frame = lab.result.measurements
    assert set(frame.name) == {"rtt"}
    assert len(lab.result.samples("rtt")) > 0


def test_the_scenarios_programs_and_events_run(tmp_path):
    scenario = star(
        programs=[{"node": "h1", "run": "sleep 60", "name": "service", "until_end": True}],
        events=[{"at": "100 ms", "link": "h1-s1", "set": {"delay": "30 ms"}}],
    )
    with airloom.Lab(scenario, out=tmp_path / "out") as lab:
        while lab.now() < 200_000_000:
            lab["h2"].run("true")
        assert rtt_ms(lab, "h1", "h2") >= 64
        assert "sleep" in lab["h1"].run("ps -e").stdout


def test_an_error_inside_the_block_comes_out_and_the_results_say_so(tmp_path):
    lab = airloom.Lab(star(), out=tmp_path / "out")
    with pytest.raises(RunError, match="exit code 1"), lab:
        lab["h1"].run("false", check=True)
    assert lab.result.verdict.status == "invalid"
    with pytest.raises(RunError, match="not up"):
        lab["h1"].run("true")


def test_a_sweep_is_no_live_laboratory(tmp_path):
    with pytest.raises(ScenarioError, match="one run"):
        airloom.Lab(star(sweep={"links[0].delay": ["1 ms", "2 ms"]}))


def test_a_node_stopped_and_restarted(lab):
    lab["h2"].stop()
    assert not lab["h1"].run("ping -c 1 -W 0.3 h2").ok
    lab["h2"].restart()
    assert lab["h1"].run("ping -c 3 -i 0.2 -W 1 h2").ok


# The prompt


class Talk:
    def __init__(self, lab: airloom.Lab) -> None:
        self.out = io.StringIO()
        self.prompt = Prompt(lab, interactive=False, stdout=self.out)

    def __call__(self, line: str) -> str:
        self.out.seek(0)
        self.out.truncate()
        self.prompt.onecmd(line)
        return self.out.getvalue()


@pytest.fixture
def talk(lab):
    return Talk(lab)


def test_nodes_links_net_and_dump(talk):
    assert talk("nodes").split() == ["nodes:", "h1", "h2", "h3", "switches:", "s1"]
    assert "h1-s1: h1:eth0 <-> s1 up unlimited, 2 ms" in talk("links")
    assert "s1 s1-h1:eth0 s1-h2:eth0 s1-h3:eth0" in talk("net")
    assert "h1 (netns) eth0=10.0.0.1/24" in talk("dump")


def test_pingall_says_who_reaches_whom(talk):
    assert "6 of 6 received (0 % lost)" in talk("pingall")
    assert talk("link h3 s1 down") == ""
    said = talk("pingall 0.2")
    assert "2 of 6 received" in said
    assert "h3 -> X X" in said
    assert talk.prompt.failed


def test_iperf_between_two_nodes(talk):
    talk("link h1 s1 set rate=10Mbit/s")
    said = talk("iperf h1 h2 1")
    assert said.startswith("h1 -> h2: ")
    assert 5 < float(said.split()[3]) <= 10


def test_a_command_in_a_node_gets_addresses_for_names(talk, capfd):
    talk("h1 ping -n -c 1 h2")
    assert "PING 10.0.0.2 (10.0.0.2)" in capfd.readouterr().out
    talk("h1 echo h2 'h2 too' | cat")
    assert capfd.readouterr().out == "10.0.0.2 h2 too\n"
    talk("h1 false")
    assert talk.prompt.failed


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nonsense", "neither a command nor a node"),
        ("h1", "h1 needs a command"),
        ("link h1 s1", "link A B up|down"),
        ("link h1 h2 down", "no link joins h1 and h2"),
        ("link h1 s1 set delay", "not KEY=VALUE"),
        ("link h1 s1 set delay=20", "delay"),
        ("iperf h1", "iperf SOURCE TARGET"),
        ("h1 echo 'open", "No closing quotation"),
        ("py 1/0", "ZeroDivisionError"),
    ],
)
def test_a_mistake_is_said_and_the_prompt_goes_on(talk, line, said):
    assert said in talk(line)
    assert talk("py 1 + 1") == "2\n"


def test_python_at_the_prompt(talk):
    assert talk('py lab["h1"].run("hostname").stdout') == "h1\n\n"
    talk("py x = 5")
    assert talk("py x") == "5\n"


def test_help_names_every_command(talk):
    said = talk("help")
    for word in ("pingall", "iperf", "link", "dump", "exit"):
        assert word in said
    assert "link A B up|down" in talk("help link")


def test_completion_offers_nodes_and_commands(talk):
    assert "h1" in talk.prompt.completenames("h")
    assert talk.prompt.completedefault("h", "link h", 5, 6) == ["h1", "h2", "h3"]


# Clients


def test_a_visitor_runs_a_program_in_a_node(lab):
    reading, writing = os.pipe()
    with Client(find(str(os.getpid()))) as client:
        client.start("h3", ["sh", "-c", "hostname; exit 6"], {}, [0, writing, 2], tty=False)
        os.close(writing)
        assert client.wait() == 6
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b"h3\n"


def test_a_shell_is_offered_the_nodes_and_the_laboratory(lab):
    def offered(*words):
        env = {"_AIRLOOM_COMPLETE": "complete_bash", "COMP_CWORD": str(len(words))}
        env["COMP_WORDS"] = " ".join(("airloom", *words))
        return CliRunner().invoke(app, [], prog_name="airloom", env=env).output.split()

    mine = ("--lab", str(os.getpid()))
    assert offered("exec", *mine, "h") == ["h1", "h2", "h3"]
    assert offered("shell", *mine, "h3") == ["h3"]
    assert offered("node", *mine, "h1", "re") == ["resume", "restart"]
    assert lab.plan.scenario.name in offered("exec", "--lab", "")


def test_a_visitor_switches_a_node(lab):
    found = find(str(os.getpid()))
    with Client(found) as client:
        client.control("h3", "pause")
    assert lab["h3"].state == "paused"
    with Client(found) as client:
        client.control("h3", "kill")
    assert lab["h3"].state == "stopped"
    with Client(found) as client, pytest.raises(RunError, match="there is no node h9"):
        client.control("h9", "pause")
    with Client(found) as client, pytest.raises(RunError, match="explode"):
        client.control("h3", "explode")


def test_no_line_at_the_prompt_ends_the_laboratory(talk, lab):
    for line in (
        "link h1 s1 set queue={",
        "link h1 s1 set delay=[",
        "link h1 s1 set self=1",
        "link h1 s1 set rate=0bit/s",
        "link h1 s1 set trace=/dev/zero",
        "link h1 s1 set direction=up delay=1ms",
        "add h9 s1 image={",
        "add h9 s1 kind=container image=/dev/zero",
        "add h9 s1 radios={wlan0: {}}",
        "add h9 s1 name=x",
        "add ../x s1",
        "iperf h1 nowhere",
        "iperf h1 h1",
        "node h1 explode",
        "h1",
        "\x00",
    ):
        assert talk(line).startswith("*** "), line
    assert talk("link h1 s1 set queue={discipline: fq-codel}") == ""
    assert talk("link h1 s1 set queue.discipline=fq-codel") == ""
    assert "6 of 6 received" in talk("pingall")


def test_nodes_are_switched_and_added_from_the_prompt(talk, lab):
    assert talk("node h2 pause") == ""
    assert lab["h2"].state == "paused"
    assert talk("node h2 resume; ") != ""
    assert talk("node h2 resume") == ""
    assert lab["h2"].state == "up"
    assert talk("add h9 s1 cpu=0.5") == "h9 has 10.0.0.4\n"
    assert lab["h1"].run("ping -c 1 -W 2 10.0.0.4").ok
    assert "no switch" in talk("add h8 h1")
