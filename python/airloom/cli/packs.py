"""``airloom experiment pack``, ``unpack`` and ``rerun``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airloom.cli import completing
from airloom.cli.options import must_take_json
from airloom.errors import ScenarioError

SUFFIX = ".zip"

PackFile = Annotated[Path, typer.Argument(metavar="FILE", help="The pack, made by `experiment pack`.")]


def pack_command(
    what: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FOLDER",
            help="An experiment with results in out/NAME, or a folder of results: of a run, a sweep or an "
            "experiment.",
            autocompletion=completing.experiments,
        ),
    ],
    to: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="The pack; NAME.zip by default.")
    ] = None,
    images: Annotated[
        bool,
        typer.Option(
            "--images", help="Include the images of containers, which are otherwise named with digests only."
        ),
    ] = False,
    more: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            metavar="PATH",
            help="Include a file or folder too, such as modules that a program imports. Repeatable.",
        ),
    ] = None,
) -> None:
    """Pack results with all that is needed to run them again into one archive.

    The archive is a ZIP file with the scenario, its traces, files and own programs, the results, the
    versions, and `manifest.json` with the SHA-256 of every member. The same content gives the same
    archive. Programs of the system, and images without --images, are named with their digests.

    Examples: airloom experiment pack orbit-cpu -o cpu.zip; airloom experiment pack out/chain-1
    """
    from airloom.cli.console import say
    from airloom.packs.contents import pack
    from airloom.units.figures import readable

    folder = _results(what)
    done = pack(folder, to or Path(f"{folder.resolve().name}{SUFFIX}"), images=images, more=more or ())
    size = readable(done.path.stat().st_size, "octets", 3)
    say(f"packed {len(done.manifest.members)} files of {folder} into {done.path}, {size}")
    for path in done.left_out:
        say(f"not included, so the other machine must have it: {path}")


def unpack_command(
    file: PackFile,
    to: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="DIR", help="A new folder; the name of the pack by default."),
    ] = None,
) -> None:
    """Verify every digest of a pack and unpack it into a new folder.

    Nothing is written if a digest differs, or if a member has a name, kind or size that a pack cannot
    have. Prints the command that runs it again.
    """
    from airloom.cli.console import say
    from airloom.packs.rerun import unpack

    unpacked = unpack(file, to or Path(file.name.removesuffix(SUFFIX)))
    say(f"unpacked {len(unpacked.manifest.members)} files into {unpacked.folder}")
    say(f"results: airloom report {unpacked.results}")
    say(f"run it again: {unpacked.command or f'airloom experiment rerun {file}'}")


def rerun_command(
    file: PackFile,
    to: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="DIR",
            help="A new folder for the unpacked pack and, in rerun/, the new results; out/PACK-rerun by "
            "default.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Show every figure, not only the most important ones.")
    ] = False,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Also write the trends as JSON; `-` prints only that."),
    ] = None,
) -> None:
    """Run a pack again on this machine, and compare the trends of both results.

    A pack contains programs, which run with your rights: take packs from people you trust. Another
    machine has other absolute values, so directions and ratios over the swept values are compared,
    the claims, and what differs between the machines. The same later: airloom compare
    DIR/results DIR/rerun --trends

    Exit code 1 if a trend is opposite, or if a claim that held fails.
    """
    from airloom.cli.compare import show_trends
    from airloom.cli.console import Console
    from airloom.cli.display import Display
    from airloom.compare.trends import trends
    from airloom.nodes import doctor
    from airloom.packs.archive import Pack
    from airloom.packs.rerun import require_inputs, rerun, unpack

    must_take_json(json_file, "the JSON of a comparison", "schema", "first", "second")
    with Pack(file) as pack:
        pack.verify()
        require_inputs(file, pack.manifest)
    # Each run checks the further requirements of its own nodes.
    doctor.require_basics(restart=True, taps=False)
    folder = to or Path("out") / f"{file.name.removesuffix(SUFFIX)}-rerun"
    unpacked = unpack(file, folder)
    console = Console(stderr=True)
    with Display(console) as display:
        rerun(unpacked, folder / "rerun", watcher=display, progress=console.print)
    found = trends(unpacked.results, folder / "rerun", every=every)
    show_trends(found, json_file, every)
    if not found.hold:
        raise typer.Exit(1)


def _results(what: str) -> Path:
    for folder in (Path(what), Path("out") / what):
        if (folder / "result.json").exists() or (folder / "sweep.json").exists():
            return folder
    raise ScenarioError(
        "pack.results",
        f"there are no results in {what} or out/{what}",
        where="NAME|FOLDER",
        cure="name a folder of results, or an experiment that was run",
    )
