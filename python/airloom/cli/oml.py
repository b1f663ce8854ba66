"""``airloom oml``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Take measurements from OML clients, or send those of runs to an OML server.", no_args_is_help=True
)


@app.callback()
def top() -> None:
    """Take measurements from OML clients, or send those of runs to an OML server."""


@app.command("collect")
def collect_command(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the SQLite files.")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE...]", help="Store streams that clients wrote to files, and end."),
    ] = None,
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Address. Port 0 is a free one.")
    ] = "127.0.0.1:3003",
) -> None:
    """Take the streams of OML clients until Ctrl-C, or from files. Each domain becomes DIR/DOMAIN.sq3.

    The tables are those of oml2-server. Clients must send text (liboml2: --oml-text).

    Example: airloom oml collect --out measured; for the clients: OML_COLLECT=tcp:127.0.0.1:3003
    """
    import signal

    from airloom.cli.console import say
    from airloom.errors import ScenarioError
    from airloom.oml.collector import Collector, store_file

    if files:
        for file in files:
            say(f"{file}: {store_file(file, out)}")
        return
    host, _, port = listen.rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise ScenarioError(
            "oml.listen", f"{listen[:80]!r} is not HOST:PORT", where="--listen", cure="127.0.0.1:3003"
        )
    ends = {signal.SIGINT, signal.SIGTERM}
    # Blocked before the collector's threads begin, which inherit the mask.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        with Collector(out, host.removeprefix("[").removesuffix("]"), int(port), typer.echo) as collector:
            say(f"OML_COLLECT={collector.uri}")
            signal.sigwait(ends)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@app.command("send")
def send_command(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A run or a sweep.", exists=True, file_okay=False)
    ],
    to: Annotated[str, typer.Option("--to", metavar="URI", help="tcp:HOST:PORT, or file:DIR.")],
    domain: Annotated[
        str | None, typer.Option("--domain", help="Experimental domain; by default the folder's name.")
    ] = None,
) -> None:
    """Send the samples of a run as OML streams: one sender a node, one stream a series.

    Example: airloom oml send out/chain --to tcp:oml.example.org:3003
    """
    from airloom.cli.console import Console, say
    from airloom.oml import reporter
    from airloom.results import RunReader
    from airloom.units.text import plural

    with Console(stderr=True).status(f"sending to {to}"):
        sent = reporter.send(RunReader(folder), to, domain)
    say(
        f"{to}: {sent.tuples:,} {plural('tuple', sent.tuples)} "
        f"of {sent.senders:,} {plural('sender', sent.senders)}"
    )
