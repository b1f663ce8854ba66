"""NET's chains of nodes (University of Stuttgart, ISCC 2007), wired and wireless, and their ideals."""

from __future__ import annotations

from airloom.scenario.model import Engine

ENGINE = Engine(idle="poll")
"""A short chain is idle most of the time: on a busy hypervisor processors that halt would wake late."""
