"""Tries a scenario on the kinds of nodes of this machine, and answers which one suits it."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from airloom.bench import calibrate
from airloom.calibration import correct, model
from airloom.calibration.model import Calibration
from airloom.compare.kinds import of_kind
from airloom.errors import LabError, ScenarioError
from airloom.experiments.usable_kinds import SLOW, every
from airloom.host.machine import memory_octets
from airloom.nodes.all_nodes import KINDS
from airloom.planning.estimate import FULL_FRAME, estimate, path_between
from airloom.planning.gate import Experiment
from airloom.planning.plan import Plan
from airloom.recommend.carried import Carried, carried
from airloom.recommend.classes import ORDER, Judgement, Load, judged, latency_bounds
from airloom.results import Measurement, RunReader
from airloom.results.details import Advice
from airloom.runs import batch
from airloom.runs.host_monitor import processors, read_host
from airloom.runs.progress import Watcher
from airloom.runs.single import Interrupted
from airloom.scenario.model import Scenario

ROUNDS, TRIALS, SECONDS = 3, 3, 1
"""Of a short calibration."""
BRING_UP = 5
"""Assumed seconds until the nodes of a trial are up, and for its results."""
NATIVE = "native"
_SEGMENT = 8 * 1448
"""Bits of a full TCP segment with time stamps on Ethernet."""

_OF_PROTOCOL = {"tcp": ("tcp", "throughput"), "udp": ("throughput", "real-time"), "rtp": ("video",)}

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Corrected:
    """A figure of the trial, its guidance, and the native value of the same measurement if measured."""

    advice: Advice
    native: float | None = None
    native_half_width: float | None = None
    """Half of the native value's 95 % interval, of a time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One kind in the trial."""

    kind: str
    calibration: str
    """``given``, ``stored`` or ``short``."""
    status: str
    """Verdict of the trial."""
    reasons: tuple[str, ...]
    carried: Carried
    classes: tuple[Judgement, ...]
    figures: tuple[Corrected, ...]
    latency_ns: tuple[float, float] | None
    """Least bounds on latency that fit: harmless, and with subtraction."""

    def verdict(self, experiment: str) -> str:
        """Returns the verdict of a class of experiments."""
        return next(one.verdict for one in self.classes if one.experiment == experiment)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        figures = [
            one.advice.model_dump(mode="json")
            | {"native": one.native, "native_half_width": one.native_half_width}
            for one in self.figures
        ]
        raw = asdict(self) | {"figures": figures, "reasons": list(self.reasons)}
        bounds = self.latency_ns
        raw["latency_ns"] = None if bounds is None else {"harmless": bounds[0], "correctable": bounds[1]}
        return raw | {"classes": [one.to_dict() for one in self.classes]}


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The answers of all kinds, and which of them suits the scenario."""

    scenario: str
    relevant: tuple[str, ...]
    """Classes of experiments that the scenario's measurements belong to."""
    kind: str | None
    why: str
    answers: tuple[Answer, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    """Kinds without a trial, and why."""

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        return {
            "schema": 1,
            "scenario": self.scenario,
            "relevant": list(self.relevant),
            "kind": self.kind,
            "why": self.why,
            "kinds": [one.to_dict() for one in self.answers],
            "left_out": self.left_out,
        }


@dataclass(frozen=True, slots=True)
class Trial:
    """What is to be tried: the scenario on each kind, and the calibrations that are there."""

    experiments: dict[str, Experiment]
    known: dict[str, tuple[Calibration, str]]
    """Calibration and its origin, by kind."""
    native: Experiment | None
    left_out: dict[str, str]

    @property
    def seconds(self) -> int:
        """About how long everything takes."""
        short = calibrate.duration(ROUNDS, TRIALS, SECONDS) * len(self.experiments.keys() - self.known.keys())
        runs = [*self.experiments.values(), *([self.native] if self.native is not None else [])]
        return short + sum(BRING_UP + math.ceil(estimate(one.plans[0]).duration / 1e9) for one in runs)


def prepared(
    source: Path,
    kinds: Sequence[str],
    given: Sequence[Calibration] = (),
    overrides: Sequence[str] = (),
) -> Trial:
    """Checks everything and starts nothing; without ``kinds`` those that this machine has are tried.

    Of a sweep the first point is tried. Raises :class:`ScenarioError` for a scenario without
    measurements, and for an unknown kind; :class:`~airloom.errors.HostError` for a kind that was asked
    for and that this machine lacks.
    """
    plan = batch.prepare(source, overrides=overrides).plans[0]
    if not plan.scenario.measurements:
        raise ScenarioError(
            "recommend.unmeasured", "a scenario without measurements has no figure to recommend a kind for",
            where=f"{source}: measurements", cure="add 'measurements', such as a ping or an iperf3",
        )  # fmt: skip
    offered = [kind for kind in every() if kind != NATIVE]
    for kind in kinds:
        if kind not in offered:
            raise ScenarioError(
                "kind.unknown", f"no kind {kind!r} can be recommended", where="--kind",
                cure=f"kinds: {', '.join(offered)}",
            )  # fmt: skip
    left_out: dict[str, str] = {}
    experiments: dict[str, Experiment] = {}
    for kind in dict.fromkeys(kinds or offered):
        lacking = KINDS[kind].lacks()
        if kinds and lacking:
            raise lacking[0]
        if lacking:
            left_out[kind] = str(lacking[0])
        elif not kinds and kind in SLOW:
            left_out[kind] = f"takes long; --kind {kind} tries it"
        else:
            try:
                experiments[kind] = batch.prepare(of_kind(plan.scenario, kind))
            except LabError as error:
                if kinds:
                    raise
                left_out[kind] = str(error)
    if not experiments:
        raise ScenarioError(
            "recommend.none", "no kind of this machine can be tried", where=str(source),
            cure="; ".join(f"{kind}: {why}" for kind, why in left_out.items()),
        )  # fmt: skip
    known = {kind: (made, "stored") for kind in experiments if (made := model.load(kind)) is not None}
    known |= {made.kind: (made, "given") for made in given if made.kind in experiments}
    return Trial(experiments, known, _native(plan.scenario), left_out)


def _native(scenario: Scenario) -> Experiment | None:
    """Returns the scenario on the host's own stacks; None where these cannot do what it asks for."""
    try:
        return batch.prepare(of_kind(scenario, NATIVE))
    except ScenarioError:
        return None


def recommend(trial: Trial, out: Path, *, watcher: Watcher, progress: Progress) -> Recommendation:
    """Makes the missing calibrations, tries every kind, and chooses one; runs are kept below ``out``."""
    left_out = dict(trial.left_out)
    native = _tried(trial.native, out / NATIVE, watcher, progress) if trial.native is not None else None
    answers = []
    for kind, experiment in trial.experiments.items():
        try:
            made, origin = trial.known.get(kind) or (_short(kind, progress), "short")
            memory = read_host().available or memory_octets()
            progress(f"{kind}: trying the scenario")
            reader = _run(experiment, out / kind, watcher)
        except Interrupted:
            raise
        except LabError as error:
            left_out[kind] = str(error)
            continue
        answers.append(answered(experiment.plans[0], reader, made, origin, native, memory))
    plan = next(iter(trial.experiments.values())).plans[0]
    relevant = classes_of(plan)
    best, why = chosen(answers, relevant)
    return Recommendation(plan.scenario.name, relevant, best, why, tuple(answers), left_out)


def _short(kind: str, progress: Progress) -> Calibration:
    return calibrate.calibrate(kind, progress, rounds=ROUNDS, trials=TRIALS, seconds=SECONDS)


def _tried(experiment: Experiment, folder: Path, watcher: Watcher, progress: Progress) -> RunReader | None:
    progress("native: measuring the reference")
    try:
        return _run(experiment, folder, watcher)
    except Interrupted:
        raise
    except LabError as error:
        progress(f"native: {error}")
        return None


def _run(experiment: Experiment, folder: Path, watcher: Watcher) -> RunReader:
    if folder.exists():
        shutil.rmtree(folder)
    return batch.execute(experiment, folder, capture=False, resume=False, watcher=watcher)


def answered(
    plan: Plan,
    reader: RunReader,
    made: Calibration,
    origin: str,
    native: RunReader | None,
    memory: int,
) -> Answer:
    """Returns what a trial and a calibration say of a kind; ``memory`` was free before the trial."""
    measured = reader.result.measurements
    load = load_of(plan, measured)
    names = {one.name for one in measured}
    trips = correct.trips(plan, lambda kind: made if kind == made.kind else None)
    advice, _ = correct.advise(trips, measured, _intervals(reader, names))
    reference: dict[tuple[str, str], float | None] = {}
    halves: correct.Intervals = {}
    if native is not None and native.result.verdict.status != "invalid":
        reference = {(one.name, one.metric): one.mean for one in native.result.measurements}
        halves = _intervals(native, names)
    busy = sum(reader.details.processors.values())
    verdict = reader.result.verdict
    return Answer(
        kind=made.kind,
        calibration=origin,
        status=verdict.status,
        reasons=tuple(verdict.reasons),
        carried=carried(plan, made, load, busy, processors(), memory),
        classes=tuple(judged(made, load)),
        figures=tuple(
            Corrected(one, reference.get(key), halves.get(key))
            for one in advice
            for key in [(one.measurement, one.metric)]
        ),
        latency_ns=latency_bounds(made, load.hops),
    )


def _intervals(reader: RunReader, names: set[str]) -> correct.Intervals:
    found: correct.Intervals = {}
    for name in names:
        found |= correct.intervals(name, reader.table(name))
    return found


def load_of(plan: Plan, measured: Sequence[Measurement]) -> Load:
    """Returns what the flows of a trial asked of their nodes."""
    figures: dict[str, dict[str, Measurement]] = {}
    for figure in measured:
        figures.setdefault(figure.name, {})[figure.metric] = figure
    ends = {node for one in plan.scenario.measurements for node in (one.tool.source, one.tool.to)}
    packets, hops, shortest = 0.0, 1, math.inf
    for one in plan.scenario.measurements:
        packets = max(packets, _packets(one.tool.offered, figures.get(one.name, {})))
        path = path_between(plan, one.tool.source, one.tool.to)
        nodes = {end.partition(":")[0] for link in path for end in (link.a, link.b)} & plan.nodes.keys()
        hops = max(hops, len(nodes) - 1)
        rtt = sum(
            way.delay + 8e9 * FULL_FRAME / (way.mean_rate or math.inf)
            for link in path
            for way in (link.forward, link.backward)
        )
        shortest = min(shortest, rtt)
    return Load(packets, max(1, math.ceil(len(ends) / 2)), hops, shortest if math.isfinite(shortest) else 0.0)


def _packets(offered: float | None, figures: Mapping[str, Measurement]) -> float:
    rate = correct.packet_rate(figures)
    if rate is not None:
        return rate
    if offered is not None:
        return offered
    rates = (figures[name].mean for name in ("throughput", "throughput_up") if name in figures)
    return max((rate or 0.0 for rate in rates), default=0.0) / _SEGMENT


def classes_of(plan: Plan) -> tuple[str, ...]:
    """Returns the classes of experiments that a scenario's measurements and routing belong to."""
    found: dict[str, None] = {}
    for one in plan.scenario.measurements:
        if one.test is not None:
            found |= dict.fromkeys(
                ("voice", "throughput") if one.test.kind == "voip" else ("tcp", "throughput")
            )
        elif one.ping is not None:
            found["real-time"] = None
        else:
            flow = one.iperf3 or one.traffic
            found |= dict.fromkeys(_OF_PROTOCOL[flow.protocol if flow is not None else "udp"])
    if plan.scenario.routing != "static":
        found["routing"] = None
    return tuple(found)


def chosen(answers: Sequence[Answer], relevant: Sequence[str]) -> tuple[str | None, str]:
    """Returns the kind with the best verdicts of the relevant classes, and why.

    First a trial that was not ``invalid``; then the fewest unusable, then the fewest correctable
    classes; then a ``valid`` trial; then the most nodes.
    """

    def rank(one: Answer) -> tuple[int, int, int, int]:
        verdicts = [one.verdict(name) for name in relevant]
        counts = [verdicts.count(each) for each in ORDER]
        return counts[2], counts[1], int(one.status != "valid"), -one.carried.nodes

    possible = sorted((one for one in answers if one.status != "invalid"), key=rank)
    if not possible:
        return None, "no trial on this machine gave results that are not invalid"
    best = possible[0]
    said = ", ".join(f"{name} {best.verdict(name)}" for name in relevant)
    number = f"about {best.carried.nodes:,} nodes of it, limited by {best.carried.limit}"
    return best.kind, f"{said}; this machine carries {number}; its trial was {best.status}"
