from __future__ import annotations

from pathlib import Path

import pytest

from airloom.nodes.network import neighbours


def test_the_counter_is_summed_over_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "arp_cache").write_text(
        "entries  allocs table_fulls\n0000 0001 0000000f\n0000 0002 0000000a\n"
    )
    monkeypatch.setattr(neighbours, "_STAT", tmp_path)
    assert neighbours.refused() == 25
