"""Quantities with units, kept exactly.

A quantity is written as text with its unit, ``10 Mbit/s``, and held as a number of base units:

==============  =========  =========================================
class           base unit  units that may be written
==============  =========  =========================================
`Rate`          bit/s      bit/s kbit/s Mbit/s Gbit/s Tbit/s
`Duration`      ns         ns us ms s min h
`Size`          octet      B kB MB GB KiB MiB GiB
`Frequency`     Hz         Hz kHz MHz GHz
`Power`         dBm        dBm mW W
`Length`        m          mm cm m km
`Speed`         m/s        m/s km/h
==============  =========  =========================================

One rule holds for YAML and for Python: a bare number is refused, because nobody can see whether
``delay: 5`` means seconds or milliseconds. In Python a number of base units is made on purpose with
the class itself, ``Duration(5_000_000)``; the text ``Duration("5 ms")`` gives the same.

`Rate`, `Duration`, `Size` and `Frequency` are integers: text that is not a whole number of base
units (``0.5 ns``, ``0.1 B``) is refused, never rounded. Decimal prefixes are powers of ten, the
IEC's (KiB, MiB, GiB) powers of two. Forms that mean different things to different tools (``Mbps``,
``K``, ``Mb``) are refused. A fraction is written ``1 %`` or ``0.01``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from fractions import Fraction as Exact
from ipaddress import (
    IPv4Interface,
    IPv4Network,
    IPv6Interface,
    IPv6Network,
    ip_interface,
    ip_network,
)
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BeforeValidator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from airloom.errors import ScenarioError

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?"
_TEXT = re.compile(rf"\s*({_NUMBER})\s*([^\s\d].*?)?\s*", re.ASCII)
_LONGEST = 64
_MOST = 2**63 - 1


class UnitError(ScenarioError, ValueError):
    """Text that is no quantity; ``cure`` says what is allowed."""

    def __init__(self, code: str, message: str, cure: str | None = None):
        super().__init__(code, message, cure=cure)


def _refuse(error: UnitError) -> PydanticCustomError:
    """The same refusal in pydantic's form, so that it carries the place of the value."""
    context = {"message": error.message, "cure": error.cure or ""}
    return PydanticCustomError(error.code, "{message}", context)


class _Quantity:
    """What all quantities share; the concrete classes are also numbers."""

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
        found = _TEXT.fullmatch(text) if len(text) <= _LONGEST else None
        if found is None:
            raise UnitError(
                "unit.syntax", f"{text[:_LONGEST]!r} is not a {cls.WORD}", f"write it like {cls.EXAMPLE}"
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
        """The quantity in the largest unit that keeps it short and exact, ``10 Mbit/s``."""
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
                else f"{_short(value)} is not a {cls.WORD}",
                f"write it like {cls.EXAMPLE}; units are {' '.join(cls.UNITS)}",
            )
        except UnitError as error:
            raise _refuse(error) from None

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
        """What an editor accepts and shows for it."""
        number = _NUMBER if cls.SIGNED else _NUMBER.removeprefix("[+-]?")
        units = "|".join(re.escape(unit) for unit in cls.UNITS)
        return {
            "type": "string",
            "pattern": rf"^\s*{number}\s*(?:{units})\s*$",
            "examples": [cls.EXAMPLE],
            "title": cls.WORD,
        }


def _serialize(value: Any) -> str:
    return value.text if isinstance(value, _Quantity) else str(value)


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "nothing"
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)


def _decimal(value: Exact) -> str | None:
    """The finite decimal form of a fraction, None if it has none."""
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
        # Numbers of at least 1 read better than fractions; then the shortest; then the largest unit.
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


class _Integer(_Quantity, int):
    def __new__(cls, value: int | str) -> Self:
        if isinstance(value, str):
            value = int(cls._read(value))
        elif value < 0 and not cls.SIGNED:
            raise UnitError("unit.negative", f"a {cls.WORD} below zero: {value}")
        return int.__new__(cls, value)

    # The integer stays visible where text is made of it, such as a program's arguments.
    __str__ = int.__repr__


class _Real(_Quantity, float):
    INTEGRAL = False

    def __new__(cls, value: float | str) -> Self:
        return float.__new__(cls, cls._read(value) if isinstance(value, str) else value)

    __str__ = float.__repr__

    @property
    def text(self) -> str:
        """The quantity in its base unit, ``20 dBm``."""
        return f"{float(self):.12g} {next(iter(self.UNITS))}"


