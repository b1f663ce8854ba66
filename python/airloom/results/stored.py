"""Reads the files of a folder of results, none of which is trusted.

A folder may be damaged, cut short, or come from somebody else. Each file is a regular one of a bounded
size; JSON is an object without figures that no run writes; and an error names the file and the key.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from airloom.errors import RunError
from airloom.host import files

LARGEST_JSON = 1 << 30
"""Octets. The details of 10,000 nodes have some 20 MB."""
LARGEST_TEXT = 1 << 26
"""Octets of a scenario."""
DEEPEST = 64
"""Levels of a JSON file; a run writes eight, and a swept value may add some."""
_DIGITS = 20
"""Digits of a whole number: 64 bits and a sign."""

Model = TypeVar("Model", bound=BaseModel)


def model(path: Path, kind: type[Model], *, version: str | None = None) -> Model:
    """Reads a JSON file as a model; ``version`` is the field of the key ``schema``, if there is one.

    Raises :class:`FileNotFoundError` for a missing file, and :class:`RunError` for any other fault.
    """
    raw = json_object(path)
    return checked(path, kind, raw if version is None else raw | {version: raw.get("schema", 1)})


def checked(path: Path, kind: type[Model], raw: Any) -> Model:
    """Returns what was read from a file as a model; an error names the first faulty key."""
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "its content"
        message = f"{path.name} cannot be read: {place[:200]}: {first['msg'][:200]}"
        raise RunError("results.malformed", message, where=str(path)) from None


def json_object(path: Path) -> dict[str, Any]:
    """Reads a JSON file that holds an object; raises as :func:`model` does."""
    try:
        raw = json.loads(
            files.content(path, LARGEST_JSON), parse_int=_integer, parse_float=_real, parse_constant=_constant
        )
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable(path, error.strerror or str(error)) from None
    except RecursionError:
        raise unreadable(path, "it is nested too deeply") from None
    except ValueError as error:
        raise unreadable(path, str(error)) from None
    if not isinstance(raw, dict):
        raise unreadable(path, "it holds no object")
    level: list[Any] = [raw]
    for _ in range(DEEPEST):
        level = [
            value
            for one in level
            for value in (one.values() if isinstance(one, dict) else one)
            if isinstance(value, (dict, list))
        ]
        if not level:
            return raw
    raise unreadable(path, "it is nested too deeply")


def text(path: Path) -> str:
    """Reads a file of UTF-8; raises as :func:`model` does."""
    try:
        return files.text(path, LARGEST_TEXT)
    except FileNotFoundError:
        raise
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise unreadable(path, reason or str(error)) from None


def unreadable(path: Path, why: str) -> RunError:
    """Returns the error for a file that cannot be read."""
    return RunError("results.unreadable", f"{path.name} cannot be read: {why[:200]}", where=str(path))


def _integer(text: str) -> int:
    if len(text) > _DIGITS:
        raise ValueError(f"the number {text[:_DIGITS]}... has too many digits")
    return int(text)


def _real(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:_DIGITS]} is too large")
    return value


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")
