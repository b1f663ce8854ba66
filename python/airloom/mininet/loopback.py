"""The loopback interface in a switch's tables, at port 0, as Mininet's switches have it."""

from __future__ import annotations

from typing import Any


class Loopback:
    """``lo`` of a switch: it has no link and is no port of the bridge."""

    name, ip, prefixLen = "lo", "127.0.0.1", "8"
    mac = link = None

    def __init__(self, node: Any) -> None:
        self.node = node

    def __repr__(self) -> str:
        return "<Loopback lo>"

    def __str__(self) -> str:
        return self.name

    def IP(self) -> str:
        """Returns the IP address."""
        return self.ip

    def MAC(self) -> None:
        """None: it has no hardware address."""

    def isUp(self, setUp: bool = False) -> bool:
        """True: it is always up."""
        return True

    def carry(self, up: bool) -> None:
        """Does nothing: it stays up."""

    def delete(self) -> None:
        """Does nothing: it ends with the switch."""

    detach = delete
