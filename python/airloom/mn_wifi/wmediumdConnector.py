"""The modes of ``wmediumd``, which here choose what the medium computes."""

from __future__ import annotations

from typing import Any

from airloom.mininet.errors import Unsupported

interference = "interference"
"""Reception by power, noise and interference at each receiver."""
error_prob = "error_prob"
"""Every radio hears every other; frames fail with the probabilities of the links."""


def __getattr__(name: str) -> Any:
    if name in ("snr", "w_medium", "w_server", "WmediumdSNRLink", "WmediumdTXPower"):
        raise Unsupported(
            f"wmediumdConnector.{name}",
            "signal-to-noise ratios follow from places and powers",
            cure="wmediumd_mode=interference, or error_prob; a scenario has a matrix of ratios",
        )
    raise AttributeError(f"module 'mn_wifi.wmediumdConnector' has no attribute {name!r}")
