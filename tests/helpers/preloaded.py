"""Loads the packages of nearly every command, and makes the model of a scenario.

The server that forks commands (`helpers/forked.py`) imports this module.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from airloom import extras
from airloom.cli import tree
from airloom.planning import gate
from airloom.scenario import read

PACKAGES = [
    "airloom.cli.display",
    "airloom.experiments.registry",
    "airloom.nodes.all_nodes",
    "airloom.results",
    "airloom.runs.batch",
    "pandas",
    "pyarrow.parquet",
]
"""What nearly every command loads; commands load the rest themselves."""

GRID = ["airloom.grid.service", "airloom.grid.storage.database", "uvicorn"]
"""What commands of the grid manager load besides, where its packages are installed."""

for _name in [*PACKAGES, *(GRID if all(map(find_spec, extras.PACKAGES["grid"])) else [])]:
    import_module(_name)
tree.group()
gate.check(read("name: two\nnodes: {a: {}, b: {}}\nlinks: [{ends: [a, b]}]\n"))
