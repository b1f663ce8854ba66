"""Real runs: what was asked for is measured with real programs, in namespaces of the test's own."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom import RunError, Scenario
from airloom.results import RunReader
from helpers.images import busybox, entry, layer, oci
from helpers.notes import Notes
from helpers.registry import push, registry

pytestmark = pytest.mark.world


def pair(link: dict[str, Any] | None = None, **more: Any) -> Scenario:
    return Scenario.model_validate(
        {"name": "pair", "nodes": {"a": {}, "b": {}}, "links": [{"ends": ["a", "b"], **(link or {})}], **more}
    )


def ping(name: str = "rtt", **more: Any) -> dict[str, Any]:
    return {"name": name, "ping": {"from": "a", "to": "b", "count": 10, "interval": "20 ms", **more}}


def figure(result: airloom.RunResult, name: str, metric: str) -> float:
    (found,) = [one for one in result.result.measurements if (one.name, one.metric) == (name, metric)]
    assert found.mean is not None
    return found.mean


@pytest.mark.measures
def test_a_delay_is_measured_by_ping(tmp_path: Path):
    result = airloom.run(pair({"delay": "10 ms"}, measurements=[ping()]), out=tmp_path / "out")
    assert figure(result, "rtt", "received") == 10
    assert 20e6 <= figure(result, "rtt", "rtt_min") < 22e6
    assert result.result.ledger.host_lost == 0


@pytest.mark.measures
def test_each_direction_has_its_own_delay(tmp_path: Path):
    link = {"forward": {"delay": "30 ms"}, "backward": {"delay": "5 ms"}}
    result = airloom.run(pair(link, measurements=[ping()]), out=tmp_path / "out")
    assert 35e6 <= figure(result, "rtt", "rtt_min") < 37e6


@pytest.mark.measures
def test_a_rate_is_measured_by_iperf3(tmp_path: Path):
    flow = {"name": "flow", "iperf3": {"from": "a", "to": "b", "duration": "2 s", "congestion": "cubic"}}
    result = airloom.run(pair({"rate": "20 Mbit/s"}, measurements=[flow]), out=tmp_path / "out")
    # Of 1538 octets on the wire 1448 are TCP's payload (RFC 1323 timestamps on).
    ideal = 20e6 * 1448 / 1538
    assert 0.9 * ideal < figure(result, "flow", "throughput") <= 1.01 * ideal
    assert result.details.versions["iperf3"].startswith("iperf 3.")


@pytest.mark.measures
def test_loss_lies_within_binomial_bounds(tmp_path: Path):
    loss, packets = 0.2, 1000
    flow = {
        "name": "flow",
        "traffic": {
            "from": "a",
            "to": "b",
            "interval": "1 ms",
            "size": "100 B",
            "duration": "1 s",
            "at": "700 ms",
        },
    }
    # Loss begins when the nodes know each other's addresses: a lost ARP request costs a second.
    lossy = {"at": "500 ms", "link": "a-b", "set": {"loss": loss}}
    result = airloom.run(pair(measurements=[ping(), flow], events=[lossy]), out=tmp_path / "out")
    five_sigma = 5 * math.sqrt(loss * (1 - loss) / packets)
    assert abs(figure(result, "flow", "loss") - loss) < five_sigma
    assert result.result.ledger.dropped["random-loss"] > 0
    assert result.result.ledger.host_lost == 0


def test_the_ledger_is_closed_and_everything_is_in_the_folder(tmp_path):
    scenario = pair({"duplicate": 0.3}, measurements=[ping()], programs=[{"node": "a", "run": "echo hello"}])
    result = airloom.run(scenario, out=tmp_path / "out", capture=True)
    ledger = result.details.engine
    lost = sum(ledger["dropped"].values()) + sum(ledger["host_lost"].values())
    assert ledger["offered"] + ledger["copies"] == ledger["delivered"] + lost + ledger["in_flight"]
    raw = json.loads((tmp_path / "out" / "result.json").read_text())
    assert {"schema", "scenario", "seed", "kinds", "verdict", "ledger", "measurements", "claims"} <= set(raw)
    assert (tmp_path / "out" / "nodes" / "a" / "a-echo.log").read_text() == "hello\n"
    files = sorted(path.name for path in (tmp_path / "out" / "captures").iterdir())
    assert files == ["a.eth0.pcapng", "b.eth0.pcapng"]
    assert result.details.captured is not None
    assert result.details.captured.frames > 20
    assert len(result.samples("rtt")) > 0
    again = Scenario.model_validate(result.scenario)
    assert [one.name for one in again.measurements] == ["rtt"]


def test_measurements_take_turns_unless_they_have_a_time(tmp_path):
    # Ping starts some 0.3 s late on a busy machine, so that the first measurement has to last longer.
    first = ping("first", count=100)
    scenario = pair(measurements=[first, ping("second"), ping("timed", at="50 ms")])
    result = airloom.run(scenario, out=tmp_path / "out")
    frame = result.samples()
    span = {
        name: (frame[frame.measurement == name].t_ns.min(), frame[frame.measurement == name].t_ns.max())
        for name in ("first", "second", "timed")
    }
    assert span["first"][1] <= span["second"][0]
    assert span["timed"][0] < span["first"][1]


@pytest.mark.measures
def test_a_link_is_up_while_its_ends_see_each_other(tmp_path: Path):
    flow = {"from": "a", "to": "b", "interval": "1 ms", "size": "100 B", "duration": "2 s", "at": "500 ms"}
    scenario = pair(
        # Without carrier the sender's kernel would hold packets while it resolves the address anew.
        {"visibility": [["0 s", "1 s"], ["1500 ms", "3 s"]], "carrier": "keep"},
        measurements=[ping(), {"name": "flow", "traffic": flow}],
    )
    result = airloom.run(scenario, out=tmp_path / "out")
    assert abs(figure(result, "flow", "loss") - 0.25) < 0.03, "500 ms of 2 s are out of sight"
    assert result.result.ledger.dropped["link-down"] > 400


@pytest.mark.measures
def test_events_change_links_at_their_time(tmp_path: Path):
    scenario = pair(
        {"delay": "1 ms", "carrier": "keep"},
        measurements=[ping(count=60, interval="20 ms")],
        events=[
            {"at": "500 ms", "link": "a-b", "set": {"delay": "15 ms"}},
            {"at": "800 ms", "link": "a-b", "action": "down"},
            {"at": "1 s", "link": "a-b", "action": "up"},
        ],
    )
    result = airloom.run(scenario, out=tmp_path / "out")
    rtt = result.samples("rtt")
    rtt = rtt[rtt.metric == "rtt"].sort_values("t_ns")
    early = rtt[rtt.t_ns < 450e6].value
    late = rtt[(rtt.t_ns > 540e6) & (rtt.t_ns < 790e6)].value
    assert early.median() < 10e6
    assert late.min() >= 30e6
    assert result.result.ledger.dropped["link-down"] >= 5
    assert [one.what for one in result.details.happenings][-1] == "link a-b up"


def test_a_ping_without_a_route_is_an_observation(tmp_path):
    scenario = Scenario.model_validate(
        {
            "name": "route",
            "nodes": {"a": {"routing": "none"}, "c": {"routing": "none"}, "r": {}, "b": {}},
            "links": [{"ends": [name, "r"]} for name in "abc"],
            "programs": [
                {"node": "a", "run": "ip route add default via 10.0.0.2", "at": "500 ms", "name": "route"}
            ],
            "measurements": [ping("late", count=12, interval="100 ms"), ping("never", **{"from": "c"})],
        }
    )
    result = airloom.run(scenario, out=tmp_path / "out")
    assert figure(result, "late", "transmitted") == 12
    assert 1 <= figure(result, "late", "unreachable") < 12
    lost = figure(result, "late", "transmitted") - figure(result, "late", "received")
    assert figure(result, "late", "unreachable") <= lost < 12
    assert figure(result, "never", "loss") == 1


def test_a_node_that_is_stopped_and_started_again(tmp_path):
    scenario = pair(
        {"carrier": "keep"},  # otherwise the sender's kernel would stop sending
        measurements=[ping(count=60, interval="20 ms")],
        programs=[{"node": "b", "run": "sleep 60", "name": "service", "until_end": True}],
        events=[
            {"at": "300 ms", "node": "b", "action": "stop"},
            {"at": "600 ms", "node": "b", "action": "start"},
        ],
    )
    notes = Notes()
    result = airloom.run(scenario, out=tmp_path / "out", watcher=notes)
    assert 0.1 < figure(result, "rtt", "loss") < 0.9
    assert notes.said.count("program service in node b started") == 2
    # What was sent to a node that the scenario had switched off is the scenario's loss.
    assert result.result.ledger.dropped["link-down"] > 0
    assert result.result.ledger.host_lost == 0


def test_programs_know_the_names_of_nodes_and_wait_for_each_other(tmp_path):
    scenario = pair(
        programs=[
            {
                "node": "b",
                "run": "python3 -m http.server 80",
                "name": "web",
                "until_end": True,
                "ready": {"port": 80},
            },
            {"node": "a", "run": "ping -c 1 b", "name": "look", "env": {"LC_ALL": "C"}},
        ],
        measurements=[ping()],
    )
    notes = Notes()
    airloom.run(scenario, out=tmp_path / "out", watcher=notes)
    assert "program web in node b is ready" in notes.said
    assert "1 received" in (tmp_path / "out" / "nodes" / "a" / "look.log").read_text()


def test_programs_start_in_the_order_that_is_asked_for(tmp_path):
    scenario = pair(
        programs=[
            {"node": "a", "run": "ping -c 1 b", "name": "look", "after": ["web", "set-up"]},
            {
                "node": "b",
                "run": "sh -c 'sleep 0.3; exec python3 -m http.server 80'",
                "name": "web",
                "until_end": True,
                "ready": {"port": 80},
                "after": "set-up",
            },
            {"node": "b", "run": "sleep 0.3", "name": "set-up"},
        ],
        measurements=[ping()],
    )
    notes = Notes()
    airloom.run(scenario, out=tmp_path / "out", watcher=notes)
    assert [said for said in notes.said if "ended" not in said or "set-up" in said][:5] == [
        "program set-up in node b started",
        "program set-up in node b ended",
        "program web in node b started",
        "program web in node b is ready",
        "program look in node a started",
    ]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ({"run": "./no-such-program-here"}, "no-such-program-here"),
        ({"run": "sh -c 'echo it broke; exit 3'"}, "ended with exit code 3"),
        ({"run": "sh -c 'kill -SEGV $$'"}, "was killed by SIGSEGV"),
        ({"run": "true", "until_end": True}, "though it should live until the end"),
        ({"run": "sleep 60", "ready": {"port": 99, "within": "200 ms"}}, "was not ready within 200 ms"),
    ],
)
def test_a_program_that_fails_fails_the_run_and_keeps_what_was_measured(tmp_path, program, message):
    scenario = pair(
        programs=[{"node": "a", "at": "2 s", **program}],
        measurements=[ping("kept", count=5), ping("cut", count=1000)],
    )
    with pytest.raises(RunError, match=message):
        airloom.run(scenario, out=tmp_path / "out")
    result = airloom.RunResult(tmp_path / "out")
    assert result.verdict.status == "invalid"
    assert message in result.verdict.reasons[0]
    assert figure(result, "kept", "received") == 5


def test_a_program_works_in_a_folder_that_lies_where_nodes_have_their_own(tmp_path):
    (work := tmp_path / "work").mkdir()
    (work / "list").write_text("here")
    program = {"node": "a", "name": "look", "run": "cat list", "folder": str(work)}
    airloom.run(pair(programs=[program]), out=tmp_path / "out")
    assert (tmp_path / "out/nodes/a/look.log").read_text() == "here"


def test_the_logs_last_lines_are_in_the_message(tmp_path):
    program = {"node": "a", "run": "sh -c 'echo one; echo two >&2; exit 1'"}
    with pytest.raises(RunError, match=r"(?s)\| one.*\| two"):
        airloom.run(pair(programs=[program]), out=tmp_path / "out")


def test_a_port_that_is_taken_is_said_by_the_program_that_wanted_it(tmp_path):
    server = "python3 -m http.server 80"
    scenario = pair(
        programs=[
            {"node": "a", "run": server, "name": "first", "until_end": True, "ready": {"port": 80}},
            {"node": "a", "run": server, "name": "second", "until_end": True, "at": "1 s"},
        ],
        duration="10 s",
    )
    with pytest.raises(RunError, match=r"(?s)program second.*Address already in use"):
        airloom.run(scenario, out=tmp_path / "out")


def test_a_measurement_that_fails_does_not_stop_the_others(tmp_path):
    # Ends the server of iperf3 as soon as it runs.
    find = 'for one in /proc/[0-9]*; do [ "$(cat $one/comm)" = iperf3 ] && kill ${one#/proc/} && exit 0; done'
    program = {"node": "b", "name": "killer", "run": f"while true; do {find}; sleep 0.05; done"}
    scenario = pair(
        programs=[program],
        measurements=[
            {"name": "broken", "iperf3": {"from": "a", "to": "b", "duration": "1 s"}},
            ping("fine"),
        ],
    )
    notes = Notes()
    with pytest.raises(RunError, match="broken"):
        airloom.run(scenario, out=tmp_path / "out", watcher=notes)
    assert len(notes.failures) == 1
    assert figure(airloom.RunResult(tmp_path / "out"), "fine", "received") == 10


def test_a_run_of_given_duration_ends_then(tmp_path):
    program = {"node": "a", "run": "sleep 60", "name": "service", "until_end": True}
    result = airloom.run(pair(programs=[program], duration="700 ms"), out=tmp_path / "out")
    last = result.details.happenings[-1]
    assert "ended" in last.what
    assert last.t_ns >= 700e6


def test_a_program_that_should_have_ended_by_then_has_failed(tmp_path):
    program = {"node": "a", "run": "sleep 60", "name": "slow"}
    with pytest.raises(RunError, match="program slow in node a had not ended"):
        airloom.run(pair(programs=[program], duration="500 ms"), out=tmp_path / "out")


def test_claims_are_held_against_what_was_measured(tmp_path):
    claims = [
        {"id": "right", "statement": "At least 10 ms.", "check": "rtt.rtt_min >= 10 ms"},
        {"id": "wrong", "statement": "At most 1 ms.", "check": "rtt.rtt_min <= 1 ms"},
    ]
    result = airloom.run(pair({"delay": "5 ms"}, measurements=[ping()], claims=claims), out=tmp_path / "out")
    assert [(one.id, one.outcome) for one in result.claims] == [("right", "holds"), ("wrong", "fails")]


def test_a_sweep_with_repetitions_and_its_resumption(tmp_path):
    scenario = pair(measurements=[ping(count=3)], sweep={"links[0].delay": ["1 ms", "8 ms"]}, repetitions=2)
    notes = Notes()
    result = airloom.run(scenario, out=tmp_path / "out", watcher=notes)
    assert len(notes.points) == 4
    seeds = {point.result.seed for point in result.points}
    assert len(seeds) == 4
    frame = result.measurements
    means = frame[frame.metric == "rtt_min"].sort_values("mean")["mean"].tolist()
    assert means[0] < 8e6
    assert means[1] >= 16e6
    assert set(frame[frame.metric == "rtt_min"].n) == {2}

    index = tmp_path / "out" / "sweep.json"
    raw = json.loads(index.read_text())
    raw["points"][2]["state"] = "waiting"
    index.write_text(json.dumps(raw))
    kept = (tmp_path / "out" / raw["points"][0]["folder"] / "result.json").stat().st_mtime_ns
    again = Notes()
    airloom.run(scenario, out=tmp_path / "out", resume=True, watcher=again)
    assert [text.split()[0] for text in again.points] == ["3/4"]
    assert (tmp_path / "out" / raw["points"][0]["folder"] / "result.json").stat().st_mtime_ns == kept


def test_a_folder_with_results_is_not_overwritten(tmp_path):
    airloom.run(pair(measurements=[ping(count=1)]), out=tmp_path / "out")
    before = (tmp_path / "out" / "result.json").read_text()
    with pytest.raises(airloom.LabError, match="already holds"):
        airloom.run(pair(measurements=[ping(count=1)]), out=tmp_path / "out")
    assert (tmp_path / "out" / "result.json").read_text() == before


@pytest.mark.measures
def test_a_node_that_floods_harms_the_verdict_and_nothing_else(tmp_path: Path):
    flood = (
        "import socket, time\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "end = time.monotonic() + 1.5\n"
        "while time.monotonic() < end:\n"
        "    for _ in range(1000):\n"
        "        try: s.sendto(bytes(1000), ('b', 9))\n"
        "        except OSError: pass\n"
    )
    scenario = pair(
        {"rate": "10 Mbit/s", "queue": {"packets": 50}},
        programs=[{"node": "a", "run": ["python3", "-c", flood], "name": "flood"}],
        measurements=[ping("alive", count=10, at="4 s")],
    )
    result = airloom.run(scenario, out=tmp_path / "out")
    ledger = result.details.engine
    lost = sum(ledger["dropped"].values()) + sum(ledger["host_lost"].values())
    assert ledger["offered"] + ledger["copies"] == ledger["delivered"] + lost + ledger["in_flight"]
    assert ledger["dropped"]["queue-full"] > 1000
    assert figure(result, "alive", "received") >= 8
    if result.result.ledger.host_lost:
        assert result.verdict.status == "invalid"
        assert "host.lost" in result.verdict.codes


@pytest.mark.measures
def test_two_runs_at_once_do_not_meet(tmp_path: Path):
    import concurrent.futures

    def one(number: int) -> float:
        scenario = pair({"delay": f"{10 * number} ms"}, measurements=[ping(count=10)])
        return figure(airloom.run(scenario, out=tmp_path / str(number)), "rtt", "rtt_min")

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first, second = pool.map(one, (1, 3))
    assert 20e6 <= first < 25e6
    assert 60e6 <= second < 65e6


def test_no_folder_of_another_place_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    airloom.run(pair(measurements=[ping(count=1)]))
    (folder,) = Path("out").iterdir()
    assert folder.name.startswith("pair-")


def test_containers_run_an_image_from_a_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tiny = oci(tmp_path / "tiny", [busybox()], {"Cmd": ["echo", "from afar"]})
    with registry(tmp_path) as host:
        push(tiny, f"{host}/tiny:1")
        said = {"kind": "container", "image": f"docker://{host}/tiny:1", "programs": [{"node": "a"}]}
        result = airloom.run(pair(**said), out=tmp_path / "out")
    assert (tmp_path / "out/nodes/a/a-echo.log").read_text() == "from afar\n"
    assert result.scenario["image"].startswith(f"docker://{host}/tiny@sha256:")


def test_containers_run_what_their_image_runs_and_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    command = ["sh", "-c", "hostname; cat /etc/greeting"]
    oci(tmp_path / "tiny", [busybox(), layer(entry("etc/greeting", b"hello"))], {"Cmd": command})
    said = {
        "kind": "container",
        "image": str(tmp_path / "tiny"),
        "programs": [{"node": "a"}, {"node": "b", "run": "echo mine", "name": "mine"}],
        "measurements": [
            {"name": "flow", "traffic": {"from": "a", "to": "b", "rate": "1 Mbit/s", "duration": "1 s"}}
        ],
    }
    result = airloom.run(pair({"delay": "5 ms"}, **said), out=tmp_path / "out")
    assert result.result.kinds == ("container",)
    assert (tmp_path / "out/nodes/a/a-sh.log").read_text() == "a\nhello"
    assert (tmp_path / "out/nodes/b/mine.log").read_text() == "mine\n"
    assert 5e6 <= figure(result, "flow", "delay_min") < 7e6


@pytest.mark.parametrize("swept", [False, True])
def test_a_run_that_the_machine_disturbs_is_made_again_and_says_so(tmp_path: Path, swept: bool) -> None:
    # No machine is that punctual.
    limits = {"lateness_max": "1 ns"}
    more = {"sweep": {"links[0].delay": ["1 ms", "2 ms"]}} if swept else {}
    scenario = pair({"delay": "1 ms"}, measurements=[ping(count=2)], limits=limits, **more)
    watcher = Notes()
    result = airloom.run(scenario, out=tmp_path / "out", tries=2, watcher=watcher)
    points = sorted((tmp_path / "out").glob("points/*")) if swept else [tmp_path / "out"]
    assert len(points) == (2 if swept else 1)
    for point in points:
        verdict = RunReader(point).result.verdict
        assert "delivery.stall" in verdict.codes
        assert verdict.notes[0].startswith(
            "run 1 of this point was replaced, since it was degraded: the engine"
        )
    assert [one[:26] for one in watcher.problems] == ["run again, 2 of at most 2,"] * len(points)
    assert result.verdict.status == "degraded"
    assert swept or figure(result, "rtt", "received") == 2
