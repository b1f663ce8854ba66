"""``airloom examples``: the scenarios, notebooks and scripts to begin with."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from airloom.errors import RunError, ScenarioError

app = typer.Typer(help="Scenarios, notebooks and scripts to begin with.", invoke_without_command=True)

_KINDS = ("*.yaml", "*.ipynb", "*.py", "*.sh")
_HELPERS = frozenset(("aodv", "location", "oml", "openflow"))
"""Folders of files that examples use."""
_PATH = re.compile(r"[\w.][\w./-]*")


@app.callback()
def top(context: typer.Context) -> None:
    """List the examples with one line each."""
    if context.invoked_subcommand is None:
        _list()


@app.command("list")
def list_command() -> None:
    """List the examples with one line each."""
    _list()


@app.command("copy")
def copy_command(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]... [DIR]",
            help="Examples to copy, all of them by default, and the folder to copy them to.",
        ),
    ] = None,
) -> None:
    """Copy examples, with the files that they use, to a folder; keeps files that are there.

    All examples go to the folder examples by default, named ones to the present folder.

    Example: airloom examples copy chain; airloom run chain.yaml
    """
    from airloom.cli.console import say

    names = list(words or ())
    known = _known()
    to = Path() if names else Path("examples")
    if (
        names
        and _found(last := names[-1], known) is None
        and ("/" in last or len(names) > 1 or Path(last).is_dir())
    ):
        to = Path(names.pop())
    chosen = [_named(name, known) for name in names] or [*known.values()]
    files = {file for path in chosen for file in _with_files(path)}
    if not names:
        files |= {file for file in _folder().rglob("*") if file.is_file() and "__pycache__" not in file.parts}
    kept = 0
    for file in sorted(files):
        target = to / file.relative_to(_folder())
        if target.exists():
            kept += 1
            continue
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        except OSError as error:
            raise RunError(
                "examples.unwritable",
                f"{target} cannot be written: {error.strerror}",
                cure="name another folder",
            ) from None
    also = f"; {kept} were there already and stay as they are" if kept else ""
    say(f"{len(files) - kept} file{'s' * (len(files) - kept != 1)} copied to {to}{also}")
    first = next((path for path in chosen if path.suffix == ".yaml"), None)
    if first is not None and names:
        say(f"run one by: airloom run {to / first.relative_to(_folder())}")


def _list() -> None:
    from rich.table import Table
    from rich.text import Text

    from airloom.cli.console import Console, say

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for name, path in _known().items():
        table.add_row(name, Text(_about(path)))
    Console().print(table)
    say("copy some by: airloom examples copy NAME...; all of them: airloom examples copy")


def _folder() -> Path:
    from airloom.host.binaries import shipped

    return shipped("examples")


def _known() -> dict[str, Path]:
    """The examples by name: the path without its suffix."""
    folder = _folder()
    paths = sorted(path for kind in _KINDS for path in folder.rglob(kind))
    found: dict[str, Path] = {}
    for path in sorted(paths, key=lambda path: len(path.relative_to(folder).parts)):
        inside = path.relative_to(folder)
        if inside.parts[0] not in _HELPERS:
            found.setdefault(str(inside.with_suffix("")), path)
    return found


def _found(name: str, known: dict[str, Path]) -> Path | None:
    """An example by its name, or its file name."""
    return known.get(name) or known.get(str(Path(name).with_suffix("")))


def _named(name: str, known: dict[str, Path]) -> Path:
    from airloom.scenario.suggest import nearest

    path = _found(name, known)
    if path is None:
        raise ScenarioError("example.unknown", f"there is no example {name!r}", cure=nearest(name, known))
    return path


def _with_files(path: Path) -> Iterator[Path]:
    """An example, and the files in its folder that its text names."""
    yield path
    for word in set(_PATH.findall(path.read_text())):
        for part in (Path(word), Path(word).parent):
            other = path.parent / part
            if part.parts and ".." not in part.parts and other.is_file():
                yield other
            elif part.parts and part.parts[0] in _HELPERS and other.is_dir():
                yield from (
                    one for one in other.rglob("*") if one.is_file() and "__pycache__" not in one.parts
                )


def _about(path: Path) -> str:
    """One line about an example, from its text."""
    text = path.read_text()
    if path.suffix == ".ipynb":
        cells = [cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        lines = [line.strip() for cell in cells for line in cell if not line.startswith("#")]
    elif path.suffix == ".py":
        lines = text.lstrip('"\n').splitlines()
    else:
        import yaml

        said = yaml.safe_load(text) if path.suffix == ".yaml" else {}
        comment = " ".join(line[1:].strip() for line in _head(text))
        lines = [said.get("description", comment)]
    first = " ".join(next((line for line in lines if line), "").split())
    return re.split(r"(?<=[.:;]) ", first.strip('"'))[0].rstrip(":;")


def _head(text: str) -> Iterator[str]:
    """The comment at the beginning of a text."""
    for line in text.splitlines():
        if line.startswith("#!"):
            continue
        if not line.startswith("#"):
            return
        yield line
