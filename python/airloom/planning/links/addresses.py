"""Addresses: given addresses are checked against each other, the others are assigned.

A segment of two interfaces on a plain link gets a /30 (IPv4). Every other segment gets a /24 or larger,
as long as the pool suffices. In IPv6 each segment gets a /64. Networks, and hosts in them, are assigned
in the order of the links. If some interfaces of a segment have addresses, the others get theirs from
the same network. The radios of one medium and ssid form a segment. In a segment with a tunnel no
address is assigned: every interface must have one. Radios of nodes that leave routing to a daemon get
a host address without the network around it, because the daemon has to find its neighbours.
"""

from __future__ import annotations

from bisect import bisect_right
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network

from airloom.planning.links.ports import Port, Segment
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_

Net = tuple[int, int]
"""First address and prefix length."""


def assign(segments: list[Segment], pools: dict[int, IPv4Network | IPv6Network | None]) -> list[Problem]:
    """Sets ``addresses`` of every port, one address family at a time; returns the problems."""
    problems = _given(segments) + _behind_tunnels(segments)
    if problems:
        return problems
    for version, pool in pools.items():
        problems += _family(segments, version, pool)
    return problems


def _bits(version: int) -> int:
    return 32 if version == 4 else 128


def _net(address: IPv4Interface | IPv6Interface) -> Net:
    length = address.network.prefixlen
    shift = _bits(address.version) - length
    return (int(address.ip) >> shift << shift, length)


def _given(segments: list[Segment]) -> list[Problem]:
    problems: list[Problem] = []
    seen: dict[tuple[int, int, int], Port] = {}
    nets: list[tuple[int, int, int, int, Port, Path_]] = []
    for index, segment in enumerate(segments):
        for port in segment.ports:
            port.addresses = [address for address, _ in port.given]
            for address, path in port.given:
                key = (address.version, int(address.ip), index if address.is_link_local else -1)
                if key in seen:
                    other = seen[key]
                    problems.append(
                        Problem(
                            "address.clash",
                            f"{address.ip} already belongs to {other.node}:{other.name}",
                            path,
                            "every interface has its own address",
                        )
                    )
                    continue
                seen[key] = port
                start, length = _net(address)
                bits = _bits(address.version)
                size = 1 << (bits - length)
                if address.version == 4 and length < 31 and int(address.ip) in (start, start + size - 1):
                    which = "network" if int(address.ip) == start else "broadcast"
                    problems.append(
                        Problem("address.host", f"{address} is the {which} address of its own network", path)
                    )
                if address.is_multicast or address.is_loopback or address.is_unspecified:
                    problems.append(
                        Problem("address.host", f"{address} cannot be an interface's address", path)
                    )
                if not address.is_link_local:
                    nets.append((address.version, start, start + size, index, port, path))
    if not problems:
        problems += _overlaps(nets)
    return problems


def _behind_tunnels(segments: list[Segment]) -> list[Problem]:
    """Requires explicit addresses in a segment with a tunnel: the far side's addresses are unknown."""
    return [
        Problem(
            "tunnel.address",
            f"{port.node}:{port.name} shares a segment with the tunnel {segment.tunnels[0]!r}, "
            "whose remote side uses addresses that Airloom does not know",
            port.path,
            "give it an address, by 'addresses' of its link or interface",
        )
        for segment in segments
        if segment.tunnels
        for port in segment.ports
        if not port.given and not port.member
    ]


def _overlaps(nets: list[tuple[int, int, int, int, Port, Path_]]) -> list[Problem]:
    """Checks that networks of different segments are disjoint, those of one equal or disjoint."""
    problems = []
    reach: tuple[int, int, int, int, Port, Path_] | None = None
    for net in sorted(nets, key=lambda each: (each[0], each[1], -each[2], each[3])):
        if reach is not None and net[0] == reach[0] and net[1] < reach[2]:
            if net[1:4] != reach[1:4]:
                here = f"{net[4].node}:{net[4].name}"
                there = f"{reach[4].node}:{reach[4].name}"
                same = net[3] == reach[3]
                problems.append(
                    Problem(
                        "address.overlap",
                        f"the network of {here} overlaps that of {there}"
                        + (", with another prefix length" if same else ", which is in another segment"),
                        net[5],
                        "one prefix length in a segment"
                        if same
                        else "a network of its own for every segment",
                    )
                )
            if net[2] > reach[2]:
                reach = net
        else:
            reach = net
    return problems


