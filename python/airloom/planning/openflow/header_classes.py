"""Classes of packets: what is known of the header that entered, and what was written over it since.

As in header space analysis (Kazemian, Varghese, McKeown: Header Space Analysis, NSDI 2012) a class is a
cube without other cubes. Here both are of the packet as it *entered*, and written fields are constants
beside it. So no rewriting loses information, and a class is followed exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from airloom.planning.openflow.flow_tables import TAGGED, Bits, Cube, width_of

_USUAL = {
    "eth_src": 0x020000000001,
    "eth_dst": 0x020000000002,
    "eth_type": 0x0800,
    "nw_src": 0x0A000001,
    "nw_dst": 0x0A000002,
    "nw_proto": 17,
}
"""Values of a sample in bits that nothing decides."""
_UNTAGGED_BITS = [{"vlan_tci": (1 << bit, TAGGED | 1 << bit)} for bit in range(16) if 1 << bit != TAGGED]
"""Tags of packets without a tag, which do not exist."""


@dataclass(frozen=True, slots=True)
class Class:
    """Packets that all rules so far treated alike."""

    cube: Cube = field(default_factory=dict)
    """Bits of the packet as it entered."""
    without: tuple[Cube, ...] = ()
    """Packets in one of these cubes are not in the class."""
    written: Mapping[str, Bits] = field(default_factory=dict)
    """Bits that were written since."""

    def entered(self, match: Cube) -> Cube | None:
        """Returns what a match on the packet now demands of the packet as it entered.

        None if a written bit contradicts it.
        """
        found = {}
        for name, (value, mask) in match.items():
            known, fixed = self.written.get(name, (0, 0))
            if (value ^ known) & mask & fixed:
                return None
            if mask & ~fixed:
                found[name] = (value & ~fixed, mask & ~fixed)
        return found

    def within(self, cube: Cube) -> Class | None:
        """Returns the part of the class in a cube; None if the class has other values there."""
        both = dict(self.cube)
        for name, (value, mask) in cube.items():
            known, fixed = both.get(name, (0, 0))
            if (value ^ known) & mask & fixed:
                return None
            both[name] = (known | value, fixed | mask)
        return replace(self, cube=both)

    def outside(self, cube: Cube) -> Class:
        """Returns the part of the class that is not in a cube."""
        return replace(self, without=(*self.without, cube))

    def writing(self, name: str, bits: Bits) -> Class:
        """Returns the class with bits written."""
        value, mask = bits
        known, fixed = self.written.get(name, (0, 0))
        merged = ((known & ~mask) | (value & mask), fixed | mask)
        return replace(self, written={**self.written, name: merged})

    def sample(self) -> dict[str, int] | None:
        """Returns a packet of the class as it entered; None if the class is empty."""
        apart = [one for one in self.without if self.within(one) is not None]
        names = {*self.cube, *(name for one in apart for name in one)}
        if "vlan_tci" in names:
            apart += _UNTAGGED_BITS
        found = _sample(dict(self.cube), apart)
        return None if found is None else {name: found.get(name, _usual(name)) for name in sorted(names)}

    def now(self, packet: Mapping[str, int]) -> dict[str, int]:
        """Returns a packet that entered as it is now."""
        found = dict(packet)
        for name, (value, mask) in self.written.items():
            found[name] = (found.get(name, _usual(name)) & ~mask) | value
        return found

    @property
    def key(self) -> tuple[tuple[str, Bits], ...]:
        """Returns what was written, comparable."""
        return tuple(sorted(self.written.items()))


def _sample(cube: dict[str, Bits], apart: list[Cube]) -> dict[str, int] | None:
    """Returns a point of a cube outside others.

    A point in one of them has to differ from it in a bit that the cube leaves open: each is tried.
    """
    point = {
        name: value | (_usual(name) & ~mask & ((1 << width_of(name)) - 1))
        for name, (value, mask) in cube.items()
    }
    for one in apart:
        if all((point.get(name, _usual(name)) ^ value) & mask == 0 for name, (value, mask) in one.items()):
            for name, (value, mask) in one.items():
                known, fixed = cube.get(name, (0, 0))
                left = mask & ~fixed
                while left:
                    bit = left & -left
                    left ^= bit
                    tried = {**cube, name: (known | (~value & bit), fixed | bit)}
                    found = _sample(tried, apart)
                    if found is not None:
                        return found
                    # With this bit as in the other cube from here on, nothing is tried twice.
                    known, fixed = known | (value & bit), fixed | bit
                    cube = {**cube, name: (known, fixed)}
            return None
    return point


def _usual(name: str) -> int:
    return _USUAL.get(name, 0)
