"""``airloom extcap``: the interfaces of running laboratories inside Wireshark and tshark.

Wireshark runs a program of its extcap folder with ``--extcap-interfaces`` for a list, with
``--extcap-dlts`` and ``--extcap-config`` for what an interface has, and with ``--capture --fifo PATH``
for its frames (Wireshark's "extcap" manual page). The program that ``install`` writes there runs
``airloom extcap serve``.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airloom import __version__
from airloom.errors import HostError, LabError, RunError, ScenarioError, writing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airloom.lab.running import Running

app = typer.Typer(help="Show the interfaces of running laboratories inside Wireshark.", no_args_is_help=True)

PROGRAM = "airloom"
"""Name of the program in the extcap folder."""
PREFIX = "airloom"
"""First part of the name of an interface: ``airloom:LAB:PORT``, with the laboratory's own label."""
_MARK = "written by `airloom extcap install`"
_READERS = ("tshark", "wireshark")
_LIMIT = 30.0
"""Seconds for a program's answer."""
_CURE = "sudo, or --folder DIR and the environment variable WIRESHARK_EXTCAP_DIR=DIR for Wireshark"

Folder = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="DIR",
        help="Wireshark's extcap folder, by default that of this user, or of all if it knows no other.",
    ),
]


@app.command()
def install(folder: Folder = None) -> None:
    """Install the program by which Wireshark and tshark list interfaces of laboratories and runs.

    Example: airloom extcap install; tshark -D
    """
    from airloom.cli.console import say

    there = folder or _folder()
    path = there / PROGRAM
    if path.exists() and _MARK not in path.read_text("utf-8", "replace"):
        raise ScenarioError(
            "extcap.exists",
            "this program is there already and is not of Airloom, so it is not replaced",
            where=str(path),
            cure="name another folder with --folder",
        )
    words = shlex.join([sys.executable, "-m", "airloom", "extcap", "serve"])
    with writing(path, "extcap.unwritable", "the program", _CURE):
        there.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\n# {_MARK}\nexec {words} "$@"\n', encoding="utf-8")
        path.chmod(0o755)
    say(f"installed {path}")
    say("Wireshark and tshark -D list the interfaces of laboratories and runs that are up.")


@app.command()
def remove(folder: Folder = None) -> None:
    """Remove the program."""
    from airloom.cli.console import say

    path = (folder or _folder()) / PROGRAM
    if not path.exists() or _MARK not in path.read_text("utf-8", "replace"):
        raise ScenarioError("extcap.missing", "there is no program of Airloom", where=str(path))
    with writing(path, "extcap.unwritable", "the folder", _CURE):
        path.unlink()
    say(f"removed {path}")


@app.command(
    hidden=True,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
)
def serve(context: typer.Context) -> None:
    """Answer Wireshark."""
    asked = _parser().parse_args(context.args)
    if asked.extcap_interfaces:
        lines = _interfaces()
    elif asked.extcap_dlts:
        lines = _link_types(asked.extcap_interface)
    elif asked.extcap_config:
        lines = iter([_SNAP])
    elif asked.capture:
        _capture(asked)
        return
    elif asked.extcap_capture_filter is not None:
        lines = _objections(asked.extcap_interface, asked.extcap_capture_filter)
    else:
        raise ScenarioError("extcap.question", "Wireshark asks for nothing that is known here")
    for line in lines:
        typer.echo(line)


