"""``airloom grid``: the service that lends a testbed, and what its users ask of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airloom.cli import grid_accounts, grid_rspec
from airloom.cli.options import Out, Overrides, ScenarioFile, Seed, Web, WebAt, live_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from airloom.grid.answers import OwnTaken, Reservation, Taken
    from airloom.grid.client import Client
    from airloom.grid.grants import Grant
    from airloom.runs.progress import Watcher

app = typer.Typer(
    help="Lend a testbed's radio nodes, or reserve some: nodes, channels and slots for a time.",
    no_args_is_help=True,
)

_WHOLE = {"id": 8, "state": 7, "when": len("2026-12-01 09:00 CEST")}
"""Columns whose words are not broken: their least widths."""

Identity = Annotated[str, typer.Argument(metavar="ID", help="The reservation: its ID, or how it begins.")]


@app.command("serve")
def serve_command(
    inventory: Annotated[Path, typer.Argument(metavar="INVENTORY", help="The testbed, a YAML file.")],
    database: Annotated[
        str,
        typer.Option(
            "--database", metavar="URL", help="File of SQLite, or postgresql://USER:PASSWORD@HOST/NAME."
        ),
    ] = "grid.db",
    host: Annotated[str, typer.Option("--host", help="Address to serve at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 is a free one.")] = 8400,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="FILE", help="Certificate for HTTPS, PEM.")
    ] = None,
    key: Annotated[Path | None, typer.Option("--key", metavar="FILE", help="Its private key, PEM.")] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy",
            metavar="ADDRESS",
            help="A proxy, or network of proxies, whose X-Forwarded-For tells a caller's address. "
            "Repeatable; by default nobody's does.",
        ),
    ] = None,
    rate: Annotated[
        float, typer.Option("--rate", min=0.1, help="Calls a second that a caller may make for long.")
    ] = 20.0,
    burst: Annotated[int, typer.Option("--burst", min=1, help="Calls that a caller may make at once.")] = 100,
    admin_token: Annotated[
        bool, typer.Option("--admin-token", help="Print a new token of the administrator.")
    ] = False,
) -> None:
    """Serve a testbed: a REST API and a web page. The first start prints the administrator's token.

    Example: airloom grid serve examples/grid/orbit-400.yaml --database grid.db
    """
    from airloom.cli.console import say
    from airloom.grid import require

    require()
    from airloom.grid.inventory import load
    from airloom.grid.service import check_certificate, checked_proxies, make, serve
    from airloom.grid.storage.database import Database

    proxies = checked_proxies(proxy or ())
    testbed = load(inventory)
    check_certificate(certificate, key)
    service = make(testbed, Database(database), rate=rate, burst=burst)
    token = service.accounts.first_admin()
    if token is None and admin_token:
        token = service.accounts.admin_token()
    if token is not None:
        say(f"administrator's token, shown only once: {token}")
    if certificate is None and host not in ("127.0.0.1", "::1", "localhost"):
        say("note: tokens cross the network in the clear; give --certificate and --key", error=True)
    serve(
        service, host, port, lambda url: say(f"grid manager of {testbed.inventory.name}: {url}"),
        certificate=certificate, key=key, proxies=proxies,
    )  # fmt: skip


@app.command("lab")
def lab_command(
    inventory: Annotated[Path, typer.Argument(metavar="INVENTORY", help="The testbed, a YAML file.")],
    manager: Annotated[
        str, typer.Option("--manager", metavar="URL", help="The grid manager that lends it.")
    ] = "http://127.0.0.1:8400",
    path: Annotated[
        Path | None, typer.Option("--socket", metavar="PATH", help="Where runs join; a Unix socket.")
    ] = None,
) -> None:
    """Serve a testbed's radio nodes as one shared laboratory, which runs of several slices join.

    Runs join by `airloom grid run --lab SOCKET`, each with its reservation, and go on at the same time.

    Example: airloom grid lab examples/grid/small.yaml --socket /run/airloom-grid/laboratory.sock
    """
    import signal

    from airloom.cli.console import say
    from airloom.grid import require

    require()
    from airloom.grid.client import LaboratoryClient, checked_url
    from airloom.grid.inventory import load
    from airloom.grid.laboratory.joining import default_path
    from airloom.grid.laboratory.server import Laboratory

    testbed, asked = load(inventory), LaboratoryClient(checked_url(manager))
    with Laboratory(testbed, path or default_path(), asked) as laboratory:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: laboratory.close())
        say(f"laboratory of {testbed.inventory.name}: {path or default_path()}")
        laboratory.serve()


@app.command("login")
def login_command(
    url: Annotated[str, typer.Option("--url", help="Where the grid manager is.")] = "http://127.0.0.1:8400",
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="AIRLOOM_GRID_TOKEN", help="The token; asked for if it is not given."),
    ] = None,
) -> None:
    """Keep the address of a grid manager and a token for it, after trying them."""
    from airloom.cli.console import say
    from airloom.grid.client import Client, Login, checked_url, remember

    text = token or typer.prompt("token", hide_input=True)
    login = Login(checked_url(url), text.strip())
    with Client(login) as client:
        me = client.me()
    path = remember(login)
    roles = [f"{role} of {project}" for project, role in me.projects.items()]
    names = ", ".join([me.user, *(["administrator"] if me.admin else []), *roles])
    say(f"{names}: kept in {path}")


@app.command("nodes")
def nodes_command() -> None:
    """List the nodes that are lent, with places and radios."""
    with _client() as client:
        said = client.inventory()
    _table(
        f"{said.name}: {said.phy}, channels {', '.join(map(str, said.channels))}, "
        f"{said.power_dbm:g} dBm, {said.slots.frame} slots",
        ("node", "place", "radios"),
        (
            (name, ", ".join(f"{axis:g}" for axis in node.position_m) + " m", " ".join(node.radios))
            for name, node in said.nodes.items()
        ),
    )


@app.command("reserve")
def reserve_command(
    project: Annotated[str, typer.Option("--project", help="The project that pays with its quota.")],
    slice_name: Annotated[str, typer.Option("--slice", help="Name of the slice: its SSID.")],
    duration: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="How long, such as '2 h' or '3 d'.")
    ],
    node: Annotated[list[str] | None, typer.Option("--node", help="A certain node. Repeatable.")] = None,
    count: Annotated[int | None, typer.Option("--count", min=1, help="How many nodes.")] = None,
    area: Annotated[
        str | None, typer.Option("--area", metavar="X,Y,X,Y", help="Corners of where they stand, in metres.")
    ] = None,
    radios: Annotated[int, typer.Option("--radios", min=1, help="Radios on each node.")] = 1,
    channel: Annotated[
        list[int] | None, typer.Option("--channel", help="A certain channel. Repeatable.")
    ] = None,
    channels: Annotated[int | None, typer.Option("--channels", min=1, help="How many channels.")] = None,
    slots: Annotated[
        int | None, typer.Option("--slots", min=1, help="How many slots of each frame; all by default.")
    ] = None,
    power: Annotated[
        str | None, typer.Option("--power", help="Largest transmit power, such as '10 dBm'.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--start", metavar="TIME", help="Such as 2026-12-01T09:00; now by default."),
    ] = None,
    latest: Annotated[
        str | None, typer.Option("--latest", metavar="TIME", help="It may begin as late as this.")
    ] = None,
    apart: Annotated[
        bool, typer.Option("--apart", help="Nodes may be so far apart that they do not hear each other.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait in the queue if it is not possible.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only show what would be granted; reserve nothing.")
    ] = False,
) -> None:
    """Reserve nodes, channels and slots for a time. A refusal names the nearest possible time.

    Example: airloom grid reserve --project p --slice mine --count 4 --for '2 h'
    """
    import secrets

    from airloom.cli.console import say
    from airloom.grid import times
    from airloom.units.quantities import Power

    begin, end = times.window(start, duration)
    body: dict[str, object] = {
        "project": project, "slice": slice_name, "nodes": node or [], "count": count, "radios": radios,
        "channels": channel or [], "channel_count": channels, "slots": slots, "apart": apart,
        "area": None if area is None else times.corners(area),
        "power_dbm": None if power is None else float(times.quantity(Power, power, "--power")),
        "start": begin, "end": end, "latest": None if latest is None else times.moment(latest, "--latest"),
        "wait": wait,
    }  # fmt: skip
    with _client() as client:
        if check:
            possible = client.check(body)
            say(f"{'slice':9}{slice_name}")
            say(f"{'state':9}possible")
            _show_grant(possible.start, possible.end, possible.grant, possible.best)
        else:
            _show(client.book({**body, "key": secrets.token_urlsafe(16)}))


@app.command("list")
def list_command(
    project: Annotated[str | None, typer.Option("--project", help="Only this project.")] = None,
    past: Annotated[bool, typer.Option("--past", help="Also what is over.")] = False,
) -> None:
    """List the reservations of your projects, with times of this machine's zone and UTC."""
    from airloom.grid import times

    with _client() as client:
        found = client.reservations(project, past=past)
    rows = (
        (
            one.id[:8],
            one.state,
            one.project,
            one.slice,
            times.span(one.start, one.end),
            f"{one.asked.count} nodes" if one.grant is None else _what(one.grant),
        )
        for one in found
    )
    _table("Reservations", ("id", "state", "project", "slice", "when", "what"), rows)


