"""Lengths of windows of time, which are longer than those of scenarios: also in days."""

from __future__ import annotations

import re
from fractions import Fraction as Exact
from typing import ClassVar

from airloom.units.quantities import Duration

_WORDS = {
    **dict.fromkeys(("second", "seconds", "sec"), "s"),
    **dict.fromkeys(("minute", "minutes"), "min"),
    **dict.fromkeys(("hour", "hours"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
}
"""What people write: the unit."""
_UNIT = re.compile(r"[A-Za-z]+(?=\s*$)")


class WindowLength(Duration):
    """A length of a window, stored in nanoseconds: ``2 h``, ``90 days``, ``3 d``.

    A day has 24 hours, as a window counts the time that passes, whatever clocks are set to meanwhile.
    """

    EXAMPLE = "2 h"
    UNITS: ClassVar = {**Duration.UNITS, "d": 24 * Duration.UNITS["h"]}

    @classmethod
    def _split(cls, text: str) -> tuple[Exact, str]:
        return super()._split(_UNIT.sub(lambda found: _WORDS.get(found[0].lower(), found[0]), text))
