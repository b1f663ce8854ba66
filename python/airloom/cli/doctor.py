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

    Exit code 3 if a requirement of every run is missing.
    """
    from airloom.nodes.doctor import examine, lacking_basics

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
        table.add_column("found, or how to get it", overflow="fold")
        for finding in findings:
            missing = Text("missing", "bold red") if finding.need == "basic" else Text("-", "yellow")
            detail = finding.detail if finding.ok else f"{finding.detail}: {finding.cure}"
            table.add_row(
                Text("ok", "green") if finding.ok else missing, finding.name, finding.serves, detail
            )
        Console().print(table)
    lacking = lacking_basics(findings)
    if lacking:
        typer.echo(f"airloom: this machine lacks {', '.join(finding.name for finding in lacking)}", err=True)
        raise typer.Exit(3)
