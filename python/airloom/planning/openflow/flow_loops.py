"""Loops in the flow tables of switches: classes of packets followed through tables and links.

A packet loops for ever if it comes again to a port of a switch, with the same header as before. What
rules do is followed exactly for all packets at once (:mod:`airloom.planning.openflow.header_classes`). What
depends on more than rules and header is not followed, and named: learnt addresses, groups, connection
tracking. NORMAL and engine switches forward group addresses to all ports, and that is followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from airloom.planning.openflow.flow_tables import TAGGED, WIDTHS, Rule, bits_of, number, split
from airloom.planning.openflow.header_classes import Class

Port = tuple[str, int]
"""Switch (or ``switch/bridge``) and OpenFlow port number."""
MOST = 200_000
"""Rules that are applied to classes of packets; beyond them the search ends, and says so."""
_CUBES = 16
"""Cubes without which a class costs as much as another rule."""
DEEPEST = 64
"""Tables and resubmits within one switch."""
_LOCAL = 65534
_GROUP = {"eth_dst": (1 << 40, 1 << 40)}
_RESERVED = {"eth_dst": (0x0180C2000000, 0xFFFFFFFFFFF0)}
"""Addresses that NORMAL does not forward (IEEE 802.1Q, 8.6.3)."""
_NEUTRAL = ("dec_ttl", "set_queue", "pop_queue", "meter", "note", "CONTROLLER", "controller", "LOCAL")
"""Beginnings of actions that change neither the header nor where a packet goes to among switches."""
_WRITES = {"mod_dl_src": "eth_src", "mod_dl_dst": "eth_dst", "mod_nw_src": "nw_src", "mod_nw_dst": "nw_dst"}
_WRITES |= {"mod_tp_src": "tp_src", "mod_tp_dst": "tp_dst"}
_SAME = {"eth_src": "eth_src", "dl_src": "eth_src", "eth_dst": "eth_dst", "dl_dst": "eth_dst"}
_SAME |= {"ip_src": "nw_src", "nw_src": "nw_src", "ip_dst": "nw_dst", "nw_dst": "nw_dst"}
_SAME |= {f"{one}_{end}": f"tp_{end}" for one in ("tcp", "udp", "sctp") for end in ("src", "dst")}


@dataclass(frozen=True, slots=True)
class FlowSwitch:
    """A switch: its ports, its rules by table, and how it treats frames to all."""

    ports: tuple[int, ...]
    rules: Mapping[int, Sequence[Rule]]
    floods: bool = True
    """Whether NORMAL and FLOOD use all ports; a spanning tree decides otherwise."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A packet's way through one switch; ``packet`` is its header when it comes in."""

    switch: str
    in_port: int
    out_port: int
    rule: str
    packet: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FlowLoop:
    """Switches that pass a packet on in a circle."""

    hops: tuple[Hop, ...]
    """Once around."""
    entry: Port
    """Where a packet that loops can come in."""
    packet: Mapping[str, int]
    """Such a packet, as it comes in."""

    traced: bool | None = None
    """Whether the switches' own trace agrees with every hop; None if it was not asked."""

    @property
    def ends(self) -> bool:
        """Whether packets leave it when their TTL is used up."""
        return any("dec_ttl" in hop.rule for hop in self.hops)

    def __str__(self) -> str:
        ways = [f"{one.switch} (port {one.in_port} to {one.out_port})" for one in self.hops]
        where = f"{self.entry[0]} port {self.entry[1]}"
        packet = packet_text(self.packet) or "any packet"
        until = " until its TTL is used up" if self.ends else ""
        return f"{' -> '.join([*ways, self.hops[0].switch])}{until}, for example {packet} from {where}"


@dataclass(slots=True)
class FlowLoops:
    """What was found, and what was not decided."""

    loops: list[FlowLoop] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _At:
    """A class within a switch: what it passed, and where copies of it leave."""

    packets: Class
    out: tuple[tuple[int, Class, str], ...] = ()
    later: tuple[str, ...] = ()
    """The action set."""
    later_rule: str = ""


def find(
    switches: Mapping[str, FlowSwitch],
    links: Mapping[Port, Port],
    edges: Sequence[Port] = (),
    *,
    most: int = MOST,
) -> FlowLoops:
    """Finds loops. ``links``: both directions; ``edges``: ports of hosts, from which it starts first.

    ``most``: maximum number of rules to apply.
    """
    search = _Search(switches, links, most)
    inner = [(name, port) for name, one in switches.items() for port in one.ports]
    for start in dict.fromkeys((*edges, *inner)):
        search.start(start)
    return FlowLoops(search.loops, list(search.undecided))


