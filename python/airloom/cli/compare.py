"""``airloom compare``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airloom.cli import completing
from airloom.cli.options import must_take_json, write_json
from airloom.errors import ScenarioError

if TYPE_CHECKING:
    from airloom.compare.runs import Comparison
    from airloom.compare.trends import Trends


def command(
    what: Annotated[
        list[Path],
        typer.Argument(
            help="Two or more folders of runs or sweeps; one folder of a sweep, to compare its points; "
            "or a scenario, with --kinds.",
            exists=True,
            metavar="FOLDER... | SCENARIO",
        ),
    ],
    kinds: Annotated[
        str | None,
        typer.Option(
            help="Run the scenario with all its nodes of each of these kinds: netns,uml,qemu.",
            autocompletion=completing.kinds_with_commas,
        ),
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option(min=1, help="Of each kind; the scenario's own number by default.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="With --kinds: the folder for the runs, one below it for each kind.")
    ] = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="With --kinds: also sample with perf what each component does.")
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Of one sweep: the path, or its label, whose values are compared; the first."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Show every figure, not only the most important ones.")
    ] = False,
    trends: Annotated[
        bool,
        typer.Option(
            "--trends",
            help="Of two results from different machines: directions and ratios over the swept values.",
        ),
    ] = False,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Also write it as JSON; `-` prints only that."),
    ] = None,
) -> None:
    """Show how runs differ, with confidence intervals, and the causes of the differences.

    The others are compared with the first. Runs may differ in anything: seed, node kind, a
    setting. Examples: airloom compare out/a out/b; airloom compare out/sweep --by queue;
    airloom compare lab.yaml --kinds netns,uml; airloom compare there here --trends
    """
    from airloom.cli.console import Console
    from airloom.compare.render import render
    from airloom.compare.runs import compare, compare_values

    must_take_json(json_file, "the JSON of `airloom compare`", "schema", "first", "second")
    if trends:
        _trends(what, kinds, json_file, every)
        return
    if kinds is not None:
        folders = _run(what, kinds, repetitions, out, profile)
    else:
        folders = what
        _only_folders(what)
    if len(folders) == 1:
        found = compare_values(folders[0], by)
    else:
        _only_one(by, folders)
        found = [compare(folders[0], other) for other in folders[1:]]
    if json_file != Path("-"):
        for one in found:
            Console().print(render(one, every=every))
    if profile and json_file != Path("-"):
        _show_profiles(folders)
    if json_file == Path("-"):
        typer.echo(_json(found), nl=False)
    elif json_file is not None:
        write_json(json_file, _json(found))


def _trends(what: list[Path], kinds: str | None, json_file: Path | None, every: bool) -> None:
    if len(what) != 2 or kinds is not None:
        raise ScenarioError(
            "compare.trends",
            "--trends compares two folders of results",
            where="--trends",
            cure="name two folders, without --kinds",
        )
    _only_folders(what)
    from airloom.compare.trends import trends

    show_trends(trends(*what, every=every), json_file, every)


def show_trends(found: Trends, json_file: Path | None, every: bool) -> None:
    """Prints the trends of two results, or writes them as JSON."""
    from airloom.cli.console import Console
    from airloom.compare.render_trends import render

    if json_file != Path("-"):
        Console().print(render(found, every=every))
    if json_file == Path("-"):
        typer.echo(found.to_json(), nl=False)
    elif json_file is not None:
        write_json(json_file, found.to_json())


def _show_profiles(folders: list[Path]) -> None:
    from airloom.cli.console import Console
    from airloom.report.tables import profile
    from airloom.report.terminal import rich_table
    from airloom.results import RunReader

    for folder in folders:
        Console().print(f"{folder}:")
        Console().print(rich_table(profile(RunReader(folder))))


def _json(found: list[Comparison]) -> str:
    """Returns one comparison, or a list of them, as JSON."""
    if len(found) == 1:
        return found[0].to_json()
    return json.dumps([one.to_dict() for one in found], indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _only_folders(what: list[Path]) -> None:
    for path in what:
        if not path.is_dir():
            raise ScenarioError(
                "compare.folder",
                "this is no folder of a run",
                where=str(path),
                cure="name folders, or say with --kinds on what the scenario is to run",
            )


def _only_one(by: str | None, folders: list[Path]) -> None:
    if by is not None:
        raise ScenarioError(
            "compare.by",
            f"--by compares the points of one sweep, not {len(folders)} folders",
            where="--by",
            cure="name one folder, or leave --by out",
        )


def _run(
    what: list[Path], kinds: str, repetitions: int | None, out: Path | None, profile: bool
) -> list[Path]:
    from airloom.cli.console import Console
    from airloom.cli.display import Display
    from airloom.compare.kinds import on_kinds, prepared
    from airloom.nodes import doctor

    wanted = [word.strip() for word in kinds.split(",") if word.strip()]
    if len(what) != 1 or what[0].is_dir():
        raise ScenarioError(
            "compare.scenario",
            "--kinds runs one scenario on several kinds",
            where=" ".join(map(str, what)),
            cure="name one scenario file, or leave --kinds out to compare folders",
        )
    experiments = prepared(what[0], wanted, repetitions=repetitions)
    doctor.require_basics(
        restart=True,
        taps=any(one.has_taps for one in experiments.values()),
        shares={name: share for one in experiments.values() for name, share in one.shares.items()},
        namespaces=not all(one.virtual for one in experiments.values()),
    )
    with Display(Console(stderr=True)) as display:
        return on_kinds(experiments, out=out, profile=profile, watcher=display)
