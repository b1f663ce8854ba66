"""The nodes and switches that stand, by name: for what looks for one without knowing its class."""

from __future__ import annotations

from typing import Any

NODES: dict[str, Any] = {}
"""Nodes in which programs run: Open vSwitches are among them."""
SWITCHES: dict[str, Any] = {}
"""Switches of all kinds that have not been terminated."""
