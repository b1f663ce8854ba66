"""Captures whose hosts become nodes: which frames a node sends, with the addresses of the laboratory."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address

from airloom.errors import RunError, ScenarioError
from airloom.host import captured_packets
from airloom.host.pcap import ETHERNET, Captured
from airloom.measure.rewritten_packets import Unsuitable, is_later_fragment, rewritten
from airloom.units.text import plural

_HEADER = 14
"""Octets of an Ethernet header."""
_TYPES = {4: b"\x08\x00", 6: b"\x86\xdd"}
_MOST_NAMED = 8
"""Hosts that an error names."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The frames that a node sends of a capture."""

    frames: Sequence[Captured]
    begin: int
    """Time of the first frame of the whole file in ns: nodes that send parts of it keep step."""
    left: Mapping[str, int]
    """Frames that are not sent, by reason."""
    fragments: int
    """Fragments after the first of their datagram, which have no checksum of layer 4 to mend."""
    untagged: int
    """Frames that lost their VLAN tags."""

    @property
    def text(self) -> str:
        """Says what is not as captured; empty if nothing is."""
        parts = [f"{count:,} not sent: {reason}" for reason, count in sorted(self.left.items())]
        if self.fragments:
            later = plural("fragment", self.fragments)
            parts.append(f"{self.fragments:,} later {later} without a checksum of layer 4 to mend")
        if self.untagged:
            parts.append(f"{self.untagged:,} sent without VLAN tags")
        return "; ".join(parts)


def address_map(words: Sequence[str]) -> dict[bytes, bytes]:
    """Returns the map of ``CAPTURED=HERE`` words, packed.

    ``CAPTURED`` is an IP address of the capture, ``HERE`` an address of the same family, or a name that
    resolves to one. Raises :class:`~airloom.ScenarioError`.
    """
    found: dict[bytes, bytes] = {}
    for word in words:
        captured, sign, here = word.partition("=")
        try:
            old = ip_address(captured)
        except ValueError:
            old = None
        if old is None or not sign or not here:
            raise ScenarioError(
                "replay.map", f"--map {word}: not an address of the capture, =, and a host", cure=_CURE
            )
        if old.packed in found:
            raise ScenarioError("replay.map", f"--map: {captured} becomes two hosts", cure=_CURE)
        found[old.packed] = _resolved(here, old.version, word)
    return found


_CURE = "write it as --map 192.0.2.1=h1 or --map 192.0.2.1=10.0.0.1"


def _resolved(here: str, version: int, word: str) -> bytes:
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    try:
        return socket.inet_pton(family, str(socket.getaddrinfo(here, None, family)[0][4][0]))
    except OSError:
        raise ScenarioError(
            "replay.map", f"--map {word}: {here} has no IPv{version} address here", cure=_CURE
        ) from None


def rewrite(
    captured: Sequence[Captured],
    addresses: Mapping[bytes, bytes],
    own: frozenset[bytes],
    mac: bytes,
    mac_towards: Callable[[bytes], bytes],
) -> Rewritten:
    """Returns the frames that the node with the addresses ``own`` sends, in the order of time.

    ``mac`` is that of its interface, ``mac_towards`` returns that for a packed IP address. Raises
    :class:`~airloom.RunError` if no frame is left.
    """
    frames: list[Captured] = []
    left: Counter[str] = Counter()
    macs: dict[bytes, bytes] = {}
    fragments = untagged = 0
    for one in captured:
        packet = captured_packets.ip_packet(replace(one, octets=one.octets.ljust(one.length, b"\0")))
        try:
            if not packet:
                raise Unsuitable("without IP")
            made = rewritten(packet, addresses)
        except Unsuitable as reason:
            left[str(reason)] += 1
            continue
        version = made[0] >> 4
        size, at = (4, 12) if version == 4 else (16, 8)
        source, target = made[at : at + size], made[at + size : at + 2 * size]
        if source not in own:
            left["from hosts that are other nodes"] += 1
            continue
        if target not in macs:
            macs[target] = mac_towards(target)
        fragments += is_later_fragment(made)
        untagged += one.link_type == ETHERNET and one.length - len(made) > _HEADER
        octets = macs[target] + mac + _TYPES[version] + made
        frames.append(Captured(one.port, one.at, octets, len(octets), one.direction))
    if not frames:
        raise RunError(
            "replay.map", f"no frame of the capture is sent: {_reasons(left)}", cure=_hosts(captured)
        )
    return Rewritten(frames, captured[0].at, left, fragments, untagged)


def must_fit(frames: Sequence[Captured], interface: str, mtu: int) -> None:
    """Raises :class:`~airloom.RunError` if frames are longer than an interface sends."""
    long = [one.length for one in frames if one.length > mtu + _HEADER]
    if long:
        raise RunError(
            "replay.mtu",
            f"{len(long):,} {plural('frame', len(long))} of up to {max(long):,} octets cannot be sent on "
            f"{interface}, whose MTU is {mtu}: an offload of the capturing machine joined segments",
            cure="capture it with `ethtool -K eth0 tso off gso off gro off`, or raise the MTU of the link",
        )


def _reasons(left: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(left.items()))


def _hosts(captured: Sequence[Captured]) -> str:
    """Returns a cure that names the hosts of a capture, those with the most frames first."""
    seen: Counter[bytes] = Counter()
    for one in captured:
        seen.update(source for source in captured_packets.sources(one) if len(source) != 6)
    named = ", ".join(f"{ip_address(source)} ({count:,})" for source, count in seen.most_common(_MOST_NAMED))
    return f"map a source of the capture to an address of this node; frames by source: {named or 'none'}"
