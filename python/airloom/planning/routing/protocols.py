"""Which nodes run a routing protocol, and with which settings.

A node takes the scenario's `routing` unless it has its own. Under the scenario's, a node that does not
forward packets is a host and gets static routes.
"""

from __future__ import annotations

from collections.abc import Iterator

from airloom.planning.network import Network
from airloom.scenario.model import Node, Routing, Scenario
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.units.given import given
from airloom.units.quantities import Duration

DAEMONS = ("ospf", "isis", "bgp")
"""Protocols that daemons of FRR speak."""
HELLO, DEAD = Duration("1 s"), Duration("4 s")
"""Default interval of hellos, and the silence after which a neighbour is dead."""
_SECOND = 10**9
_LEAST_HOLD = Duration("3 s")
"""RFC 4271, 4.2: the hold time of BGP is 0 or at least three seconds."""


def of_node(scenario: Scenario, node: Node, *, forwards: bool) -> Routing:
    """Returns the routing of a node; ``forwards`` tells whether it forwards packets."""
    said = node.routing
    if said is None:
        said = scenario.routing
        word = said if isinstance(said, str) else said.protocol
        if word in DAEMONS and not forwards:
            said = "static"
    return Routing(protocol=said) if isinstance(said, str) else said


def said_at(scenario: Scenario, name: str) -> Path_:
    """Returns the place where the routing of a node is set."""
    node = scenario.nodes.get(name)
    if node is not None and node.routing is not None:
        return ("nodes", name, "routing")
    topology = scenario.topology
    if topology is not None and topology.node.routing is not None:
        return ("topology", "node", "routing")
    return ("routing",)


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields what is wrong with the settings of routing, once for each place."""
    told: set[Path_] = set()
    mobile = {end.node for end in network.radios}
    for name, routing in network.routing.items():
        path = said_at(scenario, name)
        if path in told:
            continue
        found = list(_settings(routing, path))
        if name in mobile and routing.protocol in DAEMONS:
            found.append(
                Problem(
                    "routing.radio",
                    f"{name!r} has a radio, and {routing.protocol} expects links that last",
                    path,
                    "say routing: none, and run a protocol for meshes, such as babeld",
                )
            )
        if found:
            told.add(path)
        yield from found


def _settings(routing: Routing, path: Path_) -> Iterator[Problem]:
    owners = {"area": ("ospf",), "autonomous_system": ("bgp",), "hello": DAEMONS, "dead": DAEMONS}
    for key, protocols in owners.items():
        if getattr(routing, key) is not None and routing.protocol not in protocols:
            word = "as" if key == "autonomous_system" else key
            yield Problem(
                "routing.setting",
                f"{word!r} means nothing to the protocol {routing.protocol}",
                (*path, word),
                f"it belongs to {', '.join(protocols)}",
                key=True,
            )
            return
    hello, dead = given(routing.hello, HELLO), given(routing.dead, DEAD)
    for word, time in (("hello", hello), ("dead", dead)):
        if not 0 < time <= 600 * _SECOND or time % _SECOND:
            yield Problem(
                "routing.time",
                f"{time.text} is not a whole number of seconds from 1 to 600",
                (*path, word),
                f"such as {word}: {HELLO.text if word == 'hello' else DEAD.text}",
            )
            return
    if dead <= hello or (routing.protocol == "isis" and dead < 2 * hello):
        yield Problem(
            "routing.time",
            f"a neighbour would be dead after {dead.text}, with a hello every {hello.text}",
            path,
            "let 'dead' be at least twice 'hello'",
        )
    elif routing.protocol == "bgp" and dead < _LEAST_HOLD:
        yield Problem("routing.time", f"the hold time of bgp is at least {_LEAST_HOLD.text}", (*path, "dead"))