def _family(segments: list[Segment], version: int, pool: IPv4Network | IPv6Network | None) -> list[Problem]:
    given: list[Net | None] = []
    reserved: list[tuple[int, int]] = []
    bits = _bits(version)
    for segment in segments:
        first: Net | None = None
        for port in segment.ports:
            for address in port.addresses:
                if address.version == version and not address.is_link_local:
                    net = _net(address)
                    reserved.append((net[0], net[0] + (1 << (bits - net[1]))))
                    first = first or net
        given.append(first)
    problems = []
    wanted: list[int] = []
    for index, segment in enumerate(segments):
        known = given[index]
        if segment.tunnels:
            continue
        if known is not None:
            # No pool is IPv6's default, under which an address that is given names the network of all.
            if pool is not None or version == 6:
                problems += _fill(segment, version, known)
        elif pool is not None and segment.ports:
            wanted.append(index)
    if pool is None or not wanted:
        return problems
    lengths = [_length(segments[index], version, spacious=True) for index in wanted]
    nets = _allocate(pool, lengths, reserved)
    if nets is None:
        lengths = [_length(segments[index], version, spacious=False) for index in wanted]
        nets = _allocate(pool, lengths, reserved)
    if nets is None:
        return [
            *problems,
            Problem(
                "address.exhausted",
                f"the pool {pool} is too small for {len(wanted)} segments",
                ("addresses", f"ipv{version}"),
                "give a larger one",
            ),
        ]
    for index, net in zip(wanted, nets, strict=True):
        problems += _fill(segments[index], version, net)
    return problems


def _length(segment: Segment, version: int, *, spacious: bool) -> int:
    if version == 6:
        return 64
    ports = sum(not port.member for port in segment.ports)
    if len(segment.wires) == 1 and ports <= 2:
        return 30
    tight = 32 - (ports + 1).bit_length()
    return min(24 if spacious else 30, tight)


def _allocate(
    pool: IPv4Network | IPv6Network, lengths: list[int], reserved: list[tuple[int, int]]
) -> list[Net] | None:
    """Returns free networks of these prefix lengths; None if the pool is too small."""
    bits = pool.max_prefixlen
    at = int(pool.network_address)
    end = at + pool.num_addresses
    reserved = _merged(reserved)
    starts = [start for start, _ in reserved]
    nets = []
    for length in lengths:
        size = 1 << (bits - length)
        while True:
            at = -(-at // size) * size
            if at + size > end:
                return None
            before = bisect_right(starts, at + size - 1) - 1
            if before < 0 or reserved[before][1] <= at:
                break
            at = reserved[before][1]
        nets.append((at, length))
        at += size
    return nets


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _fill(segment: Segment, version: int, net: Net) -> list[Problem]:
    """Gives every port without an address one in the segment's network."""
    start, length = net
    bits = _bits(version)
    make = IPv4Interface if version == 4 else IPv6Interface
    taken = {
        int(address.ip) for port in segment.ports for address in port.addresses if address.version == version
    }
    last = start + (1 << (bits - length)) - (2 if version == 4 and length < 31 else 1)
    at = start if length >= bits - 1 else start + 1
    for port in segment.ports:
        has_one = any(address.version == version and not address.is_link_local for address in port.addresses)
        if port.member or has_one:
            continue
        while at in taken:
            at += 1
        if at > last:
            return [
                Problem(
                    "address.exhausted",
                    f"no address is left for {port.node}:{port.name} in its segment's network",
                    port.path,
                    "give it an address, or the others a shorter prefix",
                )
            ]
        port.addresses.append(make((at, length)))
        at += 1
    return []
