"""Switches with shortest paths between real programs: a ring, a fat tree, links that go down."""

from __future__ import annotations

import time

import pytest

import airloom
from airloom import Scenario

pytestmark = pytest.mark.world

SHORTEST = {"forwarding": "shortest-path", "convergence": "20 ms"}


def average(ping: str) -> float:
    """Mean round-trip time in ms that ping printed."""
    return float(ping.rsplit("= ", 1)[1].split("/")[1])


def test_a_ring_takes_the_short_side_until_it_is_cut(tmp_path):
    scenario = Scenario.model_validate(
        {
            "name": "ring",
            "topology": {
                "generator": "ring",
                "nodes": 5,
                "prefix": "s",
                "switched": True,
                "switch": SHORTEST,
                "link": {"delay": "10 ms"},
            },
            "nodes": {"h1": {}, "h2": {}},
            "links": [{"ends": ["h1", "s1"]}, {"ends": ["h2", "s2"]}],
        }
    )
    with airloom.Lab(scenario, out=tmp_path / "out") as lab:

        def rtt() -> float:
            return average(lab["h1"].run("ping -n -q -c 3 -i 0.05 h2", check=True).stdout)

        assert 20 <= rtt() < 40
        lab.link("s1", "s2").down()
        time.sleep(0.1)
        assert 80 <= rtt() < 100, "the other four links"
        lab.link("s1", "s2").up()
        time.sleep(0.1)
        assert 20 <= rtt() < 40
        ledger = lab._one.world.engine.ledger()
        assert ledger["dropped"].get("nowhere", 0) == 0


def test_hosts_of_a_fat_tree_reach_each_other_without_duplicates(tmp_path):
    scenario = Scenario.model_validate(
        {
            "name": "fat-tree",
            "topology": {
                "generator": "fat-tree",
                "k": 4,
                "switched": True,
                "switch": SHORTEST,
                "link": {"rate": "1 Gbit/s", "delay": "1 ms"},
            },
        }
    )
    with airloom.Lab(scenario, out=tmp_path / "out") as lab:
        assert set(lab.nodes) == {f"n{number}" for number in range(1, 17)}
        # One switch, three switches within a pod, five between pods: a link each more than switches.
        for target, links in (("n2", 2), ("n3", 4), ("n16", 6)):
            done = lab["n1"].run(f"ping -n -c 5 -i 0.05 {target}", check=True).stdout
            assert "DUP" not in done
            assert " 0% packet loss" in done
            assert 2 * links <= average(done) < 2 * links + 8
        # TCP crosses as super-frames, several flows at once on all equal paths.
        lab["n16"].start("iperf3 -s -1")
        lab["n1"].run("sh -c 'until iperf3 -c n16 -P 16 -n 20M; do sleep 0.2; done'", check=True)
        ledger = lab._one.world.engine.ledger()
        cores = [ledger["switches"][f"core{number}"]["entered"] for number in range(1, 5)]
        assert min(cores) > 100, "each of the four cores carries some of the flows"
