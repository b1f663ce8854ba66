"""The reference of the Python API, written from its docstrings.

``python -m airloom.cli.api_reference > docs/guide/python.md`` renews the page.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import airloom
from airloom.lab.handles import LiveGuest, LiveLink, LiveNode, LiveProgram
from airloom.lab.radio import LiveRadio
from airloom.results import Claim, Measurement, RunReader
from airloom.scenario.topology import builders

_PARTS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("Runs", (airloom.run, airloom.check, RunReader, airloom.RunResult, Measurement, Claim, airloom.Verdict)),
    (
        "A live laboratory",
        (airloom.Lab, LiveNode, LiveProgram, airloom.Completed, LiveLink, LiveRadio, LiveGuest),
    ),
    ("Scenarios", (airloom.Scenario,)),
    ("Errors", (airloom.ScenarioError, airloom.HostError, airloom.LabError, airloom.RunError)),
)
_ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?([^`]+)`")
_VALUES = (property, cached_property)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def page() -> str:
    """The whole page, in Markdown."""
    lines = [
        "# Python API",
        "",
        "<!-- Written by `python -m airloom.cli.api_reference`; change the docstrings, not this page. -->",
        "",
        *_text(airloom.__doc__),
        "",
        "The names on this page are stable. Changes are in the changelog.",
    ]
    for title, things in _PARTS:
        lines += ["", f"## {title}"]
        for thing in things:
            lines += ["", *(_class(thing) if inspect.isclass(thing) else _function(thing, "airloom."))]
    lines += ["", "## Topologies", "", *_text(builders.__doc__)]
    for name, made in sorted(vars(builders).items()):
        if inspect.isfunction(made) and made.__module__ == builders.__name__ and not name.startswith("_"):
            lines += ["", *_function(made, "topology.")]
    return "\n".join(lines) + "\n"


def _class(thing: type) -> Iterator[str]:
    yield f"### {thing.__name__}"
    yield ""
    yield from _text(inspect.getdoc(thing))
    yield ""
    for name, kind, described in _fields(thing):
        yield f"* `{name}: {kind}`" + (f": {described}" if described else "")
    for name, member in _members(thing):
        described = _line(inspect.getdoc(member))
        if described:
            shown = name if isinstance(member, _VALUES) else f"{name}{_signature(member)}"
            yield f"* `{shown}`: {described}"


def _fields(thing: type) -> Iterator[tuple[str, str, str]]:
    """Name, type and docstring of the fields that a class declares."""
    body = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    assert isinstance(body, ast.ClassDef)
    for field, after in zip(body.body, [*body.body[1:], None], strict=True):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if field.target.id.startswith("_"):
            continue
        text = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            text = _line(str(after.value.value))
        yield field.target.id, _kind(field.annotation), text


def _kind(annotation: ast.expr) -> str:
    """A type as it is written, without what pydantic needs beside it."""
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Annotated":
        inner = annotation.slice
        return ast.unparse(inner.elts[0] if isinstance(inner, ast.Tuple) else inner)
    return ast.unparse(annotation)


def _members(thing: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a class, and of its bases that have no part of their own here."""
    seen: set[str] = set()
    shown = {part for _, parts in _PARTS for part in parts} - {thing}
    for base in thing.__mro__:
        if not base.__module__.startswith("airloom.") or base in shown:
            continue
        for name, member in vars(base).items():
            plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if name.startswith("_") or name in seen:
                continue
            if isinstance(plain, _VALUES) or inspect.isfunction(plain):
                seen.add(name)
                yield name, plain


def _function(made: Any, prefix: str) -> Iterator[str]:
    yield f"### {prefix}{made.__name__}"
    yield ""
    yield f"`{prefix}{made.__name__}{_signature(made)}`"
    yield ""
    yield from _text(inspect.getdoc(made))


def _signature(made: Any) -> str:
    """The parameters, without types (docstrings give them) and without ``self``."""
    shown = []
    star = False
    for name, one in inspect.signature(made).parameters.items():
        if name in ("self", "cls"):
            continue
        if one.kind is one.KEYWORD_ONLY and not star:
            shown.append("*")
            star = True
        star = star or one.kind is one.VAR_POSITIONAL
        mark = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
        default = "" if one.default is one.empty else f"={_ADDRESS.sub('', repr(one.default))}"
        shown.append(f"{mark}{name}{default}")
    return f"({', '.join(shown)})"


def _line(docstring: str | None) -> str:
    return " ".join(line for line in _text(docstring) if line)


def _text(docstring: str | None) -> list[str]:
    """A docstring as Markdown: roles become code, ``::`` begins a block of Python."""
    lines: list[str] = []
    block = False
    for line in inspect.cleandoc(docstring or "").splitlines():
        plain = _ROLE.sub(lambda found: f"`{found[1].rpartition('.')[2]}`", line).replace("``", "`")
        if block and line.strip() and not line.startswith("    "):
            lines[-1:] = ["```", ""]
            block = False
        if block:
            lines.append(line.removeprefix("    "))
        elif plain.rstrip().endswith("::"):
            text = plain.rstrip().removesuffix("::").rstrip()
            lines += [f"{text}:", "", "```python"] if text else ["```python"]
            block = True
        else:
            lines.append(plain)
    if block:
        lines.append("```")
    return _without_gap(lines)


def _without_gap(lines: list[str]) -> list[str]:
    """Without the empty line between the mark of a block and its first line."""
    return [
        line
        for before, line in zip(["", *lines], lines, strict=False)
        if line.strip() or before != "```python"
    ]


if __name__ == "__main__":
    sys.stdout.write(page())
