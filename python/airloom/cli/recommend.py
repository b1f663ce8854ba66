"""``airloom recommend``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from airloom.cli import completing
from airloom.cli.options import Overrides, ScenarioFile, must_take_json, write_json


def command(
    file: ScenarioFile,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="Kind of nodes to try; may be given again. All that this machine has by default, without "
            "qemu, which takes long.",
            autocompletion=completing.kinds,
        ),
    ] = None,
    calibrations: Annotated[
        list[Path] | None,
        typer.Option(
            "--calibration",
            metavar="FILE",
            help="Take this calibration of a kind instead of the stored one. Repeatable.",
        ),
    ] = None,
    overrides: Overrides = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Keep the trials' runs there; a temporary folder by default."
        ),
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Also write it as JSON; `-` prints only that."),
    ] = None,
) -> None:
    """Recommend a kind of node for a scenario, by trials on this machine.

    Tries the scenario on each kind and answers: which kind, how many nodes of it this machine carries,
    and for classes of experiments (throughput, real-time, voice, video, tcp, routing) whether figures
    are harmless, correctable or unusable, with formula and interval. Where the host's own network
    stacks can run the scenario too, their values stand beside the corrected ones. A kind without a
    calibration gets a short one first; `airloom calibrate` makes exact ones.

    Example: airloom recommend examples/chain.yaml --kind netns --kind uml --json answer.json
    """
    import tempfile

    from airloom.calibration.model import read
    from airloom.cli.console import Console
    from airloom.cli.display import Display
    from airloom.nodes import doctor
    from airloom.recommend.render import render
    from airloom.recommend.trials import prepared, recommend
    from airloom.units.text import seconds

    must_take_json(json_file, "the JSON of `airloom recommend`", "schema", "relevant", "kinds")
    given = [read(path) for path in calibrations or ()]
    trial = prepared(file, kinds or (), given, overrides or ())
    # Each trial checks the further requirements of its own nodes.
    doctor.require_basics(restart=True, taps=False)
    console = Console(stderr=True)
    names = ", ".join(trial.experiments)
    console.print(f"trying {names}: about {seconds(trial.seconds * 1e9)}", soft_wrap=True)

    def progress(text: str) -> None:
        console.print(text, soft_wrap=True)

    with tempfile.TemporaryDirectory(prefix="airloom-recommend-") as place, Display(console) as display:
        found = recommend(trial, out or Path(place), watcher=display, progress=progress)
    text = json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if json_file == Path("-"):
        typer.echo(text, nl=False)
    else:
        Console().print(render(found))
        if json_file is not None:
            write_json(json_file, text)
    if found.kind is None:
        raise typer.Exit(1)
