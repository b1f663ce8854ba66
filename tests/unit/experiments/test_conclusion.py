"""Conclusions of experiments: their form, and that each published page carries its experiment's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from airloom.errors import ScenarioError
from airloom.experiments import conclusion, registry
from airloom.experiments.published_index import PAGE, Published
from airloom.experiments.registry import Experiment
from helpers import REPOSITORY

ONE = "- **Reproduced:** Nine of ten.\n- **Not reproduced:** The tenth, a slip.\n"
OTHER = "- **Shown:** Ten.\n- **Not shown:** Eleven.\n"
PAGE_TEXT = (
    "# Results: made\n\nA summary - **bold**.\n\n    airloom experiment run made\n\n- **Notes:** stay\n"
)
RESULTS = REPOSITORY / "docs" / "results"
SHIPPED = {name: one for name, one in registry.discover().items() if one.shipped}


@pytest.fixture
def made(tmp_path: Path) -> Experiment:
    return Experiment("made", tmp_path / "experiment.py")


def test_the_items_are_wrapped_as_the_page_has_them(made: Experiment) -> None:
    made.path.with_name(conclusion.FILE).write_text(
        f"- **Reproduced:** {'word ' * 20}and\n  more.\n- **Not reproduced:** None.\n"
        "- **Cannot be right:** 40 of 30.\n"
    )
    text = conclusion.read(made)
    assert text is not None
    lines = text.splitlines()
    assert [line[:5] for line in lines] == ["- **R", "  wor", "- **N", "- **C"]
    assert max(map(len, lines)) <= 100
    assert lines[1].endswith("and more.")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no such labels: none at all"),
        ("- **Reproduced:** All.\n", "no such labels: Reproduced"),
        ("- **Not reproduced:** A.\n- **Reproduced:** B.\n", "no such labels: Not reproduced, Reproduced"),
        ("- **Reproduced:** A.\n- **Not shown:** B.\n", "no such labels: Reproduced, Not shown"),
        ("- Reproduced: A.\n- **Not reproduced:** B.\n", "no such labels: Reproduced: A., Not reproduced"),
        ("- **Reproduced:**\n- **Not reproduced:** B.\n", "no such labels"),
        (f"# Conclusion\n\n{ONE}", "nothing but its items, not '# Conclusion'"),
        (f"{ONE}And more.\n", "nothing but its items, not 'And more.'"),
        (f"{ONE}  {'word ' * 50}\n", "at most 50 words, and 'Not reproduced' has 56"),
    ],
)
def test_another_form_is_refused(made: Experiment, text: str, why: str) -> None:
    path = made.path.with_name(conclusion.FILE)
    path.write_text(text)
    with pytest.raises(ScenarioError, match=why) as refused:
        conclusion.read(made)
    assert refused.value.exit_code == 2
    assert refused.value.code == "experiment.conclusion"
    assert refused.value.where == str(path)
    assert "- **Reproduced:**, - **Not reproduced:**; or" in (refused.value.cure or "")


def test_only_an_experiment_that_is_shipped_needs_one(
    made: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert conclusion.read(made) is None
    monkeypatch.setattr(registry, "shipped", lambda _: made.path.parent)
    with pytest.raises(ScenarioError, match="this experiment has no conclusion"):
        conclusion.read(made)


def test_a_page_has_one_conclusion_behind_its_summary() -> None:
    first = conclusion.put(PAGE_TEXT, ONE.strip())
    assert first == PAGE_TEXT.replace("\n\n    airloom", f"\n\n{ONE}\n    airloom")
    assert conclusion.put(first, ONE.strip()) == first
    assert conclusion.put(first, OTHER.strip()) == first.replace(ONE, OTHER)
    assert conclusion.put(first, None) == PAGE_TEXT


def test_every_shipped_experiment_has_a_conclusion_and_a_page() -> None:
    assert sorted(SHIPPED) == sorted(path.parent.name for path in RESULTS.glob(f"*/{PAGE}"))
    assert sorted(SHIPPED) == sorted(path.parent.name for path in REPOSITORY.glob("experiments/*/README.md"))


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_the_published_page_carries_the_conclusion(name: str) -> None:
    text = conclusion.read(SHIPPED[name])
    assert text is not None
    page = (RESULTS / name / PAGE).read_text(encoding="utf-8")
    assert conclusion.put(page, text) == page
    assert text in page
    assert Published.of(page).summary == SHIPPED[name].summary
    for line in text.splitlines():
        assert not re.match(r"  ([-+*]|\d+[.)]) ", line), "a list inside the item"
    assert "|" not in text, "readers of the page look for its first table"
    assert "--kind" not in text, "they look for the command's kinds"
    # A published figure that arithmetic excludes is said to be one.
    assert "| **implausible in source** |" not in page or "- **Cannot be right:**" in text
