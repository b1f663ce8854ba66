"""Scenarios: what an experimenter can say. :mod:`airloom.planning.gate` checks and plans it."""

from __future__ import annotations

from airloom.scenario.model import Scenario
from airloom.scenario.reader import read

__all__ = ["Scenario", "read"]
