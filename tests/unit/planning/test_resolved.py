"""Neighbours on the paths of measurements, known before time zero."""

from __future__ import annotations

from airloom.planning.gate import check
from airloom.planning.links import neighbours
from airloom.planning.plan import Plan
from airloom.planning.routing import resolved
from airloom.scenario.model import Scenario
from airloom.scenario.reader import read


def plan(**said: object) -> Plan:
    return check(Scenario.model_validate({"name": "x", **said})).plans[0]


def chain(*measurements: dict[str, object], **said: object) -> Plan:
    links = [{"ends": ["a", "r"]}, {"ends": ["r", "b"]}, {"ends": ["r", "c"]}]
    nodes = {"a": {}, "r": {"forwarding": True}, "b": {}, "c": {}}
    return plan(nodes=nodes, links=links, measurements=list(measurements), **said)


def known(one: Plan) -> dict[str, set[str]]:
    """Node: the nodes whose addresses its neighbours have."""
    owners = {
        str(address.ip): (node.name, interface.mac)
        for node in one.nodes.values()
        for interface in node.interfaces
        for address in interface.addresses
    }
    found: dict[str, set[str]] = {}
    for node in one.nodes.values():
        for entry in node.neighbours:
            owner, mac = owners[entry.address]
            assert (entry.mac, entry.permanent) == (mac, False)
            assert entry.interface in {interface.name for interface in node.interfaces}
            found.setdefault(node.name, set()).add(owner)
    return found


FLOW = {"name": "flow", "traffic": {"from": "a", "to": "b", "rate": "1 Mbit/s"}}
PATH = {"a": {"r"}, "r": {"a", "b"}, "b": {"r"}}


def test_every_hop_is_known_in_both_directions_and_no_other() -> None:
    assert known(resolved.before(chain(FLOW))) == PATH
    assert known(neighbours.settle(chain(FLOW), 1024).plan) == PATH


def test_ipv6_too() -> None:
    assert known(resolved.before(chain(FLOW, addresses={"ipv4": None, "ipv6": "fd00::/32"}))) == PATH


def test_a_ping_alone_resolves_by_itself() -> None:
    ping = {"name": "rtt", "ping": {"from": "a", "to": "b"}}
    one = chain(ping)
    assert resolved.before(one) is one
    assert known(resolved.before(chain(ping, FLOW))) == PATH
    asked = {"name": "rtt", "ping": {"from": "a", "to": "b", "resolution": "before"}}
    assert known(resolved.before(chain(asked))) == PATH


def test_a_measurement_of_the_resolution_itself() -> None:
    during = {"name": "rtt", "ping": {"from": "a", "to": "c", "resolution": "during"}}
    # The hops to c stay unknown, also the one that both share.
    assert known(resolved.before(chain(during, FLOW))) == {"r": {"b"}, "b": {"r"}}
    alone = {"name": "flow", "traffic": {"from": "a", "to": "b", "rate": "1 Mbit/s", "resolution": "during"}}
    assert known(resolved.before(chain(alone))) == {}


def test_at_a_switch_the_ends_know_each_other() -> None:
    links = [{"ends": [name, "s"]} for name in ("a", "b", "c")]
    one = plan(nodes={"a": {}, "b": {}, "c": {}}, switches={"s": {}}, links=links, measurements=[FLOW])
    assert known(resolved.before(one)) == {"a": {"b"}, "b": {"a"}}


def test_radios_in_one_network_know_each_other() -> None:
    radio = {"radios": {"wlan0": {}}}
    nodes = {"a": {"position": ["0 m", "0 m"], **radio}, "b": {"position": ["5 m", "0 m"], **radio}}
    one = plan(nodes=nodes, media={"air": {"radio": {"phy": "802.11a"}}}, measurements=[FLOW])
    assert known(resolved.before(one)) == {"a": {"b"}, "b": {"a"}}


def test_with_a_routing_daemon_the_ends_of_links_know_each_other() -> None:
    links = [{"ends": ends} for ends in (["a", "r"], ["r", "b"], ["r", "c"])]
    nodes = {name: {"forwarding": True} for name in ("a", "r", "b", "c")}
    one = plan(nodes=nodes, links=links, measurements=[FLOW], routing="ospf")
    assert known(resolved.before(one)) == {**PATH, "r": {"a", "b", "c"}, "c": {"r"}}


def test_ends_at_switches_tell_where_they_are() -> None:
    text = (
        "name: x\nnodes: {a: , b: , c: , d: }\nswitches: {s: , t: }\n"
        "links: [{ends: [a, s]}, {ends: [b, t]}, {ends: [s, t]}, {ends: [c, s]}, {ends: [c, d]}]\n"
        "measurements: [{name: f, %s}]\n"
    )
    (one,) = check(read(text % "traffic: {from: a, to: b, rate: 1 Mbit/s}")).plans
    sent = dict(resolved.announced(one))
    assert set(sent) == {"a:eth0", "b:eth0"}
    for port, frame in sent.items():
        mac = one.nodes[port[0]].interfaces[0].mac.replace(":", "")
        assert frame[:12] == b"\xff" * 6 + bytes.fromhex(mac)
        assert (len(frame), frame[12:20].hex()) == (60, "00060001af810100")
    for asked in (
        "ping: {from: a, to: b}",
        "traffic: {from: a, to: b, rate: 1 Mbit/s, resolution: during}",
        "traffic: {from: c, to: d, rate: 1 Mbit/s}",
    ):
        (one,) = check(read(text % asked)).plans
        assert resolved.announced(one) == [], asked
