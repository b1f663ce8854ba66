"""Permanent neighbour entries of a plan that may exceed the limit of the kernel's table."""

from __future__ import annotations

import pytest

import airloom
from airloom import Scenario
from airloom.errors import HostError
from airloom.planning.links import neighbours

pytestmark = pytest.mark.world


@pytest.fixture(autouse=True)
def _limit(tmp_path, monkeypatch):
    (tmp_path / "limit").write_text("1\n")
    monkeypatch.setattr(neighbours, "LIMIT", tmp_path / "limit")


def test_nodes_of_a_link_reach_each_other_without_address_resolution(tmp_path):
    scenario = {
        "name": "static",
        "addresses": {"ipv4": "10.0.0.0/16", "ipv6": "fd00::/48"},
        "nodes": {"a": {}, "r": {"forwarding": True}, "b": {}},
        "links": [{"ends": ["a", "r"]}, {"ends": ["r", "b"]}],
    }
    with airloom.Lab(Scenario.model_validate(scenario), out=tmp_path / "out") as lab:

        def entries(name: str) -> list[str]:
            lines = lab[name].run("ip neigh show nud all", check=True).stdout.splitlines()
            # Those of multicast need no resolution; daemons of IPv6 have link-local ones.
            return sorted(line.split()[0] for line in lines if not line.endswith(("NOARP", "FAILED")))

        def permanent(name: str) -> list[str]:
            lines = lab[name].run("ip neigh show nud permanent", check=True).stdout.splitlines()
            return sorted(line.split()[0] for line in lines)

        assert lab["a"].run("ping -4 -c 1 -W 5 b").ok
        assert [len(permanent(name)) for name in "arb"] == [2, 4, 2]
        assert [one for one in entries("a") if not one.startswith(("fe80", "ff02"))] == permanent("a")
        lab["r"].kill()
        lab["r"].restart()
        assert len(permanent("r")) == 4
        # The kernels of its neighbours take a moment to see that their carrier is there again.
        assert lab["b"].run("ping -4 -c 10 -i 0.2 -W 5 a").ok


def test_a_run_of_more_programs_than_the_table_holds_is_refused_before_the_start(tmp_path):
    scenario = {
        "name": "refused",
        "nodes": {"a": {}, "b": {}, "c": {}},
        "switches": {"s": {}},
        "links": [{"ends": [name, "s"]} for name in "abc"],
        "programs": [{"name": f"p{name}", "node": name, "run": ["true"]} for name in "abc"],
    }
    with pytest.raises(HostError, match=r"gc_thresh3=12.*host\.neighbours"):
        airloom.run(Scenario.model_validate(scenario), out=tmp_path / "out")
