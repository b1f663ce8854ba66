"""AODV's messages in the format of RFC 3561, section 5.

Every message packs to bytes and parses from bytes; invalid bytes raise only ``ValueError``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import ClassVar

PORT = 654
NONE = IPv4Address(0)


@dataclass(frozen=True, slots=True)
class RouteRequest:
    """RREQ (section 5.1)."""

    hops: int
    identifier: int
    destination: IPv4Address
    destination_sequence: int
    originator: IPv4Address
    originator_sequence: int
    unknown_sequence: bool = False
    destination_only: bool = False
    gratuitous: bool = False

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("!BBBBI4sI4sI")
    TYPE: ClassVar[int] = 1

    def pack(self) -> bytes:
        """Returns the 24 octets of the message."""
        flags = self.gratuitous << 5 | self.destination_only << 4 | self.unknown_sequence << 3
        return self.LAYOUT.pack(
            self.TYPE, flags, 0, self.hops, self.identifier, self.destination.packed,
            self.destination_sequence, self.originator.packed, self.originator_sequence,
        )  # fmt: skip

    @classmethod
    def parse(cls, octets: bytes) -> RouteRequest:
        """Parses a message; raises ``ValueError`` if it is invalid."""
        _, flags, _, hops, identifier, to, to_sequence, of, of_sequence = _unpack(cls.LAYOUT, octets)
        return cls(
            hops, identifier, IPv4Address(to), to_sequence, IPv4Address(of), of_sequence,
            bool(flags & 8), bool(flags & 16), bool(flags & 32),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RouteReply:
    """RREP (section 5.2); a hello is a reply about its own sender with no hops (section 6.9)."""

    hops: int
    destination: IPv4Address
    destination_sequence: int
    originator: IPv4Address
    lifetime_ms: int

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("!BBBB4sI4sI")
    TYPE: ClassVar[int] = 2

    def pack(self) -> bytes:
        """Returns the 20 octets of the message."""
        return self.LAYOUT.pack(
            self.TYPE, 0, 0, self.hops, self.destination.packed, self.destination_sequence,
            self.originator.packed, self.lifetime_ms,
        )  # fmt: skip

    @classmethod
    def parse(cls, octets: bytes) -> RouteReply:
        """Parses a message; raises ``ValueError`` if it is invalid."""
        _, _, _, hops, to, sequence, of, lifetime = _unpack(cls.LAYOUT, octets)
        return cls(hops, IPv4Address(to), sequence, IPv4Address(of), lifetime)


@dataclass(frozen=True, slots=True)
class RouteError:
    """RERR (section 5.3): unreachable destinations with their sequence numbers."""

    unreachable: dict[IPv4Address, int] = field(default_factory=dict)

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("!BBBB")
    ENTRY: ClassVar[struct.Struct] = struct.Struct("!4sI")
    TYPE: ClassVar[int] = 3

    def pack(self) -> bytes:
        """Returns 4 octets, and 8 for each destination."""
        head = self.LAYOUT.pack(self.TYPE, 0, 0, len(self.unreachable))
        return head + b"".join(self.ENTRY.pack(a.packed, s) for a, s in self.unreachable.items())

    @classmethod
    def parse(cls, octets: bytes) -> RouteError:
        """Parses a message; raises ``ValueError`` if it is invalid."""
        _, _, _, count = _unpack(cls.LAYOUT, octets)
        body = octets[cls.LAYOUT.size :]
        if count == 0 or len(body) < count * cls.ENTRY.size:
            raise ValueError(f"route error of {len(octets)} octets names {count} destinations")
        entries = cls.ENTRY.iter_unpack(body[: count * cls.ENTRY.size])
        return cls({IPv4Address(address): sequence for address, sequence in entries})


Message = RouteRequest | RouteReply | RouteError
KINDS: dict[int, type[RouteRequest] | type[RouteReply] | type[RouteError]] = {
    kind.TYPE: kind for kind in (RouteRequest, RouteReply, RouteError)
}


def parse(octets: bytes) -> Message:
    """Parses any message; raises ``ValueError`` if it is not one of AODV's."""
    if not octets or octets[0] not in KINDS:
        raise ValueError(f"no AODV message: {octets[:8].hex()}")
    return KINDS[octets[0]].parse(octets)


def newer(a: int, b: int) -> bool:
    """True if sequence number ``a`` is newer than ``b``, in circular 32-bit arithmetic (section 6.1)."""
    return 0 < (a - b) & 0xFFFF_FFFF < 0x8000_0000


def _unpack(layout: struct.Struct, octets: bytes) -> tuple:
    try:
        return layout.unpack_from(octets)
    except struct.error as error:
        raise ValueError(str(error)) from None