class Rate(_Integer):
    """Bits per second on the wire."""

    WORD = "rate"
    EXAMPLE = "10 Mbit/s"
    UNITS: ClassVar = {
        "bit/s": Exact(1),
        "kbit/s": Exact(10**3),
        "Mbit/s": Exact(10**6),
        "Gbit/s": Exact(10**9),
        "Tbit/s": Exact(10**12),
    }


class Duration(_Integer):
    """A length of time in nanoseconds."""

    WORD = "duration"
    EXAMPLE = "5 ms"
    UNITS: ClassVar = {
        "ns": Exact(1),
        "us": Exact(10**3),
        "ms": Exact(10**6),
        "s": Exact(10**9),
        "min": Exact(60 * 10**9),
        "h": Exact(3600 * 10**9),
    }


class Size(_Integer):
    """A number of octets."""

    WORD = "size"
    EXAMPLE = "1470 B"
    WHOLE = True
    UNITS: ClassVar = {
        "B": Exact(1),
        "kB": Exact(10**3),
        "MB": Exact(10**6),
        "GB": Exact(10**9),
        "KiB": Exact(2**10),
        "MiB": Exact(2**20),
        "GiB": Exact(2**30),
    }


class Frequency(_Integer):
    """Hertz."""

    WORD = "frequency"
    EXAMPLE = "5.18 GHz"
    UNITS: ClassVar = {"Hz": Exact(1), "kHz": Exact(10**3), "MHz": Exact(10**6), "GHz": Exact(10**9)}


class Power(_Real):
    """Power in dBm: ``10 * log10(P / 1 mW)``; also written in mW or W, which must be above 0."""

    WORD = "power"
    EXAMPLE = "20 dBm"
    SIGNED = True
    UNITS: ClassVar = {"dBm": Exact(1), "mW": Exact(1), "W": Exact(1000)}

    @classmethod
    def _whole(cls, text: str, value: Exact, unit: str) -> float:
        if unit == "dBm":
            return float(value)
        if value <= 0:
            raise UnitError("unit.negative", f"the power {text.strip()!r} is not above zero")
        return 10 * math.log10(value)


class Length(_Real):
    """Metres."""

    WORD = "length"
    EXAMPLE = "100 m"
    SIGNED = True
    UNITS: ClassVar = {"m": Exact(1), "mm": Exact(1, 1000), "cm": Exact(1, 100), "km": Exact(1000)}


class Speed(_Real):
    """Metres per second."""

    WORD = "speed"
    EXAMPLE = "1.5 m/s"
    UNITS: ClassVar = {"m/s": Exact(1), "km/h": Exact(1000, 3600)}


class Ratio(_Real):
    """A ratio of powers: ``10 * log10(a / b)`` dB; dBi for antennas, against one that sends evenly."""

    WORD = "ratio"
    EXAMPLE = "6 dB"
    SIGNED = True
    UNITS: ClassVar = {"dB": Exact(1), "dBi": Exact(1)}


class Angle(_Real):
    """Radians."""

    WORD = "angle"
    EXAMPLE = "30 deg"
    SIGNED = True
    UNITS: ClassVar = {"rad": Exact(1), "deg": Exact(math.pi) / 180}


QUANTITIES: tuple[type[_Integer] | type[_Real], ...] = (
    Rate,
    Duration,
    Size,
    Frequency,
    Power,
    Length,
    Speed,
    Ratio,
    Angle,
)


def _fraction(most: float, *, bare: bool = True) -> Callable[[Any], float]:
    bound = "0 % and 100 %" if most == 1 else f"0 and {most:g}"

    def read(value: Any) -> float:
        if not bare and (value == "1" or (type(value) is int and value == 1)):
            raise _refuse(UnitError("unit.ambiguous", "a bare 1 may mean 1 % or all", "write 1 % or 100 %"))
        if isinstance(value, str):
            found = (
                re.fullmatch(rf"\s*({_NUMBER})\s*(%?)\s*", value, re.ASCII)
                if len(value) <= _LONGEST
                else None
            )
            if found is None:
                raise _refuse(
                    UnitError(
                        "unit.syntax", f"{value[:_LONGEST]!r} is not a fraction", "write it like 1 % or 0.01"
                    )
                )
            number = float(Exact(found[1]) / (100 if found[2] else 1))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            number = float(value)
        else:
            raise _refuse(
                UnitError("unit.syntax", f"{_short(value)} is not a fraction", "write it like 1 % or 0.01")
            )
        if not 0 <= number <= most:
            raise _refuse(
                UnitError("unit.range", f"{value!r} is not between {bound}", "write it like 1 % or 0.01")
            )
        return number

    return read


