"""Quantities with units, stored exactly.

A quantity is written as text with its unit, ``10 Mbit/s``, and stored in base units:

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

A bare number is refused in YAML and in Python, because ``delay: 5`` does not show whether seconds
or milliseconds are meant. In Python the class converts a number of base units,
``Duration(5_000_000)``, or text, ``Duration("5 ms")``.

`Rate`, `Duration`, `Size` and `Frequency` are integers: text that is not a whole number of base
units (``0.5 ns``, ``0.1 B``) is refused, never rounded. Decimal prefixes are powers of ten, the
IEC's (KiB, MiB, GiB) powers of two. Forms whose meaning differs between tools (``Mbps``, ``K``,
``Mb``) are refused. A fraction is written ``1 %`` or ``0.01``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction as Exact
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, WithJsonSchema

from airloom.units import table
from airloom.units.reading import LONGEST, NUMBER, TEXT, Integer, Real, UnitError, refused, shown


class Rate(Integer):
    """Bits per second on the wire."""

    WORD = "rate"
    EXAMPLE = "10 Mbit/s"
    UNITS: ClassVar = table.in_base(table.RATE, "bit/s")


class Duration(Integer):
    """A length of time in nanoseconds."""

    WORD = "duration"
    EXAMPLE = "5 ms"
    UNITS: ClassVar = table.in_base(table.TIME, "ns")


class Size(Integer):
    """A number of octets."""

    WORD = "size"
    EXAMPLE = "1470 B"
    WHOLE = True
    UNITS: ClassVar = table.in_base(table.SIZE, "B")


class Frequency(Integer):
    """Hertz."""

    WORD = "frequency"
    EXAMPLE = "5.18 GHz"
    UNITS: ClassVar = table.in_base(table.FREQUENCY, "Hz")


class Power(Real):
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


class Length(Real):
    """Metres."""

    WORD = "length"
    EXAMPLE = "100 m"
    SIGNED = True
    UNITS: ClassVar = {"m": Exact(1), "mm": Exact(1, 1000), "cm": Exact(1, 100), "km": Exact(1000)}


class Speed(Real):
    """Metres per second."""

    WORD = "speed"
    EXAMPLE = "1.5 m/s"
    UNITS: ClassVar = {"m/s": Exact(1), "km/h": Exact(1000, 3600)}


class Ratio(Real):
    """A ratio of powers: ``10 * log10(a / b)`` dB; for antennas dBi, relative to an isotropic one."""

    WORD = "ratio"
    EXAMPLE = "6 dB"
    SIGNED = True
    UNITS: ClassVar = {"dB": Exact(1), "dBi": Exact(1)}


class Angle(Real):
    """Radians."""

    WORD = "angle"
    EXAMPLE = "30 deg"
    SIGNED = True
    UNITS: ClassVar = {"rad": Exact(1), "deg": Exact(math.pi) / 180}


QUANTITIES: tuple[type[Integer] | type[Real], ...] = (
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
            raise refused(UnitError("unit.ambiguous", "a bare 1 may mean 1 % or all", "write 1 % or 100 %"))
        if isinstance(value, str):
            found = (
                re.fullmatch(rf"\s*({NUMBER})\s*(%?)\s*", value, re.ASCII) if len(value) <= LONGEST else None
            )
            if found is None:
                raise refused(
                    UnitError(
                        "unit.syntax", f"{value[:LONGEST]!r} is not a fraction", "write it like 1 % or 0.01"
                    )
                )
            number = float(Exact(found[1]) / (100 if found[2] else 1))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            number = float(value)
        else:
            raise refused(
                UnitError("unit.syntax", f"{shown(value)} is not a fraction", "write it like 1 % or 0.01")
            )
        if not 0 <= number <= most:
            raise refused(
                UnitError("unit.range", f"{value!r} is not between {bound}", "write it like 1 % or 0.01")
            )
        return number

    return read


_FRACTION_PATTERN = rf"^\s*{NUMBER.removeprefix('[+-]?')}\s*%?\s*$"


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
"""As Fraction, for values that other tools give in percent: a bare ``1`` is refused."""

Share = Annotated[float, BeforeValidator(_fraction(1024)), WithJsonSchema(_fraction_schema(1024))]
"""A number of processors: ``50 %``, ``0.5``, or ``2`` for two whole ones."""


def parse(text: str) -> Rate | Duration | Size | Frequency | Power | Length | Speed | Ratio | Angle:
    """Parses a quantity of any class; its unit selects the class."""
    found = TEXT.fullmatch(text) if len(text) <= LONGEST else None
    if found is not None:
        for quantity in QUANTITIES:
            if found[2] in quantity.UNITS:
                return quantity(text)  # type: ignore[return-value]
    units = " ".join(unit for quantity in QUANTITIES for unit in quantity.UNITS)
    raise UnitError("unit.unknown", f"{text[:LONGEST]!r} is no quantity with a unit", f"units are {units}")
