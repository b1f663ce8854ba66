"""Simulated radios of this machine's kernel (``mac80211_hwsim``)."""

from __future__ import annotations

import os
from pathlib import Path

from airloom import _engine

MODULES = Path("/lib/modules")
_MODULE = "mac80211_hwsim"


def lack() -> tuple[str, str] | None:
    """Returns why this machine's kernel has no simulated radios, and the cure; None if it has them."""
    if _engine.has_radios():
        return None
    folder = MODULES / os.uname().release / "kernel/drivers/net/wireless"
    if any(folder.rglob(f"{_MODULE}.ko*")):
        return f"the module {_MODULE} is not loaded", f"modprobe {_MODULE} radios=0"
    return f"this machine's kernel has no {_MODULE}", "make the nodes of kind uml or qemu"
