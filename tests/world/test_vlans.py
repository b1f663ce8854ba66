"""VLANs of the engine's switches, and frames of all sizes, between real programs."""

from __future__ import annotations

import pytest

import airloom
from airloom import Scenario

pytestmark = pytest.mark.world


def two_switches(**more):
    """Two hosts in VLAN 10, two in VLAN 20, on two switches with one trunk between them."""
    return Scenario.model_validate(
        {
            "name": "vlans",
            "nodes": {"a1": {}, "a2": {}, "b1": {}, "b2": {}},
            "switches": {"s1": {}, "s2": {}},
            "links": [
                {"ends": ["a1", "s1"], "vlan": 10},
                {"ends": ["a2", "s2"], "vlan": 10},
                {"ends": ["b1", "s1"], "vlan": 20},
                {"ends": ["b2", "s2"], "vlan": 20},
                {"ends": ["s1", "s2"], "trunk": [10, 20], "native": 20, "delay": "2 ms"},
            ],
            **more,
        }
    )


def test_two_vlans_share_a_trunk_and_nothing_else(tmp_path):
    with airloom.Lab(two_switches(), out=tmp_path / "out") as lab:
        for source, target in (("a1", "a2"), ("b1", "b2")):
            done = lab[source].run(f"ping -n -q -c 3 -i 0.05 {target}", check=True)
            assert 4 <= float(done.stdout.rsplit("= ", 1)[1].split("/")[0]) < 10
            # TCP crosses as super-frames, which get their tags on the trunk.
            lab[target].start("iperf3 -s -1")
            lab[source].run(f"sh -c 'until iperf3 -c {target} -n 20M; do sleep 0.2; done'", check=True)
        # An address of the other VLAN's network does not lead into it.
        lab["b1"].run("ip addr add 10.0.0.99/24 dev eth0", check=True)
        assert "0 received" in lab["b1"].run("ping -n -c 2 -i 0.1 -W 1 10.0.0.1").stdout
        assert lab._one.world.engine.ledger()["dropped"].get("wrong-vlan", 0) == 0


def test_a_router_leads_from_one_vlan_to_another(tmp_path):
    scenario = two_switches().model_dump(mode="json", exclude_defaults=True)
    scenario["nodes"]["r1"] = {}
    scenario["links"] += [{"ends": ["r1", "s1"], "vlan": 10}, {"ends": ["r1", "s2"], "vlan": 20}]
    with airloom.Lab(Scenario.model_validate(scenario), out=tmp_path / "out") as lab:
        done = lab["a1"].run("ping -n -c 3 -i 0.05 b2", check=True)
        assert "ttl=63" in done.stdout


def test_a_node_behind_a_trunk_gets_tagged_frames(tmp_path):
    scenario = Scenario.model_validate(
        {
            "name": "tagged",
            "nodes": {"h1": {}, "h2": {}},
            "switches": {"s1": {}},
            "links": [{"ends": ["h1", "s1"], "vlan": 10}, {"ends": ["h2", "s1"], "trunk": [10]}],
        }
    )
    with airloom.Lab(scenario, out=tmp_path / "out", capture=airloom.Capture(merged=True)) as lab:
        # Nobody answers: the host's kernel drops what has a tag that it has no interface for.
        lab["h1"].run("ping -n -c 1 -W 0.3 10.0.0.77")
    frames = next((tmp_path / "out").glob("*.pcapng")).read_bytes()
    assert bytes.fromhex("8100000a0806") in frames


@pytest.mark.parametrize("mtu", [576, 1500, 9216])
def test_packets_of_the_full_size_cross_links_switches_and_routers(tmp_path, mtu):
    link = {"mtu": mtu, "rate": "1 Gbit/s"}
    scenario = Scenario.model_validate(
        {
            "name": "sizes",
            "nodes": {"h1": {}, "r1": {}, "h2": {}},
            "switches": {"s1": {}},
            "links": [
                {"ends": ["h1", "s1"], **link},
                {"ends": ["s1", "r1"], **link},
                {"ends": ["r1", "h2"], **link},
            ],
        }
    )
    with airloom.Lab(scenario, out=tmp_path / "out") as lab:
        done = lab["h1"].run(f"ping -n -c 3 -i 0.05 -M do -s {mtu - 28} h2", check=True)
        assert f"{mtu - 20} bytes from" in done.stdout
        done = lab["h1"].run(f"ping -n -c 1 -M do -s {mtu - 27} h2")
        assert f"mtu={mtu}" in done.stdout + done.stderr
