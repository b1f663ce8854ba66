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
    Time,
    Web,
    WebAt,
    capture_of,
    chosen,
    live_page,
)


def command(
    file: ScenarioFile,
    overrides: Overrides = None,
    seed: Seed = None,
    time: Time = None,
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
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            help="In virtual time: so many runs of a sweep at once, by default one for each processor.",
        ),
    ] = None,
    fleet: Annotated[
        str | None,
        typer.Option(
            "--fleet",
            metavar="MACHINES",
            help="Share the runs of a sweep out to these machines: ssh:HOST,HOST,..., rspec:FILE (those of "
            "a manifest), slurm (inside of salloc or sbatch), or local:N.",
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="In virtual time: run it once more on a disturbed machine, and name the first event that "
            "differs. Captures all frames. The second run's folder is FOLDER-verified.",
        ),
    ] = False,
    web: Web = False,
    web_at: WebAt = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the tables at the end only.")] = False,
) -> None:
    """Run a scenario: bring up its nodes, run programs, events and measurements, and judge the run.

    Prints the figures, the scenario's claims and the verdict on their validity. Ctrl-C stops the
    run in order with exit code 130 and keeps the measurements; a second Ctrl-C stops it at once.

    With --time virtual the nodes' kernels and programs run in exact virtual time: two runs with one
    seed are the same, however loaded this machine is.

    Example: airloom run examples/chain.yaml --set topology.nodes=10 --seed 7 --out out/ten
    """
    from airloom.cli.console import Console
    from airloom.cli.display import Display
    from airloom.cli.show import show_result, tell_capture
    from airloom.errors import LabError, ScenarioError
    from airloom.lab.open_run import OpenRun
    from airloom.nodes import doctor
    from airloom.runs.batch import default_folder, execute, prepare
    from airloom.runs.side_by_side import jobs_of

    if verify and resume:
        raise ScenarioError("run.verify", "--verify compares two whole runs", cure="leave out --resume")
    experiment = prepare(file, overrides=chosen(overrides, time), seed=seed, repetitions=repetitions)
    if verify and experiment.scenario.time != "virtual":
        raise ScenarioError(
            "run.verify", "--verify compares two runs in virtual time", cure="add --time virtual"
        )
    if (web or web_at is not None) and jobs is not None and jobs > 1:
        raise ScenarioError(
            "run.jobs", "the live page shows one run at a time", where="--jobs", cure="leave out --web"
        )
    if fleet is not None and (verify or web or web_at is not None):
        option = "--verify" if verify else "--web"
        raise ScenarioError(
            "fleet.runs",
            f"{option} looks at runs of this machine",
            where="--fleet",
            cure=f"leave out {option}",
        )
    jobs_of(jobs, experiment)
    if fleet is None:
        doctor.require_for(experiment, restart=True)
    folder = out or default_folder(experiment.scenario.name)
    console = Console()
    capture = capture_of(pcap or verify, pcap_ports, pcap_snap, pcap_merged)
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
                jobs=jobs if page is None else 1,
                fleet=fleet,
                watcher=OpenRun(page or display),
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
    if verify:
        from airloom.cli.verifying import verified

        verified(console, experiment, folder, capture=capture or False, tries=tries, quiet=quiet)
    if strict and result is not None and result.verdict.status != "valid":
        typer.echo(f"airloom: the verdict is {result.verdict.status}, and --strict wants valid", err=True)
        raise typer.Exit(1)
