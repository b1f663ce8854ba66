"""Arithmetic that excludes a published number: a condition the number would have to meet, and does not.

The condition compares two terms of numbers with ``+ - * /`` and parentheses::

    >>> refuted("80000 <= 1e6 / 20")
    '80000 <= 1e6 / 20, and that is 80,000 <= 50,000'
"""

from __future__ import annotations

import ast
import operator

_COMPARED = {ast.LtE: operator.le, ast.GtE: operator.ge}
_TERMS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
_WORDS = {ast.LtE: "<=", ast.GtE: ">="}


def refuted(condition: str) -> str:
    """Returns the condition with both of its values; raises ``ValueError`` if it is none, or is true."""
    try:
        parsed = ast.parse(condition, mode="eval").body
    except SyntaxError:
        raise ValueError(f"{condition!r} is no condition such as 80000 <= 1e6 / 20") from None
    match parsed:
        case ast.Compare(left=left, ops=[ast.LtE() | ast.GtE() as sign], comparators=[right]):
            try:
                values = _value(left), _value(right)
            except ZeroDivisionError:
                raise ValueError(f"{condition!r} divides by zero") from None
        case _:
            raise ValueError(f"{condition!r} compares no two terms with <= or >=")
    if _COMPARED[type(sign)](*values):
        raise ValueError(f"{condition!r} is true, so it excludes nothing")
    return f"{condition}, and that is {values[0]:,.4g} {_WORDS[type(sign)]} {values[1]:,.4g}"


def _value(term: ast.expr) -> float:
    match term:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _TERMS:
            return float(_TERMS[type(op)](_value(left), _value(right)))
        case _:
            raise ValueError(f"{ast.unparse(term)!r} is no number and no sum or product of numbers")
