"""``airloom bench``."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airloom.cli import completing
from airloom.cli.options import must_take_json, write_json

if TYPE_CHECKING:
    from rich.status import Status


def command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of a benchmark, `all` or `list`.",
            autocompletion=completing.benchmarks,
        ),
    ] = "list",
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write the results as JSON; - for standard output."),
    ] = None,
) -> None:
    """Measure this machine, compare it with promises and peers; ratios are taken in one run.

    Exit code 1 if a promise is not kept. Without a name: list the benchmarks.
    """
    from airloom import bench
    from airloom.cli.console import Console

    console = Console(stderr=json_file == Path("-"))
    if name == "list":
        for known in bench.names():
            console.print(f"{known:12} {bench.describe(known)}")
        return
    must_take_json(json_file, "the JSON of `airloom bench`", "machine", "results")
    results: list[bench.BenchResult] = []
    for chosen in bench.names() if name == "all" else [name]:
        run = bench.find(chosen)
        with console.status(f"{chosen}: ...") as status:
            found = run(partial(_tell, status, chosen))
        results += found
        console.print(bench.table(chosen, found))
    if json_file is not None:
        text = json.dumps(bench.to_json(results), indent=2) + "\n"
        if json_file == Path("-"):
            typer.echo(text, nl=False)
        else:
            write_json(json_file, text)
    if any(result.holds is False for result in results):
        raise typer.Exit(1)


def _tell(status: Status, name: str, text: str) -> None:
    status.update(f"{name}: {text}")