class _Search:
    def __init__(self, switches: Mapping[str, FlowSwitch], links: Mapping[Port, Port], most: int) -> None:
        self.loops: list[FlowLoop] = []
        self.undecided: dict[str, None] = {}
        self._switches, self._links = switches, links
        self._known: set[frozenset[Port]] = set()
        self._most = self._left = most

    def start(self, entry: Port) -> None:
        """Follows all packets that come in at a port."""
        # Each element: a port, the class there, and the way to it.
        ways: list[tuple[Port, Class, tuple[tuple[Port, int, str, Class], ...]]] = [(entry, Class(), ())]
        while ways:
            here, packets, past = ways.pop()
            if self._left <= 0:
                said = f"the search ended early, after {self._most:,} rules applied to classes of packets"
                self.undecided[said] = None
                return
            seen = next(
                (
                    place
                    for place, (port, _, _, before) in enumerate(past)
                    if port == here and before.key == packets.key
                ),
                None,
            )
            if seen is not None:
                self._found(entry, packets, past[seen:])
                continue
            for at in self._through(here, packets):
                for port, left, rule in at.out:
                    # The copy that left was written to; the class became smaller after it left.
                    copy = replace(at.packets, written=left.written)
                    following = self._links.get((here[0], port))
                    if following is not None:
                        ways.append((following, copy, (*past, (here, port, rule, packets))))

    def _found(self, entry: Port, packets: Class, around: Sequence[tuple[Port, int, str, Class]]) -> None:
        cycle = frozenset(port for port, _, _, _ in around)
        packet = packets.sample()
        if packet is None or cycle in self._known:
            return
        self._known.add(cycle)
        hops = tuple(
            Hop(port[0], port[1], out, rule, replace(packets, written=before.written).now(packet))
            for port, out, rule, before in around
        )
        self.loops.append(FlowLoop(hops, entry, packet))

    def _through(self, here: Port, packets: Class) -> Iterator[_At]:
        """Yields the parts of a class that a switch treats alike."""
        for at in self._table(here, 0, _At(packets), 0):
            if not at.later:
                yield at
                continue
            ordered = sorted(at.later, key=lambda one: one.startswith(("output", "group")))
            yield from self._actions(here, 0, ordered, at.later_rule, replace(at, later=()), DEEPEST)

    def _table(self, here: Port, table: int, at: _At, depth: int) -> Iterator[_At]:
        if depth > DEEPEST:
            self._undecided(here, f"more than {DEEPEST} tables for one packet")
            return
        rest = at.packets
        for rule in self._switches[here[0]].rules.get(table, ()):
            if rule.in_port is not None and rule.in_port != here[1]:
                continue
            self._left -= 1 + len(rest.without) // _CUBES
            if self._left <= 0:
                return
            if rule.strange is not None:
                self._undecided(here, f"a match on {rule.strange}: {rule.text}")
                continue
            cube = rest.entered(rule.match)
            mine = None if cube is None else rest.within(cube)
            if cube is None or mine is None or mine.sample() is None:
                continue
            yield from self._actions(here, table, rule.actions, rule.text, replace(at, packets=mine), depth)
            if not cube:
                return
            rest = rest.outside(cube)
        yield replace(at, packets=rest)

    def _actions(
        self, here: Port, table: int, actions: Sequence[str], rule: str, at: _At, depth: int
    ) -> Iterator[_At]:
        for place, action in enumerate(actions):
            rest = actions[place + 1 :]
            onward = _onward(action)
            if onward is not None:
                for after in self._table(here, onward, at, depth + 1):
                    yield from self._actions(here, table, rest, rule, after, depth)
                return
            if action == "NORMAL":
                for part in self._normal(here, rule, at):
                    yield from self._actions(here, table, rest, rule, part, depth)
                return
            changed = self._act(here, action, rule, at)
            if changed is None:
                self._undecided(here, f"the action {action.partition('(')[0]}: {rule}")
                break
            at = changed
        yield at

    def _act(self, here: Port, action: str, rule: str, at: _At) -> _At | None:
        """Returns what an action makes of a class; None if that is not decided."""
        word, _, said = action.partition(":")
        name, _, inner = action.rstrip(")").partition("(")
        if action == "drop" or action.startswith(_NEUTRAL):
            return at
        if action in ("ALL", "FLOOD") or word == "output" or word == "enqueue" or action.isdecimal():
            return self._send(here, said or action, rule, at)
        if action == "IN_PORT":
            return replace(at, out=(*at.out, (here[1], at.packets, rule)))
        if name == "clear_actions":
            return replace(at, later=())
        if name == "write_actions":
            return replace(at, later=(*at.later, *split(inner)), later_rule=rule)
        written = _written(action, at.packets)
        return None if written is None else replace(at, packets=written)

    def _send(self, here: Port, said: str, rule: str, at: _At) -> _At | None:
        ports: Sequence[int]
        if said in ("ALL", "FLOOD"):
            if said == "FLOOD" and not self._switches[here[0]].floods:
                return None
            ports = self._switches[here[0]].ports
        elif said in ("LOCAL", "CONTROLLER"):
            return at
        elif said == "IN_PORT":
            return replace(at, out=(*at.out, (here[1], at.packets, rule)))
        elif said.partition(":")[0].isdecimal():
            ports = [int(said.partition(":")[0])]
        else:
            return None
        # Only IN_PORT sends a packet back to where it came from.
        return replace(at, out=(*at.out, *((port, at.packets, rule) for port in ports if port != here[1])))

    def _normal(self, here: Port, rule: str, at: _At) -> Iterator[_At]:
        """Yields packets to group addresses, which go to all ports, and the others."""
        if not self._switches[here[0]].floods:
            self._undecided(here, f"the spanning tree: {rule}")
            yield at
            return
        self._undecided(here, f"learnt addresses: {rule}")
        group, reserved = at.packets.entered(_GROUP), at.packets.entered(_RESERVED)
        if group is None:
            yield at
            return
        to_all = at.packets.within(group)
        if to_all is not None and reserved is not None:
            to_all = to_all.outside(reserved)
        if to_all is not None and to_all.sample() is not None:
            sent = self._send(here, "ALL", rule, replace(at, packets=to_all))
            assert sent is not None
            yield sent
        if group:
            yield replace(at, packets=at.packets.outside(group))

    def _undecided(self, here: Port, what: str) -> None:
        self.undecided[f"{here[0]}: not followed: {what}"] = None


