"""Rules of how the engine's devices treat a machine's guest: notifications and translation."""

from __future__ import annotations

from collections.abc import Iterator

from airloom.planning.machine.guests import MEMORY, NETWORK, WITH_CACHE, handling, said, shared_by
from airloom.planning.network import Network
from airloom.scenario.model import Guest, Node, Scenario
from airloom.scenario.model.nodes import Notifications, Translation
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_

_WAYS = 4
"""Entries of a cache that one page may be in."""
_LEAST, _MOST = 1_000, 100_000_000
"""Shortest and longest time of a coalesced notification in ns."""
_KEYS = ("notifications", "translation")


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields what is wrong with these settings: in themselves, then for their machines."""
    yield from _said(scenario)
    told: set[Path_] = set()
    for problem in (*_devices(scenario, network), *_caches(scenario, network)):
        if problem.path not in told:
            told.add(problem.path)
            yield problem


def _said(scenario: Scenario) -> Iterator[Problem]:
    machines: list[tuple[Path_, Guest]] = [(("guest",), scenario.guest)]
    for name, node in scenario.nodes.items():
        if node.guest is not None:
            machines.append((("nodes", name, "guest"), node.guest))
    machines += [(("guests", name), guest) for name, guest in scenario.guests.items()]
    if scenario.topology is not None and scenario.topology.node.guest is not None:
        machines.append((("topology", "node", "guest"), scenario.topology.node.guest))
    for path, machine in machines:
        if machine.notifications is not None:
            yield from _notifications(machine.notifications, (*path, "notifications"))
        if machine.translation is not None:
            yield from _translation(machine.translation, (*path, "translation"))


def _notifications(said: Notifications, path: Path_) -> Iterator[Problem]:
    unused = {"off": ("frames", "time"), "time": ("frames",)}.get(said.mode, ())
    for key in unused:
        if getattr(said, key) is not None:
            modes = "count or adaptive" if key == "frames" else "count, time or adaptive"
            yield Problem(
                "guest.notifications",
                f"notifications with mode {said.mode} do not use {key!r}",
                (*path, key),
                f"leave it out, or say mode: {modes}",
            )
    if said.time is not None and not _LEAST <= said.time <= _MOST:
        yield Problem(
            "guest.notifications",
            f"a buffer cannot wait {said.time.text} for its notification",
            (*path, "time"),
            "say 1 us to 100 ms",
        )


def _translation(said: Translation, path: Path_) -> Iterator[Problem]:
    if said.entries is None:
        return
    if said.mode not in WITH_CACHE:
        yield Problem(
            "guest.translation",
            f"translation with mode {said.mode} has no cache",
            (*path, "entries"),
            f"leave it out, or say mode: {' or '.join(WITH_CACHE)}",
        )
    elif said.entries % _WAYS:
        yield Problem(
            "guest.translation",
            f"a cache of {said.entries} pages is no multiple of {_WAYS}",
            (*path, "entries"),
            f"say {said.entries // _WAYS * _WAYS} or {(said.entries // _WAYS + 1) * _WAYS}",
        )


def _devices(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Checks that the machine has devices to which the settings apply, and no others."""
    radios = {end.node for end in network.radios if end.said.get("device") == "wlan"}
    for name, node in network.nodes.items():
        kind = node.kind or scenario.kind
        machine = said(scenario, node)
        for key in _KEYS:
            setting = getattr(machine, key)
            if setting is None or setting.mode in ("off", "direct"):
                continue
            if kind not in MEMORY:
                # A default of the scenario concerns the virtual machines among its nodes.
                continue
            path = _path(key, name, scenario, node)
            if kind == "qemu" and name in radios:
                why = "the radios of a machine of kind qemu pass messages on a stream, which has no buffers"
                yield Problem(f"guest.{key}", why, path, "leave it out, or say kind: uml")
            elif (machine.network or NETWORK[kind]) == "tap" and name not in radios:
                why = f"the machine of {name!r} has no device of the engine"
                yield Problem(f"guest.{key}", why, path, "leave it out, or say network: vhost")


def _caches(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Checks that machines with a common cache agree on its size."""
    first: tuple[str, int] | None = None
    for name, node in network.nodes.items():
        if (node.kind or scenario.kind) not in MEMORY:
            continue
        plan = handling(said(scenario, node))
        if plan.translation != "merged" or plan.entries is None:
            continue
        if first is None:
            first = (name, plan.entries)
        elif plan.entries != first[1]:
            yield Problem(
                "guest.translation",
                f"the common cache has {first[1]} pages in the machine of {first[0]!r}, "
                f"and {plan.entries} here",
                _path("translation", name, scenario, node),
                "say the same number of entries",
            )


def _path(key: str, name: str, scenario: Scenario, node: Node) -> Path_:
    """Returns the place where a machine's setting is made."""
    shared = shared_by(scenario, node)
    if shared is not None:
        return ("guests", str(node.inside), key) if getattr(shared, key) is not None else ("guest", key)
    if node.guest is not None and getattr(node.guest, key) is not None:
        own = scenario.nodes.get(name)
        made = own is None or own.guest is None or getattr(own.guest, key) is None
        return ("topology", "node", "guest", key) if made else ("nodes", name, "guest", key)
    return ("guest", key)
