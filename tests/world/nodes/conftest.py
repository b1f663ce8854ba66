"""Nodes for tests: made in a moment, ended after each test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from airloom.nodes.all_nodes import Nodes
from airloom.nodes.kind import NodeHandle
from airloom.nodes.process.supervisor import Supervisor
from airloom.planning.plan import LinkPlan, NodePlan
from helpers.nodes import Up, plan_of


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    with Supervisor() as supervisor:
        yield supervisor


@pytest.fixture
def up(supervisor: Supervisor) -> Iterator[Up]:
    """Brings nodes up: ``up(node("a"), node("b"), visible=[...])``."""
    with contextlib.ExitStack() as stack:

        def bring_up(
            *nodes: NodePlan, links: Sequence[LinkPlan] = (), **options: Any
        ) -> dict[str, NodeHandle]:
            world = stack.enter_context(Nodes(plan_of(nodes, links), supervisor, **options))
            return world.bring_up()

        yield bring_up
