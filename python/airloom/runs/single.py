"""One run into one folder: emulation, runner, host samples, verdict."""

from __future__ import annotations

import contextlib
import math
import shlex
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Self

from airloom import _engine
from airloom.calibration import correct, model
from airloom.cause import with_cause
from airloom.errors import LabError, RunError
from airloom.host import binaries, pcap
from airloom.host.machine import machine, versions
from airloom.measure import Metric, stages
from airloom.measure.flow import FlowReading
from airloom.measure.iperf3 import NOBODY
from airloom.nodes.network.control_capture import ControlCapture
from airloom.planning import inputs
from airloom.planning.capture import Capture
from airloom.planning.links import in_force
from airloom.planning.machine import host_needs
from airloom.planning.plan import Plan
from airloom.results import Claim, Details, Measurement, Result, RunWriter, evaluate
from airloom.results.claims import from_measurements
from airloom.results.details import Advice, Hotspot, NodeUse, ProgramEnd
from airloom.rpc import Stays
from airloom.runs import (
    collected,
    evidence,
    flow_loops,
    happenings,
    margins,
    processors,
    slice_monitor,
    spinning,
    stack_radios,
    turns,
)
from airloom.runs.capture_watch import CaptureWatch
from airloom.runs.control_messages import Summary, control_capture, summary
from airloom.runs.device_use import devices_of
from airloom.runs.emulation import World
from airloom.runs.host_monitor import HostWatch, NodeTrack
from airloom.runs.link_loads import LinkWatch
from airloom.runs.measurement import Measuring
from airloom.runs.picture import topology_of
from airloom.runs.profiler import Profiler, machines_of
from airloom.runs.programs import Supervised, signal_name
from airloom.runs.progress import Watcher
from airloom.runs.radio_monitor import RadioWatch, cards_of, channels_of
from airloom.runs.runner import Runner
from airloom.runs.slice_annotation import SliceAnnotation
from airloom.runs.stopped_programs import StoppedPrograms
from airloom.runs.tool_versions import platform_versions, tool_versions
from airloom.runs.tools import tools_of
from airloom.runs.turns import TurnTaking
from airloom.scenario.command_line import words_of
from airloom.scenario.model import Traffic
from airloom.verdict import Pacing, Share, Verdict, judge

FOLLOWED = "stages.pcapng"
"""The engine's capture of packets that are followed; deleted after it is read."""


