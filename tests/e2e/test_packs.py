"""``airloom experiment pack``, ``unpack``, ``rerun``, and ``compare --trends``."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from helpers import forked

pytestmark = [pytest.mark.world, pytest.mark.timeout(120)]

# Three repetitions of a long delay: one echo that waits for a processor does not hide the trend.
SCENARIO = """\
name: packed
nodes: {a: , b: }
links: [{ends: [a, b], delay: 10 ms}]
measurements: [{name: rtt, ping: {from: a, to: b, count: 3, interval: 20 ms}}]
programs: [{node: b, run: [./note.sh], folder: .}]
sweep: {"links[0].delay": [10 ms, 100 ms]}
repetitions: 3
"""


def airloom(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return forked.run(words, folder, os.environ, timeout=100)


def test_a_pack_is_run_again_and_its_trend_persists(tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    lab.mkdir()
    (lab / "s.yaml").write_text(SCENARIO)
    (lab / "note.sh").write_text("#!/bin/sh\necho packed\n")
    (lab / "note.sh").chmod(0o755)
    assert airloom(tmp_path, "run", "lab/s.yaml", "--out", "r", "-q").returncode == 0
    done = airloom(tmp_path, "experiment", "pack", "r", "-o", "p.zip")
    assert done.returncode == 0, done.stderr
    lab.rename(tmp_path / "gone")
    again = airloom(tmp_path, "experiment", "rerun", "p.zip", "-o", "new", "--json", "t.json")
    assert again.returncode == 0, again.stderr
    found = json.loads((tmp_path / "t.json").read_text())
    mean = next(one for one in found["trends"] if one["metric"] == "rtt_mean")
    assert mean["directions"] == ["up", "up"]
    assert mean["outcome"] == "same"
    log = tmp_path / "new" / "rerun" / "points" / "p0000-r00" / "nodes" / "b" / "b-note-sh.log"
    assert log.read_text() == "packed\n"
    compared = airloom(tmp_path, "compare", "new/results", "new/rerun", "--trends", "--json", "-")
    assert json.loads(compared.stdout)["trends"] == found["trends"]


def test_a_pack_with_another_content_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("name: s\nnodes: {a: }\n")
    assert airloom(tmp_path, "run", "s.yaml", "--out", "r", "-q").returncode == 0
    assert airloom(tmp_path, "experiment", "pack", "r", "-o", "p.zip").returncode == 0
    with zipfile.ZipFile(tmp_path / "p.zip") as source, zipfile.ZipFile(tmp_path / "q.zip", "w") as sink:
        for name in source.namelist():
            octets = source.read(name)
            sink.writestr(
                name, octets.replace(b"nodes", b"nodfs") if name.endswith("scenario.yaml") else octets
            )
    for words in (("unpack", "q.zip", "-o", "new"), ("rerun", "q.zip", "-o", "new")):
        done = airloom(tmp_path, "experiment", *words)
        assert done.returncode == 2
        assert "q.zip: the member 'results/scenario.yaml' does not match its digest" in done.stderr
    assert not (tmp_path / "new").exists()
    gone = airloom(tmp_path, "experiment", "pack", "nothing")
    assert gone.returncode == 2
    assert "there are no results in nothing or out/nothing" in gone.stderr
