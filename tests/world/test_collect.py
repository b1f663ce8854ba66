"""Files that come out of nodes of every kind after the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom import Scenario
from helpers.kernels import BUILT, needs_built

pytestmark = [pytest.mark.world, pytest.mark.timeout(180)]


@pytest.mark.parametrize(
    "kind",
    ["netns", "native", pytest.param("uml", marks=needs_built)],
)
def test_files_come_out_of_a_node(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "inside"
    # Only this machine's files outlast the run in a node without files of its own.
    place.mkdir()
    node: dict[str, Any] = {"collect": [f"{place}/*.txt", f"{place}/folder", f"{place}/none"]}
    if kind == "uml":
        node["guest"] = {"kernel": str(BUILT)}
    scenario = {
        "name": "collect",
        "kind": kind,
        "nodes": {"a": node, "b": {}},
        "links": [{"ends": ["a", "b"]}],
    }
    with airloom.Lab(Scenario.model_validate(scenario), out=tmp_path / "out") as up:
        for command in (
            f"mkdir -p {place}/folder/deep && echo one > {place}/one.txt",
            f"head -c 300000 /dev/zero > {place}/folder/deep/zeros; ln -s /etc/hostname {place}/link.txt",
            f"mkfifo {place}/pipe.txt; ln -s / {place}/folder/root",
        ):
            assert up["a"].run(command, timeout=60).ok
    taken = tmp_path / "out/nodes/a/collected"
    found = {str(path.relative_to(taken)) for path in taken.rglob("*") if not path.is_dir()}
    inside = str(place).lstrip("/")
    assert found == {f"{inside}/one.txt", f"{inside}/folder/deep/zeros"}
    assert (taken / inside / "one.txt").read_text() == "one\n"
    assert (taken / inside / "folder/deep/zeros").read_bytes() == bytes(300_000)
    notes = sorted(note for note in up.result.result.verdict.notes if note.startswith("collect of a: "))
    assert [note.removeprefix(f"collect of a: {place}/") for note in notes] == [
        "folder/root: a link is not collected",
        "link.txt: a link is not collected",
        "none: there is no such file",
        "pipe.txt: devices, pipes and sockets are not collected",
    ]
