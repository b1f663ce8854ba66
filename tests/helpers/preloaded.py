"""Loads the packages of nearly every command, and makes the model of a scenario.

The server that forks commands (`helpers/forked.py`) imports this module.
"""

from __future__ import annotations

from importlib import import_module

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
    "scipy.special",
]
"""What nearly every command loads; commands load the rest themselves."""

for _name in PACKAGES:
    import_module(_name)
gate.check(read("name: two\nnodes: {a: {}, b: {}}\nlinks: [{ends: [a, b]}]\n"))
