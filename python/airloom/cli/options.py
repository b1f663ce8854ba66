"""Shared arguments and options of commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airloom.cli import completing
from airloom.errors import writing

ScenarioFile = Annotated[Path, typer.Argument(metavar="FILE", help="The scenario, a YAML file.")]

Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a value of the scenario by its path, such as links[0].rate='10 Mbit/s'. Repeatable.",
    ),
]

Seed = Annotated[
    int | None, typer.Option("--seed", help="Seed of all random numbers, instead of the scenario's.")
]

Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Folder of the results; by default out/NAME-DATE-TIME."),
]

LabName = Annotated[
    str | None,
    typer.Option(
        "--lab",
        metavar="NAME",
        help="Which laboratory, when several are up: its name or process id.",
        autocompletion=completing.labs,
    ),
]

JSON_CURE = "name another file with --json"


def write_json(path: Path, text: str) -> None:
    """Writes the output of ``--json``."""
    with writing(path, "json.unwritable", "the JSON", JSON_CURE):
        path.write_text(text, encoding="utf-8")


def must_take_json(path: Path | None) -> None:
    """Raises an error for an unwritable file before the work for its content starts."""
    if path is not None and path != Path("-"):
        with writing(path, "json.unwritable", "the JSON", JSON_CURE), path.open("a", encoding="utf-8"):
            pass
