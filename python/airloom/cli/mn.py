"""``airloom mn`` and ``airloom mn-run``: Mininet's options and scripts."""

from __future__ import annotations

import typer


def mn_command(context: typer.Context) -> None:
    """Make a network from the options of Mininet's `mn`, and test it or start a prompt.

    Example: airloom mn --topo tree,2,3 --link tc,bw=10,delay=5ms --test pingall. `airloom mn
    --help` lists the options; unsupported ones are refused, each with its reason.
    """
    from airloom.mininet.options import asked, main
    from airloom.nodes import doctor

    asked(context.args)
    doctor.require_basics(restart=True)
    main(context.args)


def run_command(context: typer.Context) -> None:
    """Run a Python script that was written for Mininet, unchanged.

    Example: airloom mn-run script.py 10
    """
    from pathlib import Path

    from airloom.errors import ScenarioError
    from airloom.mininet.hook import run_script
    from airloom.nodes import doctor

    if not context.args or not Path(context.args[0]).is_file():
        script = context.args[0] if context.args else "SCRIPT"
        raise ScenarioError(
            "mn.file", f"there is no file {script}", cure="airloom mn-run SCRIPT [ARGUMENT...]"
        )
    doctor.require_basics(restart=True)
    run_script(context.args[0], context.args[1:])
