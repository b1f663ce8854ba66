"""``airloom up``."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import typer

from airloom.cli.options import (
    Out,
    Overrides,
    Pcap,
    PcapMerged,
    PcapPorts,
    PcapSnap,
    ScenarioFile,
    Seed,
    Time,
    Web,
    WebAt,
    capture_of,
    chosen,
    live_page,
)

if TYPE_CHECKING:
    from airloom.lab.lab import Lab


def command(
    file: ScenarioFile,
    overrides: Overrides = None,
    seed: Seed = None,
    time: Time = None,
    out: Out = None,
    pcap: Pcap = False,
    pcap_ports: PcapPorts = None,
    pcap_snap: PcapSnap = None,
    pcap_merged: PcapMerged = False,
    web: Web = False,
    web_at: WebAt = None,
) -> None:
    """Bring up a laboratory and start a prompt like Mininet's.

    At the prompt: h1 ping -c1 h2, nodes, links, net, dump, pingall, iperf h1 h2, link a b down, link
    a b set delay=20ms, verdict, py, help, exit. From other terminals: airloom exec h1 -- COMMAND and
    airloom shell h1. Commands may also come from a file: airloom up FILE < commands

    With --time virtual time stands still at the prompt. It passes while a command runs in a node, and by
    continue, until 5 s and step (to the next frame); Ctrl-C stops it.
    """
    import sys

    from airloom.errors import ScenarioError
    from airloom.lab.lab import Lab
    from airloom.nodes import doctor

    capture = capture_of(pcap, pcap_ports, pcap_snap, pcap_merged)
    lab = Lab(file, overrides=chosen(overrides, time), seed=seed, out=out, capture=capture or False)
    if lab.plan.virtual and (web or web_at is not None):
        raise ScenarioError(
            "time.virtual",
            "the live page asks guests for their counters, for which virtual time would pass",
            where="--web",
            cure="leave out --web, or say time: wall",
        )
    doctor.require_for(lab.plan, restart=True)
    with live_page(web, web_at) as page:
        if page is not None:
            lab.watch(page)
        code = hold(lab, sys.stdin)
    raise typer.Exit(code)


def hold(lab: Lab, stdin: IO[str]) -> int:
    """Has a laboratory up while commands are read, and prints its verdict. Returns the exit code."""
    from airloom.cli.console import say
    from airloom.lab.conversation import converse

    with lab:
        try:
            code = 0 if converse(lab, stdin) else 1
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    verdict = lab.result.verdict
    say(f"verdict: {verdict.status}; results in {lab.folder}")
    if verdict.cause:
        say(f"most likely cause: {verdict.cause}")
    for reason in verdict.reasons:
        say(f"  {reason}")
    return code
