"""``airloom fleet``: machines that share the runs of a sweep."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

app = typer.Typer(
    help="Machines that share the runs of a sweep (`airloom run --fleet`): what each can do.",
    no_args_is_help=True,
)


@app.command("doctor")
def doctor(
    machines: Annotated[
        str,
        typer.Argument(
            metavar="MACHINES", help="ssh:HOST,HOST,..., rspec:FILE (a manifest), slurm, or local:N."
        ),
    ],
) -> None:
    """Connect to machines, and tell what each can do.

    Exit code 2 if one cannot be reached, 3 if one has another Airloom than this machine.

    Example: airloom fleet doctor ssh:lab1,lab2
    """
    from rich.table import Table
    from rich.text import Text

    from airloom.cli.console import Console
    from airloom.fleet import connect
    from airloom.units.figures import readable

    with ExitStack() as stack:
        found = [stack.enter_context(machine) for machine in connect(machines)]
        table = Table(title="What these machines can do", title_justify="left")
        for column in ("machine", "name there", "processors", "memory", "what works"):
            table.add_column(column, overflow="fold")
        for machine in found:
            facts = machine.facts
            table.add_row(
                *map(
                    Text,
                    (
                        machine.name,
                        facts.name,
                        f"{len(machine.processors)}",
                        readable(facts.memory, "B"),
                        machine.abilities(),
                    ),
                )
            )
        Console().print(table)


@app.command("agent", hidden=True)
def agent() -> None:
    """Serve the machine that started this command, behind standard input and output."""
    from airloom.fleet.agent import main

    main()
