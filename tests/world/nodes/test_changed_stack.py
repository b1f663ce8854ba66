"""The network stack of a running node that is given another description."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from airloom import _engine

pytestmark = pytest.mark.world


def inside(namespace: _engine.Namespace, command: str) -> str:
    """Output of a shell command in a namespace."""
    place = f"/proc/{os.getpid()}/fd/{namespace.fileno()}"
    words = ["nsenter", f"--net={place}", "sh", "-c", command]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=30).stdout


SYSCTLS = ("ipv4/ip_forward", "ipv6/conf/all/disable_ipv6", "ipv6/conf/all/forwarding")


def stack(namespace: _engine.Namespace) -> dict[str, Any]:
    """What the kernel has in a namespace."""
    files = " ".join(f"/proc/sys/net/{one}" for one in SYSCTLS)
    said = inside(namespace, f"ip -j addr; ip -j route; ip -j -6 route; ip -j neigh; cat {files}")
    addresses, routes, routes6, neighbours, *sysctl = said.splitlines()
    return {
        "interfaces": {
            one["ifname"]: (
                one["address"],
                one["mtu"],
                "UP" in one["flags"],
                [(at["local"], at["prefixlen"]) for at in one["addr_info"] if at["scope"] == "global"],
                sorted(at["local"] for at in one["addr_info"] if at["scope"] != "global"),
            )
            for one in json.loads(addresses)
        },
        "routes": sorted(json.dumps({**one, "flags": []}) for one in json.loads(routes)),
        "routes6": sorted(json.dumps({**one, "flags": []}) for one in json.loads(routes6)),
        "neighbours": sorted((one["dst"], one["dev"], one.get("lladdr")) for one in json.loads(neighbours)),
        # Without IPv6 its forwarding means nothing.
        "sysctl": sysctl if sysctl[1] == "0" else sysctl[:2],
        "taps": sorted(namespace.taps()),
    }


@st.composite
def nodes(draw: st.DrawFn) -> dict[str, Any]:
    """A description of a node with interfaces eth0 to eth2, and routes by routers on its subnets."""
    numbers = draw(st.lists(st.integers(0, 2), unique=True))
    interfaces, routers = [], []
    for number in numbers:
        near = {
            f"10.{number}.0.1/24": f"10.{number}.0.9",
            f"10.{number}.0.2/24": f"10.{number}.0.9",
            f"10.{number}.7.1/30": f"10.{number}.7.2",
            f"fd0{number}::1/64": f"fd0{number}::9",
        }
        addresses = draw(st.lists(st.sampled_from(sorted(near)), unique=True, max_size=3))
        routers += [(near[one], f"eth{number}") for one in addresses]
        interfaces.append(
            {
                "name": f"eth{number}",
                "mac": f"02:00:00:00:0{draw(st.integers(0, 1))}:0{number}",
                "mtu": draw(st.sampled_from([1400, 1500])),
                "addresses": addresses,
            }
        )
    targets = {4: ["default", "10.99.0.0/16"], 6: ["default", "fd99::/32"]}
    routes, taken = [], set()
    for via, interface in draw(st.lists(st.sampled_from(routers), max_size=3)) if routers else ():
        version = 6 if ":" in via else 4
        to = draw(st.sampled_from(targets[version]))
        if (to, version) not in taken:
            taken.add((to, version))
            routes.append({"to": to, "via": via, "interface": interface})
    known = [
        {"address": via, "mac": "02:00:00:00:07:07", "interface": interface, "permanent": True}
        for via, interface in dict.fromkeys(routers)
        if draw(st.booleans())
    ]
    return {
        "name": "n",
        "interfaces": interfaces,
        "routes": routes,
        "neighbours": known,
        "forwarding": draw(st.booleans()),
    }


def one_interface(*addresses: str, **more: Any) -> dict[str, Any]:
    interface = {"name": "eth0", "mac": "02:00:00:00:00:01", "mtu": 1500, "addresses": list(addresses)}
    return {"name": "n", "interfaces": [interface], **more}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(nodes(), nodes())
@example(one_interface("10.0.0.1/24"), {"name": "n"})
@example({"name": "n"}, one_interface("10.0.0.1/24", "fd00::1/64"))
@example(one_interface("10.0.0.1/24", "10.0.0.2/24"), one_interface("10.0.0.2/24", "10.0.0.1/24"))
@pytest.mark.timeout(120)
def test_a_changed_stack_is_that_of_a_new_node(one, other):
    (live,) = _engine.bring_up([one])
    (fresh,) = _engine.bring_up([other])
    try:
        live.change(other)
        wanted = stack(fresh)
        assert stack(live) == wanted
        live.set_up(False)
        live.set_up(True)
        assert stack(live) == wanted
    finally:
        _engine.tear_down([live, fresh])


def test_what_a_program_has_removed_need_not_be_removed():
    node = one_interface("10.0.0.1/24", routes=[{"to": "default", "via": "10.0.0.9", "interface": "eth0"}])
    (namespace,) = _engine.bring_up([node])
    inside(namespace, "ip route del default; ip addr del 10.0.0.1/24 dev eth0")
    namespace.change(one_interface("10.0.0.2/24"))
    assert stack(namespace)["interfaces"]["eth0"][3] == [("10.0.0.2", 24)]
    namespace.close()


def test_a_description_that_is_wrong_names_its_node():
    (namespace,) = _engine.bring_up([one_interface("10.0.0.1/24")])
    for wrong, words in (
        (one_interface("10.0.0.300/24"), "10.0.0.300/24"),
        (one_interface(routes=[{"to": "default", "via": "10.0.0.9", "interface": "eth7"}]), "eth7"),
    ):
        with pytest.raises(_engine.EngineError, match=f"node n: .*{words}"):
            namespace.change(wrong)
    namespace.close()
    with pytest.raises(_engine.EngineError) as caught:
        namespace.change(one_interface())
    assert caught.value.args[0] == "node.closed"


def test_neighbours_that_were_learned_are_forgotten_and_those_of_the_plan_stay():
    known = [{"address": "10.0.0.9", "mac": "02:00:00:00:07:07", "interface": "eth0", "permanent": True}]
    (namespace,) = _engine.bring_up([one_interface("10.0.0.1/24", neighbours=known)])
    inside(namespace, "ip neigh add 10.0.0.8 lladdr 02:00:00:00:08:08 dev eth0 nud reachable")
    assert {one[0] for one in stack(namespace)["neighbours"]} == {"10.0.0.8", "10.0.0.9"}
    namespace.forget_neighbours()
    assert {one[0] for one in stack(namespace)["neighbours"]} == {"10.0.0.9"}
    namespace.close()
