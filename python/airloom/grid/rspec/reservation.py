"""Requests for radio nodes of a testbed, and manifests of reservations.

Nodes, radios and slivers have URNs of the testbed's name: ``urn:publicid:IDN+NAME+node+n1``,
``...+interface+n1:wlan0``, ``...+sliver+RESERVATION-n1``. The grant of a reservation has no words in
an RSpec; a manifest has it as an element ``grant`` of the namespace :data:`EXTENSION`.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from xml.sax.saxutils import quoteattr

from airloom.errors import ScenarioError
from airloom.grid.answers import Inventory, Reservation
from airloom.grid.rspec.document import NAMESPACE, Document, Node

EXTENSION = "urn:airloom:rspec:grant:1"
_URN = "urn:publicid:IDN+"


def asked(document: Document, inventory: Inventory) -> dict[str, object]:
    """Returns what a request for a reservation says: ``nodes`` by name, ``count`` and ``radios``.

    Raises :class:`ScenarioError` for components that are not the testbed's.
    """
    named: dict[str, Node] = {}
    for node in document.nodes:
        if node.component_id is None:
            continue
        name = _component(node, inventory.name, inventory.nodes, document.source)
        if name in named:
            raise node.element.refusal(document.source, f"{name} is asked for twice", "a node carries one")
        named[name] = node
    most = max(1, *(len(node.interfaces) for node in document.nodes))
    return {"nodes": list(named), "count": len(document.nodes), "radios": most}


def _component(node: Node, testbed: str, lent: Container[str], source: str) -> str:
    """Returns the name of the testbed's node that a node asks for."""
    said = node.component_id or ""
    authority, _, rest = said.removeprefix(_URN).partition("+")
    if said.startswith(_URN):
        if authority != testbed:
            cure = urn(testbed, "node", "...")
            raise node.element.refusal(source, f"component_id {said[:80]!r} is of another testbed", cure)
        said = rest.removeprefix("node+")
    if said not in lent:
        raise node.element.refusal(
            source,
            f"component_id: there is no node {said[:80]!r} in {testbed}",
            "airloom grid nodes",
        )
    return said


def manifest(reservation: Reservation, testbed: str, document: Document | None = None) -> str:
    """Returns the manifest of a reservation; nodes have the names of the request, if it is given.

    Raises :class:`ScenarioError` if nothing is granted, or if the request is not the reservation's.
    """
    grant = reservation.grant
    if grant is None:
        raise ScenarioError(
            "rspec.reservation", f"the reservation is {reservation.state}: it has no grant",
            cure="airloom grid show ID",
        )  # fmt: skip
    asking = _assigned(list(grant.radios), testbed, document)
    start, expires = (quoteattr(time) for time in (reservation.start, reservation.end))
    lines = [
        f'<rspec xmlns="{NAMESPACE}" xmlns:airloom="{EXTENSION}" type="manifest" expires={expires}>',
        f"  <airloom:grant slice={quoteattr(reservation.slice)} start={start}"
        f' channels="{_row(grant.channels)}" slots="{_row(grant.slots)}"'
        f' power_dbm="{grant.power_dbm:g}"/>',
    ]
    for name, radios in grant.radios.items():
        node = asking.get(name)
        own = name if node is None else node.client_id
        sliver = urn(testbed, "sliver", f"{reservation.id}-{name}")
        manager = urn(testbed, "authority", "cm")
        lines.append(
            f"  <node client_id={quoteattr(own)} component_id={quoteattr(urn(testbed, 'node', name))}"
            f" component_name={quoteattr(name)} component_manager_id={quoteattr(manager)}"
            f' exclusive="false" sliver_id={quoteattr(sliver)}>'
        )
        if node is not None and node.sliver_type is not None:
            lines.append(f"    <sliver_type name={quoteattr(node.sliver_type)}/>")
        known = [] if node is None else [one.client_id for one in node.interfaces]
        for number, radio in enumerate(radios):
            client = known[number] if number < len(known) else f"{own}:{radio}"
            component = urn(testbed, "interface", f"{name}:{radio}")
            lines.append(
                f"    <interface client_id={quoteattr(client)} component_id={quoteattr(component)}/>"
            )
        lines.append("  </node>")
    return "\n".join([*lines, "</rspec>", ""])


def urn(testbed: str, kind: str, name: str) -> str:
    """Returns the URN of something of a testbed."""
    return f"{_URN}{testbed}+{kind}+{name}"


def _assigned(granted: list[str], testbed: str, document: Document | None) -> dict[str, Node]:
    """Returns the node of the request for each granted one: asked for by name, or in their order."""
    if document is None:
        return {}
    found = {
        _component(node, testbed, granted, document.source): node
        for node in document.nodes
        if node.component_id is not None
    }
    free = [name for name in granted if name not in found]
    others = [node for node in document.nodes if node.component_id is None]
    if len(document.nodes) != len(granted) or len(found) + len(others) != len(granted):
        message = f"the request has {len(document.nodes)} nodes, and the reservation has {len(granted)}"
        raise ScenarioError("rspec.reservation", message, where=document.source)
    return found | dict(zip(free, others, strict=True))


def _row(values: Sequence[int]) -> str:
    return " ".join(map(str, values))
