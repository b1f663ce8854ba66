"""Converts mistakes to errors with their place in the text and their cure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from airloom.errors import ScenarioError
from airloom.scenario import slips
from airloom.scenario.source import Path_, Source
from airloom.scenario.suggest import nearest


class Problem(Exception):
    """A mistake found by a rule, at a path of the scenario."""

    def __init__(self, code: str, message: str, path: Path_, cure: str | None = None, *, key: bool = False):
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path
        self.cure = cure
        self.key = key
        """True if the key is wrong, not its value."""


class Problems(Exception):
    """Several problems."""

    def __init__(self, problems: list[Problem]):
        super().__init__(problems[0].message)
        self.problems = problems


MOST_REPORTED = 50


def raise_first(problems: Iterable[Problem], source: Source) -> None:
    """Raises the error for the problems, if there are any."""
    found = []
    for problem in problems:
        found.append(problem)
        if len(found) >= MOST_REPORTED:
            break
    if found:
        raise of_problems(found, source)


def of_problems(problems: list[Problem], source: Source) -> ScenarioError:
    """Returns one error for the first problem in text order, with the others as ``further``."""
    ordered = sorted(problems, key=lambda problem: source.mark(problem.path, problem.key) or (0, 0))
    errors = [
        ScenarioError(
            problem.code,
            problem.message,
            where=source.where(problem.path, problem.key) or None,
            cure=problem.cure,
        )
        for problem in ordered
    ]
    errors[0].further = tuple(errors[1:])
    return errors[0]


def of_shape(error: ValidationError, source: Source) -> ScenarioError:
    """Returns the error for values that do not have the model's shape."""
    return of_problems([_problem(each, source) for each in error.errors(include_url=False)], source)


def _problem(error: Any, source: Source) -> Problem:
    found = _shape(error, source)
    # A key without a space after its colon is part of a text, or of a longer key.
    slip = slips.glued((error.get("ctx") or {}).get("key", error["input"]))
    if slip is not None and found.code in ("key.unknown", "value.type"):
        return Problem("yaml.syntax", slip[0], found.path, slip[1], key=found.key)
    return found


def _shape(error: Any, source: Source) -> Problem:
    context = error.get("ctx") or {}
    path = _real_path(error["loc"], source.data)
    kind, message, cure = error["type"], error["msg"], context.get("cure")
    if "key" in context:
        return Problem(kind, message, (*path, context["key"]), cure, key=True)
    if "." in kind:
        return Problem(kind, message, path, cure or None)
    if kind == "missing":
        missing = error["loc"][-1]
        if isinstance(missing, int):
            return Problem("value.count", f"the list is too short: it has {missing}, and needs more", path)
        return Problem("key.missing", f"the key {missing!r} is missing", path)
    if kind in ("literal_error", "union_tag_invalid"):
        allowed = _words(context.get("expected", ""))
        return Problem(
            "word.unknown",
            f"{_said(error['input'])} is not allowed here",
            path,
            nearest(str(error["input"]), allowed),
        )
    if kind in _RANGES:
        sense, key = _RANGES[kind]
        return Problem("value.range", f"{_said(error['input'])} must be {sense} {context[key]}", path)
    if kind in _TYPES:
        what = _TYPES[kind]
        cure = _as_mapping(error["input"]) if what == "a mapping" else None
        return Problem("value.type", f"{_said(error['input'])} is not {what}", path, cure)
    if kind == "string_pattern_mismatch":
        return Problem(
            "value.syntax",
            f"{_said(error['input'])} does not have the right form",
            path,
            context.get("pattern"),
        )
    if kind in ("too_long", "too_short"):
        bound = context.get("max_length") if kind == "too_long" else context.get("min_length")
        return Problem(
            "value.count",
            f"{context.get('actual_length')} values stand here instead of {bound}",
            path,
        )
    return Problem("value.type", f"{_said(error['input'])}: {message}", path)


_RANGES = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
}

_TYPES = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number of this size",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def _said(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value)
    return text if len(text) <= 64 else text[:60] + "...'"


def _as_mapping(value: Any) -> str | None:
    """Returns the cure for a list of names where a mapping is expected; None for other values."""
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        return None
    return "write {" + ", ".join(f"{name}: {{}}" for name in value[:3]) + (", ...}" if value[3:] else "}")


def _words(expected: str) -> list[str]:
    return [word.strip().strip("'") for word in expected.replace(" or ", ", ").split(",") if word.strip()]


def _real_path(loc: tuple[int | str, ...], data: Any) -> Path_:
    """Returns the part of pydantic's location that exists in the text, without union member names."""
    path: list[str | int] = []
    for part in loc:
        inside = part in data if isinstance(data, dict) else False
        if isinstance(data, list):
            inside = isinstance(part, int) and part < len(data)
        if inside:
            data = data[part]
            path.append(part)
    return tuple(path)
