"""Evaluation of claims; :mod:`airloom.scenario.claims_grammar` defines their grammar.

**Intervals.** A value that repetitions or a search left open has an :class:`Interval`. Each comparison
becomes a margin that must be positive, such as ``left - right`` of ``left >= right``. The interval of
a margin follows from those of the names in it: each name moves to both ends of its own interval while
the others stay, and the changes add up as those of independent estimates do
(:func:`airloom.stats.combined`). For sums this is Welch's interval; otherwise the delta method with
finite steps. The comparison is true if the whole interval of its margin is positive, false if none of
it is, otherwise undecided.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from airloom.errors import ScenarioError
from airloom.results.result import Claim, Measurement
from airloom.scenario.claims_grammar import Call, Check, Comparison, Name, Number, Term, parse
from airloom.stats import combined
from airloom.units.figures import PLAIN, UNITS, Dimension, Quantity, name_of


class Unmeasured(Exception):
    """A name in a claim has no value."""


@dataclass(frozen=True, slots=True)
class Interval:
    """What is open of a value, in bit and second; it lies in the interval itself."""

    low: float
    high: float
    freedom: float = math.inf
    """Degrees of freedom of its estimate; infinite where the ends are bounds."""
    why: str = ""
    """What left it open, such as ``one repetition``."""


Intervals = Mapping[str, Interval]
"""Intervals by name; a name without one is exact."""

Values = Callable[[str], Quantity]
"""Maps a name in a claim to its value; raises :class:`Unmeasured`."""


def from_measurements(
    measurements: Sequence[Measurement], extra: Mapping[str, Quantity] | None = None
) -> Values:
    """Looks up names in ``extra`` first, then in a result's measurements.

    ``echo.rtt_max`` finds the measurement ``echo`` with metric ``rtt_max``, and so does ``echo.max``
    if no other metric of ``echo`` is called ``max`` or ends in ``_max``. Several measurements of one
    name and metric that differ in labels are ambiguous and raise an error.
    """
    known = dict(extra or {})

    def value(name: str) -> Quantity:
        if name in known:
            return known[name]
        found = [one for one in measurements if f"{one.name}.{one.metric}" == name]
        measurement, _, last = name.rpartition(".")
        if not found:
            found = [
                one for one in measurements if one.name == measurement and one.metric.endswith(f"_{last}")
            ]
            if len({one.metric for one in found}) > 1:
                several = ", ".join(one.metric for one in found)
                raise Unmeasured(f"{name} could be one of {several}")
        if not found:
            offered = [f"{one.name}.{one.metric}" for one in measurements] + list(known)
            near = difflib.get_close_matches(name, offered, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise Unmeasured(f"{name} was not measured{hint}")
        if len(found) > 1:
            raise Unmeasured(f"{name} was measured {len(found)} times with different labels")
        if found[0].mean is None:
            raise Unmeasured(f"the measurement of {name} failed")
        if found[0].unit not in UNITS:
            raise Unmeasured(f"{name} is in {found[0].unit}, which claims cannot reckon with")
        return Quantity.of(found[0].mean, found[0].unit)

    return value


def evaluate(
    id: str,
    statement: str,
    check: str | Check,
    values: Values,
    *,
    source: str | None = None,
    published: str = "",
    shape: str | Check | None = None,
    implausible: str | None = None,
    intervals: Intervals | None = None,
    unmeasured: Literal["fails", "undecided"] = "fails",
) -> Claim:
    """Evaluates a claim.

    ``holds`` if ``check`` is true; ``holds-in-shape`` if only the weaker ``shape`` is true, and the
    statement then begins with that;
    ``implausible-in-source`` if neither is, and ``implausible`` explains why the source is wrong;
    ``undecided`` if ``intervals`` allow more than one of these; else ``fails``. ``published`` is the
    source's statement. A missing measurement gives the outcome ``unmeasured``, and ``why`` names it.
    """
    parsed = check if isinstance(check, Check) else parse(check)
    known = intervals or {}
    missing = False if unmeasured == "fails" else None
    held, measured, why = _hold(parsed, values, known, missing)
    outcome = {True: "holds", False: "fails", None: "undecided"}[held]
    if not held and shape is not None:
        weaker = shape if isinstance(shape, Check) else parse(shape)
        in_shape = _hold(weaker, values, known, missing)[0]
        if in_shape and outcome == "fails":
            outcome, why = "holds-in-shape", f"{why}; but {weaker.text}"
            # The figures contradict the statement as it stands, so it is not left to stand alone.
            statement = f"Not as stated, only {weaker.text}: {statement}"
        elif in_shape:
            why = f"{why}; certainly {weaker.text}"
        elif in_shape is None and outcome == "fails":
            outcome, why = "undecided", f"{why}; {_open(weaker, known)}whether {weaker.text} is open"
    if outcome == "fails" and implausible is not None:
        outcome, why = "implausible-in-source", f"{implausible}; {why}"
    return Claim.model_validate(
        {
            "id": id,
            "statement": statement,
            "source": source,
            "published": published,
            "expected": parsed.text,
            "measured": measured,
            "outcome": outcome,
            "why": why,
        }
    )


def _hold(
    check: Check, values: Values, intervals: Intervals, without: bool | None
) -> tuple[bool | None, str, str]:
    """True, false or undecided (None), ``without`` a value as that says; the values; and why."""
    measured: dict[str, str] = {}
    missing: list[str] = []
    for name in check.names():
        try:
            measured[name] = f"{values(name)}{_shown(values(name), intervals.get(name))}"
        except Unmeasured as error:
            missing.append(str(error))
    told = ", ".join(f"{name} = {value}" for name, value in measured.items())
    if missing:
        return without, told, "; ".join(missing)
    reasons = []
    every: list[bool | None] = []
    for comparison in check.comparisons:
        try:
            reasons.append(_reason(comparison, values))
            every.append(_judged(comparison, values, intervals))
        except (ZeroDivisionError, OverflowError):
            return False, told, "a division by zero or an overflow in the claim"
        except ScenarioError as error:
            return False, told, error.message
    if False in every:
        return False, told, "; ".join(reasons)
    why = "; ".join(reasons)
    return (
        (None, told, f"{why}; {_open(check, intervals)}not decided") if None in every else (True, told, why)
    )


def _shown(value: Quantity, interval: Interval | None) -> str:
    """The interval as text, in the unit of its value."""
    if interval is None or interval.low == interval.high:
        return ""
    ends = (Quantity(end, value.dimension) for end in (interval.low, interval.high))
    low, high = (str(end) if math.isfinite(end.value) else "" for end in ends)
    if low == high and low:
        wide = max(interval.high - value.value, value.value - interval.low)
        return f" (± {Quantity(wide, value.dimension).text(2)})"
    if not low and not high:
        return " (no interval)"
    return f" ({low} to {high})" if low and high else f" ({low} or more)" if low else f" ({high} or less)"


def _open(check: Check, intervals: Intervals) -> str:
    """Why the values of a check are open, if that is known."""
    said = dict.fromkeys(intervals[name].why for name in check.names() if name in intervals)
    return "".join(f"{why}: " for why in said if why)


def _reason(comparison: Comparison, values: Values) -> str:
    left, right = _value(comparison.left, values), _value(comparison.right, values)
    if comparison.tolerance is not None:
        _same(left.dimension, right.dimension, "compared with")
        apart = abs(left.value - right.value)
        share = f" ({100 * apart / abs(right.value):.3g} %)" if right.value else ""
        return f"{left} and {right} are {Quantity(apart, left.dimension)} apart{share}"
    _same(left.dimension, right.dimension, "compared with")
    difference = Quantity(abs(left.value - right.value), left.dimension)
    side = "above" if left.value > right.value else "below"
    # Far from the other side, the distance says nothing that the values do not.
    far = difference.value > _FAR * max(abs(left.value), abs(right.value))
    where = "equal to" if left.value == right.value else side if far else f"{difference} {side}"
    return f"{left} is {where} {right}"


_FAR = 0.9
"""Distance of two values, as a share of the larger one, above which it is not told."""

_STRICT = ("<", ">", "!=")
"""Signs that equal sides do not satisfy."""


def _judged(comparison: Comparison, values: Values, intervals: Intervals) -> bool | None:
    """Whether the intervals leave the comparison true or false; None if they allow both."""
    own = {name: intervals[name] for name in Check("", (comparison,)).names() if name in intervals}
    strict = comparison.sign in _STRICT
    answers = []
    for number, margin in enumerate(_margins(comparison, values)):
        low, high = _bounds(comparison, number, margin, values, own)
        true = low > 0 if strict else low >= 0
        false = high <= 0 if strict else high < 0
        answers.append(True if true else False if false else None)
    if comparison.sign == "!=":
        return True if True in answers else False if all(one is False for one in answers) else None
    return False if False in answers else None if None in answers else True


def _margins(comparison: Comparison, values: Values) -> tuple[float, ...]:
    """What must be positive: all of it, of ``!=`` one."""
    left, right = _value(comparison.left, values), _value(comparison.right, values)
    _same(left.dimension, right.dimension, "compared with")
    more = left.value - right.value
    if comparison.tolerance is not None:
        tolerance = _value(comparison.tolerance, values)
        _same(tolerance.dimension, PLAIN, "used as the tolerance instead of")
        room = _finite(tolerance.value * abs(right.value), (tolerance, right))
        return room - more, room + more
    return {"<": (-more,), "<=": (-more,), ">": (more,), ">=": (more,)}.get(comparison.sign, (more, -more))


def _bounds(
    comparison: Comparison, number: int, margin: float, values: Values, own: Intervals
) -> tuple[float, float]:
    """Both ends of the interval of one margin of a comparison."""
    down: list[tuple[float, float]] = []
    up: list[tuple[float, float]] = []
    signs = [_value(one, values).value > 0 for one in _divisors(comparison)]
    for name, interval in own.items():
        changes = []
        for end in (interval.low, interval.high):

            def moved(asked: str, name: str = name, end: float = end) -> Quantity:
                found = values(asked)
                return Quantity(end, found.dimension) if asked == name else found

            try:
                if [_value(one, moved).value > 0 for one in _divisors(comparison)] != signs:
                    return -math.inf, math.inf
                changes.append(_margins(comparison, moved)[number] - margin)
            except (ZeroDivisionError, OverflowError):
                return -math.inf, math.inf
        if any(math.isnan(change) for change in changes):
            return -math.inf, math.inf
        down.append((-min(0.0, *changes), interval.freedom))
        up.append((max(0.0, *changes), interval.freedom))
    return margin - combined(down), margin + combined(up)


def _divisors(comparison: Comparison) -> Iterator[Term]:
    """What the comparison divides by: a ratio is open if that may be zero."""
    waiting = [comparison.left, comparison.right, *filter(None, [comparison.tolerance])]
    while waiting:
        term = waiting.pop()
        if isinstance(term, Call):
            waiting += term.parts
            if term.what == "/":
                yield term.parts[1]


def _value(term: Term, values: Values) -> Quantity:
    if isinstance(term, Number):
        return term.quantity
    if isinstance(term, Name):
        return values(term.name)
    parts = [_value(part, values) for part in term.parts]
    first = parts[0]
    if term.what in ("min", "max", "+", "-"):
        for part in parts[1:]:
            _same(first.dimension, part.dimension, "taken together with")
    left, right = first.value, parts[-1].value
    dimension = first.dimension
    match term.what:
        case "min":
            value = min(part.value for part in parts)
        case "max":
            value = max(part.value for part in parts)
        case "abs":
            value = abs(left)
        case "+":
            value = left + right
        case "-":
            value = left - right if len(parts) == 2 else -left
        case "*":
            value, dimension = left * right, _times(first.dimension, parts[1].dimension, 1)
        case _:
            value, dimension = left / right, _times(first.dimension, parts[1].dimension, -1)
    return Quantity(_finite(value, parts), dimension)


def _times(left: Dimension, right: Dimension, power: int) -> Dimension:
    bit, second = (a + power * b for a, b in zip(left, right, strict=True))
    return bit, second


def _finite(value: float, of: Sequence[Quantity]) -> float:
    """Returns a value; raises OverflowError if it is not finite and what it comes from is.

    The end of an interval may be infinite, and so may what comes from it.
    """
    if not math.isfinite(value) and all(math.isfinite(one.value) for one in of):
        raise OverflowError
    return value


def _same(left: Dimension, right: Dimension, verb: str) -> None:
    if left != right:
        raise ScenarioError(
            "claim.dimension",
            f"{name_of(left)} cannot be {verb} {name_of(right)}",
            cure="give both sides units of the same kind",
        )
