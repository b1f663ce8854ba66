"""``airloom exec``, ``shell`` and ``node``: access to a running laboratory from other terminals."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from airloom.cli import completing
from airloom.cli.options import LabName
from airloom.errors import RunError

Node = Annotated[str, typer.Argument(metavar="NODE", help="Name of a node.", autocompletion=completing.nodes)]


def exec_command(
    node: Node,
    words: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="The command and its arguments.")
    ],
    lab: LabName = None,
    terminal: Annotated[
        bool, typer.Option("-t", "--tty", help="Give the program a terminal, as full-screen programs need.")
    ] = False,
) -> None:
    """Run a command in a node of a laboratory that is up, with its exit code.

    Example: airloom exec h1 -- ping -c 3 h2
    """
    from airloom.lab.client import Client
    from airloom.lab.running import find
    from airloom.lab.tty import attach

    command = words[1:] if words[0] == "--" else words
    if not command:
        raise typer.BadParameter("which command?", param_hint="COMMAND")
    with Client(find(lab)) as client:
        code = attach(client, node, command, terminal=terminal)
    raise typer.Exit(code)


def node_command(
    node: Node,
    action: Annotated[
        Literal["pause", "resume", "stop", "kill", "start", "restart"],
        typer.Argument(
            metavar="ACTION",
            help="pause (a guest's kernel too), resume, stop (in good order), kill (at once), start, or "
            "restart (stop and start).",
        ),
    ],
    lab: LabName = None,
) -> None:
    """Pause, resume, stop, kill, start or restart a node, or a shared guest, of a laboratory that is up.

    The scenario's programs that ran when it was stopped start with it.

    Example: airloom node h1 pause
    """
    from airloom.lab.client import Client
    from airloom.lab.running import find

    with Client(find(lab)) as client:
        client.control(node, action)


def shell_command(node: Node, lab: LabName = None) -> None:
    """Open a shell in a node of a laboratory that is up; `exit` ends it."""
    from airloom.lab.client import Client
    from airloom.lab.running import find
    from airloom.lab.tty import attach, shells

    for shell in shells():
        try:
            with Client(find(lab)) as client:
                code = attach(client, node, [shell], terminal=True)
        except RunError as error:
            if error.code != "program.start" or shell == "/bin/sh":
                raise
        else:
            raise typer.Exit(code)
