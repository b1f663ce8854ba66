"""Runs the programs, events and measurements of one run, from time zero to the end.

The runner has no thread of its own: its owner runs the timeline. It does not judge results. It
reports events to a :class:`Watcher` and keeps the measurements for its owner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from airloom.errors import LabError, RunError, ScenarioError
from airloom.measure.tool import Tool
from airloom.nodes.network.controller_proxy import Line
from airloom.planning import event_difference, timed_changes
from airloom.planning.plan import Plan
from airloom.planning.schedule import earliest_of, expected_of, moment_of
from airloom.results.details import HappeningKind
from airloom.runs.agenda import Agenda
from airloom.runs.emulation import World
from airloom.runs.measurement import Measuring
from airloom.runs.programs import POLL, Supervised, signal_number
from airloom.runs.progress import Watcher
from airloom.runs.switching import Switching
from airloom.runs.timeline import Timeline
from airloom.scenario.model import Event, Program
from airloom.units.text import seconds

SETTLE = 5_000_000_000
"""Time for programs to end when the run stops, including SIGKILL: ns."""
ASSOCIATION = 3_000_000_000
"""Time from time zero for which measurements that run in turn wait for stations to associate: ns."""
ANSWER = 15_000_000_000
"""Time that measurements wait for switches to reach controllers once programs are ready: ns."""


class Runner:
    """Everything that happens in one run."""

    def __init__(
        self,
        plan: Plan,
        world: World,
        log_path: Callable[[str, str], Path],
        watcher: Watcher,
        tools: dict[str, Tool],
        folder: Path,
    ) -> None:
        self.plan = plan
        self.world = world
        self.watcher = watcher
        self.timeline = Timeline(world.now, world.pacer)
        self.failure: LabError | None = None
        """The first error that made the run fail."""
        self.stopped_by: str | None = None
        """The signal that stopped the run early: ``SIGINT``, ``SIGTERM``."""
        self.ended_at = 0
        """Engine time at which the run began to stop: ns."""
        self.happenings: list[tuple[int, str, HappeningKind]] = []
        """Engine time in ns, text, kind."""
        self.programs: dict[str, Supervised] = {}
        self.measurings: dict[str, Measuring] = {}
        self.retired: list[Supervised] = []
        """Programs that were taken out of the running laboratory."""
        self._log_path = log_path
        self._agenda = Agenda(self.timeline, self._carry_out)
        self.by_hand: list[Event] = []
        """Events of the plan that its file does not have."""
        self._held: list[Supervised] = []
        """Programs that are due, but wait for programs that must start first."""
        self._waiting: list[str] = []
        """Measurements without a start time, in the scenario's order."""
        self._in_turn: str | None = None
        self._open_ended = False
        self._waits_for_controllers = False
        self._stopping = False
        self.zero_realtime = 0
        """CLOCK_REALTIME at time zero: ns."""
        self._on_measured: Callable[[Measuring], None] = lambda measuring: None
        self.switching = Switching(world, self.timeline, self.programs, self.fail)
        self._timed = {one.name: moment_of(one) for one in plan.scenario.measurements}
        expected = {one.name: expected_of(one) for one in plan.scenario.measurements}
        for program in plan.scenario.programs:
            self.add_program(program)
        self.order_programs()
        for name, tool in tools.items():
            self.add_measurement(name, tool, folder, expected.get(name, 0))

    def add_program(self, program: Program) -> Supervised:
        """Adds a program that the run supervises once it is started."""
        name = program.name or "program"
        log = self._log_path(program.node, name)
        node = self.world.nodes[program.node]
        supervised = Supervised(program, name, log, node, self.timeline, changed=self._program_changed)
        self.programs[name] = supervised
        return supervised

    def order_programs(self) -> None:
        """Tells the plan's programs which others they must start after."""
        for name, earliest in earliest_of(self.plan.scenario.programs).items():
            supervised = self.programs[name]
            supervised.after = tuple(self.programs[before] for before in supervised.program.after)
            supervised.earliest = earliest

    def retire(self, name: str) -> None:
        """Takes a program out that has ended. Call on the timeline only."""
        gone = self.programs.pop(name)
        self.retired.append(gone)
        self._held = [one for one in self._held if one is not gone]
        self.switching.forget(gone)

    def launch(self, name: str) -> None:
        """Starts a program at its time, or now if that has passed. Call on the timeline only."""
        supervised = self.programs[name]
        self.timeline.at(supervised.program.at, partial(self._start_in_order, supervised))

    def add_measurement(self, name: str, tool: Tool, folder: Path, expected: int = 0) -> Measuring:
        """Adds a measurement; its programs' output goes below ``folder``."""
        measuring = Measuring(
            name,
            tool,
            folder / name,
            self.world.nodes,
            self.timeline,
            self.world.monotonic,
            expected=expected,
            changed=self._measuring_changed,
        )
        self.measurings[name] = measuring
        return measuring

    def on_measured(self, act: Callable[[Measuring], None]) -> None:
        """Calls ``act`` on the timeline for every measurement that ends successfully."""
        self._on_measured = act

    def conduct(self) -> None:
        """Executes the whole run: prepares, starts the clock, and returns at the end."""
        self.prepare()
        if self.failure is None and self.stopped_by is None:
            self.begin()
            self.timeline.run()
        self.stop()

    def prepare(self) -> None:
        """Starts the measurements' services and waits for them, before time zero."""
        programs = {one.node for one in self.programs.values()}
        self.world.wake(sorted(programs.union(*(one.nodes for one in self.measurings.values()))))
        if not self.measurings:
            return
        for measuring in self.measurings.values():
            measuring.prepare()
        if not self._prepared():
            self.timeline.run()

    def begin(self, *, open_ended: bool = False) -> None:
        """Time zero: starts the clock and schedules everything that has a start time.

        ``open_ended``: the run does not end by itself.
        """
        self._open_ended = open_ended
        scenario = self.plan.scenario
        self.world.schedule(self.plan)
        self.world.begin()
        if self.world.relay is not None:
            self.world.relay.on_change(
                lambda line: self.timeline.post(partial(self._controller_changed, line))
            )
        self.zero_realtime = self.world.zero_realtime
        for supervised in self.programs.values():
            self.timeline.at(supervised.program.at, partial(self._start_in_order, supervised))
        for event in scenario.events:
            self._agenda.put(event)
        for name, moment in self._timed.items():
            if moment and name in self.measurings:
                self.timeline.at(moment, partial(self._measure, name))
        self._waiting = [name for name in self.measurings if not self._timed.get(name)]
        if scenario.duration is not None and not open_ended:
            self.timeline.at(scenario.duration, self._time_is_up)
        self.timeline.post(self._go_on)

    def change_grants(self, plan: Plan) -> None:
        """Schedules the changes of grants that ``plan`` has beyond the present one. From any thread."""
        before, events = timed_changes.radio_changes(self.plan), len(self.plan.scenario.events)
        for change in timed_changes.radio_changes(plan):
            # A later change that is there already sets all limits: the new one of its time follows it.
            if change not in before:
                self.world.schedule_radio(change.at, change.port, change.change)
        self.plan = self.world.plan = plan
        for event in plan.scenario.events[events:]:
            self.by_hand.append(event)
            self.timeline.post(partial(self._agenda.put, event))

    def change_events(self, removed: Sequence[Event], added: Sequence[Event]) -> int:
        """Exchanges events that are to come, and withdraws all changes that the engine has for later.

        Returns the engine time in ns since which it makes none until it gets others. Call on the timeline
        only. Raises :class:`ScenarioError` if an event has been meanwhile, and then nothing has changed.
        """
        now = self.world.now()
        for events, is_new in ((removed, False), (added, True)):
            for event in events:
                if event.at <= now:
                    problem = event_difference.has_been(event, now, is_new=is_new)
                    raise ScenarioError(problem.code, problem.message, cure=problem.cure)
        since = self.world.withdraw_changes()
        for event in removed:
            self._agenda.withdraw(event)
        for event in added:
            self._agenda.put(event)
        return since

    def pass_time(self, most: int | None) -> None:
        """In virtual time: lets it pass by one turn, for at most ``most`` ns, with all that is due.

        Raises what has made the run fail.
        """
        try:
            self.timeline.pass_time(most)
        except LabError as error:
            self.failure = self.failure or error
            raise
        if self.failure is not None and not self.timeline.is_turning:
            raise self.failure

    def measure_now(
        self, name: str, tool: Tool, folder: Path, settled: Callable[[Measuring], None]
    ) -> Measuring:
        """Starts a measurement as soon as its services are ready. Call on the timeline only.

        The times of its steps count from that moment.
        """
        if self._stopping:
            raise RunError("lab.closed", "the laboratory is being taken down")
        measuring = self.add_measurement(name, tool, folder)

        def follow(measuring: Measuring) -> None:
            self._measuring_changed(measuring)
            if measuring.state == "prepared":
                self._measure(measuring.name)
            settled(measuring)

        measuring.follow(follow)
        measuring.prepare()
        return measuring

    def interrupt(self, who: str) -> None:
        """Stops the run in an orderly way. Callable from any thread and from signal handlers."""
        self.stopped_by = self.stopped_by or who
        self.timeline.post(self.timeline.end)

    def fail(self, error: LabError) -> None:
        """Stops the run because of an error. Callable from any thread."""

        def act() -> None:
            self.failure = self.failure or error
            self.timeline.end()

        self.timeline.post(act)

    def remark(self, text: str) -> None:
        """Records an action of the user as an event. Callable from any thread."""
        self.timeline.post(partial(self._note, text, "event"))

    def stop(self) -> None:
        """Ends all programs: SIGTERM first, then SIGKILL for those that still run."""
        self._stopping = True
        self.ended_at = self.world.now()
        interrupted = RunError("run.stopped", "the run was stopped before this measurement was done")
        unfinished = [name for name, measuring in self.measurings.items() if not measuring.settled]
        for name in unfinished:
            self.measurings[name].cancel(interrupted)
            if self._open_ended:
                # Such a run ends at any time, and they do not make it fail.
                del self.measurings[name]
        self.switching.finish()
        alive = [supervised for supervised in self.programs.values() if supervised.alive]
        for supervised in alive:
            supervised.stop()
        if alive:
            self.timeline.after(SETTLE, self.timeline.end)
            self.timeline.post(self._end_when_quiet)
            self.timeline.run()

    # On the timeline

    def _go_on(self) -> None:
        """Starts whatever is next in order, and ends the run when nothing is left."""
        if self._stopping:
            return
        for supervised in self._take_held():
            self._start_in_order(supervised)
        self._waiting = [name for name in self._waiting if not self.measurings[name].settled]
        if self._in_turn is None and self._waiting:
            if any(supervised.holds_up for supervised in self.programs.values()):
                return
            if self.world.now() < ASSOCIATION and self._unassociated(self.measurings[self._waiting[0]].nodes):
                self.timeline.after(POLL, self._go_on)
            elif self._unmet():
                if not self._waits_for_controllers:
                    self._waits_for_controllers = True
                    self.timeline.after(ANSWER, self._controllers_must_answer)
            else:
                self._in_turn = self._waiting.pop(0)
                self._measure(self._in_turn)
        elif self._is_done():
            self.timeline.end()

    def _take_held(self) -> list[Supervised]:
        """Empties the list of held programs and returns those that still wait."""
        held, self._held = self._held, []
        return [one for one in held if one.state == "waiting"]

    def _start_in_order(self, supervised: Supervised) -> None:
        """Starts a program, or holds it until the programs before it are ready."""
        if supervised.awaited:
            self._held.append(supervised)
        else:
            supervised.start()

    def _unassociated(self, nodes: set[str]) -> bool:
        """Whether a station of these nodes, of those that the medium keeps, has no access point yet."""
        stations = {
            radio.port
            for medium in self.plan.media.values()
            for radio in medium.radios
            if radio.port.partition(":")[0] in nodes and "station" in radio.settings.get("membership", ())
        }
        if not stations:
            return False
        states = self.world.radios()
        return any(one["port"] in stations and one["on"] and not one["access_point"] for one in states)

    def _unmet(self) -> list[Line]:
        relay = self.world.relay
        return relay.waiting() if relay is not None else []

    def _controllers_must_answer(self) -> None:
        """Fails the run if a controller has not answered: measurements would be meaningless."""
        unmet = self._unmet()
        if self._stopping or not unmet or not self._waiting:
            return
        line = unmet[0]
        more = f", nor do {len(unmet) - 1} others" if len(unmet) > 1 else ""
        self.failure = self.failure or RunError(
            "controller.unreachable",
            f"switch {line}: no controller answers there{more}: {line.why.lower()}",
            cure="start one as a program of that node, with `ready: {port: ...}`",
        )
        self.timeline.end()

    def _controller_changed(self, line: Line) -> None:
        self._note(f"{line} {'connected' if line.connected else 'lost'}", "controller")
        self._go_on()

    def _is_done(self) -> bool:
        return (
            not self._open_ended
            and self.plan.scenario.duration is None
            and not self._agenda.is_awaited
            and not any(supervised.holds_up for supervised in self.programs.values())
            and all(measuring.settled for measuring in self.measurings.values())
            and all(supervised.settled for supervised in self.programs.values())
        )

    def _time_is_up(self) -> None:
        """The scenario's duration is over: programs and measurements that should have ended fail."""
        span = f"the run's duration of {seconds(self.plan.scenario.duration or 0)}"
        for measuring in self.measurings.values():
            measuring.cancel(RunError("measure.unfinished", f"not done within {span}", where=measuring.name))
        held = self._take_held()
        late = [
            one
            for one in self.programs.values()
            if not one.settled and one.program.expect is not None and one not in held
        ]
        if late and self.failure is None:
            names = ", ".join(str(one) for one in late)
            self.failure = RunError(
                "program.unfinished",
                f"{names} had not ended within {span}",
                cure="give it more time, or say `until_end: true` or `expect: null`",
            )
        elif held and self.failure is None:
            awaited = ", ".join(str(one) for one in held[0].awaited)
            self.failure = RunError(
                "program.unstarted",
                f"{held[0]} had not started within {span}: it waited for {awaited}",
                cure="give it more time",
            )
        self.timeline.end()

    def _measure(self, name: str) -> None:
        measuring = self.measurings[name]
        if measuring.state == "prepared":
            measuring.begin(self.world.zero, self.zero_realtime)

    def _prepared(self) -> bool:
        return all(one.state == "prepared" or one.settled for one in self.measurings.values())

    def _measuring_changed(self, measuring: Measuring) -> None:
        if measuring.state == "prepared" or (measuring.state == "failed" and not self.world.running):
            if self._prepared() and not self.world.running:
                self.timeline.end()  # ends the preparation
        elif measuring.state == "running":
            self.watcher.measuring(measuring.name, measuring.expected)
        if measuring.settled:
            if measuring.failure is not None:
                if not self._stopping:
                    self.watcher.failed(measuring.name, str(measuring.failure))
            elif measuring.reading is not None:
                self.watcher.measured(measuring.name, measuring.reading.metrics())
                self._on_measured(measuring)
            if self._in_turn == measuring.name:
                self._in_turn = None
            if self.world.running:
                self.timeline.post(self._go_on)

    def _program_changed(self, supervised: Supervised) -> None:
        if supervised.state == "failed" and supervised.failure is not None:
            self._note(f"{supervised} failed", "failure")
            if not self._stopping:
                self.failure = self.failure or supervised.failure
                self.timeline.end()
        elif supervised.state in ("running", "ended") or supervised.program.ready is not None:
            self._note(f"{supervised} {_SAID[supervised.state]}", "program")
        self.timeline.post(self._end_when_quiet if self._stopping else self._go_on)

    def _end_when_quiet(self) -> None:
        if not any(supervised.alive for supervised in self.programs.values()):
            self.timeline.end()

    def _carry_out(self, event: Event) -> None:
        self._note(timed_changes.describe(event), "event")
        try:
            if event.program is not None:
                self._program_event(event)
            elif event.node is not None and event.action is not None:
                self._node_event(event.node, event.action)
        except LabError as error:
            self.failure = self.failure or error
            self.timeline.end()
        self._go_on()

    def _program_event(self, event: Event) -> None:
        supervised = self.program(event.program or "")
        if event.action == "start":
            supervised.start()
        elif event.action == "stop":
            supervised.stop()
        else:
            supervised.signal(signal_number(event.signal or "TERM"))

    def program(self, name: str) -> Supervised:
        """The program with this name."""
        try:
            return self.programs[name]
        except KeyError:
            raise RunError(
                "program.unknown",
                f"no program is called {name}",
                cure=f"programs are: {', '.join(self.programs) or 'none'}",
            ) from None

    def _node_event(self, name: str, action: str) -> None:
        if action in ("stop", "kill"):
            self.switching.stop(name, kill=action == "kill")
        elif action == "start":
            self.switching.start(name)
        elif action == "pause":
            self.world.pause(name)
        else:
            self.world.resume(name)

    def _note(self, text: str, kind: HappeningKind) -> None:
        at = self.world.now()
        self.happenings.append((at, text, kind))
        self.watcher.happened(at, text)


_SAID = {"waiting": "waits to be restarted", "running": "started", "ready": "is ready", "ended": "ended"}
