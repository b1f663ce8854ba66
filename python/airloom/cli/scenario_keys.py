"""Paths of a scenario for the completion of ``--set``, from its model and from the named file.

The model is read as its JSON schema, which takes longer to make than a completion may. So the schema is
kept in the cache folder, with the state of the files that it was made from.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from airloom.errors import LabError

LARGEST = 1 << 20
"""Octets of the largest file whose names are offered."""
_MOST = 30
"""Elements of a list, or keys of a file, that are offered by their names."""

Schema = dict[str, Any]


def offered(incomplete: str, file: str | None) -> list[tuple[str, str]]:
    """Returns the paths that continue the typed one, each with the description of its key.

    While there is one path that has others below it, those are returned instead, because a shell adds a
    space behind the only word.
    """
    root = schema()
    data = _content(file)
    cut = max(incomplete.rfind("."), incomplete.rfind("[")) + 1
    before, part = incomplete[:cut], incomplete[cut:]
    here: list[tuple[Schema, Any]] = [(root, data)]
    for word in before.replace("[", "\0").replace("]", "").replace(".", "\0").split("\0"):
        if word:
            here = [below for schema_, value in here for below in _below(root, schema_, value, word)]
    found = _words(root, here, before, part)
    while len(found) == 1 and found[0][0][-1] in ".[":
        path = found[0][0]
        deeper = offered(path, file) if path != incomplete else []
        if not deeper:
            break
        found = deeper
    return found


def _words(root: Schema, here: Sequence[tuple[Schema, Any]], before: str, part: str) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for schema_, value in here:
        for word, below, said in _keys(root, schema_, value, before.endswith("[")):
            if word.startswith(part):
                found.setdefault(before + word + _after(root, below), said)
    return list(found.items())


def schema() -> Schema:
    """Returns the JSON schema of scenarios, from the cache if the model has not changed since."""
    from airloom.host import cache

    folder = Path(__file__).parents[1]
    sources = sorted([*folder.glob("scenario/**/*.py"), *folder.glob("units/*.py")])
    state = "\n".join(f"{path} {path.stat().st_mtime_ns} {path.stat().st_size}" for path in sources)
    of = hashlib.sha256(state.encode()).hexdigest()
    place = cache.folder("completion", "schema.json")
    try:
        kept = json.loads(place.read_text())
        if kept["of"] == of:
            return dict(kept["schema"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # there is none, or it was cut or changed: it is made again
    from airloom.scenario import Scenario

    made: Schema = Scenario.model_json_schema(by_alias=True)
    with contextlib.suppress(LabError):  # without a place to keep it, it is made each time
        cache.write(place, json.dumps({"of": of, "schema": made}), "the schema for completion")
    return made


def _content(file: str | None) -> Any:
    """Returns the data of a scenario file, or nothing if it cannot be read."""
    if file is None:
        return None
    import yaml

    from airloom.host.files import content

    try:
        return yaml.load(content(file, LARGEST), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        return None


def _forms(root: Schema, schema_: Schema) -> Iterator[Schema]:
    """Yields the schemas that a value may have, without references and alternatives."""
    if "$ref" in schema_:
        yield from _forms(root, root["$defs"][schema_["$ref"].rpartition("/")[2]])
    for one in (*schema_.get("anyOf", ()), *schema_.get("oneOf", ()), *schema_.get("allOf", ())):
        yield from _forms(root, one)
    if "properties" in schema_ or "items" in schema_ or _values(schema_) is not None:
        yield schema_


def _values(schema_: Schema) -> Schema | None:
    """Returns the schema of the values of a mapping whose keys are names."""
    other = schema_.get("additionalProperties")
    patterns = schema_.get("patternProperties")
    return other if isinstance(other, dict) else next(iter(patterns.values())) if patterns else None


def _below(root: Schema, schema_: Schema, value: Any, word: str) -> Iterator[tuple[Schema, Any]]:
    """Yields schema and data of a key or an element."""
    for form in _forms(root, schema_):
        if word in form.get("properties", {}):
            yield form["properties"][word], value.get(word) if isinstance(value, dict) else None
        elif (other := _values(form)) is not None:
            yield other, value.get(word) if isinstance(value, dict) else None
        elif isinstance(form.get("items"), dict):
            yield form["items"], _element(value, word)


def _element(value: Any, word: str) -> Any:
    from airloom.scenario.paths import names

    if not isinstance(value, list):
        return None
    if word.isascii() and word.isdigit():
        return value[int(word)] if int(word) < len(value) else None
    named = (item for item in value if word == "*" or word in names(item))
    return next(named, None)


def _keys(root: Schema, schema_: Schema, value: Any, bracket: bool) -> Iterator[tuple[str, Schema, str]]:
    """Yields the words that may stand at a place: with the schema of what they name, and a description."""
    from airloom.scenario.paths import names

    for form in _forms(root, schema_):
        if bracket and isinstance(form.get("items"), dict):
            listed = value if isinstance(value, list) else []
            words = [name for item in listed for name in names(item)]
            for word in words[:_MOST] or map(str, range(max(1, len(listed)))):
                yield f"{word}]", form["items"], ""
            yield "*]", form["items"], "all of them"
        elif not bracket:
            for word, below in form.get("properties", {}).items():
                yield word, below, str(below.get("description", ""))
            other = _values(form)
            if other is not None and isinstance(value, dict):
                for word in list(value)[:_MOST]:
                    yield str(word), other, ""


def _after(root: Schema, schema_: Schema) -> str:
    """Returns what follows a key of this schema."""
    forms = list(_forms(root, schema_))
    if any("properties" in form for form in forms):
        return "."
    if any(isinstance(form.get("items"), dict) for form in forms):
        return "["
    if any(_values(form) is not None for form in forms):
        return "."
    return "="
