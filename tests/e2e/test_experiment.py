"""``airloom experiment``: an experiment of one's own runs, goes on where it was, and reports its claims."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from airloom.experiments import orbit
from helpers import forked

pytestmark = [pytest.mark.world, pytest.mark.timeout(180)]

PAPER = """\
id,says,figure,line,x,value,unit,source,flag,reason,needs
queue,"short queues lose 9.2 Mbit/s",throughput,,40,,,E-1,,,
wrong,"80,000 packets/s",throughput,thesis,40,9,Mbit/s,E-2,P-1,"not on the air",
"""
EXPERIMENT = '''
"""Bursts of senders in turns, lost in a short queue and absorbed by a long one."""

from pathlib import Path

from airloom.experiments import orbit
from airloom.experiments import paper as published
from airloom.experiments.campaign import Campaign
from airloom.experiments.extent import Extent
from airloom.experiments.orbit import Grid, Platform


def run(folder, *, extent, progress, kinds=("netns",)):
    paper = published.read(Path(__file__).with_name("paper.csv"))
    platform = Platform(kinds[0], 2, turns=100)
    with Campaign("tiny", folder, paper=paper, progress=progress, kinds=kinds) as campaign:
        cases = []
        for queue in (40, 1000):
            grid = Grid(platform, buffers=queue, queue=queue)
            flows = [grid.flow(slice, 50, 3) for slice in platform.flows]
            cases.append(orbit.case(grid, "tiny", flows, 3, queue=queue))
        found = campaign.measure(cases, figures, Extent.QUICK.repetitions("throughput"))
        for queue in (40, 1000):
            model = orbit.shared_queue(queue, 0.1) / 1e6
            campaign.claim(
                f"model-{queue}", "What a queue lets through.", f"sliver within 10 % of {model:.3f} Mbit/s",
                says="queue", sliver=found.sample("throughput", platform=platform.name, queue=queue),
            )
        campaign.claim("air", "So many packets.", "sliver >= 40 Mbit/s", says="wrong",
                       sliver=found.sample("throughput", platform=platform.name, queue=1000))
        campaign.claim("missing", "Nobody measured this.", "nothing >= 1", says="queue", nothing=None)
        campaign.draw(orbit.figure(found, [platform], "throughput", "t", "throughput", "queue", (40, 1000),
                                   y_label="throughput", unit="Mbit/s", scale=1e6, x_label="queue"))
        return campaign.finish()


def figures(case, reader):
    return {"throughput": (orbit.value(reader, orbit.flows_of(reader), "throughput_steady"), "bit/s")}
'''


def airloom(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return forked.run(("experiment", *words), folder, os.environ, timeout=150)


@pytest.mark.measures
def test_an_experiment_runs_reports_and_resumes(tmp_path: Path) -> None:
    folder = tmp_path / "experiments" / "tiny"
    folder.mkdir(parents=True)
    (folder / "paper.csv").write_text(PAPER)
    (folder / "experiment.py").write_text(EXPERIMENT)
    assert "tiny" in airloom(tmp_path, "list").stdout
    done = airloom(tmp_path, "run", "tiny", "--kind", "netns", "--out", "results")
    assert done.returncode == 4, done.stderr
    assert "2 points, once each: about" in done.stdout
    assert "1/2 netns-turns-100_queue-40-r00, repetition 1, about" in done.stdout
    result = json.loads((tmp_path / "results" / "result.json").read_text())
    claims = {one["id"]: one for one in result["claims"]}
    # The formula of the waiting slice, measured with real programs that are stopped and continued.
    carried = {one["labels"]["queue"]: one["mean"] for one in result["measurements"]}
    for queue in (40, 1000):
        assert carried[str(queue)] == pytest.approx(orbit.shared_queue(queue, 0.1), rel=0.1)
        assert claims[f"model-{queue}"]["outcome"] == "undecided", "one run has no interval"
    assert [(one["n"], one["stopped"]) for one in result["repeated"]] == [(1, "a fixed number of runs")] * 2
    assert claims["air"]["outcome"] == "undecided"
    assert claims["air"]["published"] == "80,000 packets/s [P-1: not on the air]"
    assert claims["missing"]["outcome"] == "undecided"
    (figure,) = json.loads((tmp_path / "results" / "figures.json").read_text())["figures"]
    assert [line["role"] for line in figure["lines"]] == ["measured", "published"]
    assert figure["marks"][0]["x"] == 40

    begun = time.monotonic()
    again = airloom(tmp_path, "run", "tiny", "--kind", "netns", "--out", "results")
    assert again.returncode == 4
    assert time.monotonic() - begun < 60
    stamps = {path.stat().st_mtime_ns for path in (tmp_path / "results" / "points").glob("*/result.json")}
    assert max(stamps) < time.time_ns() - (time.monotonic() - begun) * 1e9, "nothing is measured twice"

    unknown = airloom(tmp_path, "run", "tiny", "--kind", "vax", "--out", "other")
    assert unknown.returncode == 2
    assert "there is no kind 'vax' (there are: netns" in unknown.stderr