_FRACTION_PATTERN = rf"^\s*{_NUMBER.removeprefix('[+-]?')}\s*%?\s*$"


def _fraction_schema(most: float) -> dict[str, Any]:
    return {
        "anyOf": [
            {"type": "number", "minimum": 0, "maximum": most},
            {"type": "string", "pattern": _FRACTION_PATTERN},
        ],
        "examples": ["1 %", 0.01],
        "title": "fraction" if most == 1 else "share",
    }


Fraction = Annotated[float, BeforeValidator(_fraction(1)), WithJsonSchema(_fraction_schema(1))]
"""A probability or part, from 0 to 1: ``1 %`` or ``0.01``."""

Chance = Annotated[float, BeforeValidator(_fraction(1, bare=False)), WithJsonSchema(_fraction_schema(1))]
"""The same of what other tools say in percent, such as loss: a bare ``1`` is refused, for it may mean 1 %."""

Share = Annotated[float, BeforeValidator(_fraction(1024)), WithJsonSchema(_fraction_schema(1024))]
"""A share of processors: ``50 %``, ``0.5``, or ``2`` for two whole ones."""


def _address(value: Any) -> IPv4Interface | IPv6Interface:
    if isinstance(value, IPv4Interface | IPv6Interface):
        return value
    cure = "write it like 10.0.0.1/24 or fd00::1/64"
    if not isinstance(value, str):
        raise _refuse(UnitError("address.syntax", f"{_short(value)} is not an address", cure))
    try:
        address = ip_interface(value)
    except ValueError:
        raise _refuse(UnitError("address.syntax", f"{value[:_LONGEST]!r} is not an address", cure)) from None
    if "/" not in value:
        raise _refuse(UnitError("address.prefix", f"the address {value!r} has no prefix length", cure))
    return address


def _prefix(value: Any) -> IPv4Network | IPv6Network:
    if isinstance(value, IPv4Network | IPv6Network):
        return value
    cure = "write it like 10.0.0.0/8 or fd00::/48"
    if not isinstance(value, str) or "/" not in value:
        raise _refuse(UnitError("address.syntax", f"{_short(value)} is not a prefix", cure))
    try:
        return ip_network(value)
    except ValueError as error:
        raise _refuse(
            UnitError("address.syntax", f"{value[:_LONGEST]!r} is not a prefix: {error}", cure)
        ) from None


Address = Annotated[
    IPv4Interface | IPv6Interface,
    BeforeValidator(_address),
    PlainSerializer(str, return_type=str),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^[0-9A-Fa-f:.]+/\d{1,3}$",
            "examples": ["10.0.0.1/24"],
            "title": "address",
        }
    ),
]
"""An address with its prefix length, ``10.0.0.1/24``."""

Prefix = Annotated[
    IPv4Network | IPv6Network,
    BeforeValidator(_prefix),
    PlainSerializer(str, return_type=str),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^[0-9A-Fa-f:.]+/\d{1,3}$",
            "examples": ["10.0.0.0/8"],
            "title": "prefix",
        }
    ),
]
"""A network, ``10.0.0.0/8``."""


def parse(text: str) -> Rate | Duration | Size | Frequency | Power | Length | Speed | Ratio | Angle:
    """Reads a quantity of any kind, told by its unit."""
    found = _TEXT.fullmatch(text) if len(text) <= _LONGEST else None
    if found is not None:
        for quantity in QUANTITIES:
            if found[2] in quantity.UNITS:
                return quantity(text)  # type: ignore[return-value]
    units = " ".join(unit for quantity in QUANTITIES for unit in quantity.UNITS)
    raise UnitError("unit.unknown", f"{text[:_LONGEST]!r} is no quantity with a unit", f"units are {units}")