class OneRun(Stays):
    """A plan on its way to a result::

    with OneRun(plan, writer, watcher) as one:
        one.runner.conduct()
    result = one.finish()
    """

    def __init__(
        self,
        plan: Plan,
        writer: RunWriter,
        watcher: Watcher,
        *,
        capture: Capture | None = None,
        profile: bool = False,
        measure: bool = True,
        engine: Callable[[int], _engine.Engine] = _engine.Engine,
        notes: Sequence[str] = (),
    ) -> None:
        """``notes`` are added to those of the verdict."""
        self._engine = engine
        self._notes = tuple(notes)
        self.plan = plan
        self.writer = writer
        self.watcher = watcher
        writer.in_force = in_force.of_links(plan)
        writer.virtual_seconds = 0.0 if plan.virtual else None
        self.measured: list[Measurement] = []
        self.pacing: list[Pacing] = []
        self._advice: list[Advice] = []
        self._above_ceiling: list[str] = []
        self.socket_lost: dict[str, int] = {}
        """Per measurement: packets lost because its receiving socket buffer was full."""
        self._tools = tools_of(plan, plan.scenario.measurements) if measure else {}
        self._profiler = Profiler(writer.folder, machines_of(plan)) if profile else None
        self._followed = measure and any(one.stages for one in traffic_of(plan))
        """Whether packets are followed through their stages, which requires an engine capture."""
        self._capture = capture or (Capture(merged=True) if self._followed else None)
        place = FOLLOWED if capture is None or self._capture is None else self._capture.place
        self._captured = writer.folder / place
        self._keep_capture = capture is not None
        self.stopped_by: str | None = None
        """The signal that requested the stop."""
        self._runner: Runner | None = None
        self._watch: HostWatch | None = None
        self._stops: StoppedPrograms | None = None
        self._turns: TurnTaking | None = None
        self._radios: RadioWatch | None = None
        self._links: LinkWatch | None = None
        self._annotation = SliceAnnotation(plan)
        self._within: correct.Intervals = {}
        self._captures: CaptureWatch | None = None
        self._control: ControlCapture | None = None
        self._messages = Summary()
        self._loops: list[str] = []
        self._stack = contextlib.ExitStack()
        self._closed = False
        self._judged = Verdict()
        self._margins: dict[str, margins.Margin] = {}
        self._inputs = inputs.digests([plan.scenario])
        self._details = Details()
        self._hotspots: tuple[Hotspot, ...] = ()

    @property
    def runner(self) -> Runner:
        """The runner. It exists from the start of the block."""
        if self._runner is None:
            raise RunError("lab.closed", "the laboratory is not up")
        return self._runner

    @property
    def world(self) -> World:
        """The nodes and the engine."""
        return self.runner.world

    def follow(self, plan: Plan) -> None:
        """Goes on with another plan, which has been applied."""
        self.plan = plan
        if self._radios is not None:
            self._radios.follow(plan)

    def note(self, text: str) -> None:
        """Adds a note to those of the verdict."""
        self._notes = (*self._notes, text)

    def interrupt(self, who: str) -> None:
        """Stops it in an orderly way in any state. Callable from any thread or signal handler."""
        self.stopped_by = self.stopped_by or who
        if self._runner is not None:
            self._runner.interrupt(who)

    def __enter__(self) -> Self:
        plan, writer = self.plan, self.writer
        for lack in host_needs.lacks(plan, measure=bool(self._tools)):
            raise lack
        self.watcher.phase(f"bringing up {len(plan.nodes)} nodes")
        with contextlib.ExitStack() as stack:
            if self._keep_capture and self._capture is not None:
                self._control = stack.enter_context(control_capture(plan, self._capture, writer.folder))
            world = stack.enter_context(
                World(
                    plan,
                    visible=[writer.folder, *folders_of(plan)],
                    capture=self._capture,
                    captured=self._captured,
                    control=self._control,
                    on_node_failure=self._node_failed,
                    log_path=writer.log_path,
                    engine=self._engine,
                )
            )
            folder = writer.folder / "measurements"
            runner = Runner(plan, world, writer.log_path, self.watcher, self._tools, folder)
            runner.on_measured(self._keep)
            self._runner = runner
            if self.stopped_by:
                runner.interrupt(self.stopped_by)
            self._watch = stack.enter_context(HostWatch(world))
            self._stops = stack.enter_context(StoppedPrograms(world, runner.measurings))
            self._turns = stack.enter_context(TurnTaking(world, runner.fail))
            self._radios = stack.enter_context(RadioWatch(world))
            self._links = stack.enter_context(LinkWatch(world))
            if self._keep_capture:
                self._captures = stack.enter_context(CaptureWatch(world, self.watcher))
            if self._profiler is not None:
                stack.callback(self._profiler.finish)
                self._profiler.start(world.supervisor_pid)
            stack.callback(self.watcher.down)
            self.watcher.up(self)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Collects the evidence and removes the emulation. A second call has no effect."""
        if self._closed:
            return
        self._closed = True
        with self._stack:
            self.watcher.phase("collecting")
            if self._profiler is not None:
                self._hotspots = self._profiler.finish()
            if self._turns is not None:
                self._turns.finish()
            self.writer.in_force |= self.world.scheduling
            self.world.end()
            taken = collected.collect(self.plan, self.world.nodes.__getitem__, self.writer.folder)
            self._notes = (*self._notes, *taken)
            self._collect()
            self._follow()

    def verdict(self) -> Verdict:
        """The verdict on the run so far."""
        assert self._watch is not None
        return self._judge(self._watch, *self._ledger_and_lateness())

    def finish(self) -> Result:
        """Writes the result.

        Raises the error that made the run fail, or :class:`Interrupted` if it was stopped. Finished
        measurements are written in either case.
        """
        runner = self.runner
        if runner.stopped_by is not None:
            at = runner.ended_at / 1e9
            self.writer.abort(f"stopped by {runner.stopped_by} after {at:.1f} s", details=self._details)
            raise Interrupted(runner.stopped_by, self.writer.folder)
        failure = runner.failure or _first_failure(runner.measurings)
        if failure is not None:
            self.writer.abort(str(failure), details=self._details)
            raise failure
        claims, verdict = margins.weigh(self.plan, self.measured, self._margins, self._judged)
        by_host = margins.of_slices(self.plan, self._margins)
        verdict = verdict.model_copy(update={"notes": (*verdict.notes, *by_host)})
        result = self.writer.finish(verdict, self.writer.ledger, claims=claims, details=self._details)
        self.watcher.finished(result)
        return result

    def _ledger_and_lateness(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The ledger, including frames lost before the engine, and the lateness."""
        engine = self.world.engine
        ledger = evidence.with_kernel_drops(
            engine.ledger(), self.world.counters(), stack_radios.ports(self.plan), self.world.early_drops
        )
        ledger["unresolved"] = evidence.unresolved(self.world.neighbours_refused(), self.world.unsent())
        return ledger, engine.lateness()

    def _collect(self) -> None:
        """Collects the ledger, the host's samples and the verdict while the nodes still exist."""
        watch = self._watch
        assert watch is not None
        ledger, lateness = self._ledger_and_lateness()
        self.writer.ledger = evidence.ledger_of(ledger, lateness)
        watch.finish()
        if self.plan.virtual:
            self.writer.virtual_seconds = self.world.now() / 1e9
        if self._captures is not None:
            self._captures.finish()
        self._record_host(watch, lateness)
        self._record_radios()
        self._record_links()
        self._record_control()
        self._loops = flow_loops.notes(self.world)
        found = slice_monitor.violations(self.world)
        self.writer.violations, self.writer.violations_unrecorded = found
        self._advice, self._above_ceiling = correct.advise(self._trips, self.measured, self._within)
        self._judged = self._judge(watch, ledger, lateness)
        self._margins = margins.of_run(self.plan, ledger, lateness, watch.node_wait(), self.world.now())
        self._details = self._describe(watch, ledger, lateness)

    def _node_failed(self, node: Any) -> None:
        if self._runner is not None:
            why = node.failure or "its first process died"
            self._runner.fail(RunError("node.failed", f"node {node.name} failed: {why}"))

    @cached_property
    def _trips(self) -> dict[str, correct.Trip]:
        return correct.trips(self.plan, model.load)

    def _keep(self, measuring: Measuring) -> None:
        """Writes a measurement's results. A full disk fails the run; earlier data is kept."""
        reading = measuring.reading
        if reading is None:
            return
        metrics = {metric.name: metric for metric in reading.metrics()}
        found = [as_measurement(measuring.name, metric) for metric in metrics.values()]
        self.measured += found
        self._note_flow(measuring, metrics)
        path = f"measurements[{measuring.name}]"
        said = reading.in_force()
        self.writer.in_force |= {f"{path}.{word}": text for word, text in said.items()}
        if (why := said.get(NOBODY)) is not None:
            self._notes = (
                *self._notes,
                f"{measuring.name} reached nobody ({why}), so that it carried nothing",
            )
        try:
            self.writer.measured(*found)
            samples = reading.samples()
            self.writer.record_table(measuring.name, samples)
            self._annotation.add(measuring.name, samples)
            # The statistics would load pandas, a third of a second.
            if measuring.name in self._trips:
                self._within |= correct.intervals(measuring.name, samples)
        except LabError as error:
            self.runner.fail(error)

    def _follow(self) -> None:
        """Computes the time per stage of the followed packets from the complete capture."""
        if not self._followed:
            return
        path = self._captured
        files = sorted(path.glob("*.pcapng")) if path.is_dir() else [path]
        captured = [frame for file in files for frame in pcap.frames(file)]
        to_host = self.world.zero - self.runner.zero_realtime
        for name, measuring in self.runner.measurings.items():
            flow = measuring.reading
            if not isinstance(flow, FlowReading) or flow.followed is None:
                continue
            boundaries = flow.boundaries | stages.at_the_engine(captured, flow.followed, to_host)
            found = [as_measurement(name, metric) for metric in stages.metrics(boundaries, flow.followed)]
            self.measured += found
            self.writer.measured(*found)
        if not self._keep_capture:
            path.unlink()

    def _note_flow(self, measuring: Measuring, metrics: Mapping[str, Metric]) -> None:
        """Records a flow's source lateness and socket losses for the verdict."""
        lost = metrics.get("host_lost")
        if lost is not None and lost.value:
            self.socket_lost[measuring.name] = int(lost.value)
        p99, most = metrics.get("pacing_error_p99"), metrics.get("pacing_error_max")
        if p99 is not None and most is not None:
            sources = [step.node for step in measuring.tool.steps() if not step.service]
            if any(map(self.plan.has_processor, sources)):
                # Its processor's work is a part of the model; the figures have what it did to the source.
                return
            waits = max(map(self.plan.wait_of, sources))
            self.pacing.append(Pacing(measuring.name, int(p99.value), int(most.value), waits))

    def _record_host(self, watch: HostWatch, lateness: Mapping[str, Any]) -> None:
        """Writes the host's time series beside the measured ones."""
        series: list[tuple[str, str, str, Sequence[Share]]] = [
            ("host", "cpu_pressure", "", watch.cpu_pressure()),
            ("host", "steal", "", watch.steal()),
            ("host", "cpu", "", watch.busy()),
            ("host", "memory_pressure", "", watch.memory_pressure()),
            ("engine", "busy", "", evidence.engine_busy(lateness)),
        ]
        series += [("node", "cpu", node, shares) for node, shares in watch.node_used().items()]
        series += [("node", "wait", node, shares) for node, shares in watch.node_wait().items()]
        available = watch.available()
        tables = [
            (measurement, metric, "1", node, [one.end for one in shares], [one.value for one in shares])
            for measurement, metric, node, shares in series
        ]
        times, octets = [at for at, _ in available], [float(one) for _, one in available]
        self._record_all([*tables, ("host", "memory_available", "octets", "", times, octets)])

    def _record_radios(self) -> None:
        """Writes positions of radios, their traffic per peer, and the activity of slices beside flows."""
        radios = self._radios
        assert radios is not None
        radios.finish()
        self._record_all(chain(radios.series(), self._annotation.annotations(radios.totals)))

    def _record_links(self) -> None:
        """Writes queues, drops, marks, rates and utilization of the links."""
        links = self._links
        assert links is not None
        links.finish()
        self._record_all(links.series())

    def _record_all(self, series: Iterable[tuple[str, str, str, str, Any, Any]]) -> None:
        """Writes series: measurement, metric, unit, node, times and values."""
        for measurement, metric, unit, whose, times, values in series:
            try:
                self.writer.record(measurement, metric, unit, times, values, node=whose)
            except LabError as error:
                self.watcher.problem(str(error))
                return

    def _record_control(self) -> None:
        """Decodes the captured control channels and writes the rates of their messages."""
        if self._control is not None:
            self._messages = summary(self._control, self.runner.zero_realtime)
            self._record_all(self._messages.series(self.world.now()))

    def _judge(self, watch: HostWatch, ledger: Mapping[str, Any], lateness: Mapping[str, Any]) -> Verdict:
        ledger, unready = turns.without_waiting(self.plan, ledger)
        taken = self._turns.taken if self._turns is not None else []
        notes = (
            *(one.note for one in taken),
            *turns.behind_taps(self.plan),
            *unready,
            evidence.carried_note(self.plan),
            evidence.carrier_note(self.plan),
            evidence.late_note(ledger),
            evidence.refused_note(self.world.datagrams_refused()),
            *evidence.unsent_notes(self.world.neighbours_refused(), self.world.unsent()),
            *evidence.order_notes(self.plan, ledger),
            *spinning.notes(self.world),
            *processors.notes(self.world),
        )
        seen = evidence.gathered(
            ledger,
            lateness,
            self.socket_lost | self.world.full_sockets(),
            watch,
            pacing=self.pacing,
            stopped=self._stops.found if self._stops is not None else (),
            late_turns=[one.reason for one in taken if one.reason is not None],
            paused=evidence.paused(ledger),
            above_ceiling=self._above_ceiling,
            length=self.world.now(),
            notes=[
                *self._notes,
                *self.world.notes,
                *(note for note in notes if note is not None),
                *self._missed(),
                *stack_radios.notes(self.world),
            ],
        )
        limits = self.plan.scenario.limits
        return with_cause(evidence.advised(judge(seen, limits), self.plan), seen, limits)

    def _tool_versions(self) -> dict[str, str]:
        done = [one for one in self.runner.measurings.values() if one.reading is not None]
        steps = [step for measuring in done for step in measuring.tool.steps()]
        plans, nodes = self.plan.nodes, self.world.nodes
        return platform_versions(plans, nodes) | tool_versions(steps, plans, nodes)

    def _missed(self) -> list[str]:
        """Notes on frames that are in no capture, and on messages that were not decoded."""
        skipped = self._captures.skipped if self._captures is not None else 0
        missed = f"{skipped:,} frames are missing in the capture: the disk was too slow"
        return [*([missed] if skipped else []), *self._messages.notes, *self._loops]

    def _describe(self, watch: HostWatch, ledger: Mapping[str, Any], lateness: Mapping[str, Any]) -> Details:
        runner = self.runner
        return Details(
            versions=versions() | self._tool_versions(),
            machine=machine(),
            limits=evidence.in_words(self.plan.scenario.limits),
            engine=dict(ledger),
            host_lost=evidence.host_lost(ledger),
            lateness=evidence.bins(lateness),
            nodes=tuple(
                NodeUse(
                    node=name,
                    user_s=track.used[-1].user_ns / 1e9,
                    system_s=track.used[-1].system_ns / 1e9,
                    wait_s=(track.used[-1].wait_ns or 0) / 1e9,
                    **_footprint(track),
                )
                for name, track in watch.nodes.items()
            ),
            inputs=self._inputs,
            length_ns=self.world.now(),
            calendar_ns=self.world.zero if self.plan.virtual else 0,
            processors=evidence.processors(watch.nodes, lateness, self.world.now()),
            programs=tuple(
                program_end(one, self.writer.folder) for one in (*runner.retired, *runner.programs.values())
            ),
            guidance=tuple(self._advice),
            profile=self._hotspots,
            happenings=happenings.of_run(runner, self._radios),
            captured=self._captures.counts if self._captures is not None else None,
            control=tuple(self._messages.messages),
            control_answers=tuple(self._messages.answers),
            topology=topology_of(self.plan),
            radios=self._radios.radios if self._radios is not None else (),
            channels=channels_of(self.world),
            slices=self._radios.slices if self._radios is not None else (),
            cards=cards_of(self.world),
            devices=devices_of(self.world),
            spun=spinning.of(self.world),
            processor_use=processors.of(self.world),
            radio_links=self._radios.links if self._radios is not None else (),
        )


