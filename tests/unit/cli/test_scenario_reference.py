"""The reference page and the JSON schema say what the gate accepts."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from airloom.cli.scenario_reference import page
from airloom.planning.gate import check
from airloom.scenario import Scenario, read
from helpers import REPOSITORY

ROOT = REPOSITORY
PAGE = ROOT / "docs" / "guide" / "scenario.md"
EXAMPLES = sorted(path for path in (ROOT / "examples").rglob("*.yaml") if path.parent.name != "grid")
KINDS: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}


@cache
def schema_of_scenarios() -> dict[str, Any]:
    """The JSON schema; to make it takes a third of a second."""
    return Scenario.model_json_schema(by_alias=True)


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value is valid, for the keywords that the schema uses."""
    if "$ref" in schema:
        return fits(value, schema_of_scenarios()["$defs"][schema["$ref"].removeprefix("#/$defs/")])
    for word in ("anyOf", "oneOf"):
        if word in schema and not any(fits(value, each) for each in schema[word]):
            return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "const" in schema and value != schema["const"]:
        return False
    kind = schema.get("type")
    if kind is not None and (
        not isinstance(value, KINDS[kind]) or (isinstance(value, bool) and kind != "boolean")
    ):
        return False
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        return False
    if isinstance(value, int | float) and not (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
    ):
        return False
    if isinstance(value, list):
        items = [*schema.get("prefixItems", ())]
        items += [schema.get("items", {})] * (len(value) - len(items))
        return all(fits(item, each) for item, each in zip(value, items, strict=False))
    return not isinstance(value, dict) or mapping_fits(value, schema)


def mapping_fits(value: dict[str, Any], schema: dict[str, Any]) -> bool:
    known = schema.get("properties", {})
    if not set(schema.get("required", ())) <= value.keys():
        return False
    for key, item in value.items():
        patterns = [
            each for pattern, each in schema.get("patternProperties", {}).items() if re.search(pattern, key)
        ]
        more = schema.get("additionalProperties", {})
        each = known.get(key) or (patterns[0] if patterns else more)
        if each is False or (isinstance(each, dict) and not fits(item, each)):
            return False
    return True


def test_the_page_is_the_one_that_the_model_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run: python -m airloom.cli.scenario_reference > docs/guide/scenario.md"
    )


def test_the_page_explains_every_key() -> None:
    assert not re.findall(r"^\|.*\|\s*\|$", page(), flags=re.MULTILINE)


def test_every_link_on_the_page_leads_somewhere() -> None:
    headings = {line.lstrip("# ").lower() for line in page().splitlines() if line.startswith("#")}
    assert set(re.findall(r"\]\(#([a-z0-9]+)\)", page())) <= headings


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page(), flags=re.MULTILINE | re.DOTALL)


def test_the_page_says_the_same_in_yaml_and_python() -> None:
    space: dict[str, Any] = {}
    exec(blocks("python")[0], space)
    assert read(blocks("yaml")[0]) == space["scenario"]
    assert len(check(space["scenario"]).plans) == 1


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_editors_accept_every_example(path: Path) -> None:
    assert fits(yaml.safe_load(path.read_text(encoding="utf-8")), schema_of_scenarios())


@pytest.mark.parametrize(
    "text",
    [
        "nodes: {h1: }",
        "nodes: {h1: {cpu: 50 %}}",
        "links: [{ends: [a, b], rate: unlimited, jitter: none, loss: 1 %}]",
        "links: [{ends: [a, b], jitter: {normal: 1 ms}, loss: {good_to_bad: 0.1, bad_to_good: 20 %}}]",
        "links: [{ends: [a, b], addresses: [[10.0.0.1/24], []]}]",
        "topology: {generator: random, nodes: 5, probability: 0.2}",
    ],
)
def test_editors_and_the_reader_accept_alike(text: str) -> None:
    text = f"name: x\n{text}"
    read(text)
    assert fits(yaml.safe_load(text), schema_of_scenarios())


@pytest.mark.parametrize(
    "text",
    [
        "nodez: {}",
        "nodes: {h 1: {}}",
        "nodes: {h1: {cpu: much}}",
        "links: [{ends: [a, b], rate: 10}]",
        "links: [{ends: [a, b], rate: 10 Mbps}]",
        "links: [{ends: [a, b], mtu: 10}]",
        "links: [{rate: 10 Mbit/s}]",
        "topology: {generator: chian}",
    ],
)
def test_editors_refuse_what_the_reader_refuses(text: str) -> None:
    assert not fits(yaml.safe_load(f"name: x\n{text}"), schema_of_scenarios())
