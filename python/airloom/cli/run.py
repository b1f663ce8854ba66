"""``airloom run``."""

from __future__ import annotations

from typing import Annotated

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
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 1 unless the verdict is `valid`.")
    ] = False,
    pcap: Pcap = False,
    pcap_ports: PcapPorts = None,
    pcap_snap: PcapSnap = None,
    pcap_merged: PcapMerged = False,
    profile: Annotated[
        bool,
        typer.Option("--profile", help="Sample with perf where the processors' time goes, by component."),
    ] = False,
    repetitions: Annotated[
        int | None,
        typer.Option("--repetitions", min=1, help="Run it so many times, with a seed of its own each."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on with a sweep in --out that was cut short; finished runs are kept."
        ),
    ] = False,
    tries: Annotated[
        int,
        typer.Option(
            "--tries",
            min=1,
            help="At most so many runs, of each point of a sweep, until this machine does not disturb one. "
            "The verdict notes the runs before.",
        ),
    ] = 1,
    web: Web = False,
    web_at: WebAt = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the tables at the end only.")] = False,
) -> None:
    """Run a scenario: bring up its nodes, run programs, events and measurements, and judge the run.

    Prints the figures, the scenario's claims and the verdict on their validity. Ctrl-C stops the
    run in order with exit code 130 and keeps the measurements; a second Ctrl-C stops it at once.

    Example: airloom run examples/chain.yaml --set topology.nodes=10 --seed 7 --out out/ten
    """
    from airloom.cli.console import Console
    from airloom.cli.display import Display
    from airloom.cli.show import show_result, tell_capture
    from airloom.errors import LabError
    from airloom.nodes import doctor
    from airloom.runs.batch import default_folder, execute, prepare

    experiment = prepare(file, overrides=overrides or (), seed=seed, repetitions=repetitions)
    doctor.require_basics(restart=True, taps=experiment.has_taps, shares=experiment.shares)
    folder = out or default_folder(experiment.scenario.name)
    console = Console()
    capture = capture_of(pcap, pcap_ports, pcap_snap, pcap_merged)
    if capture is not None:
        tell_capture(console, capture, experiment.plans, folder, quiet=quiet)
    failure: LabError | None = None
    with Display(console, quiet=quiet) as display, live_page(web, web_at, display) as page:
        try:
            execute(
                experiment,
                folder,
                capture=capture or False,
                profile=profile,
                resume=resume,
                tries=tries,
                watcher=page or display,
            )
        except LabError as error:
            if error.exit_code in (2, 3) or error.code == "results.unwritable":
                raise  # the folder's content is from another run
            failure = error
            if page is not None:
                page.end(str(error))
    result = show_result(console, folder)
    if failure is not None:
        raise failure
    if strict and result is not None and result.verdict.status != "valid":
        typer.echo(f"airloom: the verdict is {result.verdict.status}, and --strict wants valid", err=True)
        raise typer.Exit(1)
