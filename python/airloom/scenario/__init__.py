"""The scenario model and its reader. :mod:`airloom.planning.gate` checks and plans scenarios."""

from __future__ import annotations

from airloom.scenario.model import Scenario
from airloom.scenario.reader import read

__all__ = ["Scenario", "read"]
