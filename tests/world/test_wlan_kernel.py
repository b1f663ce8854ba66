"""Radios of the kernel of the machine on which Airloom runs: here that of a guest."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import airloom
from airloom import Scenario
from helpers.kernels import needs_built
from helpers.nodes import airloom_in_nodes
from helpers.wlan import needs, said

pytestmark = [pytest.mark.world, pytest.mark.timeout(300), needs_built]

TESTS = Path(__file__).parents[1]


def test_nodes_of_a_machine_have_radios_of_its_kernel(tmp_path: Path) -> None:
    """The kernel of make kernel has ``mac80211_hwsim`` built in, with no radios of its own."""
    needs("iw", "hostapd", "wpa_supplicant")
    airloom_in_nodes()
    guest = {"kernel": "built", "memory": "640 MiB"}
    machine = Scenario.model_validate(
        {"name": "machine", "nodes": {"machine": {"kind": "uml", "guest": guest}}}
    )
    folders = [str(TESTS), str(Path(airloom.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    with airloom.Lab(machine, out=tmp_path / "out") as up:
        # The kernel reads the database before it has a root file system.
        said(up["machine"], "iw reg reload && iw reg set US && ip link set lo up")
        done = up["machine"].run(
            [sys.executable, "-m", "helpers.kernel_radios", "/srv/radios"],
            env={"PYTHONPATH": ":".join(folders)},
            timeout=240,
        )
    assert done.ok, done.stdout + done.stderr
    seen = {report.pop("part"): report for report in map(json.loads, done.stdout.splitlines())}
    run = seen["run_of_a_cell"]
    assert (run["received"], run["dropped"], run["host_lost"]) == (20, {}, 0)
    joined = seen["join_with_wpa2"]
    assert (joined["others"], joined["there"]) == (2, 4), "the kernel's numbers do not begin with 0"
    assert joined["phys"] == 1, "a node sees no radio but its own"
    assert joined["signal"] == joined["account"]
    assert seen["two_at_once"]["heard"] == [1, 1]
    assert seen["end_of_the_controller"]["before"] == 2
