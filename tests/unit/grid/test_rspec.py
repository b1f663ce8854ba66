"""GENI requests and manifests: what they mean, what is refused, and octets that nobody expected."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloom.errors import LabError, ScenarioError
from airloom.grid.answers import Inventory, Reservation
from airloom.grid.rspec.convert import request_of, scenario_of
from airloom.grid.rspec.document import NAMESPACE, read
from airloom.grid.rspec.reservation import EXTENSION, asked, manifest
from airloom.host.rspec_tree import LARGEST, parse
from airloom.planning.gate import check
from airloom.planning.plan import Plan
from helpers import REPOSITORY
from helpers.grid import Manager, request

EXAMPLE = REPOSITORY / "examples" / "grid" / "two-lans.rspec"
TWO = """\
<node client_id="a"><interface client_id="a0"/></node>
<node client_id="b"><interface client_id="b0"/></node>
<node client_id="c"><interface client_id="c0"/></node>
"""
LINK = '<link client_id="l"><interface_ref client_id="a0"/><interface_ref client_id="b0"/>'
LAN = LINK + '<interface_ref client_id="c0"/>'
WAY = '<property source_id="a0" dest_id="b0" '


def rspec(body: str) -> bytes:
    return f'<rspec xmlns="{NAMESPACE}" type="request">\n{body}\n</rspec>'.encode()


def planned(octets: bytes, **kinds: str) -> Plan:
    scenario, _ = scenario_of(read(octets, "test.rspec"), "test", kinds)
    return check(scenario).plans[0]


def test_the_example_is_the_network_that_it_says() -> None:
    plan = planned(EXAMPLE.read_bytes())
    assert list(plan.nodes) == ["a1", "a2", "router", "far"]
    assert list(plan.switches) == ["lan"]
    assert [str(one) for one in plan.nodes["router"].interfaces[1].addresses] == ["10.2.0.254/24"]
    wide = plan.links["wide"]
    for way in (wide.forward, wide.backward):
        assert (way.rate, way.delay, way.loss) == (10_000_000, 20_000_000, 0.01)
    # The router forwards from the LAN to the far node, with routes as in every scenario.
    assert any(route.via == "10.2.0.254" for route in plan.nodes["far"].routes)


def test_a_request_of_a_scenario_is_that_scenario_again() -> None:
    plan = planned(EXAMPLE.read_bytes())
    again = planned(request_of(plan).encode())
    assert (again.switches, again.links, again.hosts) == (plan.switches, plan.links, plan.hosts)
    for name, node in plan.nodes.items():
        assert (again.nodes[name].kind, again.nodes[name].routes) == (node.kind, node.routes)
    assert request_of(again) == request_of(plan)


def test_properties_of_one_direction_are_of_one_direction() -> None:
    plan = planned(rspec(TWO + LINK + WAY + 'capacity="512" latency="0.5"/></link>'))
    there, back = plan.links["l"].forward, plan.links["l"].backward
    assert (there.rate, there.delay, back.rate, back.delay) == (512_000, 500_000, None, 0)


def test_a_lan_has_the_properties_of_each_sender() -> None:
    body = TWO + LAN + WAY + 'capacity="64"/><property source_id="a0" dest_id="c0" capacity="64"/></link>'
    plan = planned(rspec(body))
    assert [(link.a, link.b, link.forward.rate) for link in plan.links.values()] == [
        ("a:eth0", "l", 64_000), ("b:eth0", "l", None), ("c:eth0", "l", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sliver", "kind"),
    [("raw-pc", "qemu"), ("emulab-xen", "uml"), ("default-vm", "uml"), ("emulab-openvz", "netns")],
)
def test_a_sliver_type_is_a_kind_of_node(sliver: str, kind: str) -> None:
    octets = rspec(f'<node client_id="a"><sliver_type name="{sliver}"/></node>')
    assert planned(octets).nodes["a"].kind == kind
    assert planned(octets, **{sliver: "netns"}).nodes["a"].kind == "netns"
    assert f'<sliver_type name="{"emulab-xen" if kind == "uml" else sliver}"/>' in request_of(planned(octets))


def test_what_is_not_read_is_told() -> None:
    more = '<x:icon xmlns:x="urn:x"/><services><execute command="reboot"/></services><hardware_type/>'
    body = f'<node client_id="a.b">{more}</node>'
    _, notes = scenario_of(read(rspec(body), "f"), "test", {})
    assert notes == [
        "not read: <icon> of urn:x",
        "not read: <execute> in <services>",
        "the node 'a.b' is a-b",
    ]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("", "<rspec>: it has no node (<node client_id=\"...\"/>) [rspec.wrong]"),
        ("<node/>", "f:2: <node>: it has no client_id (client_id=\"...\") [rspec.wrong]"),
        (TWO + TWO, "f:5: <node client_id='a'>: another node has that client_id"),
        ('<node client_id="a"><interface/></node>', "<interface>: it has no client_id"),
        (TWO.replace("b0", "a0"), "f:3: <node client_id='b'>: another interface has the client_id 'a0'"),
        ('<node client_id="a"><sliver_type/></node>', "<sliver_type>: it has no name"),
        ('<node client_id="a"><sliver_type name="m1"/></node>', "no kind is known for the sliver type 'm1'"),
        (TWO.replace("<interface client_id=\"a0\"/>", '<interface client_id="a0"><ip address="1.2.3"/>'
         "</interface>"), "1.2.3/ is no address"),
        (TWO + LINK.replace("b0", "x") + "</link>", "<interface_ref client_id='x'>: no node has this"),
        (TWO + LINK.replace("b0", "a0") + "</link>", "<interface_ref client_id='a0'>: it is there twice"),
        (TWO + '<link client_id="l"><interface_ref client_id="a0"/></link>', "it has 1 interface_ref"),
        (TWO + LINK + "</link>" + LINK.replace('"l"', '"m"') + "</link>", "'a0' is at the link 'l' already"),
        (TWO + LINK + WAY + 'capacity="0"/></link>', "capacity is '0' (capacity is 1 to 1e+09, kbit/s)"),
        (TWO + LINK + WAY + 'latency="-1"/></link>', "latency is '-1' (latency is 0 to 1e+06, ms)"),
        (TWO + LINK + WAY + 'packet_loss="nan"/></link>', "packet_loss is 'nan'"),
        (TWO + LINK + WAY + 'packet_loss="2"/></link>', "packet_loss is '2' (packet_loss is 0 to 1"),
        (TWO + LINK + WAY + "/>" + WAY + "/></link>", "this direction has properties already"),
        (TWO + LINK + WAY.replace("b0", "a0") + "/></link>", "source_id and dest_id are the same"),
        (TWO + LINK + WAY.replace("b0", "c0") + "/></link>", "'c0' is no interface_ref of the link"),
        (TWO + LAN + WAY + 'capacity="1"/><property source_id="a0" dest_id="c0" capacity="2"/></link>',
         "the properties from 'a0' differ by destination"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_line_and_element(body: str, told: str) -> None:
    with pytest.raises(ScenarioError) as found:
        scenario_of(read(rspec(body), "f"), "test", {})
    assert told in str(found.value)


LAUGHS = '<!DOCTYPE rspec [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><rspec>&b;</rspec>'


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (b"", "rspec.xml"),
        (b"\x00\xff", "rspec.xml"),
        (b"<rspec>", "rspec.xml"),
        (b'<?xml version="1.0" encoding="no-such"?><rspec/>', "rspec.xml"),
        (b"<rspec/>", "rspec.wrong"),
        (f'<rspec xmlns="{NAMESPACE}" type="advertisement"/>'.encode(), "rspec.wrong"),
        (LAUGHS.encode(), "rspec.doctype"),
        (b'<!DOCTYPE rspec SYSTEM "file:///etc/passwd"><rspec/>', "rspec.doctype"),
        (b"<a>" * 40, "rspec.size"),
        (b"<r>" + b"<a/>" * 60_000 + b"</r>", "rspec.size"),
        (b" " * (LARGEST + 1), "rspec.size"),
    ],
    ids=["empty", "octets", "open", "encoding", "namespace", "type", "entities", "external", "deep", "many",
         "large"],
)  # fmt: skip
def test_what_is_no_rspec_is_refused(octets: bytes, code: str) -> None:
    with pytest.raises(ScenarioError) as found:
        read(octets, "f")
    assert found.value.code == code


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_changed_octets_are_read_or_refused(data: Any) -> None:
    octets = bytearray(EXAMPLE.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(octets) - 1))
        octets[at : at + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    try:
        document = read(bytes(octets), "f")
        scenario, _ = scenario_of(document, "test", {})
        check(scenario)
    except LabError:
        pass  # refused, and by no other exception


@given(text=st.text(max_size=200))
@settings(deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    for octets in (text.encode("utf-8", "surrogatepass"), rspec(text.replace("<", "")[:100])):
        with contextlib.suppress(LabError):  # refused, and by no other exception
            read(octets, "f")


REQUEST = """\
<node client_id="x" component_id="urn:publicid:IDN+small+node+b1"><sliver_type name="raw-pc"/>
  <interface client_id="x0"/><interface client_id="x1"/></node>
