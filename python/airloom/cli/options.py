"""Shared arguments and options of commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airloom.cli import completing
from airloom.errors import writing

if TYPE_CHECKING:
    from airloom.live.page import Page
    from airloom.planning.capture import Capture
    from airloom.runs.progress import Watcher

ScenarioFile = Annotated[Path, typer.Argument(metavar="FILE", help="The scenario, a YAML file.")]

Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a value of the scenario by its path, such as links[0].rate='10 Mbit/s'. Repeatable.",
        autocompletion=completing.scenario_paths,
    ),
]

Seed = Annotated[
    int | None, typer.Option("--seed", help="Seed of all random numbers, instead of the scenario's.")
]

Time = Annotated[
    str | None,
    typer.Option("--time", metavar="wall|virtual", help="The clock of the run, instead of the scenario's."),
]


def chosen(overrides: list[str] | None, time: str | None) -> list[str]:
    """Returns the changes of the scenario with that of its clock."""
    return [*(overrides or ()), *([f"time={time}"] if time is not None else [])]


Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Folder of the results; by default out/NAME-DATE-TIME."),
]

Pcap = Annotated[
    bool,
    typer.Option(
        "--pcap", help="Capture every frame at every port, with reasons of drops: captures/PORT.pcapng."
    ),
]

PcapPorts = Annotated[
    list[str] | None,
    typer.Option(
        "--pcap-port",
        metavar="NAME",
        help="Capture only this port, such as h1:eth0, node, or medium (its channels). Repeatable.",
    ),
]

PcapSnap = Annotated[
    int | None,
    typer.Option("--pcap-snap", metavar="OCTETS", help="Octets of each frame to keep; all by default."),
]

PcapMerged = Annotated[
    bool,
    typer.Option(
        "--pcap-merged", help="One file with all ports in order of time, capture.pcapng, not one for each."
    ),
]


def capture_of(pcap: bool, ports: list[str] | None, snap: int | None, merged: bool) -> Capture | None:
    """Returns the capture that the options ask for; each of them asks for one."""
    from airloom.planning.capture import Capture

    if not (pcap or ports or snap is not None or merged):
        return None
    return Capture(tuple(ports or ()), snap, merged)


Web = Annotated[
    bool,
    typer.Option("--web", help="Show it live in a browser; prints the URL (needs the extra `web`)."),
]

WebAt = Annotated[
    str | None,
    typer.Option(
        "--web-at",
        metavar="ADDRESS:PORT",
        help="Where to serve the live page, 127.0.0.1 on a free port by default; implies --web.",
    ),
]


@contextmanager
def live_page(
    web: bool, at: str | None, then: Watcher | None = None, *, tell: Callable[[str], None] | None = None
) -> Iterator[Page | None]:
    """Serves the live page during the block, and prints its URLs; None if it is not wanted.

    ``tell`` receives the URL with which it can only be read.
    """
    if not web and at is None:
        yield None
        return
    from airloom.cli.console import say
    from airloom.live.page import Page
    from airloom.live.server import DEFAULT, serving

    page = Page(then)
    with serving(page, at or DEFAULT) as served:
        say(f"live page: {served.operator}", error=True)
        say(f"read only: {served.viewer}", error=True)
        if not served.local:
            say("It is not encrypted: whoever can read your network's traffic can use it.", error=True)
        if tell is not None:
            tell(served.viewer)
        yield page


LabName = Annotated[
    str | None,
    typer.Option(
        "--lab",
        metavar="NAME",
        help="Which laboratory, when several are up: its name or process id.",
        autocompletion=completing.labs,
    ),
]

JSON_CURE = "name another file with --json"


def write_json(path: Path, text: str) -> None:
    """Writes the output of ``--json``."""
    with writing(path, "json.unwritable", "the JSON", JSON_CURE):
        path.write_text(text, encoding="utf-8")


def must_take_json(path: Path | None, what: str, *keys: str) -> None:
    """Raises an error for an unwritable file before the work for its content starts.

    ``what`` the content is, with its article, and keys of it, tell a file that it may replace.
    """
    from airloom.host import output

    if path is not None and path != Path("-"):
        output.refuse_others(path, output.json_of(what, *keys), JSON_CURE)
        with writing(path, "json.unwritable", "the JSON", JSON_CURE), path.open("a", encoding="utf-8"):
            pass
