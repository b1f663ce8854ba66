"""``airloom doctor``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Test what this machine can do, and report how to get the rest.

    Exit code 3 if a requirement of every run is missing, in wall time and in virtual time.
    """
    from airloom.nodes.doctor import examine, lacking_basics, runs_in_virtual_time, summary

    findings = examine()
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        from rich.table import Table
        from rich.text import Text

        from airloom.cli.console import Console

        table = Table(title="What this machine can do", title_justify="left")
        table.add_column("")
        table.add_column("ability", no_wrap=True)
        table.add_column("for")
        table.add_column("found", overflow="fold")
        for finding in findings:
            missing = Text("missing", "bold red") if finding.need == "basic" else Text("-", "yellow")
            table.add_row(
                Text("ok", "green") if finding.ok else missing, finding.name, finding.serves, finding.detail
            )
        console = Console()
        console.print(table)
        # Below the table, alone in their lines: no column breaks a command that is to be copied, and a
        # terminal that wraps it copies it as one line.
        helped = [finding for finding in findings if not finding.ok and finding.cure]
        for finding in helped:
            console.print(Text(f"{finding.name}, for {finding.serves}:"))
            console.print(Text(finding.cure), soft_wrap=True)
        if helped:
            console.print()
        console.print(Text(summary(findings), "bold"))
    lacking = lacking_basics(findings)
    if lacking and not runs_in_virtual_time(findings):
        typer.echo(f"airloom: this machine lacks {', '.join(finding.name for finding in lacking)}", err=True)
        raise typer.Exit(3)
