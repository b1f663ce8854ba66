"""``airloom image``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Images for nodes of kind container.", no_args_is_help=True)


@app.callback()
def top() -> None:
    """Images for nodes of kind container."""


@app.command("make")
def make_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the image, such as own.oci.")],
    programs: Annotated[
        list[str], typer.Argument(metavar="PROGRAM...", help="Names, or paths of programs and scripts.")
    ],
    more: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="PATH",
            help="Also this file, or this folder with all that is in it, at its own path. Repeatable.",
        ),
    ] = None,
) -> None:
    """Make an image of this machine's own programs, as root file system of container nodes.

    Includes each program with the links to it, its shared libraries, a script's interpreter, and
    with python3 its standard library without installed packages. Downloads nothing, needs no root,
    and gives the same image for the same programs. An image that was made here before is replaced,
    other files are not.

    Example: airloom image make own.oci sh ping iperf3 python3

    and in the scenario: kind: container, image: own.oci
    """
    from airloom.cli.console import Console, say
    from airloom.images import own
    from airloom.units.figures import readable
    from airloom.units.text import plural

    with Console(stderr=True).status(f"making {folder}"):
        made = own.make(folder, programs, more or ())
    say(
        f"{folder}: {made.programs:,} {plural('program', made.programs)}, "
        f"{made.libraries:,} {plural('shared object', made.libraries)}, "
        f"{made.files:,} {plural('file', made.files)}, {readable(made.octets, 'B')}"
    )


@app.command("pull")
def pull_command(
    image: Annotated[str, typer.Argument(metavar="IMAGE", help="Image in a registry: docker://alpine:3.20.")],
) -> None:
    """Fetch an image from its registry, so that later runs need no network.

    A run fetches an image by itself the first time, and keeps to the digest that the tag had then.
    This command asks the registry again. Needs skopeo.

    Example: airloom image pull docker://alpine:3.20
    """
    from airloom.cli.console import Console, say
    from airloom.images import registry

    with Console(stderr=True).status(f"fetching {image}"):
        registry.update(image)
        registry.layout(image)
    say(registry.pinned(image))
