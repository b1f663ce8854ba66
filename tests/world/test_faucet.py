"""Faucet, a controller that reads its network from a file and installs all flows beforehand."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

import airloom
from airloom import Scenario
from helpers.nodes import eventually

FAUCET = Path(os.environ.get("AIRLOOM_TEST_FAUCET", Path(sys.prefix, "faucet/bin/faucet")))

pytestmark = [
    pytest.mark.world,
    pytest.mark.skipif(
        shutil.which("ovs-vswitchd", path="/usr/sbin:/usr/bin") is None,
        reason="sudo apt-get install openvswitch-switch",
    ),
    pytest.mark.skipif(not FAUCET.exists(), reason="Faucet is not installed: make test installs it"),
]

CONFIG = """\
vlans:
  office: {vid: 100}
  guests: {vid: 200}
dps:
  s1:
    dp_id: 1
    hardware: Open vSwitch
    interfaces:
      1: {native_vlan: office}
      2: {native_vlan: office}
      3: {native_vlan: guests}
"""


def test_faucet_keeps_vlans_apart(tmp_path: Path) -> None:
    # It starts osken-manager, which is beside it.
    settings = f"PATH={FAUCET.parent}:$PATH FAUCET_CONFIG=/etc/faucet.yaml"
    logs = "FAUCET_LOG=STDOUT FAUCET_EXCEPTION_LOG=STDOUT"
    scenario = Scenario.model_validate(
        {
            "name": "faucet",
            "nodes": {"h1": {}, "h2": {}, "h3": {}, "c0": {"files": {"/etc/faucet.yaml": CONFIG}}},
            "switches": {
                "s1": {"kind": "openvswitch", "controllers": ["tcp:c0:6653"], "protocols": ["OpenFlow13"]}
            },
            "links": [{"ends": [host, "s1"]} for host in ("h1", "h2", "h3")],
            "addresses": {"ipv4": "10.0.0.0/24"},
            "programs": [
                {
                    "node": "c0",
                    "name": "faucet",
                    "run": f"env {settings} {logs} {FAUCET} --verbose",
                    "ready": {"port": 6653, "within": "60 s"},
                    "until_end": True,
                    "expect": None,
                }
            ],
        }
    )
    with airloom.Lab(scenario, out=tmp_path / "out") as lab:

        def answers(to: str) -> bool:
            return lab["h1"].run(["ping", "-c", "1", "-W", "0.5", to]).ok

        eventually(lambda: answers("h2"), "Faucet has installed no flows", within=30)
        assert not answers("h3"), "it is on another VLAN of Faucet's configuration"
        flows = lab["s1"].run("ovs-ofctl -O OpenFlow13 dump-flows br0", check=True).stdout
        # Faucet's pipeline has several tables, beginning with that of VLANs.
        assert "goto_table" in flows
        assert "dl_vlan=100" in flows
