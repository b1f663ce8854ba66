"""Further node classes: the Linux bridge and the NAT router."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

from airloom.mininet.errors import Misused
from airloom.mininet.nat import ExternalAccess
from airloom.mininet.node import LinuxBridge, Node
from airloom.mininet.session import session
from airloom.mininet.util import ipStr, netParse

__all__ = ["NAT", "LinuxBridge"]


class NAT(Node):
    """A NAT router.

    Between networks of the script, the kernel's netfilter translates addresses. With
    ``inNamespace=False`` the router leads to the host's network by a stack in user space (see
    :mod:`airloom.mininet.nat`), and is still a node with its own namespace.
    """

    def __init__(
        self,
        name: str,
        subnet: str = "10.0.0.0/8",
        localIntf: str | None = None,
        flush: bool = False,
        **params: Any,
    ) -> None:
        self.subnet, self.localIntf, self.flush = subnet, localIntf, flush
        self._external_access: ExternalAccess | None = None
        super().__init__(name, **params)

    def _stand(self) -> None:
        if self.inNamespace:
            super()._stand()
            return
        try:
            base, length = netParse(self.subnet)
            subnet = IPv4Network(f"{ipStr(base)}/{length}", strict=False)
        except ValueError as error:
            raise Misused("nat", f"{self.name}: subnet {self.subnet!r}: {error}") from None
        self._handle = session().add_host(self.name, self._cpu())
        try:
            self._external_access = session().open_external_access(self.name, subnet)
        except BaseException:
            self.terminate()
            raise

    def config(self, **params: Any) -> dict[str, Any]:  # type: ignore[override]
        """Configures the node and its rules."""
        results = super().config(**params)
        local = str(self.localIntf or self.defaultIntf() or "")
        if self._external_access is not None:
            if local:
                self._external_access.admit(local)
            return results
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
