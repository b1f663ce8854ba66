"""Templates of scenarios for ``airloom init``: files of ``templates/`` with questions and their defaults.

A template is YAML with Jinja's expressions. The comment at its top has ``about`` and ``questions``, each
with ``ask`` (its words), ``is`` (the kind of value) and ``default``; a count also has ``least`` and
``most``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from airloom.errors import ScenarioError
from airloom.scenario.suggest import nearest
from airloom.units.quantities import Duration, Length, Rate
from airloom.units.reading import UnitError

FOLDER = Path(__file__).with_name("templates")
_QUANTITIES: Mapping[str, Any] = {"rate": Rate, "duration": Duration, "length": Length}


@dataclass(frozen=True, slots=True)
class Question:
    """A value that a template asks for."""

    key: str
    ask: str
    default: str
    kind: str
    """A word of :data:`_QUANTITIES`, or ``count``."""
    least: int = 0
    most: int = 0

    def read(self, text: str) -> Any:
        """Returns the value that a text says; raises :class:`ScenarioError` for one that it cannot have."""
        if self.kind == "count":
            word = text.strip()
            number = int(word) if word.isascii() and word.isdigit() and len(word) < 10 else -1
            if not self.least <= number <= self.most:
                raise self._refused(
                    f"{text[:40]!r} is no number from {self.least} to {self.most}", f"such as {self.default}"
                )
            return number
        try:
            value = _QUANTITIES[self.kind](text)
        except UnitError as error:
            raise self._refused(error.message, error.cure) from None
        if value <= 0:
            raise self._refused(f"{text.strip()!r} is not above zero", f"such as {self.default}")
        return value

    def _refused(self, message: str, cure: str | None) -> ScenarioError:
        return ScenarioError("template.value", message, where=self.key, cure=cure)


@dataclass(frozen=True, slots=True)
class Template:
    """A template with its questions."""

    name: str
    about: str
    questions: tuple[Question, ...]
    text: str

    def made(self, name: str, values: Mapping[str, Any]) -> str:
        """Returns the scenario with a name and the values of all questions."""
        shown = {key: value if type(value) is int else value.text for key, value in values.items()}
        import jinja2

        world = jinja2.Environment(undefined=jinja2.StrictUndefined)
        filled = world.from_string(self.text).render(name=name, around=_around, times=_times, **shown)
        return filled.strip("\n") + "\n"


def _around(distance: str, number: int, count: int) -> str:
    """Returns a place on a circle around the origin: ``x, y``."""
    angle = 2 * math.pi * (number - 1) / count
    x, y = (round(float(Length(distance)) * part(angle), 2) + 0.0 for part in (math.cos, math.sin))
    return f"{x:g} m, {y:g} m"


def _times(distance: str, number: int) -> str:
    return Length(float(Length(distance)) * number).text


def known() -> dict[str, Template]:
    """Returns all templates by name."""
    return {path.stem: _read(path) for path in sorted(FOLDER.glob("*.yaml"))}


def find(name: str) -> Template:
    """Returns a template by its name."""
    path = FOLDER / f"{name}.yaml"
    names = sorted(one.stem for one in FOLDER.glob("*.yaml"))
    if name not in names:
        raise ScenarioError(
            "template.unknown", f"there is no template {name[:40]!r}", where="--template",
            cure=nearest(name, names),
        )  # fmt: skip
    return _read(path)


def _read(path: Path) -> Template:
    text = path.read_text(encoding="utf-8")
    head = yaml.safe_load(text[text.index("{#") + 2 : text.index("#}")])
    questions = tuple(
        Question(key, one["ask"], str(one["default"]), one["is"], one.get("least", 0), one.get("most", 0))
        for key, one in head["questions"].items()
    )
    return Template(path.stem, head["about"], questions, text)
