"""The engine of experiments whose links carry few frames a second, or are idle most of the time."""

from airloom.scenario.model import Engine

POLLING = Engine(idle="poll")
"""On a busy hypervisor a processor that halts wakes late: links would stand still for that long."""
