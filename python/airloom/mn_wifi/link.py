"""Links of a network with radios: wires, ad hoc cells, and words that name a medium."""

from __future__ import annotations

from typing import Any

from airloom.mininet.errors import Unsupported
from airloom.mininet.link import Intf, Link, TCIntf, TCLink, TCULink


class wmediumd:
    """``link=wmediumd``: the air is a medium of the engine, which it is in any case."""


class WirelessLink:
    """A link through the air, given as ``cls`` for a station and its access point."""


class adhoc:
    """``cls=adhoc``: the interface joins an independent cell (IBSS) of its name and channel."""


_REFUSED = {
    "mesh": "802.11s is of a node's own 802.11 stack",
    "physicalMesh": "the radios are those of the engine",
    "ITSLink": "802.11p is not among the physical layers",
    "WifiDirectLink": "Wi-Fi Direct is of a node's own 802.11 stack",
    "physicalWifiDirectLink": "Wi-Fi Direct is of a node's own 802.11 stack",
    "_4address": "frames with four addresses are of a node's own 802.11 stack",
    "WifiDirect": "Wi-Fi Direct is of a node's own 802.11 stack",
}


def __getattr__(name: str) -> Any:
    if name in _REFUSED:
        raise Unsupported(
            f"mn_wifi.link.{name}",
            _REFUSED[name],
            cure="cls=adhoc, or a scenario with radios of 'device: wlan', which have mac80211",
        )
    raise AttributeError(f"module 'mn_wifi.link' has no attribute {name!r}")


__all__ = ["Intf", "Link", "TCIntf", "TCLink", "TCULink", "WirelessLink", "adhoc", "wmediumd"]
