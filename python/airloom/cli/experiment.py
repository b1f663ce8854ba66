"""``airloom experiment``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airloom.cli import completing

app = typer.Typer(
    help="Reproduce a published result: list the experiments, run one, publish its results, or pack "
    "results for another machine that repeats them.",
    no_args_is_help=True,
)


UNDECIDED = 4
"""Exit code if no claim fails and at least one is undecided."""

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Name of an experiment, see `experiment list`.",
        autocompletion=completing.experiments,
    ),
]


@app.command("list")
def list_command() -> None:
    """List the available experiments."""
    from airloom.cli.console import say
    from airloom.experiments.registry import discover

    for experiment in discover().values():
        say(f"{experiment.name:24} {experiment.summary}")


@app.command("run")
def run_command(
    name: Name,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer points and repetitions, wider intervals.")
    ] = False,
    smoke: Annotated[
        bool,
        typer.Option(
            "--smoke", help="One point of each series: does it work here? A failed claim is no failure."
        ),
    ] = False,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="Kind of nodes to repeat it on; may be given again.",
            autocompletion=completing.kinds,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder of the results; out/NAME by default.")
    ] = None,
) -> None:
    """Run an experiment and check its claims against the measurements.

    Finished measurements are kept: the same command resumes a stopped experiment.

    Exit code 1 if a claim fails; 4 if none fails and one is undecided.
    """
    from airloom.cli.console import Console
    from airloom.cli.show import show_result
    from airloom.experiments import record
    from airloom.experiments.extent import Extent
    from airloom.experiments.registry import find
    from airloom.nodes import doctor

    console = Console()
    folder = out or Path("out") / name
    if quick and smoke:
        raise typer.BadParameter("--quick and --smoke exclude each other")
    extent = Extent.SMOKE if smoke else Extent.QUICK if quick else Extent.FULL
    experiment = find(name)
    run = experiment.load()
    choices = experiment.choices(run, kind or ())
    # Each run checks the further requirements of its own nodes.
    doctor.require_basics(restart=True, taps=False)
    with console.status(name) as status:

        def progress(text: str) -> None:
            status.update(f"{name}: {text}")
            if not console.is_terminal:
                console.print(f"{name}: {text}", soft_wrap=True)

        result = run(folder, extent=extent, progress=progress, **choices)
    record.write(folder, experiment.name, extent, kind or ())
    show_result(console, folder)
    outcomes = {claim.outcome for claim in result.claims} if extent is not Extent.SMOKE else set()
    if "fails" in outcomes:
        raise typer.Exit(1)
    if "undecided" in outcomes:
        raise typer.Exit(UNDECIDED)


@app.command("publish")
def publish_command(
    name: Name,
    results: Annotated[
        Path | None, typer.Argument(metavar="[RESULT]", help="Folder of its results; out/NAME by default.")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="DIR", help="Folder of the page; docs/results/NAME by default."),
    ] = None,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway", help="Publish results that are incomplete, quick or invalid; the page says so."
        ),
    ] = False,
) -> None:
    """Publish the results of an experiment as a page with figures, claims, machine and versions.

    Results that are incomplete, of a quick form, or invalid are refused.
    """
    from airloom.cli.console import say
    from airloom.experiments.publishing import publish
    from airloom.experiments.registry import find

    target = to or Path("docs") / "results" / name
    say(f"published in {publish(find(name), results or Path('out') / name, target, anyway=anyway)}")
