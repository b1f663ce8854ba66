"""Evaluation of claims; :mod:`airloom.scenario.claims_grammar` defines their grammar."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Callable, Mapping, Sequence

from airloom.errors import ScenarioError
from airloom.results.result import Claim, Measurement
from airloom.scenario.claims_grammar import Check, Comparison, Name, Number, Term, parse
from airloom.units.figures import PLAIN, UNITS, Dimension, Quantity, name_of

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class Unmeasured(Exception):
    """A name in a claim has no value."""


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
) -> Claim:
    """Evaluates a claim.

    ``holds`` if ``check`` is true; ``holds-in-shape`` if only the weaker ``shape`` is true;
    ``implausible-in-source`` if neither is, and ``implausible`` explains why the source is wrong;
    else ``fails``. ``published`` is the source's statement. A missing measurement fails the claim,
    and ``why`` names it.
    """
    parsed = check if isinstance(check, Check) else parse(check)
    held, measured, why = _hold(parsed, values)
    outcome = "holds" if held else "fails"
    if not held and shape is not None:
        weaker = shape if isinstance(shape, Check) else parse(shape)
        if _hold(weaker, values)[0]:
            outcome, why = "holds-in-shape", f"{why}; but {weaker.text}"
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


def _hold(check: Check, values: Values) -> tuple[bool, str, str]:
    measured: dict[str, str] = {}
    missing: list[str] = []
    for name in check.names():
        try:
            measured[name] = str(values(name))
        except Unmeasured as error:
            missing.append(str(error))
    told = ", ".join(f"{name} = {value}" for name, value in measured.items())
    if missing:
        return False, told, "; ".join(missing)
    reasons = []
    held = True
    for comparison in check.comparisons:
        try:
            right, why = _compare(comparison, values)
        except (ZeroDivisionError, OverflowError):
            return False, told, "a division by zero or an overflow in the claim"
        except ScenarioError as error:
            return False, told, error.message
        held = held and right
        reasons.append(why)
    return held, told, "; ".join(reasons)


def _compare(comparison: Comparison, values: Values) -> tuple[bool, str]:
    left = _value(comparison.left, values)
    right = _value(comparison.right, values)
    _same(left.dimension, right.dimension, "compared with")
    if comparison.tolerance is not None:
        tolerance = _value(comparison.tolerance, values)
        _same(tolerance.dimension, PLAIN, "used as the tolerance instead of")
        apart = abs(left.value - right.value)
        share = f" ({100 * apart / abs(right.value):.3g} %)" if right.value else ""
        held = apart <= tolerance.value * abs(right.value)
        return held, f"{left} and {right} are {Quantity(apart, left.dimension)} apart{share}"
    held = _COMPARE[comparison.sign](left.value, right.value)
    difference = Quantity(abs(left.value - right.value), left.dimension)
    side = "above" if left.value > right.value else "below"
    where = f"{difference} {side}" if left.value != right.value else "equal to"
    return held, f"{left} is {where} {right}"


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
    match term.what:
        case "min":
            return Quantity(min(part.value for part in parts), first.dimension)
        case "max":
            return Quantity(max(part.value for part in parts), first.dimension)
        case "abs":
            return Quantity(abs(first.value), first.dimension)
        case "+":
            return Quantity(first.value + parts[1].value, first.dimension)
        case "-" if len(parts) == 2:
            return Quantity(first.value - parts[1].value, first.dimension)
        case "-":
            return Quantity(-first.value, first.dimension)
        case "*":
            bit, second = (a + b for a, b in zip(first.dimension, parts[1].dimension, strict=True))
            return Quantity(first.value * parts[1].value, (bit, second))
        case _:
            bit, second = (a - b for a, b in zip(first.dimension, parts[1].dimension, strict=True))
            return Quantity(first.value / parts[1].value, (bit, second))


def _same(left: Dimension, right: Dimension, verb: str) -> None:
    if left != right:
        raise ScenarioError(
            "claim.dimension",
            f"{name_of(left)} cannot be {verb} {name_of(right)}",
            cure="give both sides units of the same kind",
        )
