"""``airloom kernel``: the guest kernel of nodes of kind ``uml``, built from the distribution's sources."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Build the guest kernel for nodes of kind `uml`: with 802.11, mesh and batman-adv.",
    no_args_is_help=True,
)

_Folder = Annotated[
    Path | None, typer.Argument(help="Where the kernel is; by default `guest: {kernel: built}` finds it.")
]


@app.command("build")
def build(folder: _Folder = None) -> None:
    """Build the guest kernel, unless it is built already: minutes, and 2 GB for that time.

    Exit code 3 if a package is missing that this user cannot install; the packages are named.
    """
    raise typer.Exit(_script([], folder))


@app.command("status")
def status(folder: _Folder = None) -> None:
    """Tell whether the guest kernel is built and current; exit code 1 if not."""
    raise typer.Exit(_script(["--status"], folder))


def _script(options: list[str], folder: Path | None) -> int:
    from airloom.host.binaries import shipped

    words = ["bash", str(shipped("kernel") / "build"), *options, *([str(folder)] if folder else [])]
    return subprocess.run(words, check=False).returncode