@app.command("show")
def show_command(identity: Identity) -> None:
    """Show a reservation and its grant."""
    with _client() as client:
        _show(client.reservation(client.full_identity(identity)))


@app.command("scenario")
def scenario_command(
    identity: Identity,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write; standard output by default.")
    ] = None,
) -> None:
    """Write a scenario that fits a reservation: its nodes, places, radios, channels, power and medium.

    Example: airloom grid scenario 3f2a --out mine.yaml; airloom grid run mine.yaml --reservation 3f2a
    """
    from airloom.cli.console import say
    from airloom.errors import writing
    from airloom.grid.reserved_scenario import scenario_of
    from airloom.host import output

    cure = "give another path with --out"
    if out is not None:
        output.refuse_others(out, output.SCENARIO, cure)
    with _client() as client:
        full = client.full_identity(identity)
        scenario = scenario_of(client.reservation(full), client.inventory())
    text = f"# From the reservation {full}, by `airloom grid scenario`.\n{scenario.to_yaml()}"
    if out is None:
        typer.echo(text, nl=False)
        return
    with writing(out, "file.unwritable", "the scenario", cure):
        out.write_text(text, encoding="utf-8")
    say(f"run it by: airloom grid run {out} --reservation {full[:8]}")


@app.command("extend")
def extend_command(
    identity: Identity,
    end: Annotated[str, typer.Option("--end", metavar="TIME", help="Its new end.")],
) -> None:
    """Move the end of a reservation to a later time, with the same grant."""
    from airloom.grid import times

    with _client() as client:
        _show(client.extend(client.full_identity(identity), times.moment(end, "--end")))