class Interrupted(RunError):
    """The run was stopped by a signal; finished measurements are kept."""

    def __init__(self, who: str, folder: Path) -> None:
        super().__init__("run.stopped", f"stopped by {who}; what was measured until then is in {folder}")
        self.exit_code = 128 + int(getattr(signal, who, signal.SIGINT))


def _footprint(track: NodeTrack) -> dict[str, int]:
    """Memory and context switches of a node's machine, or of its tasks, from first to last sample."""
    found = {} if track.switched is None else {"switches": track.switched}
    return found | ({"resident_octets": track.footprints[-1].resident} if track.footprints else {})


def traffic_of(plan: Plan) -> list[Traffic]:
    """The flows of Airloom's own generator among a plan's measurements."""
    return [one.traffic for one in plan.scenario.measurements if one.traffic is not None]


def folders_of(plan: Plan) -> list[Path]:
    """Working folders of programs on the host that nodes do not see by default."""
    folders = {Path(one.folder) for one in plan.scenario.programs if one.folder is not None}
    return sorted(path for path in folders if path.is_dir() and binaries.is_hidden(path))


def as_measurement(name: str, metric: Metric) -> Measurement:
    """A tool's figure as stored in ``result.json``; a NaN or infinite value is stored as absent."""
    value = metric.value if math.isfinite(metric.value) else None
    return Measurement(name=name, metric=metric.name, unit=metric.unit, mean=value)


def claims_of(plan: Plan, measured: Sequence[Measurement]) -> list[Claim]:
    """The claims of the scenario evaluated on the measurements."""
    values = from_measurements(measured)
    return [
        evaluate(claim.id, claim.statement, claim.check, values, source=claim.source)
        for claim in plan.scenario.claims
    ]


def program_end(supervised: Supervised, folder: Path) -> ProgramEnd:
    """How a program ended, for the report."""
    ended = supervised.exit
    return ProgramEnd(
        node=supervised.node,
        name=supervised.name,
        command=shlex.join(words_of(supervised.program.run)),
        exit=ended.code if ended else None,
        signal=signal_name(ended.signal) if ended and ended.signal is not None else None,
        expected=supervised.failure is None,
        log=str(supervised.log.relative_to(folder)),
    )


def _first_failure(measurings: Mapping[str, Measuring]) -> LabError | None:
    return next((one.failure for one in measurings.values() if one.failure is not None), None)
