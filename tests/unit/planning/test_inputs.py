"""Which files a scenario's runs depend on, and what stands for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airloom.planning import inputs
from airloom.planning.gate import check

BASE = """\
name: files
nodes: {a: , b: }
links:
  - ends: [a, b]
    trace: TRACE
measurements:
  - {name: flow, traffic: {from: a, to: b, pattern: trace, trace: own.packets}}
programs:
  - {node: a, run: ./serve.sh --often, folder: .}
  - {node: b, run: [python3, client.py], folder: .}
  - {node: b, run: sleep 1}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "up.trace").write_text("1\n2\n")
    (tmp_path / "down.trace").write_text("1\n3\n")
    (tmp_path / "own.packets").write_text("0 100\n1000 100\n")
    (tmp_path / "serve.sh").write_text("#!/bin/sh\n")
    (tmp_path / "client.py").write_text("")
    return tmp_path


def digests(folder: Path, text: str) -> dict[str, str]:
    file = folder / "scenario.yaml"
    file.write_text(text)
    return inputs.digests(plan.scenario for plan in check(file).plans)


def names(folder: Path, text: str) -> list[str]:
    return [os.path.relpath(path, folder) for path in digests(folder, text)]


def test_all_files_of_a_scenario_are_found(folder: Path) -> None:
    expected = ["client.py", "own.packets", "serve.sh", "up.trace"]
    assert names(folder, BASE.replace("TRACE", "up.trace")) == expected


def test_the_files_of_every_point_are_found(folder: Path) -> None:
    text = BASE.replace("TRACE", "up.trace") + "sweep: {'links[0].trace': [up.trace, down.trace]}\n"
    assert {"up.trace", "down.trace"} < set(names(folder, text))


def test_a_digest_is_of_the_content(folder: Path) -> None:
    text = BASE.replace("TRACE", "up.trace")
    before = digests(folder, text)
    (folder / "up.trace").touch()
    assert digests(folder, text) == before
    (folder / "up.trace").write_text("1\n2\n5\n")
    after = digests(folder, text)
    assert [os.path.basename(path) for path in before if before[path] != after[path]] == ["up.trace"]


def test_a_folder_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "root" / "etc").mkdir(parents=True)
    (tmp_path / "root" / "etc" / "hosts").write_text("one")
    (tmp_path / "root" / "link").symlink_to("etc")
    before = inputs.digest(str(tmp_path / "root"))
    assert before == inputs.digest(str(tmp_path / "root"))
    (tmp_path / "root" / "etc" / "hosts").write_text("two and more")
    after = inputs.digest(str(tmp_path / "root"))
    assert after != before
    (tmp_path / "root" / "link").unlink()
    assert inputs.digest(str(tmp_path / "root")) not in (before, after)


def test_what_is_not_there_has_no_digest(tmp_path: Path) -> None:
    assert inputs.digest(str(tmp_path / "nothing")) == inputs.MISSING


MOUNTED = """\
name: mounted
nodes: {a: {mounts: [{source: ./shared, target: /srv}, {source: one.sh, target: /one.sh},
                     {source: ./out, target: /out, mode: rw}]}}
"""


def test_what_a_node_mounts_is_an_input_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "shared/inner").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    script = tmp_path / "shared/inner/run.sh"
    script.write_text("echo 1\n")
    (tmp_path / "one.sh").write_text("echo 1\n")
    first = digests(tmp_path, MOUNTED)
    # What programs write is no input.
    assert {os.path.relpath(path, tmp_path) for path in first} == {"shared", "one.sh"}
    os.utime(script, (0, 0))
    (tmp_path / "out/result").write_text("1")
    assert digests(tmp_path, MOUNTED) == first, "neither times nor what a run writes count"
    script.write_text("echo 2\n")
    assert digests(tmp_path, MOUNTED)[str(tmp_path / "shared")] != first[str(tmp_path / "shared")]
    script.write_text("echo 1\n")
    script.chmod(0o755)
    assert digests(tmp_path, MOUNTED) != first


def test_a_folder_with_other_things_than_files_has_a_digest_too(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/one").write_text("1")
    assert inputs.digest(str(tmp_path / "shared")).startswith("tree:")
    os.mkfifo(tmp_path / "shared/pipe")
    before = inputs.digest(str(tmp_path / "shared"))
    assert before.startswith("folder:")
    assert inputs.digest(str(tmp_path / "shared/pipe")) == "special:pipe"
    (tmp_path / "shared/one").write_text("11")
    assert inputs.digest(str(tmp_path / "shared")) != before
