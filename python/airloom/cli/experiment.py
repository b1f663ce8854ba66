"""``airloom experiment``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airloom.cli import completing, packs

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
            "--anyway",
            help="Publish incomplete, quick or invalid results, or another engine's; the page says so.",
        ),
    ] = False,
) -> None:
    """Publish the results of an experiment as a page with figures, claims, machine and versions.

    Results that are incomplete, of a quick form, invalid, or of another engine are refused.
    """
    from rich.text import Text

    from airloom.cli.console import Console, say
    from airloom.experiments.publishing import objections, publish
    from airloom.experiments.registry import find

    target, folder = to or Path("docs") / "results" / name, results or Path("out") / name
    page = publish(find(name), folder, target, anyway=anyway)
    for objection in objections(find(name), folder):
        Console(stderr=True).print(Text(f"published although {objection}", style="red"), soft_wrap=True)
    say(f"published in {page}")


@app.command("rejudge")
def rejudge_command(
    name: Name,
    page: Annotated[
        Path | None,
        typer.Option("--page", metavar="DIR", help="Folder of the page; docs/results/NAME by default."),
    ] = None,
) -> None:
    """Judge the claims of a published page anew from its values, after claims have changed.

    Makes no run. Claims that need more than means and intervals keep their outcome. The experiment's
    conclusion is put into the page, too.
    """
    from airloom.cli.console import say
    from airloom.experiments.registry import find
    from airloom.experiments.rejudging import rejudge

    changed = rejudge(find(name), page or Path("docs") / "results" / name)
    say(f"{len(changed)} claims have changed: {', '.join(changed)}" if changed else "no claim has changed")


app.command("pack")(packs.pack_command)
app.command("unpack")(packs.unpack_command)
app.command("rerun")(packs.rerun_command)