@app.command("release")
def release_command(identity: Identity) -> None:
    """End a reservation now, or take a request out of the queue."""
    with _client() as client:
        _show(client.release(client.full_identity(identity)))


@app.command("calendar")
def calendar_command(
    start: Annotated[str | None, typer.Option("--from", metavar="TIME", help="Now by default.")] = None,
    duration: Annotated[str, typer.Option("--for", metavar="DURATION", help="How long.")] = "24 h",
) -> None:
    """Show who has what and when, in this machine's zone and UTC; of other projects only what is taken."""
    from airloom.grid import times

    begin, end = times.window(start, duration)
    with _client() as client:
        found = client.calendar(begin or times.now(), end)
    rows = (
        (
            times.span(one.start, one.end),
            *((one.project, one.slice) if one.mine else ("-", "-")),
            _what(one),
        )
        for one in found
    )
    _table("Calendar", ("when", "project", "slice", "what"), rows)


@app.command("violations")
def violations_command(
    project: Annotated[str | None, typer.Option("--project", help="Only this project.")] = None,
) -> None:
    """List the violations of grants in your projects, the newest first."""
    from airloom.grid import times

    with _client() as client:
        found = client.violations(project)
    rows = (
        (times.shown(one.at), one.slice, one.project, one.radio, one.what,
         f"{one.amount:.3g} {one.unit}" if one.unit else "", str(one.channel), str(one.frames))
        for one in found
    )  # fmt: skip
    columns = ("first", "slice", "project", "radio", "what", "how much", "channel", "frames")
    _table("Violations of grants", columns, rows)


