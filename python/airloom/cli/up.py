"""``airloom up``."""

from __future__ import annotations

from typing import Annotated

import typer

from airloom.cli.options import Out, Overrides, ScenarioFile, Seed


def command(
    file: ScenarioFile,
    overrides: Overrides = None,
    seed: Seed = None,
    out: Out = None,
    capture: Annotated[bool, typer.Option("--pcap", help="Capture every frame at every port.")] = False,
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

    lab = Lab(file, overrides=overrides or (), seed=seed, out=out, capture=capture)
    doctor.require_basics(restart=True, taps=lab.plan.has_taps, shares=lab.plan.shares)
    code = 0
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
