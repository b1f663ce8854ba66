"""Daemons of FRR for nodes with a routing protocol: their configuration and programs.

A planned scenario is extended by programs and files, so that the result's scenario shows the
configuration in force. A protocol runs on every interface of its nodes. Networks without another
router of the protocol are advertised, but no hello is sent there. All links cost the same.

A daemon is ready when the kernel of its node has a route to every network that it can reach over
links that stay up for the first 20 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from itertools import combinations

from airloom.planning.network import Network
from airloom.planning.plan import NodePlan, Plan
from airloom.planning.routing.protocols import DAEMONS, DEAD, HELLO, said_at
from airloom.scenario.model import Node, Program, Ready, Routing, Scenario
from airloom.scenario.problems import Problem, Problems
from airloom.units.given import given
from airloom.units.quantities import Duration

FOLDER = "/usr/lib/frr"
"""Folder of the daemons in the packages of Debian and of FRR."""
_SOCKETS = "/tmp"
_ZSERV = f"{_SOCKETS}/zserv.api"
_CONVERGED = Duration("2 min")
_EARLY = Duration("20 s")
_FIRST_AS = 64512
"""The first private AS number (RFC 6996)."""
_SECOND = 10**9
_KERNEL = {"ospf": 188, "isis": 187, "bgp": 186}
"""The kernel's numbers of protocols in its routing table (rtnetlink.h)."""


_Net = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class _Attachment:
    """An interface of a node in a network."""

    node: str
    interface: str
    address: IPv4Interface | IPv6Interface
    link: str


@dataclass(frozen=True, slots=True)
class _Neighbour:
    """Another router of the protocol in a network."""

    address: IPv4Address | IPv6Address
    system: int
    """Its autonomous system."""


@dataclass(slots=True)
class _Router:
    """A node with a protocol, its interfaces, and the neighbours on each."""

    plan: NodePlan
    routing: Routing
    number: int
    """Position among the routers, from 0."""
    neighbours: dict[str, list[_Neighbour]] = field(default_factory=dict)
    """By interface."""
    area: dict[str, int] = field(default_factory=dict)
    """Interface: OSPF area."""
    pairs: set[str] = field(default_factory=set)
    """Interfaces on a wire between two nodes."""

    @property
    def protocol(self) -> str:
        return self.routing.protocol

    @property
    def system(self) -> int:
        """Its autonomous system."""
        return given(self.routing.autonomous_system, _FIRST_AS + self.number)

    @property
    def hello(self) -> int:
        return given(self.routing.hello, HELLO) // _SECOND

    @property
    def dead(self) -> int:
        return given(self.routing.dead, DEAD) // _SECOND

    def versions(self) -> list[int]:
        """IP versions of its addresses."""
        found = {address.version for one in self.plan.interfaces for address in one.addresses}
        return sorted(found)

    @property
    def id(self) -> IPv4Address:
        """Its router id: its first IPv4 address, or a number."""
        own = [
            address.ip
            for one in self.plan.interfaces
            for address in one.addresses
            if isinstance(address, IPv4Interface)
        ]
        return own[0] if own else IPv4Address(self.number + 1)


def with_daemons(scenario: Scenario, network: Network, plan: Plan) -> Scenario:
    """Returns the scenario with FRR's programs and files in the nodes that run a protocol.

    Raises :class:`Problems` if neighbours do not fit each other.
    """
    names = [name for name, said in network.routing.items() if said.protocol in DAEMONS]
    if not names:
        return scenario
    routers = {
        name: _Router(plan.nodes[name], network.routing[name], number) for number, name in enumerate(names)
    }
    networks = _networks(plan)
    wrong = list(_meet(scenario, network, routers, networks))
    if wrong:
        raise Problems(wrong)
    reachable = _reachable(routers, networks, _down_at_first(scenario))
    nodes = {
        name: node if node.routing is not None else node.model_copy(update={"routing": "static"})
        for name, node in scenario.nodes.items()
        if name not in routers
    }
    programs: list[Program] = []
    for name, router in routers.items():
        own = scenario.nodes.get(name, Node())
        files = {f"/etc/frr/{daemon}.conf": text for daemon, text in _configurations(router)}
        update = {"routing": "none", "files": {**files, **own.files}, "forwarding": router.plan.forwarding}
        # model_fields_set decides what a generated node takes over.
        nodes[name] = Node(**{key: getattr(own, key) for key in own.model_fields_set} | update)
        programs += _programs(router, _expected(router, reachable))
    taken = {program.name for program in programs}
    for index, program in enumerate(scenario.programs):
        if program.name in taken:
            why = f"{program.name!r} is the name of a daemon of FRR that 'routing' starts"
            path = ("programs", index, "name")
            raise Problems([Problem("name.duplicate", why, path, "give it another name")])
    ordered = {name: nodes[name] for name in dict.fromkeys([*scenario.nodes, *nodes])}
    return scenario.model_copy(
        update={"nodes": ordered, "programs": [*programs, *scenario.programs], "routing": "static"}
    )


