"""``airloom apply``."""

from __future__ import annotations

from typing import Annotated

import typer

from airloom.cli.options import LabName, Overrides, ScenarioFile, Seed


def command(
    file: ScenarioFile,
    overrides: Overrides = None,
    seed: Seed = None,
    lab: LabName = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would change; change nothing.")
    ] = False,
) -> None:
    """Change a laboratory that is up to what a changed scenario describes.

    Shows each step first: + added, - removed, ~ changed in place, ! restarted alone. What has not
    changed goes on. It is done as a whole, or refused as a whole with exit code 2. Give the same --set
    and --seed as to `airloom up`.

    Example: airloom apply star.yaml --dry-run
    """
    from airloom.cli.console import say
    from airloom.lab.client import Client
    from airloom.lab.live_plan import live_plan
    from airloom.lab.running import find

    live_plan(file, overrides or (), seed)  # mistakes in the file are shown as `check` shows them
    running = find(lab)
    with Client(running) as client:
        steps = client.apply(file, overrides or (), seed, dry_run=True)
    for step in steps:
        say(step)
    if not steps:
        say(f"{running.name} is what {file} describes: nothing to change")
    elif dry_run:
        say("nothing was changed (--dry-run)")
    else:
        with Client(running) as client:
            client.apply(file, overrides or (), seed)
        say(f"applied to {running.name}")
