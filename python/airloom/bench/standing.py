"""Brings up many nodes in a separate process, which a benchmark can measure and kill.

``python -m airloom.bench.standing COUNT`` prints one line of JSON when the nodes are up and pingable,
waits until its standard input ends, takes everything down in order, and prints a second line.
"""

from __future__ import annotations

import json
import random
import sys
import time

from airloom.planning.gate import check
from airloom.runs.emulation import World
from airloom.scenario.model import Scenario, Topology

SAMPLE = 50
"""Number of pinged nodes, drawn at random: pinging all would measure ping."""


def memory() -> int:
    """Returns the machine's available memory in octets."""
    with open("/proc/meminfo") as file:
        lines = dict(line.split(":", 1) for line in file)
    return int(lines["MemAvailable"].split()[0]) * 1024


def main(count: int) -> None:
    """Brings the nodes up, waits, and takes them down."""
    free = memory()
    start = time.monotonic()
    scenario = Scenario(
        name=f"bench-bringup-{count}", topology=Topology(generator="star", nodes=count + 1, switched=True)
    )
    plan = check(scenario).plans[0]
    planned = time.monotonic()
    with World(plan) as world:
        world.begin()
        made = time.monotonic()
        names = list(plan.nodes)
        asker = world.nodes[names[0]]
        for name in random.Random(count).sample(names[1:], min(SAMPLE, count - 1)):
            done = asker.exec(["ping", "-c", "1", "-W", "5", plan.hosts[name]], timeout=10)
            if not done.exit.ok:
                raise SystemExit(f"{name} does not answer: {done.stdout}{done.stderr}")
        up = time.monotonic()
        said = {
            "planned": planned - start,
            "made": made - planned,
            "up": up - start,
            "octets_a_node": (free - memory()) / count,
        }
        print(json.dumps(said), flush=True)
        sys.stdin.read()
        down = time.monotonic()
    print(json.dumps({"down": time.monotonic() - down}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
