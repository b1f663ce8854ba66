"""What the controller of virtual time does while time stands still."""

from __future__ import annotations

from typing import Any, cast

from airloom.nodes.virtual_time import Pacer


class Init:
    """A first process whose orders take a moment to arrive, as those of a real one do."""

    def __init__(self, name: str, log: list[tuple[str, bytes]], carrier: Init | None = None) -> None:
        self.node = name
        self.is_gone = False
        self._log, self._carrier = log, carrier
        self.ordered: list[bytes] = []
        self._carried = b""

    def settle(self) -> bool:
        """Passes on what was ordered, or carries what the others have passed on."""
        moved = bool(self.ordered or self._carried)
        if self._carrier is not None:
            for order in self.ordered:
                self._carrier._carried += order
        elif self._carried:
            self._log.append((self.node, self._carried))
        self.ordered, self._carried = [], b""
        return moved


def test_a_shared_guest_carries_all_orders_of_a_node_at_once() -> None:
    log: list[tuple[str, bytes]] = []
    pacer = Pacer(1)
    guest = Init("guest", log)
    nodes = [Init(f"h{number}", log, guest) for number in (1, 2)]
    for init in (guest, *nodes):
        pacer.join(cast(Any, init))
    nodes[0].ordered = [b"one ", b"two "]
    nodes[1].ordered = [b"three"]
    # A machine that settled first would find what its nodes have written by chance.
    guest._carried, nodes[0].ordered = nodes[0].ordered[0], nodes[0].ordered[1:]
    pacer.advance(0)
    assert log == [("guest", b"one threetwo ")]
