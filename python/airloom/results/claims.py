"""Claims: ``goodput.throughput >= 94 Mbit/s``, parsed and held against what was measured.

Grammar::

    claim      = comparison { "and" comparison }
    comparison = sum operator sum { operator sum }  |  sum "within" sum "of" sum
    operator   = "<" | "<=" | ">" | ">=" | "==" | "!="
    sum        = product { ("+" | "-") product }
    product    = factor { ("*" | "/") factor }
    factor     = ["-"] (quantity | name | function "(" sum { "," sum } ")" | "(" sum ")")
    quantity   = number [unit]
    name       = word { "." word }
    function   = "min" | "max" | "abs"

A name is ``measurement.metric``, ``measurement.metric.statistic``, or a value that an experiment
provides, such as ``ideal``. ``x within 2 % of y`` is ``abs(x - y) <= 2 % * abs(y)``. Quantities of
different dimensions are neither added nor compared.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from airloom.errors import ScenarioError
from airloom.quantity import PLAIN, UNITS, Dimension, Quantity, name_of
from airloom.results.result import Claim, Measurement

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_][A-Za-z0-9_-]*)*)"
    r"|(?P<sign><=|>=|==|!=|[-<>+*/(),])|(?P<other>\S))"
)
_UNIT = re.compile(r"\s*((?:[A-Za-zµ]+(?:/[A-Za-z]+)?)|%)")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_RESERVED = frozenset({"and", "within", "of"})
_FUNCTIONS = frozenset({"min", "max", "abs"})


class Unmeasured(Exception):
    """A name in a claim for which there is no value."""


Values = Callable[[str], Quantity]
"""What a claim's names stand for; raises :class:`Unmeasured`."""


@dataclass(frozen=True, slots=True)
class Number:
    """A figure written in the claim, as it was written."""

    quantity: Quantity
    text: str


@dataclass(frozen=True, slots=True)
class Name:
    """A name to be looked up."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """An arithmetic operation, or ``min``, ``max``, ``abs``."""

    what: str
    parts: tuple[Term, ...]


Term = Number | Name | Call


@dataclass(frozen=True, slots=True)
class Comparison:
    """``left sign right``; ``within`` has the tolerance too."""

    left: Term
    sign: str
    right: Term
    tolerance: Term | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A parsed claim: every comparison must hold."""

    text: str
    comparisons: tuple[Comparison, ...]

    def names(self) -> list[str]:
        """Every name in it, once, in order."""
        found: dict[str, None] = {}
        for comparison in self.comparisons:
            for term in (comparison.left, comparison.right, comparison.tolerance):
                for name in _names(term):
                    found[name] = None
        return list(found)


def parse(text: str) -> Check:
    """Parses a claim; raises :class:`ScenarioError` that points at the place in ``text``."""
    return _Parser(text).check()


def from_measurements(
    measurements: Sequence[Measurement], extra: Mapping[str, Quantity] | None = None
) -> Values:
    """Looks names up in a result's measurements, and in ``extra`` first.

    ``echo.rtt_max`` finds the measurement ``echo`` with metric ``rtt_max``, and so does ``echo.max``
    if no other metric of ``echo`` is called ``max`` or ends in ``_max``. Several measurements of one
    name and metric that differ in labels are ambiguous, and refused.
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
    """Holds a claim against what was measured.

    ``holds`` if ``check`` is true; ``holds-in-shape`` if it is not but the weaker ``shape`` is;
    ``implausible-in-source`` if it is not, and ``implausible`` says why its source cannot be right;
    else ``fails``. ``published`` is what the source says. What could not be measured fails, and ``why``
    names it.
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


def _names(term: Term | None) -> Iterator[str]:
    if isinstance(term, Name):
        yield term.name
    elif isinstance(term, Call):
        for part in term.parts:
            yield from _names(part)


class _Parser:
    """Recursive descent over one claim."""

    def __init__(self, text: str):
        self._text = text
        self._at = 0

    def check(self) -> Check:
        comparisons = list(self._comparison())
        while self._take("and"):
            comparisons += self._comparison()
        if self._peek():
            raise self._wrong(f"`{self._peek()}` was not expected here")
        return Check(self._text.strip(), tuple(comparisons))

    def _comparison(self) -> Iterator[Comparison]:
        left = self._sum()
        if self._take("within"):
            tolerance = self._sum()
            if not self._take("of"):
                raise self._wrong("`within` needs `of`: x within 2 % of y")
            yield Comparison(left, "within", self._sum(), tolerance)
            return
        if self._peek() not in _COMPARE:
            raise self._wrong("a comparison is missing: one of < <= > >= == != within")
        while (sign := self._peek()) in _COMPARE:
            self._take(sign)
            right = self._sum()
            yield Comparison(left, sign, right)
            left = right

    def _sum(self) -> Term:
        term = self._product()
        while (sign := self._peek()) in ("+", "-"):
            self._take(sign)
            term = Call(sign, (term, self._product()))
        return term

    def _product(self) -> Term:
        term = self._factor()
        while (sign := self._peek()) in ("*", "/"):
            self._take(sign)
            term = Call(sign, (term, self._factor()))
        return term

    def _factor(self, depth: int = 0) -> Term:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            raise self._wrong("the claim ends too early")
        if match["number"]:
            self._at = match.end()
            return self._quantity(match["number"], match.start("number"))
        token = match["word"] or match["sign"] or match["other"]
        if match["word"] and token not in _RESERVED:
            self._at = match.end()
            if token in _FUNCTIONS and self._take("("):
                return Call(token, self._parts(token))
            return Name(token)
        if token == "-":
            self._at = match.end()
            return Call("-", (self._factor(),))
        if token == "(":
            self._at = match.end()
            term = self._sum()
            self._close()
            return term
        raise self._wrong(f"`{token}` was not expected here")

    def _parts(self, function: str) -> tuple[Term, ...]:
        parts = [self._sum()]
        while self._take(","):
            parts.append(self._sum())
        self._close()
        if function == "abs" and len(parts) != 1:
            raise self._wrong("abs takes one value")
        return tuple(parts)

    def _close(self) -> None:
        if not self._take(")"):
            raise self._wrong("a closing parenthesis is missing")

    def _quantity(self, digits: str, start: int) -> Number:
        match = _UNIT.match(self._text, self._at)
        if match is None or match[1] in _RESERVED:
            return Number(Quantity(float(digits)), digits)
        unit = match[1]
        end = match.end()
        if unit not in UNITS and "/" in unit:
            unit, end = unit.partition("/")[0], match.start(1) + unit.index("/")
        if unit not in UNITS or unit == "":
            near = difflib.get_close_matches(unit, [one for one in UNITS if one], 1, 0.4)
            raise self._wrong(f"`{unit}` is not a unit" + (f"; did you mean {near[0]}?" if near else ""))
        self._at = end
        return Number(Quantity.of(float(digits), unit), self._text[start:end])

    def _peek(self) -> str:
        match = _TOKEN.match(self._text, self._at)
        return (match["number"] or match["word"] or match["sign"] or match["other"]) if match else ""

    def _take(self, token: str) -> bool:
        match = _TOKEN.match(self._text, self._at)
        if match is None or token not in (match["word"], match["sign"]):
            return False
        self._at = match.end()
        return True

    def _wrong(self, message: str) -> ScenarioError:
        column = len(self._text) - len(self._text[self._at :].lstrip()) + 1
        return ScenarioError(
            "claim.syntax",
            f"{message} (column {column} of `{self._text.strip()}`)",
            cure="write measurement.metric, a comparison and a quantity: goodput.throughput >= 94 Mbit/s",
        )