def packet_text(packet: Mapping[str, int]) -> str:
    """Returns a packet as ovs-ofctl(8) writes a flow."""
    return ",".join(f"{_TEXT.get(name, name)}={_value(name, packet[name])}" for name in _ordered(packet))


_TEXT = {"eth_src": "dl_src", "eth_dst": "dl_dst", "eth_type": "dl_type"}


def _ordered(packet: Mapping[str, int]) -> list[str]:
    """Returns the fields of a packet, each after those that it requires."""
    first = ["eth_src", "eth_dst", "eth_type", "vlan_tci", "nw_proto"]
    return [name for name in first if name in packet] + [name for name in packet if name not in first]


def _value(name: str, value: int) -> str:
    if name in ("eth_src", "eth_dst"):
        return ":".join(f"{value:012x}"[at : at + 2] for at in range(0, 12, 2))
    if name in ("nw_src", "nw_dst", "arp_spa", "arp_tpa"):
        return ".".join(str(octet) for octet in value.to_bytes(4, "big"))
    if name in ("ipv6_src", "ipv6_dst"):
        return ":".join(f"{value:032x}"[at : at + 4] for at in range(0, 32, 4))
    return f"{value:#06x}" if name in ("eth_type", "vlan_tci") else str(value)


def _onward(action: str) -> int | None:
    """Returns the table at which an action continues; None for other actions."""
    word, _, said = action.partition(":")
    if word == "goto_table":
        return int(said)
    name, _, inner = action.rstrip(")").partition("(")
    port, _, other = inner.partition(",")
    return int(other) if name == "resubmit" and not port and other.isdecimal() else None


def _written(action: str, packets: Class) -> Class | None:
    """Returns the class after an action that writes to the header; None for other actions."""
    try:
        return _writing(action, packets)
    except ValueError:
        return None


def _writing(action: str, packets: Class) -> Class | None:
    word, _, said = action.partition(":")
    if word in _WRITES:
        name = _WRITES[word]
        return packets.writing(name, bits_of(name, said))
    if word == "set_field":
        value, _, name = said.partition("->")
        name = _SAME.get(name, name)
        if name == "vlan_vid":
            return packets.writing("vlan_tci", (number(value) & 0x1FFF, 0x1FFF))
        return packets.writing(name, bits_of(name, value)) if name in WIDTHS else None
    if action in ("strip_vlan", "pop_vlan"):
        return packets.writing("vlan_tci", (0, 0xFFFF))
    if word == "mod_vlan_vid":
        return packets.writing("vlan_tci", (TAGGED | int(said, 0), 0x1FFF))
    if word == "push_vlan" and not _may_be_tagged(packets):
        return packets.writing("vlan_tci", (TAGGED, 0xFFFF))
    return None


def _may_be_tagged(packets: Class) -> bool:
    demanded = packets.entered({"vlan_tci": (TAGGED, TAGGED)})
    tagged = None if demanded is None else packets.within(demanded)
    return tagged is not None and tagged.sample() is not None
