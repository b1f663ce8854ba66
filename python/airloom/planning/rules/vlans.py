"""Rules of virtual LANs."""

from __future__ import annotations

from collections.abc import Iterator

from airloom.planning.network import Network
from airloom.scenario.model import Scenario
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that is wrong with the VLANs of links."""
    for wire in network.wires:
        path = wire.path
        if wire.native is not None and wire.trunk is None:
            yield Problem(
                "vlan.native",
                "'native' is the VLAN without tags of a trunk",
                (*path, "native"),
                "add trunk: [10, 20], or write vlan instead",
                key=True,
            )
        elif wire.speaks_of_vlans:
            word = "vlan" if wire.vlan is not None else "trunk"
            if wire.vlan is not None and wire.trunk is not None:
                yield Problem(
                    "vlan.both",
                    "a link carries one VLAN without tags, or is a trunk",
                    (*path, "trunk"),
                    "leave out vlan or trunk; the VLAN of a trunk that has no tags is its native one",
                    key=True,
                )
            if wire.trunk == [] and wire.native is None:
                yield Problem("vlan.none", "a trunk of no VLAN carries nothing", (*path, "trunk"))
            yield from _ends([end.name for end in wire.ends], word, path, network)


def _ends(names: list[str], word: str, path: Path_, network: Network) -> Iterator[Problem]:
    kinds = {name: network.switches[name].kind for name in names if name in network.switches}
    if not kinds:
        yield Problem(
            "vlan.switch",
            f"{word!r} is a setting of a switch, and neither end is a switch",
            (*path, word),
            "join the node to a switch, one link for each VLAN",
            key=True,
        )
    for name, kind in kinds.items():
        if kind != "switch":
            yield Problem(
                "vlan.switch",
                f"{name!r} is of kind {kind}, which has no VLANs of the engine",
                (*path, word),
                "make it a switch"
                if kind == "hub"
                else "set its ports by ovs-vsctl, or make it a switch of the engine",
                key=True,
            )
