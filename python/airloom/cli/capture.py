"""``airloom capture``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airloom.cli import completing
from airloom.errors import ScenarioError, writing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from airloom.host.packet_filter import Program
    from airloom.lab.running import Running

_CURE = "name another file with --out"


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LINK | NODE | PORT | RADIO | MEDIUM]...",
            help="What to capture, such as h1-s1, h1, h1:eth0, sta1:wlan0 or a medium; all by default.",
            autocompletion=completing.sources,
        ),
    ] = None,
    lab: Annotated[
        str | None,
        typer.Option(
            "--lab",
            metavar="NAME",
            help="Which laboratory or run, when several are up: its name or process id.",
            autocompletion=completing.labs_and_runs,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write to this file or pipe, not to standard output."),
    ] = None,
    live: Annotated[
        bool,
        typer.Option("--live", help="Write to standard output as frames come: the default without --out."),
    ] = False,
    snap: Annotated[
        int | None,
        typer.Option("--snap", metavar="OCTETS", help="Octets of each frame to keep; all by default."),
    ] = None,
    filtered: Annotated[
        str | None,
        typer.Option(
            "--filter",
            metavar="FILTER",
            help="Only frames that pass this filter of libpcap, such as 'tcp port 80'.",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not say how many frames it has.")] = False,
) -> None:
    """Capture frames of a laboratory or a run that is up, as pcapng, for Wireshark or into a file.

    It ends with the laboratory, with the reader, or on Ctrl-C. A reader that is too slow misses
    frames, which are counted at the end; the network does not wait for it.

    Example: airloom capture h1-s1 | wireshark -k -i -
    """
    from airloom.cli.console import say
    from airloom.lab.running import find

    if live and out is not None:
        raise ScenarioError(
            "capture.live",
            "--live writes to standard output, and --out to a file",
            cure="leave one of them out",
        )
    if out is None and sys.stdout.isatty():
        raise ScenarioError(
            "capture.terminal",
            "a capture is not for a terminal",
            cure="write it to a file with --out FILE, or to a reader: airloom capture | wireshark -k -i -",
        )
    found = find(lab, "laboratory", "run")
    said = captured(found, names or (), out, snap=snap, filtered=filtered)
    if not quiet:
        say(said, error=True)


def captured(
    lab: Running, names: Sequence[str], out: Path | None, *, snap: int | None, filtered: str | None
) -> str:
    """Captures to a file, or to standard output, until the end; returns an account in words."""
    from airloom.lab.capturing import said
    from airloom.lab.client import Client, passing_signals
    from airloom.planning.capture import must_fit

    must_fit(snap)
    with Client(lab) as client:
        sources = client.sources()
    _must_be_known(names, sources)
    kinds = {sources[name] for name in names or sources}
    filters = None if filtered is None else programs(filtered, kinds, sources)
    with Client(lab) as client, _written(out) as descriptor:
        client.capture(names, descriptor, snap, filters)
        with passing_signals(lambda _: client.end(), (signal.SIGINT, signal.SIGTERM)):
            return said(client.counts())


def programs(expression: str, kinds: Collection[str], sources: Mapping[str, str]) -> dict[int, Program]:
    """Compiles a filter for the link types that sources of these kinds can have in a laboratory.

    Raises :class:`~airloom.LabError` if it is a filter for none of them.
    """
    from airloom.host.packet_filter import ETHERNET, RADIOTAP, compiled

    radios = not {"radio", "medium"}.isdisjoint(sources.values())
    of_ports = [] if set(kinds) == {"medium"} else [ETHERNET]
    of_air = [RADIOTAP] if radios and set(kinds) != {"port"} else []
    found: dict[int, Program] = {}
    refused: ScenarioError | None = None
    for link_type in (*of_ports, *of_air):
        try:
            found[link_type] = compiled(expression, link_type)
        except ScenarioError as error:
            refused = refused or error
    if refused is not None and not found:
        raise refused
    return found


def _must_be_known(names: Sequence[str], sources: Mapping[str, str]) -> None:
    from airloom.scenario.suggest import nearest

    for name in names:
        if name not in sources:
            raise ScenarioError(
                "capture.port",
                f"no frame of a port, node, link or medium {name!r} can be captured",
                cure=nearest(name, sources),
            )


@contextmanager
def _written(out: Path | None) -> Iterator[int]:
    """The descriptor of a file that is open for writing, or of standard output."""
    from airloom.host import output

    if out is None:
        yield sys.stdout.fileno()
        return
    output.refuse_others(out, output.PCAPNG, _CURE)
    with writing(out, "capture.unwritable", "the capture", _CURE):
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
