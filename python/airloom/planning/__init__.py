"""From a checked scenario to its plan: interfaces, segments, addresses, routes, link settings."""

from __future__ import annotations

from airloom.planning.make import make

__all__ = ["make"]
