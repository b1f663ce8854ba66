"""Parses and formats quantities: the grammar, the refusals and the base classes.

The traffic generator reads the same grammar (``traffic/src/quantity.rs``); ``tests/data/units.csv``
tests both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from fractions import Fraction as Exact
from typing import Any, ClassVar, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from airloom.errors import ScenarioError

NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?"
"""Syntax of a number."""
TEXT = re.compile(rf"\s*({NUMBER})\s*([^\s\d].*?)?\s*", re.ASCII)
"""A number and an optional unit."""
LONGEST = 64
"""Longest text of a quantity in characters."""
_MOST = 2**63 - 1


class UnitError(ScenarioError, ValueError):
    """A text is not a valid quantity; ``cure`` lists what is allowed."""

    def __init__(self, code: str, message: str, cure: str | None = None):
        super().__init__(code, message, cure=cure)


def refused(error: UnitError) -> PydanticCustomError:
    """Returns the error in pydantic's form, which adds the place of the value."""
    context = {"message": error.message, "cure": error.cure or ""}
    return PydanticCustomError(error.code, "{message}", context)


class Quantity:
    """Common base of quantities; the concrete classes are also numbers."""

    WORD: ClassVar[str]
    EXAMPLE: ClassVar[str]
    UNITS: ClassVar[Mapping[str, Exact]]
    INTEGRAL: ClassVar[bool] = True
    SIGNED: ClassVar[bool] = False
    WHOLE: ClassVar[bool] = False
    """Shown without a decimal point, since ``1470 B`` reads better than ``1.47 kB``."""

    @classmethod
    def _read(cls, text: str) -> int | float:
        number, unit = cls._split(text)
        return cls._whole(text, number * cls.UNITS[unit], unit)

    @classmethod
    def _split(cls, text: str) -> tuple[Exact, str]:
        units = " ".join(cls.UNITS)
        found = TEXT.fullmatch(text) if len(text) <= LONGEST else None
        if found is None:
            raise UnitError(
                "unit.syntax", f"{text[:LONGEST]!r} is not a {cls.WORD}", f"write it like {cls.EXAMPLE}"
            )
        number, unit = found.groups()
        if unit is None:
            raise UnitError(
                "unit.missing",
                f"the {cls.WORD} {text.strip()!r} has no unit",
                f"write it like {cls.EXAMPLE}; units are {units}",
            )
        if unit not in cls.UNITS:
            near = [word for word in cls.UNITS if word.lower() == unit.lower()]
            near = near or get_close_matches(unit, cls.UNITS, n=1, cutoff=0.3)
            guess = f"did you mean {near[0]!r}? " if near else ""
            raise UnitError("unit.unknown", f"{unit!r} is no unit of {cls.WORD}", f"{guess}units are {units}")
        exact = Exact(number)
        if exact < 0 and not cls.SIGNED:
            raise UnitError("unit.negative", f"the {cls.WORD} {text.strip()!r} is below zero")
        return exact, unit

    @classmethod
    def _whole(cls, text: str, value: Exact, unit: str) -> int | float:
        if not cls.INTEGRAL:
            return float(value)
        if value.denominator != 1:
            raise UnitError(
                "unit.inexact",
                f"the {cls.WORD} {text.strip()!r} is not a whole number of {next(iter(cls.UNITS))}",
            )
        if value.numerator > _MOST:
            raise UnitError(
                "unit.range", f"the {cls.WORD} {text.strip()!r} is beyond 2^63 - 1 of its base unit"
            )
        return value.numerator

    @property
    def text(self) -> str:
        """Returns the quantity in the largest unit that keeps it short and exact, ``10 Mbit/s``."""
        assert isinstance(self, int | float)
        return _shortest(Exact(self), self.UNITS, self.WHOLE)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r})"

    @classmethod
    def _check(cls, value: Any) -> Self:
        if isinstance(value, cls):
            return value
        try:
            if isinstance(value, str):
                return cls(value)  # type: ignore[call-arg]
            raise UnitError(
                "unit.missing"
                if isinstance(value, int | float) and not isinstance(value, bool)
                else "unit.syntax",
                f"the {cls.WORD} {value!r} has no unit"
                if isinstance(value, int | float) and not isinstance(value, bool)
                else f"{shown(value)} is not a {cls.WORD}",
                f"write it like {cls.EXAMPLE}; units are {' '.join(cls.UNITS)}",
            )
        except UnitError as error:
            raise refused(error) from None

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._check, serialization=core_schema.plain_serializer_function_ser_schema(_serialize)
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return cls.json_schema()

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Returns the JSON schema for editors."""
        number = NUMBER if cls.SIGNED else NUMBER.removeprefix("[+-]?")
        units = "|".join(re.escape(unit) for unit in cls.UNITS)
        return {
            "type": "string",
            "pattern": rf"^\s*{number}\s*(?:{units})\s*$",
            "examples": [cls.EXAMPLE],
            "title": cls.WORD,
        }


def _serialize(value: Any) -> str:
    return value.text if isinstance(value, Quantity) else str(value)


def shown(value: Any) -> str:
    """Returns a value that is not text, as shown in a message."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "nothing"
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)


def _decimal(value: Exact) -> str | None:
    """Returns the finite decimal form of a fraction; None if there is none."""
    rest = value.denominator
    twos = fives = 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        return None
    places = max(twos, fives)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return sign + (digits if places == 0 else f"{digits[:-places]}.{digits[-places:]}")


def _shortest(value: Exact, units: Mapping[str, Exact], whole: bool) -> str:
    best: tuple[tuple[bool, bool, int, Exact], str] | None = None
    for unit, scale in units.items():
        number = _decimal(value / scale)
        if number is None:
            continue
        # Prefer numbers of at least 1 to fractions; then the shortest; then the largest unit.
        rank = (
            value != 0 and abs(value) < scale,
            whole and "." in number,
            len(number),
            -scale if value else scale,
        )
        if best is None or rank < best[0]:
            best = (rank, f"{number} {unit}")
    assert best is not None
    return best[1]


class Integer(Quantity, int):
    """A quantity that is a whole number of base units."""

    def __new__(cls, value: int | str) -> Self:
        """Takes text with a unit, or a number of base units."""
        if isinstance(value, str):
            value = int(cls._read(value))
        elif value < 0 and not cls.SIGNED:
            raise UnitError("unit.negative", f"a {cls.WORD} below zero: {value}")
        return int.__new__(cls, value)

    # Formatting gives the plain integer, for example in a program's arguments.
    __str__ = int.__repr__


class Real(Quantity, float):
    """A quantity that is any number of base units."""

    INTEGRAL = False

    def __new__(cls, value: float | str) -> Self:
        """Takes text with a unit, or a number of base units."""
        return float.__new__(cls, cls._read(value) if isinstance(value, str) else value)

    __str__ = float.__repr__

    @property
    def text(self) -> str:
        """Returns the quantity in its base unit, ``20 dBm``."""
        return f"{float(self):.12g} {next(iter(self.UNITS))}"
