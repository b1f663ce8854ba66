"""docs/guide/results.md and the code say the same."""

from __future__ import annotations

import json
import re

from airloom.results import SCHEMA, Details, Result
from airloom.results.samples import SCHEMA as COLUMNS
from airloom.scenario.claims_grammar import parse
from helpers import REPOSITORY

TEXT = (REPOSITORY / "docs" / "guide" / "results.md").read_text()


def test_the_example_is_a_result_and_has_every_key() -> None:
    example = json.loads(TEXT.partition("```json\n")[2].partition("```")[0])
    result = Result.model_validate(example)
    assert result.to_dict() == example
    assert result.version == SCHEMA


def test_every_column_is_described() -> None:
    types = {"string": "string", "int64": "int64", "double": "double", "int32": "int32"}
    for column in COLUMNS:
        assert f"| `{column.name}` | {types[str(column.type)]} |" in TEXT


def test_every_detail_is_described() -> None:
    chapter = TEXT.partition("## details.json")[2].partition("\n## ")[0]
    for name in Details.model_fields:
        if name != "version":
            assert f"`{name}`" in chapter


def test_the_claims_are_claims() -> None:
    block = TEXT.partition("## Claims")[2].partition("```\n")[2].partition("```")[0]
    claims = [line for line in block.splitlines() if line]
    assert len(claims) == 5
    for claim in claims:
        assert parse(claim).names()


def test_no_line_is_torn() -> None:
    assert not re.search(r"[ \t]+$", TEXT, re.MULTILINE)
