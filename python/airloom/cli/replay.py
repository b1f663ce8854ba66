"""``airloom replay``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airloom.cli.options import Out

if TYPE_CHECKING:
    from airloom.host.pcap import Captured


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Capture (pcap or pcapng, of Ethernet), or folder of a run in virtual time.",
        ),
    ],
    interface: Annotated[
        str | None, typer.Argument(metavar="INTERFACE", help="Of a capture: interface of the node, eth0.")
    ] = None,
    speed: Annotated[
        float, typer.Option("--speed", min=1e-6, max=1e6, help="Of a capture: so many times as fast.")
    ] = 1.0,
    loops: Annotated[
        int, typer.Option("--loops", min=1, max=1_000_000, help="Of a capture: so many times over.")
    ] = 1,
    mapped: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="CAPTURED=HERE",
            help="Of a capture: this host of it becomes that node, by address or name; may be repeated.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Of a run: the engine time to go to, such as '2.5 s'."),
    ] = None,
    out: Out = None,
) -> None:
    """Send the frames of a capture in a node, or bring a finished run back to an instant.

    The frames of a capture are sent each at its own time. A program of a scenario runs it. Addresses may
    be foreign ones: frames are sent as they are. Prints how late they were. With --map they get the
    addresses and checksums of nodes, and only those from this node's own addresses are sent.

    A run in virtual time is run again up to --until, where time stands still at a prompt like that of
    `airloom up --time virtual`.

    Example: programs: [{node: a, run: airloom replay recorded.pcap eth0}]

    Example: airloom replay call.pcap eth0 --map 192.0.2.1=a --map 192.0.2.2=b

    Example: airloom replay out/ten --until '2.5 s'
    """
    from airloom.errors import ScenarioError

    if file.is_dir():
        if until is None or interface is not None or mapped:
            words = "a run is replayed up to a time"
            if until is not None:
                words = "a run has no INTERFACE" if interface is not None else "a run has no --map"
            raise ScenarioError("replay.run", words, cure=f"airloom replay {file} --until '1 s'")
        _run(file, until, out)
    elif until is not None or out is not None:
        raise ScenarioError(
            "replay.run", f"{file} is not the folder of a run", cure="leave out --until and --out"
        )
    elif interface is None:
        raise ScenarioError("replay.send", "which interface?", cure=f"airloom replay {file} eth0")
    else:
        _capture(file, interface, speed, loops, mapped or ())


def _run(folder: Path, until: str, out: Path | None) -> None:
    import sys

    from airloom.cli.console import say
    from airloom.cli.up import hold
    from airloom.lab.replaying import Replay
    from airloom.nodes import doctor
    from airloom.runs.progress import Watcher

    class Problems(Watcher):
        def problem(self, text: str) -> None:
            say(f"problem: {text}")

    lab = Replay(folder, until, out=out, watcher=Problems())
    doctor.require_for(lab.plan, restart=True)
    say(f"running {folder} again up to {until}")
    raise typer.Exit(hold(lab, sys.stdin))


def _capture(file: Path, interface: str, speed: float, loops: int, mapped: Sequence[str]) -> None:
    from airloom.errors import RunError
    from airloom.host.neighbours import Neighbours
    from airloom.measure import pcap_sender, rewriting
    from airloom.units.text import duration, plural

    addresses = rewriting.address_map(mapped)
    captured: Sequence[Captured] = pcap_sender.load(file, rewritten=bool(mapped))
    begin, said = None, ""
    if mapped:
        with Neighbours(interface) as kernel:
            own = kernel.own
            found = rewriting.rewrite(captured, addresses, own.addresses, own.mac, kernel.mac_towards)
        rewriting.must_fit(found.frames, interface, own.mtu)
        captured, begin, said = found.frames, found.begin, found.text
    with pcap_sender.on_interface(interface) as send:
        try:
            sent = pcap_sender.send(captured, send.send, speed=speed, loops=loops, begin=begin)
        except OSError as error:
            cure = "frames longer than the interface's MTU and 14 octets cannot be sent"
            raise RunError("replay.send", f"a frame cannot be sent: {error.strerror}", cure=cure) from None
    padded = f", {sent.padded:,} filled up with zeros" if sent.padded else ""
    typer.echo(
        f"{sent.frames:,} {plural('frame', sent.frames)} sent, {sent.octets:,} octets{padded}; late by "
        f"{duration(sent.percentile(0.5))} (median), {duration(sent.percentile(0.99))} (p99), "
        f"{duration(max(sent.late))} (max)"
    )
    if said:
        typer.echo(f"of the capture: {said}")