def _networks(plan: Plan) -> dict[_Net, list[_Attachment]]:
    found: dict[_Net, list[_Attachment]] = {}
    for node in plan.nodes.values():
        for one in node.interfaces:
            for address in one.addresses:
                attachment = _Attachment(node.name, one.name, address, one.link)
                found.setdefault(address.network, []).append(attachment)
    return found


def _meet(
    scenario: Scenario, network: Network, routers: dict[str, _Router], networks: dict[_Net, list[_Attachment]]
) -> Iterator[Problem]:
    """Tells routers of their neighbours; yields what keeps them from becoming neighbours."""
    wires = {wire.name: wire for wire in network.wires}
    adjacent: set[frozenset[str]] = set()
    for attachments in networks.values():
        for one in attachments:
            router = routers.get(one.node)
            if router is None:
                continue
            others = [
                other
                for other in attachments
                if other is not one
                and other.node in routers
                and routers[other.node].protocol == router.protocol
            ]
            router.neighbours.setdefault(one.interface, []).extend(
                _Neighbour(other.address.ip, routers[other.node].system) for other in others
            )
            adjacent |= {frozenset((one.node, other.node)) for other in others}
            wire = wires.get(one.link)
            if wire is not None and all(end.name in network.nodes for end in wire.ends):
                router.pairs.add(one.interface)
            if router.protocol != "ospf":
                continue
            areas = {routers[each.node].routing.area or 0 for each in (one, *others)} - {0}
            router.area[one.interface] = max(areas, default=0)
            path = said_at(scenario, one.node)
            if len(areas) > 1:
                listed = " and ".join(str(area) for area in sorted(areas))
                yield Problem(
                    "routing.area",
                    f"{one.node!r} and its neighbours are in areas {listed}",
                    path,
                    "a link belongs to one area: put a node of area 0 between",
                )
            for other in others:
                peer = routers[other.node]
                if (peer.hello, peer.dead) != (router.hello, router.dead):
                    mine, its = (f"hello {each.hello} s, dead {each.dead} s" for each in (router, peer))
                    yield Problem(
                        "routing.time",
                        f"{one.node!r} ({mine}) and {other.node!r} ({its}) would not become neighbours",
                        path,
                        "ospf needs the same intervals on both sides of a link",
                    )
    speakers = [name for name, router in routers.items() if router.protocol == "bgp"]
    for a, b in combinations(speakers, 2):
        if routers[a].system == routers[b].system and frozenset((a, b)) not in adjacent:
            yield Problem(
                "routing.as",
                f"{a!r} and {b!r} are in AS {routers[a].system} and share no network",
                said_at(scenario, b),
                "routers of one AS need a session with each other: link them, or give each an AS",
            )


def _down_at_first(scenario: Scenario) -> set[str]:
    """Returns the links that go down while the daemons converge."""
    return {
        event.link
        for event in scenario.events
        if event.link is not None and event.action == "down" and event.at < _EARLY
    }


def _reachable(
    routers: dict[str, _Router], networks: dict[_Net, list[_Attachment]], late: set[str]
) -> dict[tuple[str, int], set[_Net]]:
    """Returns the networks that each router's protocol can find, by router and IP version.

    Routers that reach each other share one set.
    """
    by_node: dict[tuple[str, int], list[_Net]] = {}
    members: dict[tuple[str, _Net], list[str]] = {}
    for net, attachments in networks.items():
        for one in attachments:
            router = routers.get(one.node)
            if router is not None and one.link not in late:
                by_node.setdefault((one.node, net.version), []).append(net)
                members.setdefault((router.protocol, net), []).append(one.node)
    found: dict[tuple[str, int], set[_Net]] = {}
    for start, version in by_node:
        if (start, version) in found:
            continue
        protocol, nets = routers[start].protocol, set[_Net]()
        found[start, version], further = nets, [start]
        while further:
            for net in by_node[further.pop(), version]:
                if net in nets:
                    continue
                nets.add(net)
                for node in members[protocol, net]:
                    if (node, version) not in found:
                        found[node, version] = nets
                        further.append(node)
    return found


def _expected(router: _Router, reachable: dict[tuple[str, int], set[_Net]]) -> dict[int, int]:
    """Returns, by IP version, the number of networks that the protocol must find."""
    own = {address.network for one in router.plan.interfaces for address in one.addresses}
    found: dict[int, int] = {}
    for version in router.versions():
        nets = reachable.get((router.plan.name, version), set())
        found[version] = len(nets) - sum(net in nets for net in own)
    return found


