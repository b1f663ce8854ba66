"""Figures of results with units: dimensions, arithmetic, and text.

A dimension is a pair of exponents (bit, second): a rate is (1, -1), a duration (0, 1), a size (1,
0), a frequency (0, -1), and plain numbers, fractions and counts are (0, 0). So a size divided by a
rate is a duration. Values are stored in bit and second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from airloom.units import table

Dimension = tuple[int, int]

PLAIN: Dimension = (0, 0)
TIME: Dimension = (0, 1)
SIZE: Dimension = (1, 0)
RATE: Dimension = (1, -1)
FREQUENCY: Dimension = (0, -1)

UNITS: dict[str, tuple[float, Dimension]] = {
    **dict.fromkeys(("", "1", "frames", "packets", "count", "hops", "nodes"), (1.0, PLAIN)),
    "%": (0.01, PLAIN),
    **{
        unit: (float(factor), dimension)
        for units, dimension in (
            (table.RESULT_TIME, TIME),
            (table.RESULT_SIZE, SIZE),
            (table.RESULT_RATE, RATE),
            (table.RESULT_FREQUENCY, FREQUENCY),
        )
        for unit, factor in units.items()
    },
}

_NAMES = {
    PLAIN: "a plain number",
    TIME: "a duration",
    SIZE: "a size",
    RATE: "a rate",
    FREQUENCY: "a number per second",
}

_READABLE: dict[Dimension, tuple[str, ...]] = {
    TIME: ("s", "ms", "us", "ns"),
    RATE: ("Gbit/s", "Mbit/s", "kbit/s", "bit/s"),
    SIZE: ("GB", "MB", "kB", "B"),
}


def name_of(dimension: Dimension) -> str:
    """Returns the name of a dimension."""
    return _NAMES.get(dimension, f"bit^{dimension[0]} s^{dimension[1]}")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value in bit and second, and its dimension."""

    value: float
    dimension: Dimension = PLAIN

    @classmethod
    def of(cls, value: float, unit: str) -> Quantity:
        """Returns a value given in a unit of :data:`UNITS`; raises KeyError for an unknown unit."""
        factor, dimension = UNITS[unit]
        return cls(value * factor, dimension)

    def __str__(self) -> str:
        return self.text()

    def text(self, digits: int = 4) -> str:
        """Returns text in the best unit, with ``digits`` significant digits."""
        scale = Scale.for_values([self.value], self.dimension)
        return f"{number(self.value / scale.factor, digits)} {scale.unit}".strip()


@dataclass(frozen=True, slots=True)
class Scale:
    """The best unit for a series of values; shown = base / factor."""

    unit: str
    factor: float

    @classmethod
    def for_values(cls, values: list[float], dimension: Dimension) -> Scale:
        """Returns the largest unit in which the largest value is at least 1; of zeros the basic one."""
        units = _READABLE.get(dimension)
        if units is None:
            return cls("/s" if dimension == FREQUENCY else "", 1.0)
        largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
        for unit in units:
            factor = UNITS[unit][0]
            # With a tolerance below 1, so that 999.9996 ms is shown as 1 s.
            if largest >= 0.9995 * factor:
                return cls(unit, factor)
        basic = next((unit for unit in units if UNITS[unit][0] == 1), units[-1])
        unit = basic if largest == 0 else units[-1]
        return cls(unit, UNITS[unit][0])


def number(value: float, digits: int = 4) -> str:
    """Returns a number with ``digits`` significant digits, without superfluous zeros."""
    if not math.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    text = f"{value:.{digits}g}"
    if "e" in text and 1e-4 <= abs(value) < 1e9:
        text = f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"
    return text


_SHARES = ("loss", "lost", "duplication", "reordering")
"""Words in names of metrics that are shares of packets."""


def is_share(metric: str, unit: str) -> bool:
    """Returns whether a metric is a share of packets or of a processor, which is shown in percent."""
    words = metric.lower().replace(".", "_").replace("-", "_").split("_")
    return unit in ("1", "") and (words[0] == "cpu" or any(word in _SHARES for word in words))


def of_metric(metric: str, value: float | None, unit: str, digits: int = 4) -> str:
    """Returns the figure of a metric with its unit, as everywhere: a loss of 0.918 as ``91.8 %``."""
    if value is not None and is_share(metric, unit):
        return f"{number(100 * value, digits)} %"
    return readable(value, unit, digits)


def readable(value: float | None, unit: str, digits: int = 4) -> str:
    """Returns a figure with its unit: ``94.1 Mbit/s`` for 94100000 bit/s."""
    if value is None:
        return "-"
    if unit == "%" or unit not in UNITS:
        return f"{number(value, digits)} {unit}".strip()
    factor, dimension = UNITS[unit]
    if dimension in _READABLE:
        return Quantity(value * factor, dimension).text(digits)
    return f"{number(value, digits)} {'' if unit == '1' else unit}".strip()
