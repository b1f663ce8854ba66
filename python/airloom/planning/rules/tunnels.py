"""Rules of tunnels."""

from __future__ import annotations

from collections.abc import Iterator

from airloom.planning.links.tunnels import VXLAN_PORT
from airloom.planning.network import Network
from airloom.scenario.model import Scenario, Tunnel
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.units.given import given

_GRE = ("key", "checksum", "sequence")
_VXLAN = ("vni", "port")


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that is wrong with tunnels."""
    linked: dict[str, Path_] = {}
    for wire in network.wires:
        for side, end in enumerate(wire.ends):
            if end.name in network.tunnels:
                if end.name in linked:
                    yield Problem(
                        "tunnel.link",
                        f"the tunnel {end.name!r} already has a link",
                        (*wire.path, "ends", side),
                        "a tunnel has one link; to share it, put a switch between",
                    )
                linked[end.name] = wire.path
                other = wire.ends[1 - side].name
                if network.tunnels[end.name].kind == "gre" and other not in network.nodes:
                    yield Problem(
                        "tunnel.node",
                        f"{end.name!r} carries IP and no Ethernet, and {other!r} is no node",
                        (*wire.path, "ends", 1 - side),
                        "link it to a node, or make it a gretap tunnel",
                    )
    taken: dict[tuple[object, ...], str] = {}
    for name, tunnel in scenario.tunnels.items():
        path: Path_ = ("tunnels", name)
        if name not in linked:
            yield Problem(
                "tunnel.link",
                f"no link ends at the tunnel {name!r}",
                path,
                f"such as ends: [NODE, {name}]",
                key=True,
            )
        yield from _words(tunnel, path)
        yield from _addresses(tunnel, path)
        key = _identity(tunnel)
        owner = taken.setdefault(key, name)
        if owner != name:
            what = "UDP port" if tunnel.kind == "vxlan" else "key"
            yield Problem(
                "tunnel.clash",
                f"{name!r} has the {what} of {owner!r}, so their packets cannot be told apart",
                path,
                "give it another key" if tunnel.kind != "vxlan" else "give it another port, or local address",
                key=True,
            )


def _identity(tunnel: Tunnel) -> tuple[object, ...]:
    """Returns what distinguishes a tunnel's packets from those of other tunnels of this machine."""
    if tunnel.kind == "vxlan":
        return (tunnel.namespace, "udp", given(tunnel.port, VXLAN_PORT), tunnel.local)
    return (tunnel.namespace, "gre", tunnel.remote, tunnel.key)


def _words(tunnel: Tunnel, path: Path_) -> Iterator[Problem]:
    foreign = _GRE if tunnel.kind == "vxlan" else _VXLAN
    for word in foreign:
        if word in tunnel.model_fields_set and getattr(tunnel, word):
            yield Problem(
                "tunnel.word",
                f"{word!r} is no setting of a {tunnel.kind} tunnel",
                (*path, word),
                f"leave it out; {tunnel.kind} has {', '.join(_VXLAN if foreign is _GRE else _GRE)}",
                key=True,
            )
    if tunnel.kind == "vxlan" and tunnel.vni is None:
        yield Problem("tunnel.vni", "a vxlan tunnel needs 'vni', the number of its network", path)


def _addresses(tunnel: Tunnel, path: Path_) -> Iterator[Problem]:
    for word, address in (("remote", tunnel.remote), ("local", tunnel.local)):
        if address is not None and (address.is_multicast or address.is_unspecified):
            yield Problem(
                "tunnel.address",
                f"{address} is not the address of one host",
                (*path, word),
                "a tunnel here has one peer",
            )
    if tunnel.local is not None and tunnel.local.version != tunnel.remote.version:
        yield Problem(
            "tunnel.address",
            f"{tunnel.local} and {tunnel.remote} are of different families",
            (*path, "local"),
        )
    if tunnel.local == tunnel.remote:
        yield Problem("tunnel.address", "the tunnel leads to its own address", (*path, "remote"))
