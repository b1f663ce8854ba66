"""Laboratories of other tools: what their scenarios say, what is refused, what is listed as lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airloom.errors import ScenarioError
from airloom.planning.gate import check
from airloom.scenario.imports import Draft, convert
from airloom.scenario.reader import validated
from airloom.scenario.source import Source, write
from helpers import REPOSITORY

IMPORTS = REPOSITORY / "tests" / "data" / "imports"


def imported(file: str | Path, kind: str = "netns") -> Draft:
    draft = convert(IMPORTS / file, kind)
    validated(Source(draft.data, None, draft.path.parent))
    return draft


def of_text(tmp_path: Path, name: str, text: str) -> Draft:
    (tmp_path / name).write_text(text)
    return imported(tmp_path / name)


def link(draft: Draft, *ends: str) -> dict[str, Any]:
    (found,) = [one for one in draft.links if one["ends"] == list(ends)]
    return {key: one for key, one in found.items() if key != "ends"}


def test_containerlab_inherits_from_defaults_kinds_and_groups() -> None:
    draft = imported("clab", "container")
    assert list(draft.nodes) == ["r1", "r2", "pc1", "gw"]
    assert draft.switches == {"br1": {}, "ovs": {"kind": "openvswitch"}}
    r1 = draft.nodes["r1"]
    assert (r1["kind"], r1["image"]) == ("container", "docker://quay.io/frrouting/frr:10.5.1")
    assert r1["mounts"] == [{"source": "frr.conf", "target": "/etc/frr/frr.conf", "mode": "ro"}]
    assert r1["publish"] == [
        {"port": 80, "host_port": 8080, "host_address": "0.0.0.0", "protocol": "tcp"},
        {"port": 53, "host_port": 5353, "host_address": "127.0.0.1", "protocol": "udp"},
    ]
    assert r1["sysctl"] == {"net.ipv4.ip_forward": 1}
    assert r1["interfaces"] == {
        "eth1": {"addresses": ["192.168.1.1/24"]},
        "eth2": {"mac": "02:00:00:00:00:12"},
    }
    assert draft.nodes["pc1"]["image"] == "docker://alpine:3"
    assert (draft.nodes["gw"], draft.nodes["r2"]["cpu"]) == ({"forwarding": True}, 1.5)
    own, lo, shell = [one for one in draft.programs if one["node"] == "r1"]
    assert "run" not in own
    assert own["env"] == {"REGION": "north", "ROLE": "edge"}
    assert lo["run"] == ["ip", "link", "set", "lo", "up"]
    assert (shell["run"], shell["after"]) == (["sh", "-c", "echo ready > /tmp/state"], [lo["name"]])
    assert [one["run"] for one in draft.programs if one["node"] == "pc1"] == [["sleep", "60"]]
    assert draft.lost == []


def test_links_of_containerlab_have_the_units_of_its_netem() -> None:
    draft = imported("clab")
    assert link(draft, "r1:eth1", "r2:eth1") == {"mtu": 1400}
    assert link(draft, "r1:eth2", "pc1:eth1") == {
        "delay": "5 ms",
        "jitter": {"uniform": "1 ms"},
        "jitter_reorders": True,
        "loss": "0.5 %",
        "rate": "2 Mbit/s",
        "forward": {"delay": "10 ms"},
    }
    assert link(draft, "r2:eth2", "br1") == link(draft, "ovs", "r2:eth3") == {}


def test_a_laboratory_without_images_is_planned_as_it_is(tmp_path: Path) -> None:
    lab = tmp_path / "pair.clab.yml"
    lab.write_text(
        "name: pair\ntopology:\n  nodes:\n"
        "    a: {kind: linux, exec: [ip addr add 10.9.0.1/24 dev eth1]}\n    b: {kind: linux}\n"
        "  links:\n    - {endpoints: ['a:eth1', 'b:eth1'], rate: 1000, mtu: 1500}\n"
    )
    (plan,) = check(lab).plans
    assert plan.links["a-b"].forward.rate == 1_000_000
    assert [str(one) for one in plan.nodes["a"].interfaces[0].addresses] == ["10.9.0.1/24"]
    assert plan.nodes["b"].interfaces[0].addresses == (), "containerlab gives no addresses"
    lab.write_text(lab.read_text().replace("topology:", "mgmt: {network: x}\ntopology:", 1))
    with pytest.raises(ScenarioError) as caught:
        check(lab)
    assert caught.value.code == "import.lossy"
    assert "mgmt" in caught.value.message
    assert "airloom import pair.clab.yml" in (caught.value.cure or "")


def test_kathara_has_domains_scripts_and_files() -> None:
    draft = imported("kathara")
    assert draft.top["description"] == "Two networks"
    assert draft.switches == {"A": {"kind": "hub"}}
    assert [one["ends"] for one in draft.links] == [
        ["r1:eth0", "A"],
        ["pc1:eth0", "A"],
        ["pc2:eth0", "A"],
        ["r1:eth1", "r2:eth0"],
    ]
    r1, r2 = draft.nodes["r1"], draft.nodes["r2"]
    assert r1["interfaces"]["eth1"] == {"mac": "02:00:00:00:00:1b", "addresses": ["10.0.1.1/24"]}
    assert r1["files"]["/tmp/r1.startup"] == "ip route add default via 10.0.1.2\n"
    assert r2["files"]["/etc/motd"] == "welcome\n"
    assert r2["sysctl"] == {"net.ipv4.tcp_ecn": "1"}
    assert "/tmp/r2.startup" not in r2["files"], "its only line is an address"
    runs = [(one["name"], one["run"]) for one in draft.programs if one["node"] == "pc1"]
    assert runs == [
        ("pc1-startup", ["/bin/sh", "/tmp/shared.startup"]),
        ("pc1-exec", "echo done"),
    ]
    assert draft.lost == []
    image = convert(IMPORTS / "kathara" / "lab.conf").nodes["pc1"]["image"]
    assert image == "docker://kathara/base"


def test_core_has_addresses_options_and_ospf() -> None:
    draft = imported("core.xml")
    assert draft.top["name"] == "wired"
    assert draft.nodes["r1"] == {
        "forwarding": True,
        "routing": "ospf",
        "interfaces": {
            "eth0": {"mac": "00:00:00:aa:00:00", "addresses": ["10.0.0.1/24", "2001::1/64"]},
        },
    }
    assert draft.nodes["r2"]["routing"] == "ospf", "the services of its type"
    assert "routing" not in draft.nodes["pc"]
    assert link(draft, "r1:eth0", "r2:eth0") == {
        "rate": "10 Mbit/s",
        "delay": "5 ms",
        "jitter": {"uniform": "200 us"},
        "jitter_reorders": True,
        "loss": "1.5 %",
        "duplicate": "2 %",
        "queue": {"packets": 50},
    }
    assert link(draft, "r2:eth1", "lan") == {}


def test_shadow_has_routers_for_its_graph_and_access_links_for_its_hosts() -> None:
    draft = imported("shadow.yaml")
    assert list(draft.nodes) == ["east", "west", "server", "client"]
    assert (draft.top["duration"], draft.top["seed"], draft.top["routes"]) == ("2 min", 7, "delay")
    assert link(draft, "east", "west") == {"delay": "50 ms", "loss": "1 %"}
    assert link(draft, "server", "east") == {
        "forward": {"rate": "20 Mbit/s"},
        "backward": {"rate": "100 Mbit/s"},
    }
    assert link(draft, "client", "west") == {
        "forward": {"rate": "10 Mbit/s"},
        "backward": {"rate": "1 Gbit/s"},
    }
    server, client = draft.programs
    assert server["run"] == ["/usr/bin/python3", "-m", "http.server", "80"]
    assert server["until_end"]
    assert (client["run"], client["at"]) == (["curl", "-s", "server"], "5 s")
    assert draft.lost == []


def test_the_switch_of_shadow_has_half_its_latency_on_each_link(tmp_path: Path) -> None:
    text = (
        "general: {stop_time: 10}\nnetwork: {graph: {type: 1_gbit_switch}}\n"
        "hosts:\n  a: {processes: []}\n  b: {processes: []}\n"
    )
    draft = of_text(tmp_path, "shadow.yaml", text)
    (switch,) = draft.switches
    assert link(draft, "a", switch)["delay"] == "500 us"
    assert link(draft, "a", switch)["forward"] == {"rate": "1 Gbit/s"}


def test_miniedit_has_the_words_of_tclink() -> None:
    draft = imported("net.mn")
    assert draft.nodes["h1"] == {"interfaces": {"eth0": {"addresses": ["10.0.0.1/8"]}}}
    assert draft.nodes["h2"] == {"interfaces": {"eth0": {"addresses": ["10.0.0.9/8"]}}}
    assert draft.switches == {
        "s1": {
            "kind": "openvswitch",
            "controllers": ["tcp:127.0.0.1:6653"],
            "datapath_id": 1,
            "protocols": ["OpenFlow10", "OpenFlow13"],
        },
        "s2": {},
    }
    assert link(draft, "h1", "s1") == {
        "rate": "10 Mbit/s",
        "delay": "5 ms",
        "loss": "1 %",
        "queue": {"packets": 100},
    }
    assert [one["run"] for one in draft.programs] == ["echo hi"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.clab.yml",
            "topology:\n  nodes:\n    leaf: {kind: nokia_srlinux, image: x}\n",
            "node leaf: the kind 'nokia_srlinux' is a system that no node here runs",
        ),
        (
            "a.clab.yml",
            "topology:\n  nodes:\n    a: {kind: linux}\n"
            "  links:\n    - endpoints: ['a:eth1', 'mgmt-net:x']\n",
            "links[0]: an end at 'mgmt-net' is outside of the laboratory",
        ),
        (
            "a.clab.yml",
            "topology:\n  nodes:\n    a: {kind: linux}\n    b: {kind: linux}\n"
            "  links:\n    - {endpoints: ['a:eth1', 'b:eth1'], delay: 5}\n",
            "links[0]: delay: '5' is not a duration",
        ),
        ("lab.conf", "r1[0]=A\nr1 is a router\n", "line 2: 'r1 is a router' is no line of a lab.conf"),
        (
            "a.xml",
            "<scenario><networks><network id='1' name='w' type='WIRELESS_LAN'/></networks></scenario>",
            "network w: a radio network (WIRELESS_LAN) has another model here",
        ),
        (
            "s.yaml",
            "general: {stop_time: 1}\nnetwork: {graph: {type: gml, inline: 'graph ['}}\nhosts: {}\n",
            "network.graph: not GML: line 1: the list that begins here has no ']'",
        ),
        ("x.dot", "graph g {\n a -- b\n}\n", "the file is Graphviz DOT, which is not read here"),
        ("x.txt", "hello\n", "the format of the file is not known"),
    ],
)
def test_what_cannot_be_carried_over_is_refused(name: str, text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        of_text(tmp_path, name, text)
    assert caught.value.message == message


def test_every_word_that_is_left_out_is_listed(tmp_path: Path) -> None:
    draft = of_text(
        tmp_path,
        "a.clab.yml",
        "mgmt: {network: m}\ntopology:\n  nodes:\n"
        "    a: {kind: linux, memory: 1Gb, labels: {x: y}, startup-config: x.cfg}\n",
    )
    assert draft.lost == ["the laboratory: mgmt", "node a: memory", "node a: startup-config"]


def test_a_scenario_that_looks_alike_is_a_scenario(tmp_path: Path) -> None:
    text = "name: x\ntopology:\n  generator: chain\n  nodes: 2\n  node:\n    kind: netns\n\nkind: netns\n"
    (tmp_path / "x.yaml").write_text(text)
    assert len(check(tmp_path / "x.yaml").plans[0].nodes) == 2


def test_what_is_written_reads_as_the_same() -> None:
    draft = imported("core.xml")
    assert Source.of_text(write(draft.data)).data == draft.data
