"""Keys of answers in an OpenAPI description."""

from __future__ import annotations

import re
from typing import Any


def answer_of(description: dict[str, Any], method: str, path: str, *, good: bool = True) -> dict[str, Any]:
    """The schema of the answer to a call of a path, as it is or with values for its parameters."""
    for known, calls in description["paths"].items():
        if known == path or re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", known), path):
            for status, one in calls[method.lower()]["responses"].items():
                if status.startswith("2") == good:
                    schema: dict[str, Any] = one["content"]["application/json"]["schema"]
                    return schema
    raise AssertionError(f"no answer of {method} {path} is described")


def alternatives(schemas: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    """What a schema can be, without references and null."""
    if "$ref" in schema:
        return alternatives(schemas, schemas[schema["$ref"].rpartition("/")[2]])
    parts = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    return [found for one in parts for found in alternatives(schemas, one)] or [schema]


def missing(schemas: dict[str, Any], schema: dict[str, Any], keys: list[str]) -> str | None:
    """The first key that an object does not have; what is read of a text or an array is JavaScript's."""
    if not keys:
        return None
    for one in alternatives(schemas, schema):
        if "properties" in one and keys[0] not in one["properties"]:
            return keys[0]
        values = one.get("additionalProperties")
        inner = one["properties"][keys[0]] if "properties" in one else values
        below = missing(schemas, inner, keys[1:]) if isinstance(inner, dict) else None
        if below is not None:
            return below
    return None
