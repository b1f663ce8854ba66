"""Claims: ``goodput.throughput >= 94 Mbit/s``, their grammar and its parser.

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
import re
from collections.abc import Iterator
from dataclasses import dataclass

from airloom.errors import ScenarioError
from airloom.units.figures import UNITS, Quantity

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_][A-Za-z0-9_-]*)*)"
    r"|(?P<sign><=|>=|==|!=|[-<>+*/(),])|(?P<other>\S))"
)
_UNIT = re.compile(r"\s*((?:[A-Za-zµ]+(?:/[A-Za-z]+)?)|%)")
OPERATORS = ("<", "<=", ">", ">=", "==", "!=")
DEEPEST = 100
"""Most levels of nested parentheses, functions and signs."""
MOST_TERMS = 200
"""Most quantities and names in one claim."""
_RESERVED = frozenset({"and", "within", "of"})
_FUNCTIONS = frozenset({"min", "max", "abs"})


@dataclass(frozen=True, slots=True)
class Number:
    """A quantity as written in the claim."""

    quantity: Quantity
    text: str


@dataclass(frozen=True, slots=True)
class Name:
    """A name to look up."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """An arithmetic operation, or ``min``, ``max``, ``abs``."""

    what: str
    parts: tuple[Term, ...]


Term = Number | Name | Call


@dataclass(frozen=True, slots=True)
class Comparison:
    """``left sign right``; ``within`` also has the tolerance."""

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
        """Returns every name, each once, in order."""
        found: dict[str, None] = {}
        for comparison in self.comparisons:
            for term in (comparison.left, comparison.right, comparison.tolerance):
                for name in _names(term):
                    found[name] = None
        return list(found)


def parse(text: str) -> Check:
    """Parses a claim; raises :class:`ScenarioError` with the position in ``text``."""
    return _Parser(text).check()


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
        self._depth = 0
        self._terms = 0

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
        if self._peek() not in OPERATORS:
            raise self._wrong("a comparison is missing: one of < <= > >= == != within")
        while (sign := self._peek()) in OPERATORS:
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

    def _factor(self) -> Term:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._wrong(f"more than {DEEPEST} nested parentheses, functions and signs")
        term = self._innermost()
        self._depth -= 1
        return term

    def _innermost(self) -> Term:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            raise self._wrong("the claim ends too early")
        if match["number"] or (match["word"] and match["word"] not in _RESERVED):
            self._terms += 1
            if self._terms > MOST_TERMS:
                raise self._wrong(f"a claim has at most {MOST_TERMS} quantities and names")
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
        text = self._text.strip()
        shown = text if len(text) <= 200 else f"{text[:200]}..."
        return ScenarioError(
            "claim.syntax",
            f"{message} (column {column} of `{shown}`)",
            cure="write measurement.metric, a comparison and a quantity: goodput.throughput >= 94 Mbit/s",
        )
