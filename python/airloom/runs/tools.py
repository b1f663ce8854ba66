"""The tools of a run's measurements, with the addresses, ports and seeds that they use."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from airloom.host import binaries
from airloom.measure import Place, Tool, tool_for
from airloom.planning.plan import Plan
from airloom.scenario.model import Measurement

FIRST_PORT = 5201
"""First port of measurements; it is iperf3's default port."""


def tools_of(
    plan: Plan, measurements: Sequence[Measurement], first_port: int = FIRST_PORT
) -> dict[str, Tool]:
    """Returns the tool of every measurement. Raises :class:`ScenarioError` if one cannot be created."""
    addresses = _addresses_of(plan)
    needs_traffic = any(
        one.traffic is not None or (one.test is not None and one.test.kind == "voip") for one in measurements
    )
    traffic = str(binaries.find("airloom-traffic")) if needs_traffic else "airloom-traffic"
    ports = [one.tool.ports for one in measurements]
    return {
        measurement.name: tool_for(
            measurement,
            Place(
                name=measurement.name,
                addresses=addresses,
                port=first_port + sum(ports[:number]),
                seed=_derived(plan.seed, measurement.name),
                traffic=traffic,
            ),
        )
        for number, measurement in enumerate(measurements)
    }


def _addresses_of(plan: Plan) -> dict[str, list[str]]:
    """Returns, per node, addresses without prefix length, starting with the one its name resolves to."""
    found = {}
    for name, node in plan.nodes.items():
        own = [str(address.ip) for interface in node.interfaces for address in interface.addresses]
        first = plan.hosts.get(name)
        found[name] = [first, *(one for one in own if one != first)] if first else own
    return found


def _derived(seed: int, name: str) -> int:
    """Returns a seed derived from the run's seed and a name: 63 bits of SHA-256."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
