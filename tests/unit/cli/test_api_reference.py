"""The page of the Python API is the one that the docstrings write, and it covers what is offered."""

import pytest

import airloom
from airloom.cli.api_reference import page
from helpers import REPOSITORY

PAGE = REPOSITORY / "docs" / "guide" / "python.md"


def test_the_page_is_the_one_that_the_docstrings_write() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run: python -m airloom.cli.api_reference > docs/guide/python.md"
    )


@pytest.mark.slow
def test_every_offered_name_is_on_the_page() -> None:
    inner = {"Plan", "topology"}  # a plan is an internal value; topology is a module with a part of its own
    for name in set(airloom.__all__) - inner:
        assert f"### {name}\n" in page() or f"### airloom.{name}\n" in page(), name


def test_every_method_is_described() -> None:
    assert "`: \n" not in page()