@app.command("run")
def run_command(
    file: ScenarioFile,
    identity: Annotated[str, typer.Option("--reservation", metavar="ID", help="The reservation to run in.")],
    laboratory: Annotated[
        Path | None,
        typer.Option("--lab", metavar="SOCKET", help="Join the shared laboratory that listens there."),
    ] = None,
    overrides: Overrides = None,
    seed: Seed = None,
    out: Out = None,
    web: Web = False,
    web_at: WebAt = None,
) -> None:
    """Run a scenario within a reservation: its radios must fit the grant, and it ends with the window.

    Nodes with radios have the names and places of the testbed's. During the run, `airloom radio` is
    held to the grant too. With --lab it uses the radio nodes of a shared laboratory, in which runs of
    other slices go on at the same time; without, it has a laboratory of its own. With --web the
    manager's page links to the live page of the run, for members of the project.
    """
    from airloom.cli.console import Console
    from airloom.cli.display import Display
    from airloom.cli.show import show_result
    from airloom.errors import LabError
    from airloom.grid.reserved_run import execute, hold, was_refused
    from airloom.nodes import doctor
    from airloom.runs.batch import default_folder

    held = hold(file, reservation=identity, laboratory=laboratory, overrides=overrides or (), seed=seed)
    experiment = held.experiment
    doctor.require_for(experiment, restart=True)
    folder = out or default_folder(experiment.scenario.name)
    console = Console()
    failure: LabError | None = None
    with Display(console, quiet=False) as display:

        def live(tell: Callable[[str], None]) -> AbstractContextManager[Watcher | None]:
            return live_page(web, web_at, display, tell=tell)

        try:
            execute(held, folder, display, live=live if web or web_at is not None else None)
        except LabError as error:
            if was_refused(error):
                raise
            failure = error
    show_result(console, folder)
    if failure is not None:
        raise failure


grid_accounts.add_to(app)
app.add_typer(grid_rspec.app, name="rspec")


def _client() -> Client:
    from airloom.grid.client import Client, remembered

    return Client(remembered())


def _what(one: Grant | Taken | OwnTaken) -> str:
    from airloom.scenario.suggest import listing

    nodes = listing((f"{node}:{'+'.join(radios)}" for node, radios in one.radios.items()), 3)
    return f"{nodes}; channel {', '.join(map(str, one.channels))}; slots {len(one.slots)}"


def _show(one: Reservation) -> None:
    from airloom.cli.console import say
    from airloom.grid.answers import Booked

    said = {"id": one.id, "project": one.project, "user": one.user, "slice": one.slice, "state": one.state}
    for key, value in said.items():
        say(f"{key:9}{value}")
    _show_grant(one.start, one.end, one.grant, one.best if isinstance(one, Booked) else True)


def _show_grant(start: str, end: str, grant: Grant | None, best: bool) -> None:
    from airloom.cli.console import say
    from airloom.grid import times

    for key, time in (("start", start), ("end", end)):
        local, _, utc = times.shown(time).partition("\n")
        say(f"{key:9}{time}{f'  ({local})' if utc else ''}")
    if grant is None:
        return
    for node, radios in grant.radios.items():
        say(f"{'node':9}{node}: {', '.join(radios)}")
    say(f"{'channels':9}{', '.join(map(str, grant.channels))}")
    say(f"{'slots':9}{', '.join(map(str, grant.slots))}")
    say(f"{'power':9}{grant.power_dbm:g} dBm")
    if not best:
        say("note: the best found in the time of the search, not proven to be the best", error=True)


def _table(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    from rich.table import Table
    from rich.text import Text

    from airloom.cli.console import Console

    table = Table(title=Text(title), title_justify="left")
    for column in columns:
        whole = column in _WHOLE
        table.add_column(column, overflow="fold", no_wrap=whole, min_width=_WHOLE.get(column))
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