<node client_id="y" component_id="b2"><interface client_id="y0"/></node>
<node client_id="z"/>
"""


def test_a_request_is_booked_and_its_manifest_says_what_was_assigned(manager: Manager) -> None:
    inventory = Inventory.model_validate(manager.must("GET", "/v1/inventory"))
    document = read(rspec(REQUEST), "f")
    body = asked(document, inventory)
    assert body == {"nodes": ["b1", "b2"], "count": 3, "radios": 2}
    said = manager.must("POST", "/v1/reservations", request((1, 2), **body))
    booked = Reservation.model_validate(said)
    assert booked.grant is not None
    text = manifest(booked, "small", document)
    found = read(text.encode(), "manifest")
    granted = booked.grant.radios
    assert found.type == "manifest"
    assert [(node.client_id, node.component_id) for node in found.nodes] == [
        ({"b1": "x", "b2": "y"}.get(name, "z"), f"urn:publicid:IDN+small+node+{name}") for name in granted
    ]
    of_x = next(node for node in found.nodes if node.client_id == "x")
    assert of_x.sliver_type == "raw-pc"
    assert [(one.client_id, one.component_id) for one in of_x.interfaces] == [
        (f"x{number}", f"urn:publicid:IDN+small+interface+b1:{radio}")
        for number, radio in enumerate(granted["b1"])
    ]
    grant = next(one for one in parse(text.encode(), "m").children if one.namespace == EXTENSION)
    assert grant.attributes["channels"] == " ".join(map(str, booked.grant.channels))
    assert grant.attributes["slots"] == "0"
    slivers = [one.attributes["sliver_id"] for one in found_elements(text)]
    assert slivers == [f"urn:publicid:IDN+small+sliver+{booked.id}-{name}" for name in granted]
    # Without the request, names are those of the inventory.
    assert [node.client_id for node in read(manifest(booked, "small").encode(), "m").nodes] == list(granted)


def found_elements(text: str) -> list[Any]:
    return list(parse(text.encode(), "m").each("node"))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("small+node+b1", "other+node+b1", "is of another testbed"),
        ("small+node+b1", "small+node+b9", "there is no node 'b9' in small"),
        ('"b2"', '"b1"', "b1 is asked for twice"),
    ],
)
def test_components_of_no_node_are_refused(manager: Manager, old: str, new: str, told: str) -> None:
    inventory = Inventory.model_validate(manager.must("GET", "/v1/inventory"))
    with pytest.raises(ScenarioError) as found:
        asked(read(rspec(REQUEST.replace(old, new)), "f"), inventory)
    assert told in str(found.value)


def test_a_waiting_request_has_no_manifest(one_node: Manager) -> None:
    one_node.book((1, 2), radios=2)
    waiting = Reservation.model_validate(one_node.book((1, 2), slice="t", wait=True))
    with pytest.raises(ScenarioError, match="the reservation is waiting"):
        manifest(waiting, "one")


def test_a_scenario_with_a_medium_has_no_request(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(
        "name: s\nduration: 1 s\nmedia: {air: }\nnodes: {a: {position: [0 m, 0 m], radios: {w: }}}\n"
    )
    with pytest.raises(ScenarioError, match="no words for media"):
        request_of(check(file).plans[0])
