"""Zero is a value: no number that a scenario gives is replaced by a default because it is zero."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest

import airloom
from airloom.errors import ScenarioError
from airloom.planning.gate import check
from airloom.scenario import model
from airloom.scenario.model import Scenario
from airloom.scenario.model.base import Model
from airloom.units.quantities import QUANTITIES

PLACES = {"a": "0 m", "b": "9 m"}
SOURCES = Path(airloom.__file__).parent


def _models(one: type[Model]) -> Iterator[type[Model]]:
    for more in one.__subclasses__():
        yield more
        yield from _models(more)


def _may_be_zero(kind: Any) -> bool:
    if isinstance(kind, type) and get_origin(kind) is None:
        return issubclass(kind, int | float) and not issubclass(kind, bool)
    return get_origin(kind) not in (list, dict) and any(_may_be_zero(one) for one in get_args(kind))


def _numbers() -> set[str]:
    """Returns the names of all keys of scenarios that are numbers and can be left out."""
    for module in pkgutil.iter_modules(model.__path__):
        importlib.import_module(f"{model.__name__}.{module.name}")
    return {
        name
        for one in _models(Model)
        for name, field in one.model_fields.items()
        if field.default is None and _may_be_zero(field.annotation)
    }


def _is_nothing(value: ast.expr) -> bool:
    """True if a default is what zero would be, too, or if it is a condition and no default."""
    match value:
        case ast.Compare():
            return True
        case ast.Constant(value=constant):
            return not constant
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return not elements
        case _:
            return False


def _replaced(tree: ast.AST, numbers: set[str]) -> Iterator[int]:
    tests = {id(part) for node in ast.walk(tree) for test in _conditions(node) for part in ast.walk(test)}
    for node in ast.walk(tree):
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and id(node) not in tests:
            *values, default = node.values
            named = {one.attr for one in values if isinstance(one, ast.Attribute)}
            # The same word may be a variable of another kind, which a number as the default tells apart.
            named |= {_name(one) for one in values} if _is_number(default) else set()
            if numbers & named and not _is_nothing(default):
                yield node.lineno


def _is_number(value: ast.expr) -> bool:
    """True if a default is a number, a quantity, or a constant by its name."""
    match value:
        case ast.Constant(value=int() | float()):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper()
        case ast.Call(func=ast.Name(id=name)):
            return name in {one.__name__ for one in QUANTITIES}
        case _:
            return False


def _name(value: ast.expr) -> str | None:
    """Returns the key that a variable, ``said["key"]`` or ``said.get("key")`` is named by."""
    match value:
        case ast.Name(id=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Call(func=ast.Attribute(attr="get" | "pop"), args=[ast.Constant(value=str(name)), *_]):
            return name
        case _:
            return None


def _conditions(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            return [test]
        case ast.comprehension(ifs=ifs):
            return ifs
        case _:
            return []


@pytest.mark.parametrize(
    "folder", ["planning", "scenario", "measure", "runs", "mininet", "mn_wifi", "grid", "experiments"]
)
def test_defaults_replace_only_what_was_left_out(folder: str) -> None:
    numbers = _numbers()
    assert {"turn", "lowest", "reference", "storey", "hello", "dead", "share", "time"} <= numbers
    found = [
        f"{path.relative_to(SOURCES)}:{line}"
        for path in sorted((SOURCES / folder).rglob("*.py"))
        for line in _replaced(ast.parse(path.read_text()), numbers)
    ]
    assert not found, f"use airloom.units.given: {found}"


def test_the_idiom_is_found_where_it_is() -> None:
    numbers = {"lowest"}
    found = "\n".join(
        (
            "float(law.lowest or 1.5)",
            "law.lowest or 0",
            "law.name or 'air'",
            "if law.lowest or 1: pass",
            "lowest or 1.5",
            "lowest or (1 < 2)",
            "said.get('lowest') or 1.5",
            "said['lowest'] or 1.5",
        )
    )
    assert sorted(_replaced(ast.parse(found), numbers)) == [1, 5, 7, 8]


def _plan(**parts: Any) -> Any:
    nodes = {name: {"position": [x, "0 m"], "radios": {"wlan0": {}}} for name, x in PLACES.items()}
    said = {"name": "test", "media": {"air": {}}, "nodes": nodes, **parts}
    return check(Scenario.model_validate(said)).plans[0]


def _motion(mobility: dict[str, Any]) -> Any:
    nodes = {
        "a": {"position": ["0 m", "0 m"], "radios": {"wlan0": {}}},
        "b": {"mobility": mobility, "radios": {"wlan0": {}}},
    }
    plan = _plan(nodes=nodes)
    return next(radio.motion for radio in plan.media["air"].radios if radio.node == "b")


def test_zeros_that_mean_something_are_used() -> None:
    area, speed = ["100 m", "100 m"], ["1 m/s", "0 m/s"]
    walker = {"model": "gauss-markov", "area": area, "speed": speed, "turn": "0 deg"}
    assert _motion(walker)["gauss-markov"]["direction_sigma"] == 0.0
    group = {"model": "group", "reference": walker, "radius": "5 m", "speed": "0 m/s"}
    assert _motion(group)["group"]["speed"] == 0.0


@pytest.mark.parametrize(
    ("model", "key"), [("two-ray", "lowest"), ("log-distance", "reference"), ("itu-indoor", "storey")]
)
def test_zeros_that_cannot_be_are_refused_where_they_stand(model: str, key: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        _plan(media={"air": {"propagation": {"model": model, key: "0 m"}}})
    assert f"media.air.propagation.{key}: {model}.{key}_m = 0 is outside" in str(refused.value)


@pytest.mark.parametrize("key", ["hello", "dead"])
def test_timers_of_routing_are_not_zero(key: str) -> None:
    nodes = {name: {"routing": {"protocol": "ospf", key: "0 s"}} for name in "ab"}
    with pytest.raises(ScenarioError) as refused:
        _plan(media={}, nodes=nodes, links=[{"ends": ["a", "b"]}])
    assert f"nodes.a.routing.{key}: 0 ns is not a whole number of seconds from 1 to 600" in str(refused.value)
