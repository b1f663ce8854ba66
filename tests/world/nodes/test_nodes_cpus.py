"""Processors that the kernel refuses."""

from __future__ import annotations

import pytest

from airloom.errors import RunError
from airloom.planning.plan import CpusPlan
from helpers.nodes import Up, node

pytestmark = pytest.mark.world


def test_what_the_kernel_refuses_is_an_error_of_the_node(up: Up) -> None:
    handle = up(node("a", cpus=CpusPlan((1023,))))["a"]
    with pytest.raises(RunError, match="node a: its processors and scheduling cannot be set"):
        handle.exec(["true"], timeout=10)
