"""Base of the model's parts: frozen, without unknown keys; types of paths and names."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from airloom.images.registry import SCHEME
from airloom.scenario import problems
from airloom.scenario.source import Source
from airloom.scenario.suggest import listing, nearest

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass as _Meta
else:
    _Meta = type(BaseModel)


class _Made(_Meta):
    """Raises the same error for a part made in Python as for one read from a file."""

    def __call__(cls, *arguments: Any, **values: Any) -> Any:
        try:
            return super().__call__(*arguments, **values)
        except ValidationError as error:
            raise problems.of_shape(error, Source(_plain(values), None, Path())) from None


def _plain(value: Any) -> Any:
    """Returns a value as the reader gives it: models as mappings, tuples as lists."""
    if isinstance(value, BaseModel):
        return {
            field.alias or name: _plain(getattr(value, name))
            for name, field in type(value).model_fields.items()
        }
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


class Model(BaseModel, metaclass=_Made):
    """Base class of all parts of a scenario: frozen, refuses unknown keys."""

    # Validators of parts are built with that of the scenario, or when a part is made alone. So
    # defaults are made by `model_construct`, which needs none: it saves a third of the import time.
    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, serialize_by_alias=True, defer_build=True
    )

    KEYS: ClassVar[tuple[str, ...]]
    """The allowed keys, in the order of the model."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        cls.KEYS = tuple(field.alias or name for name, field in cls.model_fields.items())

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            known = cls.model_fields
            for key in data:
                if key not in known and key not in cls.KEYS:
                    raise unknown(str(key), "key", cls.KEYS)
        elif data is None:
            return {}
        elif not isinstance(data, cls):
            raise PydanticCustomError(
                "value.type",
                "{message}",
                {"message": "expected a mapping", "cure": f"keys are {listing(cls.KEYS)}"},
            )
        return data


def unknown(word: str, what: str, known: Any) -> PydanticCustomError:
    """Returns the error for an unknown word."""
    message = f"unknown {what} {word!r}"
    return PydanticCustomError(
        f"{what}.unknown", "{message}", {"message": message, "cure": nearest(word, known), "key": word}
    )


def _found(value: str, base: str | Path, what: str, exists: Callable[[Path], bool]) -> str:
    """Returns the absolute path of an existing file; relative paths start at the scenario's folder."""
    path = Path(base, value)
    try:
        found = exists(path)
    except (OSError, ValueError):
        found = False
    if not found:
        raise PydanticCustomError(
            "file.missing",
            "{message}",
            {
                "message": f"there is no {what} {value!r}",
                "cure": "a relative path starts at the scenario's own folder",
            },
        )
    return str(path.resolve())


def _file(value: str, info: ValidationInfo) -> str:
    base = (info.context or {}).get("folder")
    return value if base is None else _found(value, base, "file", Path.is_file)


class Input:
    """Marks a path whose content is an input of the experiment."""


File = Annotated[str, AfterValidator(_file), Input()]
"""Path of a file that must exist, relative to the scenario's folder."""

BUILT = "built"
"""A guest's kernel that is built by ``kernel/build``."""


def _kernel(value: str, info: ValidationInfo) -> str:
    return value if value == BUILT else _file(value, info)


Kernel = Annotated[str, AfterValidator(_kernel), Input()]
"""Path of a kernel image, or :data:`BUILT`."""


def _folder(value: str, info: ValidationInfo) -> str:
    base = (info.context or {}).get("folder")
    if base is None or value.startswith("/"):
        return value
    return _found(value, base, "folder", Path.is_dir)


Folder = Annotated[str, AfterValidator(_folder)]
"""Path of a folder in a node; a relative one starts at the scenario's folder and must exist."""


def _image(value: str, info: ValidationInfo) -> str:
    folder = (info.context or {}).get("folder")
    return value if folder is None or value.startswith(SCHEME) else str(Path(folder, value))


ImagePath = Annotated[str, AfterValidator(_image), Input()]
"""Path of an image, optionally with ``:TAG``, relative to the scenario's folder, or its name in a
registry; rules check it.
"""


def _place(value: str, info: ValidationInfo) -> str:
    folder = (info.context or {}).get("folder")
    if folder is not None and Path(folder, value).is_dir():
        return str(Path(folder, value).resolve())
    return _file(value, info)


Place = Annotated[str, AfterValidator(_place), Input()]
"""Path of a file or a folder that must exist, relative to the scenario's folder."""


def _empty_lists(value: Any, handler: Any) -> Any:
    return handler([] if value is None else value)


def _empty_mapping(value: Any, handler: Any) -> Any:
    return handler({} if value is None else value)


Listed = WrapValidator(_empty_lists)
"""A key without a value means an empty list."""
Mapped = WrapValidator(_empty_mapping)
"""A key without a value means an empty mapping."""


def by_name(schema: dict[str, Any]) -> None:
    """Extends the JSON schema for editors: a name without a value means all defaults."""
    values = schema.pop("patternProperties", None) or {".*": schema.pop("additionalProperties")}
    schema["patternProperties"] = {
        pattern: {"anyOf": [value, {"type": "null"}]} for pattern, value in values.items()
    }
    schema["additionalProperties"] = False


NAME_PATTERN = r"^[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$"

Mtu = Annotated[int, Field(ge=68, le=9216, strict=True)]
"""Largest layer-3 packet in octets."""
Count = Annotated[int, Field(ge=1, strict=True)]
"""A positive integer."""


def _name(value: Any) -> str:
    if not isinstance(value, str) or not re.match(NAME_PATTERN, value):
        raise PydanticCustomError(
            "name.syntax",
            "{message}",
            {
                "message": f"{str(value)[:70]!r} cannot be a name",
                "cure": "letters, digits, '-' and '_', at most 63, a letter or digit first and last",
            },
        )
    return value


Name = Annotated[
    str,
    WrapValidator(lambda value, handler: _name(value)),
    WithJsonSchema({"type": "string", "pattern": NAME_PATTERN}),
]
"""Name of a node, switch, link, program or measurement; a node's is also its host name."""

Names = Annotated[
    list[Name],
    WrapValidator(lambda value, handler: handler([value] if isinstance(value, str) else value)),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": NAME_PATTERN},
                {"type": "array", "items": {"type": "string", "pattern": NAME_PATTERN}},
            ]
        }
    ),
]
"""One name, or a list of names."""
