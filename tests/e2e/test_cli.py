"""The command without a run: help, refusals, schema, doctor."""

from __future__ import annotations

import json

import pytest

from helpers import REPOSITORY

COMMANDS = (
    "check",
    "run",
    "up",
    "exec",
    "shell",
    "compare",
    "report",
    "bench",
    "experiment",
    "image",
    "doctor",
    "schema",
)


def test_help_teaches(shell):
    done = shell.run("--help")
    assert done.returncode == 0
    for command in COMMANDS:
        assert command in done.stdout
    assert "Exit codes" in done.stdout


def test_version(shell):
    assert shell.run("--version").stdout.startswith("airloom ")


def test_check_shows_what_would_be_built(shell, scenario):
    file = scenario(
        "name: two\nnodes: {a: {}, b: {}}\nlinks: [{ends: [a, b], rate: 10 Mbit/s, delay: 5 ms}]\n"
        "measurements: [{name: flow, iperf3: {from: a, to: b, duration: 7 s}}]\n"
    )
    done = shell.run("check", file)
    assert done.returncode == 0
    for words in ("2 nodes, 1 link, 1 measurement", "10.0.0.1/30", "10 Mbit/s, 5 ms", "about 7 s"):
        assert words in done.stdout
    assert not (shell.folder / "out").exists()


def test_check_shows_the_queues_of_both_directions(shell, scenario):
    file = scenario(
        "name: two\nnodes: {a: {}, b: {}, c: {}}\nlinks:\n"
        "- {ends: [a, b], rate: 10 Mbit/s, queue: {discipline: fq-codel, ecn: true}, "
        "backward: {queue: {time: 50 ms}}}\n"
        "- {ends: [b, c]}\n"
    )
    done = shell.run("check", file)
    assert done.returncode == 0
    assert "fq-codel, 1000 packets, ECN" in done.stdout
    assert "drop-tail, 50 ms" in done.stdout
    assert done.stdout.count("queue: ") == 2, "an unlimited link has no queue"


def test_check_shows_slices_that_disturb_others_in_80_columns(shell):
    shell.env["COLUMNS"] = "80"
    done = shell.run("check", str(REPOSITORY / "examples" / "hopping-slices.yaml"))
    assert done.returncode == 0
    below = done.stdout.partition("Slices that can disturb others")[2]
    for words in ("n2-one", "n4-three", "contends,", "dwells"):
        assert words in below, "a word is split"


@pytest.mark.parametrize("command", ["check", "run", "up"])
def test_a_refused_scenario_is_one_line_with_place_and_cure(shell, scenario, command):
    done = shell.run(
        command, scenario("name: two\nnodes: {a: {}, b: {}}\nlinks: [{ends: [a, b], rat: 1 Mbit/s}]\n")
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("airloom: ")
    assert "scenario.yaml:3" in line
    assert "rate" in line
    assert not (shell.folder / "out").exists()


def test_a_missing_file_is_refused(shell):
    done = shell.run("run", "nowhere.yaml")
    assert done.returncode == 2
    assert "nowhere.yaml" in done.stderr


def test_an_override_that_fits_nothing_is_refused(shell, scenario):
    done = shell.run("check", scenario("name: one\nnodes: {a: {}}\n"), "--set", "nods.a.cpu=50 %")
    assert done.returncode == 2
    assert "unknown key 'nods'" in done.stderr


def test_an_override_changes_the_plan(shell, scenario):
    file = scenario("name: two\nnodes: {a: {}, b: {}}\nlinks: [{ends: [a, b], rate: 10 Mbit/s}]\n")
    done = shell.run("check", file, "--set", "links[0].rate=3 Mbit/s")
    assert "3 Mbit/s" in done.stdout


def test_the_schema_is_one(shell):
    schema = json.loads(shell.run("schema").stdout)
    assert schema["type"] == "object"
    assert "links" in schema["properties"]


def test_doctor_says_what_it_found_and_how_to_get_the_rest(shell):
    done = shell.run("doctor", "--json")
    findings = json.loads(done.stdout)
    lacking = [one for one in findings if one["need"] == "basic" and not one["ok"]]
    assert done.returncode == (3 if lacking else 0)
    assert {"namespaces", "tap", "ping", "iperf3"} <= {one["name"] for one in findings}
    assert all(one["cure"] for one in findings if not one["ok"])


def test_doctor_writes_each_command_in_a_line_of_its_own(shell):
    findings = json.loads(shell.run("doctor", "--json").stdout)
    shell.env["COLUMNS"] = "80"
    done = shell.run("doctor")
    lines = done.stdout.splitlines()
    for one in findings:
        if not one["ok"]:
            assert one["cure"] in lines
    ending = " ".join(lines[-12:])
    assert "wired and radio networks work" in ending or "must be there first" in ending


def test_what_is_unknown_is_refused_with_what_there_is(shell):
    for words in (("bench", "nonsense"), ("experiment", "run", "nonsense")):
        done = shell.run(*words)
        assert done.returncode == 2
        assert "nonsense" in done.stderr


def test_exec_without_a_laboratory(shell):
    done = shell.run("exec", "--lab", "no-such-laboratory", "h1", "--", "true")
    assert done.returncode == 1
    assert "laborator" in done.stderr
