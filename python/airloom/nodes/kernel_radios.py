"""Radios of this machine's kernel: the wireless devices of nodes without a kernel of their own.

All of them belong to one device, as the radios of a shared guest do. They are created in a network
namespace of their own, apart from the radios of other programs and laboratories, and are then moved
into the namespaces of their nodes.
"""

from __future__ import annotations

from collections.abc import Iterable

from airloom import _engine
from airloom.errors import RunError, translated
from airloom.planning.plan import InterfacePlan, NodePlan


class KernelRadios:
    """The radios of a run; created when they are first needed."""

    def __init__(self, plans: Iterable[NodePlan] = ()) -> None:
        self._count = sum(is_radio(one) for plan in plans if plan.guest is None for one in plan.interfaces)
        self._device: _engine.WlanDevice | None = None

    @property
    def device(self) -> _engine.WlanDevice | None:
        """Their device; None without radios."""
        if self._device is None and self._count:
            with translated():
                self._device = _engine.WlanDevice.of_kernel(self._count)
        return self._device

    def numbers(self, plans: Iterable[NodePlan]) -> list[int]:
        """The kernel's number of each radio; raises an error if there are too few for these nodes."""
        wanted = {one.wlan.number: plan.name for plan in plans for one in plan.interfaces if one.wlan}
        if wanted and max(wanted) >= self._count:
            raise RunError(
                "lab.grow",
                f"{wanted[max(wanted)]} cannot be added: a running laboratory gets no more wireless devices",
                cure="give it an Ethernet interface, or put it into the scenario",
            )
        device = self.device if wanted else None
        return [] if device is None else device.numbers()

    def close(self) -> None:
        """Ends them with the engine's last port of them."""
        self._count, self._device = 0, None


def is_radio(interface: InterfacePlan) -> bool:
    """Whether an interface is a wireless device."""
    return interface.wlan is not None
