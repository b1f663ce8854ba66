from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from airloom.nodes.network import neighbours


def plan(interfaces: int) -> Any:
    one = SimpleNamespace(addresses=("10.0.0.1/24",))
    bare = SimpleNamespace(addresses=())
    return cast(Any, SimpleNamespace(nodes={"a": SimpleNamespace(interfaces=[one] * interfaces + [bare])}))


def test_the_counter_is_summed_over_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "arp_cache").write_text(
        "entries  allocs table_fulls\n0000 0001 0000000f\n0000 0002 0000000a\n"
    )
    monkeypatch.setattr(neighbours, "_STAT", tmp_path)
    assert neighbours.refused() == 25


def test_a_large_plan_is_told_what_to_do() -> None:
    assert neighbours.advice(plan(100), 100) is None
    advice = neighbours.advice(plan(101), 100)
    assert advice is not None
    assert "at most 100 neighbours" in advice
    assert "gc_thresh3=404" in advice
