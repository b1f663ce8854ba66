"""``airloom import``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from airloom.scenario.imports import Draft


def command(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Laboratory of another tool, or its folder.", show_default=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="File of the scenario; by default it is printed."),
    ] = None,
    kind: Annotated[
        Literal["container", "netns"],
        typer.Option(
            "--kind",
            help="Nodes with an image: containers of it, or namespaces with this machine's programs.",
        ),
    ] = "container",
) -> None:
    """Write the scenario of a laboratory of containerlab, Kathara, CORE, Shadow or MiniEdit.

    The format is told by content. Comments at the top of the scenario say what is read in another way
    and what is not carried over. `airloom check` and `airloom run` take the file itself if nothing is
    lost. Graphs and movements of other tools need no import: `topology:` and `mobility:` read them.

    Example: airloom import lab.clab.yml --out lab.yaml
    """
    from airloom.cli.console import say
    from airloom.errors import writing
    from airloom.host import output
    from airloom.scenario import imports
    from airloom.scenario.reader import validated
    from airloom.scenario.source import Source

    draft = imports.convert(file, kind)
    validated(Source(draft.data, str(file), draft.path.parent), files=False)
    target = Path() if out is None else out.parent
    text = _text(draft, moved=target.resolve() != draft.path.parent.resolve())
    if out is None:
        print(text, end="")
        return
    if out.exists() and out.samefile(draft.path):
        draft.refuse("the scenario would replace the file", "name another file after --out")
    output.refuse_others(out, output.SCENARIO, "name another file after --out")
    with writing(out, "file.unwritable", "the scenario", "name another file after --out"):
        out.write_text(text)
    for word, lines in (("note", draft.notes), ("not carried over", draft.lost)):
        for line in lines:
            say(f"{word}: {line}")


def _text(draft: Draft, *, moved: bool) -> str:
    """Returns the scenario with its comments; ``moved``: it is not in the folder of the file."""
    from airloom.scenario.source import write

    for node in draft.nodes.values() if moved else ():
        for mount in node.get("mounts", ()):
            mount["source"] = str(Path(draft.path.parent, mount["source"]).resolve())
    said = [f"From {draft.path.name}, by `airloom import`."]
    said += [f"Note: {note}" for note in draft.notes]
    said += [f"Not carried over: {lost}" for lost in draft.lost]
    return "".join(f"# {' '.join(line.split())}\n" for line in said) + write(draft.data)
