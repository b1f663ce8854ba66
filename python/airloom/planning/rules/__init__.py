"""Rules between parts of a scenario: names, references, ranges that depend on each other.

Each rule yields a :class:`Problem` with the place, the mistake and the cure; ``tests/refused/`` has
one file for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from airloom.planning.machine import cpus
from airloom.planning.network import Network
from airloom.planning.radio import distribution
from airloom.planning.routing import protocols as routing
from airloom.planning.rules import (
    areas,
    cards,
    guests,
    handling,
    links,
    measure,
    media,
    nodes,
    openflow,
    processors,
    programs,
    tunnels,
    turns,
    virtual_time,
    vlans,
)
from airloom.scenario.model import Scenario
from airloom.scenario.problems import Problem


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that is wrong with a scenario and its network."""
    return chain(
        network.problems,
        links.problems(scenario, network),
        areas.problems(scenario, network),
        tunnels.problems(scenario, network),
        vlans.problems(scenario, network),
        nodes.problems(scenario, network),
        routing.problems(scenario, network),
        programs.problems(scenario, network),
        guests.problems(scenario, network),
        handling.problems(scenario, network),
        cpus.problems(scenario, network),
        turns.problems(scenario, network),
        processors.problems(scenario, network),
        openflow.problems(scenario, network),
        media.problems(scenario, network),
        distribution.problems(network),
        cards.problems(scenario, network),
        measure.problems(scenario, network),
        virtual_time.problems(scenario, network),
    )
