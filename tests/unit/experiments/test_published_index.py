"""The index of published results."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.errors import ScenarioError
from airloom.experiments import published_index
from airloom.experiments.published_index import GENERATED, PAGE
from helpers import REPOSITORY

PUBLISHED = REPOSITORY / "docs" / "results"
RESULTS = f"""\
# Results: made

{GENERATED}

An invented
experiment.

    airloom experiment run made

|  |  |
| --- | --- |
| started | 2026-01-02T03:04:05.678Z |
| machine | processor Some CPU @ 2 GHz, processors 2 |

## Verdict

**degraded**; runs: 2 valid, 1 degraded

## Claims

holds: 2, fails: 1. Measured values are means with their 95 % intervals.

| claim | outcome | statement |
| --- | --- | --- |
| one | **holds** | it does |
| two | **fails** | it does not |
| three | **holds** | it does |
"""


def index(folder: Path) -> list[str]:
    """The cells of the only row of an index."""
    (row,) = (line for line in published_index.text(folder).splitlines() if line.startswith("| ["))
    return [cell.strip() for cell in row[1:-1].split("|")]


def page(folder: Path, text: str) -> Path:
    """A page in a folder of its own."""
    path = folder / "made" / PAGE
    path.parent.mkdir()
    path.write_text(text)
    return path


def test_a_row_has_verdict_counts_of_outcomes_date_and_processor(tmp_path: Path) -> None:
    page(tmp_path, RESULTS)
    cells = index(tmp_path)
    assert cells[:3] == ["[made](made/README.md)", "An invented experiment.", "degraded"]
    assert cells[3:8] == ["2", "", "", "1", ""]
    assert cells[8:] == ["2026-01-02", "Some CPU @ 2 GHz"]


def test_a_row_says_that_results_are_not_full(tmp_path: Path) -> None:
    partial = "**Not a full and valid result:** they are of the quick form.\n\n    airloom experiment run"
    page(tmp_path, RESULTS.replace("    airloom experiment run", partial))
    assert index(tmp_path)[1:3] == ["An invented experiment.", "degraded, not a full result"]


def test_what_is_not_generated_is_not_listed(tmp_path: Path) -> None:
    page(tmp_path, RESULTS.replace(GENERATED, ""))
    assert "made" not in published_index.text(tmp_path)


def test_a_page_without_a_verdict_is_named(tmp_path: Path) -> None:
    changed = page(tmp_path, RESULTS.replace("## Verdict", "## Other"))
    with pytest.raises(ScenarioError, match="Verdict") as caught:
        published_index.text(tmp_path)
    assert (caught.value.code, caught.value.where) == ("experiment.page", str(changed))


def test_an_index_is_kept_current_and_no_other_page_is_touched(tmp_path: Path) -> None:
    page(tmp_path, RESULTS)
    own = tmp_path / PAGE
    published_index.update(tmp_path)
    assert not own.exists(), "a folder without an index gets none"
    own.write_text("my notes")
    published_index.update(tmp_path)
    assert own.read_text() == "my notes"
    own.write_text(published_index.text(tmp_path).replace("degraded", "valid"))
    published_index.update(tmp_path)
    assert own.read_text() == published_index.text(tmp_path)


def test_the_index_of_the_documentation_is_current() -> None:
    assert (PUBLISHED / PAGE).read_text(encoding="utf-8") == published_index.text(PUBLISHED)
