"""``airloom init``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airloom.cli import completing

if TYPE_CHECKING:
    from airloom.cli.template import Question, Template

FIRST = "link"
"""The template that is taken if none is named and nobody can be asked."""


def command(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="The scenario to write; TEMPLATE.yaml by default.")
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            "--template",
            metavar="NAME",
            help="The template to begin with, see --list.",
            autocompletion=completing.templates,
        ),
    ] = None,
    answers: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="KEY=VALUE", help="Answer a question, see --list. Repeatable."),
    ] = None,
    list_them: Annotated[
        bool, typer.Option("--list", help="List the templates and their questions.")
    ] = False,
    defaults: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing: take the default of each question.")
    ] = False,
) -> None:
    """Write a scenario to begin with, from a template and a few questions.

    Without a terminal nothing is asked.

    Example: airloom init cell.yaml --template cell --with count=5; airloom run cell.yaml
    """
    from airloom.cli.console import say
    from airloom.cli.template import find, known
    from airloom.errors import ScenarioError, writing
    from airloom.planning.gate import check
    from airloom.scenario import read

    if list_them:
        _list(list(known().values()))
        return
    asks = not defaults and sys.stdin.isatty() and sys.stdout.isatty()
    chosen = find(template or (_chosen() if asks else FIRST))
    values = _given(chosen, answers or [])
    to = file or Path(f"{chosen.name}.yaml")
    if to.exists() or to.is_symlink():
        raise ScenarioError("file.exists", "this file is there already", where=str(to), cure="name another")
    for question in chosen.questions:
        if question.key not in values:
            values[question.key] = _asked(question) if asks else question.read(question.default)
    text = chosen.made(_name_of(to) or chosen.name, values)
    (plan, *_) = check(read(text)).plans
    with writing(to, "file.unwritable", "the scenario", "name another file"):
        to.write_text(text, encoding="utf-8")
    say(f"{to}: {len(plan.nodes)} nodes, from the template {chosen.name}")
    say(f"see what it builds: airloom check {to}")
    say(f"run it: airloom run {to}")
    if not asks and template is None:
        say("other templates: airloom init --list")


def _name_of(path: Path) -> str:
    """Returns the name of a scenario in a file of this name: with what a name may have."""
    word = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in path.stem)
    return word.strip("-")[:63].strip("-")


def _list(templates: list[Template]) -> None:
    from airloom.cli.console import say

    for one in templates:
        say(f"{one.name:12}{one.about}")
        for question in one.questions:
            say(f"            {question.key}={question.default}: {question.ask.lower()}")
    say("take one by: airloom init FILE --template NAME --with KEY=VALUE")


def _chosen() -> str:
    """Asks which template."""
    from airloom.cli.console import say
    from airloom.cli.template import known

    for one in known().values():
        say(f"{one.name:12}{one.about}")
    return str(typer.prompt("template", default=FIRST)).strip()


def _asked(question: Question) -> Any:
    """Asks a question until the answer is good."""
    from airloom.cli.console import say
    from airloom.errors import ScenarioError

    while True:
        try:
            return question.read(str(typer.prompt(question.ask, default=question.default)))
        except ScenarioError as error:
            say(f"{error.message}{f' ({error.cure})' if error.cure else ''}", error=True)


def _given(template: Template, answers: list[str]) -> dict[str, Any]:
    """Returns the values of ``--with``."""
    from airloom.errors import ScenarioError
    from airloom.scenario.suggest import nearest

    questions = {one.key: one for one in template.questions}
    values: dict[str, Any] = {}
    for answer in answers:
        key, equals, text = answer.partition("=")
        if not equals:
            raise ScenarioError(
                "option.value", f"{answer[:40]!r} is no KEY=VALUE", where="--with",
                cure=f"such as {template.questions[0].key}='{template.questions[0].default}'",
            )  # fmt: skip
        if key not in questions:
            raise ScenarioError(
                "template.question", f"the template {template.name} does not ask for {key[:40]!r}",
                where="--with", cure=nearest(key, questions),
            )  # fmt: skip
        values[key] = questions[key].read(text)
    return values
