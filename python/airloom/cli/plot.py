"""``airloom plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...", help="A sweep, or several runs or sweeps.", exists=True, file_okay=False
        ),
    ],
    y: Annotated[
        str,
        typer.Option(
            "--y", metavar="FIGURE", help="METRIC or MEASUREMENT.METRIC, such as goodput or rtt.rtt_p99."
        ),
    ],
    x: Annotated[
        str | None,
        typer.Option("--x", metavar="PATH", help="The swept path of the axis: its label, or its last words."),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="PATH", help="The swept path whose values are the lines.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="PATH=VALUE", help="One value of a further swept path."),
    ] = None,
    style: Annotated[
        str, typer.Option("--style", metavar="paper|screen", help="Sizes of text and lines.")
    ] = "paper",
    width: Annotated[
        str, typer.Option("--width", metavar="column|page|INCHES", help="3.5 inches, 7.16 inches, or others.")
    ] = "column",
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="A name that ends in .pdf, .pgf, .svg, .png or .eps."),
    ] = Path("plot.pdf"),
) -> None:
    """Draw one figure of a sweep for a paper: a metric over a swept path.

    Example: airloom plot out/sweep --x distance --y goodput --by discipline --out fig.pdf
    """
    from airloom.cli.console import say
    from airloom.report.plot import plot

    made = plot(
        folders,
        y=y,
        x=x,
        by=by,
        where=_values(where or []),
        style=style,
        width=_width(width),
    )
    say(made.save(out))


def _width(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _values(words: list[str]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    for path, equals, value in pairs:
        if not (path and equals and value):
            raise typer.BadParameter("it is written PATH=VALUE", param_hint="--where")
    return {path: value for path, _, value in pairs}
