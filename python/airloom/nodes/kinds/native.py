"""The kind ``native``: the host's own network stack, the reference for other kinds.

Nodes are as in ``netns``, but a link between two of them is a veth pair without the engine. The
kernel's HTB shapes a link with a constant rate. Notes list the link settings that the pair does not
implement.
"""

# Public methods are documented where they are declared, in kind.py.
# ruff: noqa: D102

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from airloom.errors import LabError, translated
from airloom.nodes.kind import Nature, NodeHandle, Properties
from airloom.nodes.kinds.netns import NetnsKind
from airloom.planning.links.link_settings import DEFAULT_PACKETS, LinkSettings
from airloom.planning.plan import LinkPlan, NodePlan

_BURST = 1600
"""Octets that may leave at line speed: one full Ethernet frame, the least that HTB can send."""
_NOT_MADE = ("corrupt", "delay", "duplicate", "jitter", "loss", "reorder")
"""Link settings that a veth pair does not implement."""


class NativeKind(NetnsKind):
    """Creates nodes connected by veth pairs."""

    name: ClassVar[str] = "native"
    properties: ClassVar[Properties] = Properties(
        programs=True, own_kernel=False, engine=False, cpu_share=True, pause=True, virtual_time=False
    )
    nature: ClassVar[Nature] = Nature(
        taxonomy="none",
        backend="the host itself",
        own_files=False,
        start="milliseconds",
        memory="0.3 MB",
        porting="none",
        isolation="as `netns`",
        transparency="programs, kernel and veth pairs of the host: the reference for other kinds",
        flexibility="the host's kernel, and links that it supports",
    )

    def bring_up(self, plans: Sequence[NodePlan]) -> dict[str, NodeHandle]:
        nodes = super().bring_up(plans)
        for link, ends in self._wired(plans):
            for (node, interface), settings in zip(ends, (link.forward, link.backward), strict=True):
                self._shape(node, interface, link.name, settings)
        return nodes

    def wires(self, plans: Sequence[NodePlan]) -> list[tuple[str, str, str, str]]:
        return [(*a, *b) for _, (a, b) in self._wired(plans)]

    def _wired(
        self, plans: Sequence[NodePlan]
    ) -> list[tuple[LinkPlan, tuple[tuple[str, str], tuple[str, str]]]]:
        """The links whose ends are both native nodes."""
        mine = {
            (plan.name, interface.name)
            for plan in plans
            for interface in plan.interfaces
            if interface.real is None
        }
        wired = []
        for link in self.site.links:
            (a, _, a_interface), (b, _, b_interface) = link.a.partition(":"), link.b.partition(":")
            if (a, a_interface) in mine and (b, b_interface) in mine:
                wired.append((link, ((a, a_interface), (b, b_interface))))
        return wired

    def _shape(self, node: str, interface: str, link: str, settings: LinkSettings) -> None:
        missing = [word for word in _NOT_MADE if getattr(settings, word)]
        rate = settings.constant_rate
        if rate is not None:
            packets = DEFAULT_PACKETS
            if settings.queue is not None and settings.queue.packets:
                packets = settings.queue.packets
            namespace = self._nodes[node].namespace
            try:
                with translated():
                    namespace.shape(interface, rate, _BURST, packets, settings.overhead_in_force)
            except LabError as error:
                self.notes.append(f"link {link}: the reference is not shaped: {error.message}")
            else:
                self.notes.append(f"link {link}: {node}:{interface} shaped by HTB, burst {_BURST} octets")
        elif settings.traced:
            missing.insert(0, "rate")
        if missing:
            self.notes.append(f"link {link}: the reference has no {', '.join(missing)} from {node}")
