"""The table of units: those of scenarios and those of results.

Factors are exact, in seconds, bits, bits per second and hertz. ``traffic/src/quantity.rs`` has the
first three for programs in nodes; ``tests/data/units.csv`` tests that both agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

TIME: Mapping[str, Fraction] = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
}
SIZE: Mapping[str, Fraction] = {
    "B": Fraction(8),
    "kB": Fraction(8 * 10**3),
    "MB": Fraction(8 * 10**6),
    "GB": Fraction(8 * 10**9),
    "KiB": Fraction(8 * 2**10),
    "MiB": Fraction(8 * 2**20),
    "GiB": Fraction(8 * 2**30),
}
RATE: Mapping[str, Fraction] = {
    "bit/s": Fraction(1),
    "kbit/s": Fraction(10**3),
    "Mbit/s": Fraction(10**6),
    "Gbit/s": Fraction(10**9),
    "Tbit/s": Fraction(10**12),
}
FREQUENCY: Mapping[str, Fraction] = {
    "Hz": Fraction(1),
    "kHz": Fraction(10**3),
    "MHz": Fraction(10**6),
    "GHz": Fraction(10**9),
}

RESULT_TIME: Mapping[str, Fraction] = {**TIME, "µs": TIME["us"]}
RESULT_SIZE: Mapping[str, Fraction] = {
    **SIZE,
    "octets": SIZE["B"],
    "bit": Fraction(1),
    "kbit": Fraction(10**3),
    "Mbit": Fraction(10**6),
    "Gbit": Fraction(10**9),
}
RESULT_RATE: Mapping[str, Fraction] = {
    **RATE,
    "octets/s": SIZE["B"],
    **{f"{unit}/s": SIZE[unit] for unit in ("B", "kB", "MB", "GB")},
}
RESULT_FREQUENCY: Mapping[str, Fraction] = {
    **FREQUENCY,
    "packets/s": FREQUENCY["Hz"],
    "frames/s": FREQUENCY["Hz"],
}
"""Units of results beyond those of scenarios, which have one name for each unit."""


def in_base(units: Mapping[str, Fraction], base: str) -> dict[str, Fraction]:
    """Returns the units of a dimension as multiples of ``base``."""
    return {unit: factor / units[base] for unit, factor in units.items()}
