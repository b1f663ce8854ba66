"""``airloom grid rspec``: GENI requests and manifests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airloom.cli.options import ScenarioFile
from airloom.host import output

if TYPE_CHECKING:
    from airloom.grid.rspec.document import Document

app = typer.Typer(help="Read and write GENI RSpecs of version 3.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(metavar="RSPEC", help="A request or a manifest.")]
Written = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Where to write; standard output by default.")
]


@app.command("scenario")
def scenario_command(
    file: File,
    name: Annotated[str | None, typer.Option("--name", help="Its name; that of the file by default.")] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="TYPE=KIND", help="Kind of node for a sliver type. Repeatable."),
    ] = None,
    out: Written = None,
) -> None:
    """Write the scenario that an RSpec describes: nodes, addresses, links and LANs.

    Example: airloom grid rspec scenario topology.rspec --out topology.yaml
    """
    from airloom.cli.console import say
    from airloom.errors import ScenarioError
    from airloom.grid.rspec.convert import scenario_of
    from airloom.planning.gate import check

    kinds = {}
    for one in kind or ():
        sliver, equals, word = one.partition("=")
        if not equals or not sliver or not word:
            raise ScenarioError("rspec.kind", f"{one!r} is no TYPE=KIND", where="--kind", cure="raw-pc=uml")
        kinds[sliver] = word
    scenario, notes = scenario_of(_read(file), name or file.stem, kinds)
    check(scenario)
    origin = f"# From {' '.join(file.name.split())}, by `airloom grid rspec`.\n"
    # A file says where it is from, by which a later call knows that it may replace it.
    _write(out, scenario.to_yaml() if out is None else origin + scenario.to_yaml(), output.SCENARIO)
    for note in notes:
        say(f"note: {note}", error=True)


@app.command("request")
def request_command(file: ScenarioFile, out: Written = None) -> None:
    """Write a request for the nodes and links of a scenario."""
    from airloom.errors import ScenarioError
    from airloom.grid.rspec.convert import request_of
    from airloom.runs.batch import prepare

    plans = prepare(file).plans
    if len(plans) != 1:
        raise ScenarioError("rspec.scenario", "it has a sweep or repetitions", where=str(file))
    _write(out, request_of(plans[0]))


@app.command("reserve")
def reserve_command(
    file: File,
    project: Annotated[str, typer.Option("--project", help="The project that pays with its quota.")],
    slice_name: Annotated[str, typer.Option("--slice", help="Name of the slice: its SSID.")],
    duration: Annotated[str, typer.Option("--for", metavar="DURATION", help="How long, such as '2 h'.")],
    slots: Annotated[int | None, typer.Option("--slots", min=1, help="How many slots of each frame.")] = None,
    start: Annotated[str | None, typer.Option("--start", metavar="TIME", help="Now by default.")] = None,
    out: Written = None,
) -> None:
    """Reserve the radio nodes that a request asks for, and write the manifest.

    Nodes with a component_id are those of the inventory; others are any. Links are not reserved.
    """
    import secrets

    from airloom.grid import times
    from airloom.grid.client import Client, remembered
    from airloom.grid.rspec.reservation import asked, manifest

    document = _read(file)
    begin, end = times.window(start, duration)
    with Client(remembered()) as client:
        inventory = client.inventory()
        body = {**asked(document, inventory), "project": project, "slice": slice_name, "slots": slots}
        body |= {"start": begin, "end": end, "key": secrets.token_urlsafe(16)}
        _write(out, manifest(client.book(body), inventory.name, document))


@app.command("manifest")
def manifest_command(
    identity: Annotated[str, typer.Argument(metavar="ID", help="The reservation's whole ID.")],
    request: Annotated[
        Path | None, typer.Option("--request", metavar="RSPEC", help="The request, for its client_ids.")
    ] = None,
    out: Written = None,
) -> None:
    """Write the manifest of a reservation: which node and which radio each sliver has."""
    from airloom.grid.client import Client, remembered
    from airloom.grid.rspec.reservation import manifest

    document = None if request is None else _read(request)
    with Client(remembered()) as client:
        name = client.inventory().name
        found = client.reservation(identity)
    _write(out, manifest(found, name, document))


def _read(file: Path) -> Document:
    from airloom.errors import ScenarioError
    from airloom.grid.rspec.document import read
    from airloom.host.files import content
    from airloom.host.rspec_tree import LARGEST

    try:
        octets = content(file, LARGEST)
    except FileNotFoundError:
        raise ScenarioError("file.missing", f"there is no file {str(file)!r}", where="RSPEC") from None
    except OSError as error:
        raise ScenarioError("file.unreadable", f"{error.strerror}", where=str(file)) from None
    return read(octets, str(file))


def _write(out: Path | None, text: str, form: output.Form = output.RSPEC) -> None:
    from airloom.errors import writing

    if out is None:
        typer.echo(text, nl=False)
        return
    output.refuse_others(out, form, "give another path with --out")
    with writing(out, "file.unwritable", "the file", "give another path with --out"):
        out.write_text(text, encoding="utf-8")
