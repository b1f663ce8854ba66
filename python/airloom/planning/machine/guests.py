"""Plans the virtual machines of nodes with a kernel of their own."""

from __future__ import annotations

from airloom.planning.machine import kernel_words
from airloom.planning.network import Network
from airloom.planning.plan import GuestPlan, HandlingPlan, WlanPlan
from airloom.planning.radio.media import phy_of
from airloom.planning.radio.radios import RadioEnd
from airloom.scenario.model import Guest, Node, Scenario, SharedGuest
from airloom.scenario.model.base import BUILT
from airloom.scenario.model.nodes import Notifications, Translation
from airloom.scenario.source import Path_
from airloom.units.given import given

MEMORY = {"uml": 64 << 20, "qemu": 256 << 20}
"""Kinds with a virtual machine: default memory in octets."""
LEAST = {"uml": 32 << 20, "qemu": 160 << 20}
"""The least memory with which the kernel boots, in octets."""

NETWORK = {"uml": "vhost", "qemu": "tap"}
"""Default network device of a virtual machine."""
WIRELESS_KERNEL = {"uml": BUILT, "qemu": None}
"""Default kernel of a virtual machine with radios, if not that of the others."""


MOST_RADIOS = 100
"""Radios of one machine (``radios`` of ``mac80211_hwsim``)."""

MOST_DEVICES = 40
"""Network and wireless devices of one machine of User Mode Linux, whose kernel has 64 interrupts.

With 41 and more the kernel does not boot, or not each time.
"""

_FRAMES = {"count": 8, "adaptive": 32}
_TIME = {"count": 1_000_000, "time": 200_000, "adaptive": 200_000}
"""Defaults of the modes of notifications: buffers, and ns."""
_ENTRIES = 64
"""Pages in a cache of translations, by default."""
WITH_CACHE = ("cached", "merged")
"""Modes of translation that have a cache."""

RADIO_MACS = frozenset(f"02:00:00:00:{number:02x}:00" for number in range(MOST_RADIOS))
"""Permanent addresses of the radios in a guest's kernel, by which they are found there."""


def wlans(scenario: Scenario, radios: list[RadioEnd], nodes: dict[str, Node]) -> dict[str, WlanPlan]:
    """Returns the radios that are wireless devices, by port, numbered in each kernel.

    Nodes of kinds without a machine share this machine's kernel.
    """
    found: dict[str, WlanPlan] = {}
    numbers: dict[tuple[str, bool] | None, int] = {}
    for end in radios:
        if end.said.get("device") == "wlan":
            node = nodes[end.node]
            own = (node.kind or scenario.kind) in MEMORY
            machine = (node.inside or end.node, node.inside is not None) if own else None
            number = numbers.get(machine, 0)
            numbers[machine] = number + 1
            found[end.port] = WlanPlan(number, phy_of(end.said))
    return found


def plan(scenario: Scenario, node: Node, wlan: bool = False) -> GuestPlan | None:
    """Returns the virtual machine of a node; None if its kind has none.

    ``wlan``: the node has a wireless device, which needs a kernel with an 802.11 stack.
    """
    if (node.kind or scenario.kind) not in MEMORY:
        return None
    machine = said(scenario, node)
    shared = shared_by(scenario, node)
    return GuestPlan(
        memory=int(given(machine.memory, MEMORY[node.kind or scenario.kind])),
        network=machine.network or NETWORK[node.kind or scenario.kind],
        kernel=machine.kernel or _own_kernel(scenario, node.kind or scenario.kind, wlan),
        append=tuple(kernel_words.words(machine.append or "")),
        root=machine.root,
        shared=node.inside,
        handling=handling(machine),
        cpu=shared.cpu if shared is not None else None,
    )


def _own_kernel(scenario: Scenario, kind: str, wlan: bool) -> str | None:
    """The kernel without one in the scenario: of the distribution's, neither radios nor virtual time."""
    return WIRELESS_KERNEL[kind] if wlan or scenario.time == "virtual" else None


def handling(machine: Guest) -> HandlingPlan:
    """Returns how the devices of a machine treat its guest."""
    told, translation = machine.notifications or Notifications(), machine.translation or Translation()
    frames, time = given(told.frames, _FRAMES.get(told.mode)), given(told.time, _TIME.get(told.mode))
    return HandlingPlan(
        notifications=told.mode,
        frames=frames,
        time=None if time is None else int(time),
        translation=translation.mode,
        entries=given(translation.entries, _ENTRIES) if translation.mode in WITH_CACHE else None,
    )


def said(scenario: Scenario, node: Node) -> Guest:
    """Returns the settings of its shared guest or its own, over the scenario's defaults."""
    own = shared_by(scenario, node) or node.guest
    if own is None:
        return scenario.guest
    update = {name: getattr(own, name) for name in Guest.model_fields if name in own.model_fields_set}
    return scenario.guest.model_copy(update=update)


def shared_by(scenario: Scenario, node: Node) -> SharedGuest | None:
    """Returns the guest that a node shares with others; None if it shares none."""
    return None if node.inside is None else scenario.guests.get(node.inside)


def with_kind(scenario: Scenario, node: Node) -> Node:
    """Returns the node, with the kind of its shared guest."""
    shared = shared_by(scenario, node)
    if shared is None or node.kind is not None:
        return node
    return node.model_copy(update={"kind": shared.kind or scenario.kind})


def said_at(key: str, name: str, scenario: Scenario, network: Network) -> Path_:
    """Returns the place where a key of a node is set: for the node itself or for several."""
    said: list[tuple[Node | None, Path_]] = [(scenario.nodes.get(name), ("nodes", name))]
    sliver = network.slivers.get(name)
    if sliver is not None:
        said.append((scenario.slices[sliver.slice].node, ("slices", sliver.slice, "node")))
        said.append((scenario.nodes.get(sliver.node), ("nodes", sliver.node)))
    for words, path in said:
        if words is not None and key in words.model_fields_set:
            return (*path, key)
    return ("topology", "node", key)
