"""A scan by a radio: started now, answered when it has visited every channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airloom.errors import RunError
from airloom.planning.radio.media import ACTIVE, PASSIVE

if TYPE_CHECKING:
    from airloom._engine import FoundRadio, RadioState
    from airloom.runs.radio_world import RadioWorld

GLANCE = 0.02
"""Seconds between two checks whether the scan has finished."""


class Scan:
    """A scan by one radio; it starts when the object is created."""

    def __init__(
        self,
        world: RadioWorld,
        radio: Mapping[str, Any],
        channels: Sequence[int] = (),
        *,
        passive: bool = False,
    ) -> None:
        self._world = world
        self._port: str = radio["port"]
        self.radio: str = self._port.partition(":")[2]
        if not radio["on"]:
            raise RunError("radio.off", f"the radio {self._port} is switched off", cure="airloom radio up")
        self._times: int = world.scanned(self._port)["times"]
        order = {
            "channels": list(channels),
            "active": not passive,
            "dwell_ns": PASSIVE if passive else ACTIVE,
        }
        world.set_radio(self._port, {"scan": order})

    def found(self) -> list[FoundRadio] | None:
        """The radios heard, strongest first; None until the scan has finished."""
        scanned = self._world.scanned(self._port)
        if scanned["times"] == self._times:
            return None
        return sorted(scanned["found"], key=lambda sighting: -sighting["signal_dbm"])

    def wait(self) -> list[FoundRadio]:
        """Waits for the end of the scan and returns the same as :meth:`found`."""
        while (found := self.found()) is None:
            self._world.pass_time(round(GLANCE * 1e9))
        return found


def shown(scan: Scan, found: Sequence[FoundRadio], every: Sequence[RadioState]) -> list[dict[str, Any]]:
    """Scan results as printed by ``airloom radio scan --json``; ``every``: all radios of the run."""
    macs = {radio["port"]: radio["settings"]["mac"] for radio in every}
    return [
        {
            "radio": scan.radio,
            "mac": ":".join(f"{octet:02x}" for octet in macs[sighting["port"]]),
            "ssid": sighting["ssid"],
            "mode": "ap" if sighting["access_point"] else "ad-hoc",
            "channel": sighting["channel"],
            "mhz": sighting["mhz"],
            "signal_dbm": sighting["signal_dbm"],
            "age_ms": sighting["age"] / 1e6,
        }
        for sighting in found
    ]
