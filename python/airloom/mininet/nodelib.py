"""More kinds of nodes: the Linux bridge, and a node that translates addresses."""

from __future__ import annotations

from typing import Any

from airloom.mininet.node import LinuxBridge, Node
from airloom.mininet.refusal import Misused, Unsupported

__all__ = ["NAT", "LinuxBridge"]


class NAT(Node):
    """A router that hides a network behind its own address, by the kernel's netfilter."""

    def __init__(
        self,
        name: str,
        subnet: str = "10.0.0.0/8",
        localIntf: str | None = None,
        flush: bool = False,
        **params: Any,
    ) -> None:
        if not params.get("inNamespace", True):
            raise Unsupported(
                f"NAT({name!r}, inNamespace=False)",
                "its rules for the firewall of the machine would outlive a script that is killed",
                cure="inNamespace=True translates to a network of the script",
            )
        super().__init__(name, **params)
        self.subnet, self.localIntf, self.flush = subnet, localIntf, flush

    def config(self, **params: Any) -> dict[str, Any]:  # type: ignore[override]
        """Configures the node and its rules."""
        results = super().config(**params)
        local = str(self.localIntf or self.defaultIntf())
        if self.flush:
            self._rule("-F")
            self._rule("-t nat -F")
        self._rule(f"-A FORWARD -i {local} -d {self.subnet} -j DROP")
        self._rule(f"-A FORWARD -i {local} -s {self.subnet} -j ACCEPT")
        self._rule(f"-A FORWARD -o {local} -d {self.subnet} -j ACCEPT")
        self._rule(f"-t nat -A POSTROUTING -s {self.subnet} ! -d {self.subnet} -j MASQUERADE")
        self.cmd("sysctl -w net.ipv4.ip_forward=1")
        return results

    def _rule(self, rule: str) -> None:
        said = self.cmd(f"iptables {rule} || echo failed")
        if "failed" in said:
            raise Misused(
                "nat", f"{self.name}: iptables {rule}: {said.strip()}", cure="sudo apt-get install iptables"
            )
