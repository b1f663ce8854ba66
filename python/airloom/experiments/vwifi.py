"""Common code of the Virtual WiFi experiments: cells, and stations of each of four groups.

An access point is a ``netns`` node with an Ethernet radio, so that it takes little of the machine.
A station has the radio in one of these ways:

* *native*: the kernel that hosts the node owns the radio. The node is inside a shared guest.
* *pass-through*: a guest of its own owns a radio alone.
* *virtual*: a guest of its own has a virtual MAC of a card.
* *baseline*: a guest of its own has an Ethernet interface, and the 802.11 station is outside of it.

All rates are fixed, because the rate control of a kernel and that of the engine differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airloom.errors import HostError, RunError
from airloom.experiments.found import Found, Sample
from airloom.host import programs
from airloom.results import RunReader
from airloom.results.details import DeviceUse
from airloom.scenario.model import Scenario

GROUPS = ("native", "pass-through", "virtual", "baseline")
RATE = 24
"""Mbit/s of every data frame."""
CHANNEL = 36
WARM_UP = 1
"""Seconds between the start of the measurements and the first flow."""
CARD = "laptop"
COMPONENTS = ("guest_user", "guest_kernel", "host_kernel", "engine")
"""Processor time in ``details.json``."""


def need_programs() -> None:
    """Raises :class:`HostError` if a program that guests run is not installed."""
    missing = [name for name in ("iw", "wpa_supplicant") if programs.find(name) is None]
    if missing:
        raise HostError(
            "host.program.missing", f"not installed: {', '.join(missing)}", cure=programs.cure(missing)
        )


def mhz(channel: int) -> int:
    """Returns the centre frequency of a channel at 5 GHz."""
    return 5000 + 5 * channel


def access_point(ssid: str, channel: int = CHANNEL, *, place: str = "0 m") -> dict[str, Any]:
    """Returns a node that is an access point, 5 m from the stations."""
    radio = {"mode": "ap", "ssid": ssid, "channel": channel}
    return {"kind": "netns", "position": ["5 m", place], "radios": {"wlan0": radio}}


def guest(
    ssid: str,
    channel: int = CHANNEL,
    *,
    card: bool,
    inside: str | None = None,
    machine: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Returns a node whose own 802.11 stack joins a network; ``machine``: settings of its machine."""
    radio = {"device": "wlan", "ssid": ssid} | ({"card": CARD} if card else {})
    network = f'network={{\n  ssid="{ssid}"\n  scan_freq={mhz(channel)}\n  key_mgmt=NONE\n}}\n'
    node: dict[str, Any] = {"inside": inside} if inside else {"kind": "uml"}
    if machine is not None:
        node["guest"] = dict(machine)
    files = {"/etc/wpa.conf": f"ctrl_interface=/run/wpa_supplicant\ncountry=US\n{network}"}
    return node | {"position": ["0 m", "0 m"], "radios": {"wlan0": radio}, "files": files}


def joins(node: str) -> list[dict[str, Any]]:
    """Returns the programs with which a guest joins its network at the fixed rate."""
    supplicant = {
        "name": f"supplicant-{node}",
        "node": node,
        "run": "wpa_supplicant -i wlan0 -c /etc/wpa.conf",
        "until_end": True,
        "ready": {"log": "CTRL-EVENT-CONNECTED"},
    }
    fixed = {
        "name": f"rate-{node}",
        "node": node,
        "run": f"iw dev wlan0 set bitrates legacy-5 {RATE}",
        "after": [f"supplicant-{node}"],
    }
    return [supplicant, fixed]


def scenario(
    name: str,
    nodes: Mapping[str, Any],
    measurements: Sequence[Mapping[str, Any]],
    run: Sequence[Mapping[str, Any]] = (),
    *,
    guests: Mapping[str, Any] | None = None,
    card: Mapping[str, Any] | None = None,
) -> Scenario:
    """Returns a scenario with one medium; ``card``: the settings of the stations' card, if any has it."""
    air: dict[str, Any] = {
        "propagation": {"model": "log-distance"},
        "radio": {"rate": f"{RATE} Mbit/s", "buffers": 200, "queue": 200},
    }
    if card is not None:
        air["cards"] = {CARD: dict(card)}
    return Scenario.model_validate(
        {
            "name": name,
            "media": {"air": air},
            "guests": dict(guests or {}),
            "nodes": dict(nodes),
            "programs": list(run),
            "measurements": list(measurements),
        }
    )


def one_station(
    group: str,
    name: str,
    measurements: Sequence[Mapping[str, Any]],
    machine: Mapping[str, Any] | None = None,
) -> Scenario:
    """Returns the cell ``ap`` with the node ``station`` of a group; ``machine``: settings of its machine,
    in the groups *pass-through* and *virtual*."""
    nodes = {"ap": access_point("cell")}
    if group == "baseline":
        radio = {"mode": "station", "ssid": "cell", "channel": CHANNEL}
        nodes["station"] = {"kind": "uml", "position": ["0 m", "0 m"], "radios": {"wlan0": radio}}
        return scenario(name, nodes, measurements)
    shared = {"laptop": {"kind": "uml"}} if group == "native" else None
    inside = "laptop" if shared else None
    nodes["station"] = guest("cell", card=group == "virtual", inside=inside, machine=machine)
    card = {"virtual_macs": 4} if group == "virtual" else None
    return scenario(name, nodes, measurements, joins("station"), guests=shared, card=card)


def by_group(found: Found, name: str) -> list[Sample | None]:
    """Returns a figure of each of :data:`GROUPS`, in their order; None if not measured."""
    return [found.sample(name, group=number) for number in range(len(GROUPS))]


def device(reader: RunReader, node: str) -> DeviceUse:
    """Returns the wireless device of a node in a finished run."""
    for one in reader.details.devices:
        if one.name.partition(":")[0] == node:
            return one
    raise RunError("experiment.unmeasured", f"{node} has no device", where=str(reader.folder))


def processors(reader: RunReader) -> dict[str, float]:
    """Returns the busy processors of a run on average, by component."""
    used = reader.details.processors
    if not used:
        raise RunError("experiment.unmeasured", "no processor time was counted", where=str(reader.folder))
    return {component: used.get(component, 0.0) for component in COMPONENTS}
