"""What a laboratory is: its nodes, links, media, programs and events, as kernels and engine tell it."""

from __future__ import annotations

import json
from typing import Any

import airloom

SYSCTL = " ".join(
    f"/proc/sys/net/ipv4/{one}" for one in ("ip_forward", "ip_default_ttl", "fib_multipath_hash_policy")
)


def observed(lab: airloom.Lab) -> dict[str, Any]:
    """What a laboratory's nodes and links are, as their kernels and the engine tell it."""
    nodes = {}
    for name in lab.nodes:
        ask = f"ip -j addr; ip -j route; ip -j -6 route; cat {SYSCTL}"
        addresses, routes, routes6, *sysctl = lab[name].run(["sh", "-c", ask], check=True).stdout.splitlines()
        # A bridge of Open vSwitch chooses an address of its own.
        planned = {"lo", *(interface.name for interface in lab.plan.nodes[name].interfaces)}
        nodes[name] = {
            "interfaces": {
                one["ifname"]: (
                    one["address"] if one["ifname"] in planned else "any",
                    one["mtu"],
                    "UP" in one["flags"],
                    [(at["local"], at["prefixlen"]) for at in one["addr_info"]],
                )
                for one in json.loads(addresses)
            },
            "routes": sorted(_route(one) for one in json.loads(routes)),
            "routes6": sorted(_route(one) for one in json.loads(routes6)),
            "sysctl": sysctl,
            "hosts": lab[name].run("cat /etc/hosts").stdout,
            "state": lab[name].state,
        }
    world = lab._up().world
    links = {
        link.name: (
            link.a,
            link.b,
            link.is_up,
            {way: one.engine() for way, one in world.link_settings(link.name).items()},
        )
        for link in lab.links
    }
    running = sorted(one.name for one in lab._up().runner.programs.values() if one.alive)
    return {
        "nodes": nodes,
        "links": links,
        "switches": lab.switches,
        "hosts": lab.addresses,
        "programs": running,
    }


def _route(one: dict[str, Any]) -> tuple[str, ...]:
    hops = [(hop["gateway"], hop["dev"]) for hop in one.get("nexthops", [])]
    return one["dst"], one.get("gateway", ""), one.get("dev", ""), one.get("prefsrc", ""), str(sorted(hops))


def airborne(lab: airloom.Lab) -> dict[str, Any]:
    """What the engine has of media, without what depends on the frames so far."""
    world = lab._up().world
    radios = {
        one["port"]: (one["medium"], one["on"], one["position"], one["mhz"], one["slice"], one["settings"])
        for one in world.radios()
    }
    ports = list(radios)
    signals = {}
    for a in ports:
        for b in ports:
            if a != b and radios[a][0] == radios[b][0]:
                signals[a, b] = world.engine.signal(a, b)
    used = {name: world.laws[name] for name in world.plan.media}
    return {"radios": radios, "signals": signals, "laws": used}


def everything(lab: airloom.Lab) -> dict[str, Any]:
    """All that is compared with a fresh start, beside the above: what the kernels know of their links and
    neighbours, what the ledger counts, slices, published ports, and events to come."""
    world, runner = lab._up().world, lab._up().runner
    agenda = sorted((event.at, str(event)) for event in runner._agenda._left.values())
    ports = {key: held.target for key, held in world.published._held.items()}
    ledger = world.engine.ledger()
    # What has gone stays in the ledger, with its frames so far.
    there = {f"{node.name}:{one.name}" for node in world.plan.nodes.values() for one in node.interfaces}
    counted = {
        "ports": sorted(name for name in there & set(ledger["ports"]) if not ledger["ports"][name]["gone"]),
        "links": sorted(set(ledger["links"]) & set(world.plan.links)),
        "switches": sorted(set(ledger["switches"]) & set(world.plan.switches)),
    }
    return {
        **observed(lab),
        **airborne(lab),
        "kernels": {name: _known(lab, name) for name in lab.nodes},
        "counted": counted,
        "slices": sorted(lab.slices),
        "agenda": agenda,
        "ports": ports,
    }


def _known(lab: airloom.Lab, name: str) -> tuple[list[str], list[tuple[str, str, str]]]:
    """The interfaces of a node that have a carrier, and its permanent neighbours."""
    said = lab[name].run(["sh", "-c", "ip -j link; ip -j neigh show nud permanent"], check=True).stdout
    links, neighbours = said.splitlines()
    return (
        sorted(one["ifname"] for one in json.loads(links) if "LOWER_UP" in one["flags"]),
        sorted((one["dst"], one["dev"], one["lladdr"]) for one in json.loads(neighbours)),
    )
