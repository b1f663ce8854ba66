"""The table of kinds is what the kinds declare."""

from __future__ import annotations

from typing import get_args

import pytest

from airloom.cli.kinds_reference import renewed
from airloom.nodes.all_nodes import KINDS
from airloom.scenario.kind_names import KindName
from helpers import REPOSITORY

PAGE = REPOSITORY / "docs" / "guide" / "kinds.md"


def test_the_page_is_current() -> None:
    page = PAGE.read_text()
    assert renewed(page) == page, "run: .venv/bin/python -m airloom.cli.kinds_reference docs/guide/kinds.md"


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_says_what_it_is(name: str) -> None:
    nature = KINDS[name].nature
    assert all(str(getattr(nature, word)) for word in nature.__dataclass_fields__)


def test_every_word_of_a_scenario_is_a_kind() -> None:
    assert set(get_args(KindName)) <= set(KINDS)


def test_only_a_kernel_of_its_own_is_more_than_virtual_routing() -> None:
    for kind in KINDS.values():
        assert kind.properties.own_kernel == kind.nature.backend.endswith("VMM")
