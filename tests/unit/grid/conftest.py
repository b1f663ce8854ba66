"""Skips the tests of the grid manager where its packages are missing, and says how to install them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airloom.errors import HostError
from airloom.grid import require

if TYPE_CHECKING:
    from helpers.grid import Manager

try:
    require()
except HostError as error:
    collect_ignore_glob = ["test_*.py"]
    print(f"tests/unit/grid: {error}")


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    """A grid manager that lends the six nodes of examples/grid/small.yaml."""
    from helpers.grid import Manager

    manager = Manager(tmp_path / "grid.db")
    yield manager
    manager.close()


@pytest.fixture
def one_node(tmp_path: Path) -> Iterator[Manager]:
    """A grid manager that lends one node with two radios, two channels and two slots."""
    from helpers.grid import ONE_NODE, Manager

    manager = Manager(tmp_path / "grid.db", ONE_NODE)
    yield manager
    manager.close()
