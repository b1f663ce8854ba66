"""Runs every sweep point and repetition of a scenario and writes one results folder."""

from __future__ import annotations

import contextlib
import functools
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airloom import _engine, rpc
from airloom.errors import LabError, RunError, ScenarioError
from airloom.fleet import agent, connect
from airloom.host.stopping import on_first_signal
from airloom.nodes import doctor
from airloom.planning import ending, inputs
from airloom.planning.capture import Capture
from airloom.planning.gate import check
from airloom.results import Claim, Result, RunReader, RunWriter, SweepWriter, Verdict
from airloom.results.writer import label_of
from airloom.runs import notebook, side_by_side, underlay
from airloom.runs.progress import Watcher
from airloom.runs.single import Interrupted, OneRun, claims_of
from airloom.verdict import disturbed, worst

if TYPE_CHECKING:
    from airloom.planning.gate import Experiment
    from airloom.planning.plan import Plan
    from airloom.results.sweep import Point
    from airloom.scenario.model import Scenario
    from airloom.verdict import Status


@dataclass(frozen=True, slots=True)
class Tries:
    """When a run that the machine disturbed is made again."""

    most: int = 1
    """Largest number of runs of each point."""
    accept: Status = "valid"
    """A run whose verdict is no worse stays."""


class RunResult(RunReader):
    """Result of a run: verdict, ledger, figures and samples.

    ``measurements`` and ``samples("rtt")`` are pandas frames, ``table("rtt")`` is an Arrow table.
    """

    @property
    def verdict(self) -> Verdict:
        """The verdict, with reasons."""
        return self.result.verdict

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All claims of the scenario with their outcomes."""
        return self.result.claims


def run(
    source: str | Path | Scenario,
    *,
    overrides: Iterable[str] | Mapping[str, Any] = (),
    seed: int | None = None,
    repetitions: int | None = None,
    out: str | Path | None = None,
    capture: bool | Capture = False,
    profile: bool = False,
    resume: bool = False,
    tries: int | Tries = 1,
    jobs: int | None = None,
    fleet: str | None = None,
    watcher: Watcher | None = None,
) -> RunResult:
    """Runs a scenario: all points of its sweep and all repetitions.

    ``overrides`` are as after ``--set``, or a mapping from path to value. ``out`` is the folder of
    the results, by default ``out/NAME-DATE-TIME``. ``capture`` writes frames as pcapng: all of them,
    or those of a :class:`Capture`. ``profile`` samples with perf where the processors' time goes.
    ``watcher`` receives the progress; in a notebook a bar shows it by default.
    ``resume`` continues an interrupted sweep. ``tries`` is the largest number of runs of each point: it
    is run again if the machine disturbed it, and the verdict notes that; :class:`Tries` has more
    settings. ``jobs`` is the number of points that run at once: by default one in wall time, where
    more are refused, and one for each processor in virtual time. ``fleet`` names machines that share the
    points, such as ``ssh:a,b``. Raises ``LabError`` if the run fails;
    the folder has the data so far. Ctrl-C stops it in an orderly way.
    """
    experiment = prepare(source, overrides=overrides, seed=seed, repetitions=repetitions)
    folder = Path(out) if out is not None else default_folder(experiment.scenario.name)
    helped = fleet is None and rpc.is_needed(namespaces=not experiment.virtual)
    begin = functools.partial(rpc.call_until_stopped, executed) if helped else executed
    begin(
        experiment,
        folder,
        capture=capture,
        profile=profile,
        resume=resume,
        tries=tries,
        jobs=jobs,
        fleet=fleet,
        watcher=watcher or notebook.watcher(),
    )
    return RunResult(folder)


def executed(experiment: Experiment, folder: Path, *, fleet: str | None, **settings: Any) -> None:
    """Executes an experiment with the settings of :func:`execute` after a test of this machine.

    A fleet's machines are tested by :func:`execute`.
    """
    if fleet is None:
        doctor.require_for(experiment)
    execute(experiment, folder, fleet=fleet, **settings)


def prepare(
    source: str | Path | Scenario,
    *,
    overrides: Iterable[str] | Mapping[str, Any] = (),
    seed: int | None = None,
    repetitions: int | None = None,
) -> Experiment:
    """The checked scenario with all its plans; touches nothing."""
    pairs: Any = overrides
    if repetitions is not None:
        if isinstance(overrides, Mapping):
            pairs = {**overrides, "repetitions": repetitions}
        else:
            pairs = [*overrides, f"repetitions={repetitions}"]
    return check(source, pairs, seed=seed)


def default_folder(name: str) -> Path:
    """``out/NAME-DATE-TIME``, with a counter appended if another run has taken that name."""
    base = Path("out") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    folder, count = base, 1
    while folder.exists():
        count += 1
        folder = base.with_name(f"{base.name}-{count}")
    return folder


def execute(
    experiment: Experiment,
    folder: Path,
    *,
    capture: bool | Capture,
    resume: bool,
    watcher: Watcher,
    tries: int | Tries = 1,
    jobs: int | None = None,
    fleet: str | None = None,
    profile: bool = False,
    engine: Callable[[int], _engine.Engine] = _engine.Engine,
) -> RunResult:
    """Executes all runs of an experiment and writes them into a folder.

    ``tries``, ``jobs`` and ``fleet`` as of :func:`run`. ``engine`` makes the engine of an experiment of
    one run.
    """
    plans = experiment.plans
    for plan in plans:
        if (error := ending.endless(plan.scenario)) is not None:
            raise error
    tries = tries if isinstance(tries, Tries) else Tries(tries)
    if fleet is not None:
        _refuse_for_fleet(experiment, jobs=jobs, profile=profile)
    jobs = side_by_side.jobs_of(jobs, experiment)
    captured = Capture.of(capture)
    if captured is not None:
        for plan in plans:
            captured.wanted(plan)  # refused before anything is written
    if len(plans) == 1 and not experiment.scenario.sweep:
        plan = plans[0]

        def writer(again: bool) -> RunWriter:
            return _single(plan, folder, replace=again)

        _tried(plan, writer, tries, watcher, capture=captured, profile=profile, engine=engine)
    else:
        _sweep(
            experiment,
            folder,
            capture=captured,
            profile=profile,
            resume=resume,
            tries=tries,
            jobs=jobs,
            fleet=fleet,
            watcher=watcher,
        )
    return RunResult(folder)


def _refuse_for_fleet(experiment: Experiment, *, jobs: int | None, profile: bool) -> None:
    """Refuses what a fleet cannot do, before anything starts."""
    why, cure = "", ""
    if len(experiment.plans) == 1:
        why, cure = "there is one run, and nothing to share out", "give a sweep or --repetitions"
    elif jobs is not None:
        why, cure = "each machine of a fleet has as many runs as processors", "leave out --jobs"
    elif profile:
        why, cure = "perf samples this machine", "leave out --profile"
    if why:
        raise ScenarioError("fleet.runs", why, where="--fleet", cure=cure)


@contextlib.contextmanager
def _places(experiment: Experiment, jobs: int, fleet: str | None) -> Iterator[list[side_by_side.Place]]:
    """Places for the runs of an experiment: on this machine, or on those of a fleet, which are tested."""
    virtual = experiment.virtual
    if fleet is None:
        yield side_by_side.places_here(jobs, virtual=virtual)
        return
    with contextlib.ExitStack() as stack:
        machines = [stack.enter_context(machine) for machine in connect(fleet)]
        wishes = {
            node.guest.kernel
            for plan in experiment.plans
            for node in plan.nodes.values()
            if node.guest is not None and node.kind == "uml"
        }
        kernels = {wish: agent.kernel(wish) for wish in wishes}
        digests = inputs.digests(_distinct(experiment))
        for machine in machines:
            machine.require_for(experiment, kernels, digests)
            machine.begin(virtual=virtual)
        yield side_by_side.places_there(machines, virtual=virtual)


def undisturbed(once: Callable[[tuple[str, ...]], Result], tries: Tries, watcher: Watcher) -> Result:
    """Runs ``once`` until the machine does not disturb it, as ``tries`` permits.

    It receives the notes for its verdict: what disturbed the runs before.
    """
    notes: tuple[str, ...] = ()
    for number in range(1, tries.most + 1):
        result = once(notes)
        stays = worst((result.verdict.status, tries.accept)) == tries.accept
        if number == tries.most or stays or not disturbed(result.verdict):
            break
        why = f"{result.verdict.status}: {result.verdict.reasons[0]}"
        watcher.problem(f"run again, {number + 1} of at most {tries.most}, since it was {why}")
        notes = (*notes, f"run {number} of this point was replaced, since it was {why}")
    return result


def _tried(
    plan: Plan,
    writer: Callable[[bool], RunWriter],
    tries: Tries,
    watcher: Watcher,
    *,
    capture: Capture | None,
    profile: bool = False,
    engine: Callable[[int], _engine.Engine] = _engine.Engine,
) -> Result:
    """Executes a run as often as ``tries`` permits; ``writer`` is told whether it is done again."""

    def once(notes: tuple[str, ...]) -> Result:
        with writer(bool(notes)) as made:
            return _conduct(
                OneRun(plan, made, watcher, capture=capture, profile=profile, engine=engine, notes=notes)
            )

    return undisturbed(once, tries, watcher)


def _single(plan: Plan, folder: Path, *, replace: bool) -> RunWriter:
    return RunWriter(
        folder,
        replace=replace,
        scenario=plan.scenario.name,
        seed=plan.seed,
        kinds=kinds_of(plan),
        scenario_text=plan.scenario.to_yaml(),
    )


def _sweep(
    experiment: Experiment,
    folder: Path,
    *,
    capture: Capture | None,
    profile: bool,
    resume: bool,
    tries: Tries,
    jobs: int,
    fleet: str | None,
    watcher: Watcher,
) -> None:
    scenario = experiment.scenario
    # Report what any point cannot have before the first run starts.
    underlay.survey(experiment.plans)
    with (
        _places(experiment, jobs, fleet) as places,
        SweepWriter(
            folder,
            scenario=scenario.name,
            seed=scenario.seed,
            sweep={path: one.values for path, one in scenario.swept.items()},
            labels={path: one.label for path, one in scenario.swept.items() if one.label},
            repetitions=scenario.repetitions,
            scenario_text=scenario.to_yaml(),
            inputs=inputs.digests(_distinct(experiment)),
            resume=resume,
        ) as sweep,
    ):
        for note in sweep.notes:
            watcher.problem(note)
        # One that is profiled is alone, since perf samples the whole machine.
        several = fleet is not None or (len(places) > 1 and not profile and len(sweep.unfinished()) > 1)
        failures = (
            _points_at_once(experiment, sweep, capture=capture, tries=tries, places=places, watcher=watcher)
            if several
            else _points(experiment, sweep, capture=capture, profile=profile, tries=tries, watcher=watcher)
        )
        sweep.finish(_claims(experiment, folder))
    if failures:
        where, first = failures[0]
        raise RunError(
            "sweep.failed",
            f"{len(failures)} of {len(experiment.plans)} runs failed, first {where}: {first.message}",
            cure="--resume does them again and keeps the others",
        )


def _points(
    experiment: Experiment,
    sweep: SweepWriter,
    *,
    capture: Capture | None,
    profile: bool,
    tries: Tries,
    watcher: Watcher,
) -> list[tuple[str, LabError]]:
    """Executes the runs that have no result yet. Returns the errors of failed runs, by folder."""
    points = sweep.index.points
    waiting = {point.folder for point in sweep.unfinished()}
    failures: list[tuple[str, LabError]] = []
    for number, (point, plan) in enumerate(zip(points, experiment.plans, strict=True), 1):
        if point.folder not in waiting:
            continue
        watcher.point(number, len(points), _name(sweep, point))

        def writer(_: bool, point: Point = point, plan: Plan = plan) -> RunWriter:
            text = plan.scenario.to_yaml()
            return sweep.run(point, kinds=kinds_of(plan), seed=plan.seed, scenario_text=text)

        try:
            _tried(plan, writer, tries, watcher, capture=capture, profile=profile)
        except Interrupted:
            raise
        except RunError as error:
            if error.code.startswith("results."):
                raise
            watcher.problem(str(error))
            failures.append((point.folder, error))
    return failures


def _points_at_once(
    experiment: Experiment,
    sweep: SweepWriter,
    *,
    capture: Capture | None,
    tries: Tries,
    places: Sequence[side_by_side.Place],
    watcher: Watcher,
) -> list[tuple[str, LabError]]:
    """As :func:`_points`, with a run in each place at once."""
    points, unfinished = sweep.index.points, {point.folder for point in sweep.unfinished()}
    waiting = [
        (number, point, plan)
        for number, (point, plan) in enumerate(zip(points, experiment.plans, strict=True), 1)
        if point.folder in unfinished
    ]

    def begins(index: int) -> None:
        number, point, _ = waiting[index]
        watcher.point(number, len(points), _name(sweep, point))

    failures = side_by_side.SideBySide(
        places, watcher, begins, lambda index, machine: sweep.finished(waiting[index][1], machine)
    ).execute(
        [
            side_by_side.Task(
                _name(sweep, point), sweep.folder, point.folder, _one_point, (point, plan, capture, tries)
            )
            for _, point, plan in waiting
        ]
    )
    return [(waiting[index][1].folder, error) for index, error in failures]


def _one_point(
    folder: Path, point: Point, plan: Plan, capture: Capture | None, tries: Tries, watcher: Watcher
) -> None:
    """Executes a run of a sweep into its folder, of which another process keeps the index."""

    def writer(_: bool) -> RunWriter:
        return RunWriter(
            folder / point.folder,
            replace=True,
            scenario=plan.scenario.name,
            seed=plan.seed,
            kinds=kinds_of(plan),
            scenario_text=plan.scenario.to_yaml(),
            point=point.values,
            repetition=point.repetition,
        )

    try:
        _tried(plan, writer, tries, watcher, capture=capture)
    except RunError as error:
        if not isinstance(error, Interrupted) and not error.code.startswith("results."):
            watcher.problem(str(error))
        raise


def _name(sweep: SweepWriter, point: Point) -> str:
    """The values of a point for messages, and its repetition if there are several."""
    labels = sweep.index.labels
    text = ", ".join(f"{labels.get(path, path)}={value}" for path, value in point.values.items())
    return text or f"repetition {point.repetition + 1}"


def _distinct(experiment: Experiment) -> list[Scenario]:
    """The scenario of every point, without its repetitions."""
    return [plan.scenario for plan in experiment.plans if plan.repetition == 0]


def _claims(experiment: Experiment, folder: Path) -> list[Claim]:
    """Claims of a sweep: each must hold at every point, over its repetitions."""
    if not experiment.scenario.claims:
        return []
    result: Result = RunReader(folder).result
    points = {repr(plan.point): plan for plan in experiment.plans}.values()
    order = ("holds", "holds-in-shape", "undecided", "implausible-in-source", "fails")
    found: dict[str, Claim] = {}
    for plan in points:
        labels = dict(plan.point)
        here = [one for one in result.measurements if _matches(one.labels, labels)]
        name = ", ".join(f"{path}={value}" for path, value in labels.items())
        for claim in claims_of(plan, here):
            said = claim.model_copy(update={"why": f"{name}: {claim.why}"}) if name else claim
            before = found.get(claim.id)
            if before is None or order.index(claim.outcome) > order.index(before.outcome):
                found[claim.id] = said
    return list(found.values())


def _matches(labels: Mapping[str, str], point: Mapping[str, Any]) -> bool:
    return all(labels.get(path) == label_of(value) for path, value in point.items())


def _conduct(one: OneRun) -> Result:
    with on_first_signal(lambda number: one.interrupt(signal.Signals(number).name)):
        with one:
            one.runner.conduct()
        result = one.finish()
    if one.stopped_by is not None:  # signal came while the results were written: they are complete
        raise Interrupted(one.stopped_by, one.writer.folder)
    return result


def kinds_of(plan: Plan) -> list[str]:
    """The kinds of nodes in a plan, each once."""
    return list(dict.fromkeys(node.kind for node in plan.nodes.values()))
