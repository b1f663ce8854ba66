"""Daemons of FRR with a generated configuration find the ways of a network."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest

import airloom
from airloom import Scenario
from airloom.planning.routing.frr import FOLDER

pytestmark = [
    pytest.mark.world,
    pytest.mark.skipif(not os.access(f"{FOLDER}/zebra", os.X_OK), reason="FRR is not installed"),
]


@pytest.mark.timeout(200)
@pytest.mark.parametrize("protocol", ["ospf", "isis", "bgp"])
def test_routers_converge_before_anything_is_measured(protocol: str, tmp_path: Path) -> None:
    names = ["h1", "r1", "r2", "r3", "h2"]
    scenario = Scenario.model_validate(
        {
            "name": "routers",
            "routing": protocol,
            "addresses": {"ipv4": "10.0.0.0/8", "ipv6": "fd00::/48"},
            "nodes": {name: {} for name in names},
            "links": [{"ends": [a, b]} for a, b in pairwise(names)],
            "measurements": [
                {"name": f"rtt{family[-1]}", "ping": {"from": "h1", "to": "h2", "count": 3, "family": family}}
                for family in ("ipv4", "ipv6")
            ],
        }
    )
    result = airloom.run(scenario, out=tmp_path / "out")
    received = {one.name: one.mean for one in result.result.measurements if one.metric == "received"}
    assert received == {"rtt4": 3, "rtt6": 3}, "the first packets have a route already"
