"""Further topologies: trees and tori."""

from __future__ import annotations

from typing import Any

from airloom.mininet.errors import Misused
from airloom.mininet.net import Mininet
from airloom.mininet.topo import Topo

DEEPEST = 100
"""Maximum number of levels of a tree."""


class TreeTopo(Topo):
    """A tree of switches with hosts as leaves."""

    def build(self, depth: int = 1, fanout: int = 2) -> None:
        """Adds ``depth`` levels of switches, each node with ``fanout`` children, depth first."""
        if depth > DEEPEST:
            raise Misused(
                "size", f"a tree of {depth} levels is deeper than {DEEPEST}", cure="ask for a smaller one"
            )
        self.hostNum = self.switchNum = 1
        self.addTree(depth, fanout)

    def addTree(self, depth: int, fanout: int) -> str:
        """Adds a subtree; returns its root."""
        if depth <= 0:
            self.hostNum += 1
            return self.addHost(f"h{self.hostNum - 1}")
        node = self.addSwitch(f"s{self.switchNum}")
        self.switchNum += 1
        for _ in range(fanout):
            self.addLink(node, self.addTree(depth - 1, fanout))
        return node


def TreeNet(depth: int = 1, fanout: int = 2, **kwargs: Any) -> Mininet:
    """Returns a network with a tree topology."""
    return Mininet(TreeTopo(depth, fanout), **kwargs)


class TorusTopo(Topo):
    """A torus of switches, each with ``n`` hosts. Its loops prevent building it as a network."""

    def build(self, x: int = 3, y: int = 3, n: int = 1) -> None:
        """Adds the nodes and links: s1x1, s1x2, ..., h1x1 (or h1x1x1 if ``n`` is above 1)."""
        if x < 3 or y < 3:
            raise ValueError("a torus has at least 3x3 switches, else links would be double")
        if n < 1:
            raise ValueError("a torus needs at least one host at each switch")
        switches = {}
        for i in range(x):
            for j in range(y):
                at = f"{i + 1}x{j + 1}"
                switch = switches[i, j] = self.addSwitch(f"s{at}", dpid=f"{i + 1:08x}{j + 1:08x}")
                for k in range(n):
                    self.addLink(switch, self.addHost(f"h{at}" if n == 1 else f"h{at}x{k + 1}"))
        for (i, j), switch in switches.items():
            self.addLink(switch, switches[i, (j + 1) % y])
            self.addLink(switch, switches[(i + 1) % x, j])
