"""Guests whose root file system is their own: a folder, or a disk image of which they write a copy."""

from __future__ import annotations

from pathlib import Path

import pytest

import airloom
from airloom import RunError, Scenario
from airloom.nodes.all_nodes import KINDS
from helpers.images import disk, tree

pytestmark = pytest.mark.world


@pytest.mark.parametrize("form", ["folder", "image"])
@pytest.mark.parametrize("kind", ["uml", "qemu"])
def test_a_guest_runs_from_a_root_of_its_own(tmp_path: Path, kind: str, form: str) -> None:
    for lacking in KINDS[kind].lacks():
        pytest.skip(f"{lacking.message}: {lacking.cure}")
    root = tree(tmp_path / "tree")
    if form == "image":
        root = disk(root)
        before = root.read_bytes()
    scenario = Scenario.model_validate(
        {
            "name": "roots",
            "nodes": {"guest": {"kind": kind, "guest": {"root": str(root)}}, "other": {}},
            "links": [{"ends": ["guest", "other"]}],
        }
    )
    with airloom.Lab(scenario, out=tmp_path / "out") as lab:
        guest = lab["guest"]
        assert guest.run("cat /etc/mark; hostname", timeout=110, check=True).stdout == "of the tree\nguest\n"
        guest.run("echo changed > /etc/mark; mkdir /new; echo x > /new/file; sync", timeout=60, check=True)
        assert guest.run("cat /etc/mark /new/file", timeout=60).stdout == "changed\nx\n"
        assert not guest.run("ls /usr", timeout=60).ok, "nothing of the host is there"
        with pytest.raises(RunError, match="node guest: cannot start python3: no such program"):
            guest.run(["python3", "-V"], timeout=60)
        assert lab["other"].run("ping -n -q -c 3 -W 5 guest", timeout=60).ok
        assert guest.run(f"ping -c 3 {lab.addresses['other']}", timeout=60).ok
    if form == "image":
        assert root.read_bytes() == before
    else:
        assert (root / "etc/mark").read_text() == "of the tree\n"
        assert not (root / "new").exists()
