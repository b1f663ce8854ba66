"""``airloom up``."""

from __future__ import annotations

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
    Web,
    WebAt,
    capture_of,
    live_page,
)


def command(
    file: ScenarioFile,
    overrides: Overrides = None,
    seed: Seed = None,
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
    """
    import sys

    from airloom.cli.console import say
    from airloom.lab.lab import Lab
    from airloom.lab.repl import converse
    from airloom.nodes import doctor

    capture = capture_of(pcap, pcap_ports, pcap_snap, pcap_merged)
    lab = Lab(file, overrides=overrides or (), seed=seed, out=out, capture=capture or False)
    doctor.require_basics(restart=True, taps=lab.plan.has_taps, shares=lab.plan.shares)
    code = 0
    with live_page(web, web_at) as page:
        if page is not None:
            lab.watch(page)
        with lab:
            try:
                code = 0 if converse(lab, sys.stdin) else 1
            except SystemExit as stopped:
                code = int(stopped.code or 0)
    verdict = lab.result.verdict
    say(f"verdict: {verdict.status}; results in {lab.folder}")
    for reason in verdict.reasons:
        say(f"  {reason}")
    raise typer.Exit(code)
