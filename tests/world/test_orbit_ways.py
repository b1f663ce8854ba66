"""The table of docs/guide/orbit.md: each verb of OEDL in Python, and in a scenario."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import airloom
from helpers import REPOSITORY

pytestmark = [pytest.mark.world, pytest.mark.timeout(120)]

TESTBED = """\
name: group
media: {air: {radio: {channel: 36, rate: 36 Mbit/s}}}
nodes:
  n1: {position: [0 m, 0 m], radios: {wlan0: }}
  n2: {position: [1 m, 0 m], radios: {wlan0: }}
"""
EXPERIMENT = """\
duration: 4 s
programs:
  - {node: n1, name: first, run: "sh -c 'echo here; sleep 60'", expect: null, ready: {log: here}}
  - {node: n2, name: second, run: "sh -c 'echo there; sleep 60'", after: first, expect: null}
  - {node: n2, name: exec, run: echo hello}
  - {node: n1, name: after-wait, run: echo waited, at: 1 s}
measurements:
  - {name: flow, traffic: {from: n1, to: n2, rate: 1 Mbit/s, at: 0.5 s, duration: 1 s}}
sweep: {"measurements[flow].traffic.rate": [1 Mbit/s, 2 Mbit/s]}
events:
  - {at: 0.5 s, radio: n1, tune: {power: 10 dBm}}
  - {at: 1 s, radio: n1, tune: {power: 11 dBm}}
  - {at: 2 s, program: first, action: stop}
  - {at: 2 s, program: second, action: stop}
"""
VERBS = {
    "defProperty('rate', 10, ...)", "defApplication", "defGroup('senders', 'node1,node2')",
    "node.addApplication(...)", 'node.net.w0.mode = "adhoc"', "onEvent(:ALL_UP)",
    "onEvent(:ALL_UP_AND_INSTALLED)", "group('senders').startApplications",
    "group('senders').exec(\"COMMAND\")", "wait 30", "after 10 do ... end", "every 5 do ... end",
    "group('senders').stopApplications", "defGraph", "Experiment.done",
}  # fmt: skip
"""Rows that the tests below go through; `defGraph` is `airloom report`, which has tests of its own."""


def test_the_table_has_no_row_that_is_not_tried_here() -> None:
    page = (REPOSITORY / "docs" / "guide" / "orbit.md").read_text()
    table = page.partition("| OEDL |")[2].partition("\n\n")[0].splitlines()[2:]
    assert {re.match(r"\| `([^`]+)`", row)[1] for row in table} == VERBS


def test_in_python(tmp_path: Path) -> None:
    file = tmp_path / "group.yaml"
    file.write_text(TESTBED)

    def experiment(rate: str) -> float:  # defProperty
        with airloom.Lab(file, out=tmp_path / rate) as lab:  # onEvent(:ALL_UP), ALL_UP_AND_INSTALLED
            senders = [lab[name] for name in ("n1", "n2")]  # defGroup
            for name in ("n1", "n2"):
                lab.radio(name).set(channel=40)  # node.net.w0.channel
            assert {radio.info()["channel"] for radio in lab.radios} == {40}
            programs = [node.start("sleep 60") for node in senders]  # addApplication, startApplications
            assert [node.run("echo hello").stdout for node in senders] == ["hello\n"] * 2  # exec
            happened: list[str] = []
            after = threading.Timer(0.3, happened.append, ["after"])  # after
            after.start()
            for _ in range(3):  # every
                happened.append("every")
                time.sleep(0.2)  # wait
            after.join()
            assert sorted(happened) == ["after", "every", "every", "every"]
            flow: dict[str, Any] = {"from": "n1", "to": "n2", "rate": rate, "duration": "1 s"}
            reading = lab.measure("flow", traffic=flow)  # defMeasurement
            assert [program.stop() for program in programs] == [143, 143]  # stopApplications
        # Experiment.done
        return next(metric.value for metric in reading.metrics() if metric.name == "offered")

    assert experiment("2 Mbit/s") > 1.5 * experiment("1 Mbit/s")


def test_as_a_scenario(tmp_path: Path) -> None:
    file = tmp_path / "group.yaml"
    file.write_text(TESTBED + EXPERIMENT)
    done = airloom.run(file, overrides=["media.air.radio.channel=40"], out=tmp_path / "r")
    offered = done.measurements.query("metric == 'offered'")["mean"]
    assert offered.max() > 1.5 * offered.min()
    for point in sorted((tmp_path / "r").glob("**/nodes")):
        said = {path.stem: path.read_text() for path in point.glob("*/*.log")}
        expected = {"first": "here\n", "second": "there\n", "exec": "hello\n", "after-wait": "waited\n"}
        assert said == expected
    assert len(list((tmp_path / "r").glob("**/nodes"))) == 2
