"""The stages of a packet's path, measured on a real link."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import yaml

import airloom
from airloom import Scenario
from airloom.compare.kinds import on_kinds, prepared
from airloom.compare.runs import compare
from airloom.results import RunReader

pytestmark = [pytest.mark.world, pytest.mark.measures]


def test_the_emulated_network_takes_what_it_should_and_the_rest_is_the_hosts(tmp_path: Path) -> None:
    scenario = Scenario.model_validate(
        {
            "name": "stages",
            "nodes": {"a": {}, "b": {}},
            "links": [{"ends": ["a", "b"], "rate": "10 Mbit/s", "delay": "5 ms"}],
            "measurements": [
                {
                    "name": "flow",
                    "traffic": {
                        "from": "a", "to": "b", "interval": "4 ms", "size": "500 B", "duration": "1 s",
                        "stages": True,
                    },
                }
            ],
        }
    )  # fmt: skip
    run = airloom.run(scenario, out=tmp_path / "out")
    found = {one.metric: one.mean for one in run.result.measurements}
    wire = 8 * (14 + 20 + 8 + 500 + 4 + 20) * 100  # 10 Mbit/s: 100 ns a bit
    assert found["stage_network_p50"] == 5_000_000 + wire
    stages = ("send_stack", "send_queue", "send_device", "network", "receive_device")
    means = [found[f"stage_{name}_mean"] for name in stages]
    assert all(one is not None and one > 0 for one in means)
    assert sum(means) == pytest.approx(found["delay_mean"], abs=20_000)
    assert all(found[f"stage_{name}_lost"] == 0 for name in (*stages, "receive_stack"))
    assert found["stage_system_call"] > 0
    assert not (run.folder / "stages.pcapng").exists()


def test_one_scenario_on_two_kinds_side_by_side(tmp_path: Path) -> None:
    flow = {"from": "a", "to": "b", "interval": "4 ms", "size": "500 B", "duration": "1 s", "stages": True}
    scenario = {
        "name": "pair",
        "nodes": {"a": {}, "b": {}},
        "links": [{"ends": ["a", "b"], "rate": "10 Mbit/s"}],
        "measurements": [{"name": "flow", "traffic": flow}],
    }
    source = tmp_path / "pair.yaml"
    source.write_text(yaml.safe_dump(scenario))
    first, second = on_kinds(prepared(source, ["netns", "native"]), out=tmp_path / "out")
    found = compare(first, second)
    assert (found.first.kinds, found.second.kinds) == (("netns",), ("native",))
    assert {row.metric for row in found.rows} >= {"throughput", "delay_mean"}
    stages = {(row.begin, row.end): row for row in found.stages}
    assert ("driver", "arrived") in stages
    # HTB lets a thin flow pass at once; the emulated wire takes 10 Mbit/s seriously.
    assert stages["driver", "arrived"].first_ns > 400_000 > stages["driver", "arrived"].second_ns
    assert {row.component for row in found.components} >= {"engine"}


@pytest.mark.skipif(shutil.which("perf") is None or os.geteuid() != 0, reason="needs root and linux-perf")
def test_samples_tell_the_engine_from_what_runs_in_the_nodes(tmp_path: Path) -> None:
    scenario = {
        "name": "profiled",
        "nodes": {"a": {}, "b": {}},
        "links": [{"ends": ["a", "b"]}],
        "programs": [{"node": "a", "run": "sh -c 'while :; do :; done'", "until_end": True, "expect": None}],
        "measurements": [
            {"name": "echo", "ping": {"from": "a", "to": "b", "count": 20, "interval": "50 ms"}}
        ],
    }
    airloom.run(Scenario.model_validate(scenario), out=tmp_path / "out", profile=True)
    found = RunReader(tmp_path / "out").details.profile
    whole = {one.component: one.share for one in found if not one.place}
    assert whole["guest_user"] > 0.5, "a program that does nothing but compute"
    assert not (tmp_path / "out" / "perf.data").exists()