_SNAP = (
    "arg {number=0}{call=--snap}{display=Octets of each frame to keep}{type=unsigned}{default=0}"
    "{tooltip=0 keeps all. 96 keep the headers of IPv6 and TCP.}"
)
_ETHERNET = "dlt {number=1}{name=EN10MB}{display=Ethernet}"
_RADIOTAP = "dlt {number=127}{name=IEEE802_11_RADIO}{display=802.11 with radiotap}"
_SHOWN = {"port": "", "radio": " (radio)", "medium": " (channels of the medium)"}
"""Kinds of sources that are interfaces for Wireshark, each with what is said of it."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROGRAM, allow_abbrev=False)
    for flag in ("--extcap-interfaces", "--extcap-dlts", "--extcap-config", "--capture"):
        parser.add_argument(flag, action="store_true")
    for option in ("--extcap-interface", "--extcap-version", "--extcap-capture-filter", "--fifo"):
        parser.add_argument(option)
    parser.add_argument("--snap", type=int, default=0)
    return parser


def _interfaces() -> Iterator[str]:
    from airloom.lab.client import Client
    from airloom.lab.running import running

    yield f"extcap {{version={__version__}}}{{display=Airloom}}"
    for lab in running("laboratory", "run"):
        try:
            called = _label(lab)
            with Client(lab) as client:
                sources = client.sources()
        except (RunError, OSError):
            continue  # it has ended meanwhile, or belongs to a confined process
        for name, what in sources.items():
            if what in _SHOWN:
                value = f"{PREFIX}:{called}:{name}"
                yield f"interface {{value={value}}}{{display=Airloom {called}: {name}{_SHOWN[what]}}}"


def _label(lab: Running) -> str:
    """The name that no other laboratory has and that stays while it is up."""
    from airloom.lab.client import Client

    with Client(lab) as client:
        return str(client.info()["label"])


def _found(interface: str | None) -> tuple[Running, str]:
    """The laboratory and the source of an interface."""
    from airloom.lab.running import find, running

    prefix, _, rest = (interface or "").partition(":")
    lab, colon, name = rest.partition(":")
    if prefix != PREFIX or not colon:
        raise ScenarioError("extcap.interface", f"{interface} is no interface of a laboratory")
    for one in running("laboratory", "run"):
        with contextlib.suppress(RunError, OSError):
            if lab.startswith(one.name) and _label(one) == lab:
                return one, name
    return find(lab, "laboratory", "run"), name


def _link_types(interface: str | None) -> Iterator[str]:
    from airloom.lab.client import Client

    lab, name = _found(interface)
    with Client(lab) as client:
        yield _RADIOTAP if client.sources().get(name) == "medium" else _ETHERNET


def _objections(interface: str | None, expression: str) -> Iterator[str]:
    """What is wrong with a filter; Wireshark takes silence as consent."""
    from airloom.cli.capture import programs
    from airloom.lab.client import Client

    lab, name = _found(interface)
    with Client(lab) as client:
        sources = client.sources()
    try:
        programs(expression, {sources.get(name, "port")}, sources)
    except LabError as error:
        yield error.message


def _capture(asked: argparse.Namespace) -> None:
    from airloom.cli.capture import captured

    lab, name = _found(asked.extcap_interface)
    if asked.fifo is None:
        raise ScenarioError("extcap.fifo", "Wireshark names no pipe", cure="--fifo PATH")
    fifo, snap, filtered = Path(asked.fifo), asked.snap or None, asked.extcap_capture_filter or None
    captured(lab, [name], fifo, snap=snap, filtered=filtered)


def _folder() -> Path:
    """The extcap folder, as Wireshark or tshark says."""
    for reader in _READERS:
        program = shutil.which(reader)
        if program is None:
            continue
        asked = subprocess.run([program, "-G", "folders"], capture_output=True, text=True, timeout=_LIMIT)
        found = folder_of(asked.stdout)
        if found is not None:
            return found
    raise HostError(
        "host.wireshark",
        "there is no Wireshark and no tshark, which have an extcap folder",
        cure="sudo apt-get install wireshark, or name its extcap folder with --folder",
    )


def folder_of(said: str) -> Path | None:
    """The extcap folder in the answer of ``tshark -G folders``; that of the user, from version 4.2 on."""
    found = dict(re.findall(r"^((?:\w+ )?Extcap path):\s*(/.*)$", said, re.MULTILINE))
    for what in ("Personal Extcap path", "Extcap path", "Global Extcap path"):
        if what in found:
            return Path(found[what])
    return None