def _programs(router: _Router, expected: dict[int, int]) -> list[Program]:
    name = router.plan.name
    zebra = f"{name}-zebra"
    programs = [
        Program(
            name=zebra,
            node=name,
            run=_command("zebra"),
            until_end=True,
            ready=Ready(command=f"test -S {_ZSERV}", within=_CONVERGED),
        )
    ]
    for daemon, versions in _daemons(router):
        proto = _KERNEL[router.protocol]
        checks = [
            f'test "$(ip -{version} -o route show proto {proto} | wc -l)" -ge {expected[version]}'
            for version in versions
        ]
        programs.append(
            Program(
                name=f"{name}-{daemon}",
                node=name,
                after=[zebra],
                run=_command(daemon),
                until_end=True,
                ready=Ready(command=" && ".join(checks), within=_CONVERGED),
            )
        )
    return programs


def _daemons(router: _Router) -> list[tuple[str, list[int]]]:
    """Returns the daemons of a protocol, each with the IP versions that it routes."""
    versions = router.versions()
    if router.protocol == "ospf":
        return [({4: "ospfd", 6: "ospf6d"}[version], [version]) for version in versions]
    return [({"isis": "isisd", "bgp": "bgpd"}[router.protocol], versions)]


def _command(daemon: str) -> list[str]:
    words = ["-f", f"/etc/frr/{daemon}.conf", "-i", f"{_SOCKETS}/{daemon}.pid", "-z", _ZSERV]
    return [f"{FOLDER}/{daemon}", *words, "--vty_socket", _SOCKETS, "-P", "0"]


def _configurations(router: _Router) -> Iterator[tuple[str, str]]:
    """Yields the configuration of each daemon of a router."""
    head = [f"hostname {router.plan.name}", "log stdout"]
    yield "zebra", "\n".join(head) + "\n"
    for daemon, versions in _daemons(router):
        lines = {"ospfd": _ospf, "ospf6d": _ospf, "isisd": _isis, "bgpd": _bgp}[daemon](router, versions)
        yield daemon, "\n".join([*head, *lines]) + "\n"


def _ospf(router: _Router, versions: Sequence[int]) -> list[str]:
    (version,) = versions
    process, interface = ("ospf", "ip ospf") if version == 4 else ("ospf6", "ipv6 ospf6")
    lines = []
    for name, area in router.area.items():
        settings = [
            f"area {area}",
            "cost 10",
            f"hello-interval {router.hello}",
            f"dead-interval {router.dead}",
            *(["network point-to-point"] if name in router.pairs else []),
            *([] if router.neighbours[name] else ["passive"]),
        ]
        lines += [f"interface {name}", *(f" {interface} {setting}" for setting in settings)]
    return [*lines, f"router {process}", f" {process} router-id {router.id}"]


def _isis(router: _Router, versions: Sequence[int]) -> list[str]:
    lines = []
    for name, neighbours in router.neighbours.items():
        lines.append(f"interface {name}")
        lines += [f" {'ip' if version == 4 else 'ipv6'} router isis 1" for version in versions]
        lines += [
            f" isis hello-interval {router.hello}",
            f" isis hello-multiplier {router.dead // router.hello}",
        ]
        if name in router.pairs:
            lines.append(" isis network point-to-point")
        if not neighbours:
            lines.append(" isis passive")
    digits = f"{router.number + 1:012d}"
    system = ".".join(digits[start : start + 4] for start in (0, 4, 8))
    return [
        "router isis 1",
        # Before the rest: the first LSP is empty, and by default the next one waits for 30 s.
        " lsp-gen-interval 1",
        f" net 49.0001.{system}.00",
        " is-type level-2-only",
        " metric-style wide",
        *lines,
    ]


def _bgp(router: _Router, versions: Sequence[int]) -> list[str]:
    sessions = [one for neighbours in router.neighbours.values() for one in neighbours]
    lines = [
        f"router bgp {router.system}",
        f" bgp router-id {router.id}",
        " no bgp default ipv4-unicast",
        " no bgp ebgp-requires-policy",
        f" timers bgp {router.hello} {router.dead}",
    ]
    for one in sessions:
        lines += [f" neighbor {one.address} remote-as {one.system}"]
        # FRR otherwise waits for two minutes before it tries again, and five seconds with each update.
        lines += [
            f" neighbor {one.address} timers connect 1",
            f" neighbor {one.address} advertisement-interval 0",
        ]
    for version in versions:
        lines += [f" address-family ipv{version} unicast", "  redistribute connected"]
        for one in sessions:
            if one.address.version == version:
                lines.append(f"  neighbor {one.address} activate")
                if one.system == router.system:
                    lines.append(f"  neighbor {one.address} next-hop-self")
        lines.append(" exit-address-family")
    return lines
