"""A live laboratory: nodes that stay up while Python code or a prompt controls them.

::

    with airloom.Lab("star.yaml") as lab:
        lab["h1"].run("ping -c 3 h2").stdout
        server = lab["h2"].start("iperf3 -s")
        lab.link("h1", "s1").set(delay="20 ms", loss="1 %")
        reading = lab.measure("load", iperf3={"from": "h1", "to": "h2", "duration": "5 s"})
    lab.result.verdict.status
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from airloom import rpc
from airloom.errors import LabError, RunError, ScenarioError
from airloom.lab.attached import AttachedLab, attach
from airloom.lab.capturing import CapturedRun
from airloom.lab.handles import LiveGuest, LiveLink, LiveNode, link_of, unknown
from airloom.lab.live_plan import live_plan
from airloom.lab.live_program import Completed, LiveProgram
from airloom.lab.measuring import measurement_of, refuse
from airloom.lab.other_terminals import ForOtherTerminals
from airloom.lab.radio import LiveRadio, positions, radios_of
from airloom.lab.radio_view import Look
from airloom.lab.server import LiveServer
from airloom.lab.steering import TOUCHED, Steered
from airloom.lab.whereabouts import read_where_it_is, where_it_is
from airloom.measure import Reading
from airloom.nodes import doctor
from airloom.planning.capture import Capture
from airloom.planning.difference import Step
from airloom.planning.extend import grown, regranted
from airloom.planning.openflow.flow_loops import FlowLoops
from airloom.planning.plan import Plan
from airloom.results import RunWriter
from airloom.runs import applying, flow_loops, growing
from airloom.runs.batch import RunResult, default_folder, kinds_of
from airloom.runs.measurement import Measuring
from airloom.runs.progress import Watcher
from airloom.runs.single import OneRun
from airloom.runs.tools import FIRST_PORT, tools_of
from airloom.scenario.model import Scenario
from airloom.scenario.model.ready_tests import MOST_STREAMS
from airloom.scenario.problems import raise_first
from airloom.scenario.reader import opened
from airloom.units import html
from airloom.units.quantities import Duration
from airloom.verdict import Verdict

GRANT_LEAD = 10_000_000
"""ns from a call to the change of grants without a time: the engine knows all its parts by then."""

__all__ = ["Completed", "Lab", "LiveGuest", "LiveLink", "LiveNode", "LiveProgram", "LiveRadio"]


class Lab(Steered, ForOtherTerminals):
    """A laboratory that runs during its ``with`` block.

    Programs and events of the scenario run as in ``airloom run``. Its measurements do not run;
    use :meth:`measure`. The results are in a folder as after a run: :attr:`result`.
    """

    def __init__(
        self,
        source: str | Path | Scenario,
        *,
        overrides: Iterable[str] | Mapping[str, Any] = (),
        seed: int | None = None,
        time: Literal["wall", "virtual"] | None = None,
        out: str | Path | None = None,
        capture: bool | Capture = False,
        watcher: Watcher | None = None,
    ) -> None:
        """Checks the scenario; nothing is created before the ``with`` block is entered.

        ``time``: the clock, instead of the scenario's. Virtual time stands still but for what waits:
        :meth:`run_for`, :meth:`run_until`, :meth:`step`, a command, a measurement. One script of
        calls then gives the same times, output and captures each time.
        """
        if time is not None:
            if isinstance(overrides, Mapping):
                overrides = {**overrides, "time": time}
            else:
                overrides = [*overrides, f"time={time}"]
        plan = live_plan(source, overrides, seed)
        captured = Capture.of(capture)
        if captured is not None:
            captured.wanted(plan)  # refused before anything starts
        folder = Path(out) if out is not None else default_folder(plan.scenario.name)
        self._set(plan, folder, captured, watcher or Watcher())

    def _set(self, plan: Plan, folder: Path, capture: Capture | None, watcher: Watcher) -> None:
        self.plan = plan
        self.folder = folder
        self._capture = capture
        self._watcher = watcher
        self._there: Lab | None = None
        """The laboratory in the helper process, if this process lacks the privilege for it."""
        self._stack = contextlib.ExitStack()
        self._one: OneRun | None = None
        self._thread: threading.Thread | None = None
        self._again: int | None = None
        """Engine time in ns up to which an earlier run is replayed."""
        self._links: dict[str, LiveLink] = {}
        self._measured = 0
        self._counting = threading.Lock()
        self._changing = threading.Lock()

    def watch(self, watcher: Watcher) -> None:
        """Sets the receiver of the progress; before the ``with`` block is entered."""
        self._watcher = watcher

    def __repr__(self) -> str:
        state = "up" if self.is_up else "not up"
        return f"Lab({self.plan.scenario.name!r}, {len(self.plan.nodes)} nodes, {state})"

    def _repr_html_(self) -> str:
        rows = [
            (
                name,
                node.kind,
                ", ".join(interface.name for interface in node.interfaces),
                ", ".join(str(one) for interface in node.interfaces for one in interface.addresses),
            )
            for name, node in self.plan.nodes.items()
        ]
        links = [
            (link.name, link.a, link.b, link.forward.text, link.backward.text)
            for link in self.plan.links.values()
        ]
        said = html.paragraph(repr(self))
        said += html.table(["node", "kind", "interfaces", "addresses"], rows)
        ends = ["link", "from", "to", "there", "back"]
        return said + (html.table(ends, links) if links else "")

    @staticmethod
    def attach(lab: str | int | None = None) -> AttachedLab:
        """Attaches to a laboratory of this user that is up in another process of this machine.

        ``lab`` is its name or process id; without it the only one that is up. It was started by
        ``airloom up``, by another :class:`Lab`, or it is the network of a Mininet script
        (``airloom mn``, ``airloom mn-run``). It stays up afterwards. Raises :class:`~airloom.RunError`
        if there is none, or none of this name.
        """
        return attach(lab)

    # Start and stop

    def __enter__(self) -> Self:
        if rpc.is_needed(namespaces=not self.plan.virtual):
            watcher = rpc.Lasting(self._watcher)
            self._there = rpc.call(begun, self.plan, self.folder, self._capture, watcher, self._again)
        else:
            self._begin()
        return self

    def _begin(self) -> None:
        plan = self.plan
        doctor.require_for(plan)
        with contextlib.ExitStack() as stack:
            writer = stack.enter_context(
                RunWriter(
                    self.folder,
                    scenario=plan.scenario.name,
                    seed=plan.seed,
                    kinds=kinds_of(plan),
                    scenario_text=plan.scenario.to_yaml(),
                )
            )
            again = self._again
            one = OneRun(plan, writer, self._watcher, capture=self._capture, measure=again is not None)
            stack.enter_context(one)
            self._one = one
            if again is not None:
                one.runner.prepare()
            one.runner.begin(open_ended=True)
            if one.world.pacer is not None:
                one.world.pacer.passing = one.runner.pass_time
            else:
                run = one.runner.timeline.run
                self._thread = threading.Thread(target=run, name="airloom-lab", daemon=True)
                self._thread.start()
            stack.callback(self._end_timeline)
            self._links = {name: LiveLink(link, one.world) for name, link in plan.links.items()}
            if again is not None:
                one.world.pass_time(again)
            if plan.virtual:
                one.note(f"{TOUCHED}: it was steered while it ran: its scenario alone does not repeat it")
            server = LiveServer(plan.scenario.name, self, CapturedRun(one))
            stack.callback(server.close)
            self._stack = stack.pop_all()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._there is not None:
            try:
                rpc.call(ended, self._there, error is not None)
            finally:
                rpc.forget(self._watcher)
        else:
            self._end(failed=error is not None)

    def _end(self, *, failed: bool) -> None:
        one = self._one
        with self._stack:
            self._end_timeline()
            if one is not None:
                if not self.plan.virtual or one.runner.failure is None:
                    one.runner.stop()
                self._one = None
                if not failed:
                    one.close()
                    one.finish()

    def _end_timeline(self) -> None:
        if self._thread is not None and self._one is not None:
            timeline = self._one.runner.timeline
            timeline.post(timeline.end)
            self._thread.join()
            self._thread = None
        elif self._one is not None and self._one.world.pacer is not None:
            # What the timeline still has for later is not part of the end.
            self._one.world.pacer.passing = self._one.world.pacer.advance

    # State

    @property
    @read_where_it_is
    def is_up(self) -> bool:
        """True inside the ``with`` block."""
        return self._one is not None

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes."""
        return list(self.plan.nodes)

    @property
    def switches(self) -> list[str]:
        """Names of the switches and hubs."""
        return list(self.plan.switches)

    @property
    def slices(self) -> list[str]:
        """Names of the slices."""
        return list(self.plan.scenario.slices)

    @property
    def addresses(self) -> dict[str, str]:
        """Address of each node, by name."""
        return dict(self.plan.hosts)

    @property
    @read_where_it_is
    def links(self) -> list[LiveLink]:
        """All links."""
        return list(self._links.values())

    @where_it_is
    def __getitem__(self, name: str) -> LiveNode:
        try:
            plan = self.plan.nodes[name]
        except KeyError:
            raise self._no_node(name) from None
        return LiveNode(self._up().runner, plan, self._up().writer.log_path)

    @where_it_is
    def guest(self, name: str) -> LiveGuest:
        """A guest that several nodes share."""
        guests = self._up().world.guests
        try:
            return LiveGuest(self._up().runner, guests[name])
        except KeyError:
            raise unknown("guest", name, guests) from None

    def _no_node(self, name: str) -> LabError:
        guests = self._up().world.guests
        if name not in guests:
            return unknown("node", name, self.plan.nodes)
        inside = ", ".join(part.name for part in guests[name].parts)
        return RunError(
            "node.unknown", f"{name} is no node but the guest of {inside}", cure="name one of these"
        )

    def add(self, name: str, *, links: Iterable[Mapping[str, Any]] = (), **properties: Any) -> LiveNode:
        """Adds a node of any kind and links it to existing switches or hubs.

        ``lab.add("h9", links=[{"ends": ["h9", "s1"], "delay": "1 ms"}], kind="container",
        image="web.tar")``: ``links`` and ``properties`` are written as in a scenario. Nodes
        on this machine's kernel can resolve its name from then on; guests reach it by its address.
        """
        if self._there is not None:
            node = self._there.add(name, links=links, **properties)
            self.plan = self._there.plan
            return node
        one = self._up()
        one.world.refuse_in_virtual_time("one more node")
        with self._changing:
            plan = grown(self.plan, name, properties, [dict(link) for link in links])
            growing.grow(one.world, plan, name)
            self.plan = one.plan = one.runner.plan = plan
        self._links |= {
            link: LiveLink(made, one.world) for link, made in plan.links.items() if link not in self._links
        }
        return self[name]

    def apply(
        self,
        source: str | Path | Scenario,
        *,
        overrides: Iterable[str] | Mapping[str, Any] = (),
        seed: int | None = None,
        dry_run: bool = False,
    ) -> tuple[Step, ...]:
        """Makes the laboratory what a changed scenario describes; what is alike in both goes on.

        Returns the steps from what runs to that. ``dry_run``: changes nothing. Settings of links that were
        changed by hand, and positions, become those of the scenario too. What cannot change while it
        runs is refused with :class:`ScenarioError`, and nothing changes.
        """
        if self._there is not None:
            place = source if isinstance(source, Scenario) else Path(source).absolute()
            steps = self._there.apply(place, overrides=overrides, seed=seed, dry_run=dry_run)
            self.plan = self._there.plan
            return steps
        one = self._up()
        one.world.refuse_in_virtual_time("another scenario")
        plan = live_plan(source, overrides, seed)
        with self._changing:
            found = applying.difference(one.runner, plan)
            raise_first(found.problems, opened(source))
            if found and not dry_run:
                applying.apply(one.runner, found, plan)
                self.plan = plan
                one.follow(plan)
                self._links = {name: LiveLink(link, one.world) for name, link in plan.links.items()}
        return tuple(found.steps)

    @where_it_is
    def link(self, first: str, second: str | None = None) -> LiveLink:
        """A link by its name, or by its two ends if they have exactly one link."""
        self._up()
        return link_of(self._links, first, second)

    def change_grants(self, changes: Mapping[str, Mapping[str, Any]], *, at: str | int | None = None) -> int:
        """Changes the grants of slices, all at one time; returns that engine time in ns.

        ``lab.change_grants({"one": {"channels": [40]}, "two": {"channels": [36]}}, at="12 s")`` hands
        channels over, and ``{"one": {"nodes": ["n2"]}, "two": {"nodes": ["n1", "n2"]}}`` a radio of n1.
        Limits are written as in an event's ``grant``, and those that are not named stay.
        Without ``at`` it is 10 ms after the call. What two slices would hold at once, then or at a
        change that is planned for later, is refused with :class:`ScenarioError`, and nothing changes.
        """
        if self._there is not None:
            when = self._there.change_grants(changes, at=at)
            self.plan = self._there.plan
            return when
        one = self._up()
        now = one.world.now()
        when = now + GRANT_LEAD if at is None else int(Duration(at)) if isinstance(at, str) else at
        if when <= now:
            raise ScenarioError(
                "grant.past", f"{when / 1e9:g} s has passed: it is {now / 1e9:g} s", cure="give a later time"
            )
        with self._changing:
            plan = regranted(self.plan, when, changes)
            one.runner.change_grants(plan)
            self.plan = one.plan = plan
        return when

    @property
    @read_where_it_is
    def radios(self) -> list[LiveRadio]:
        """All radios."""
        return list(radios_of(self._up().world).values())

    @where_it_is
    def radio(self, name: str) -> LiveRadio:
        """A radio by ``node:interface``, or by its node if that has only one."""
        radios = radios_of(self._up().world)
        found = [radio for port, radio in radios.items() if name in (port, port.partition(":")[0])]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(radio.name for radio in found)
            raise RunError("radio.ambiguous", f"{name} has {len(found)} radios", cure=f"name one: {names}")
        raise unknown("radio", name, radios)

    @where_it_is
    def positions(self) -> dict[str, tuple[float, float, float]]:
        """Position of each node with radios, in metres (east, north, height)."""
        return positions(self._up().world)

    @where_it_is
    def unmet_controllers(self) -> list[str]:
        """Open vSwitches without a connection to a controller: ``s1: tcp:c0:6653``."""
        relay = self._up().world.relay
        return [str(line) for line in relay.waiting()] if relay is not None else []

    @where_it_is
    def flow_loops(self) -> FlowLoops:
        """Finds loops in the flow tables that its Open vSwitches have now; each is traced there."""
        return flow_loops.found(self._up().world)

    @where_it_is
    def air(self) -> Look:
        """Returns the state of all radios and channels, for :mod:`airloom.lab.radio_view`."""
        world = self._up().world
        return Look(world.now(), world.radios(), world.channels())

    @where_it_is
    def now(self) -> int:
        """Returns the engine time in nanoseconds."""
        return self._up().world.now()

    @where_it_is
    def ledger(self) -> dict[str, Any]:
        """Returns the engine's ledger."""
        return dict(self._up().world.engine.ledger())

    @where_it_is
    def verdict(self) -> Verdict:
        """Returns the verdict on the run so far."""
        return self._up().verdict()

    @property
    def result(self) -> RunResult:
        """The results; complete after the end of the block."""
        return RunResult(self.folder)

    # Actions

    @where_it_is
    def measure(self, name: str | None = None, **tool: Mapping[str, Any]) -> Reading:
        """Runs a measurement and waits for its end. Keys are those of a scenario.

        ``lab.measure("rtt", ping={"from": "h1", "to": "h2", "count": 10})``. The reading has
        ``metrics()``, the figures by name and unit, and ``samples()``, the time series as an Arrow
        table; both also go into the results.
        """
        one = self._up()
        with self._counting:
            self._measured += 1
            number = self._measured
        label = name or f"{next(iter(tool), 'measurement')}-{number}"
        measurement = measurement_of(label, tool)
        refuse(measurement, one.plan.scenario)
        made = tools_of(one.plan, [measurement], FIRST_PORT + 100 + MOST_STREAMS * number)[label]
        over = threading.Event()
        found: list[Measuring] = []
        refused: list[Exception] = []

        def settle(measuring: Measuring) -> None:
            if measuring.settled:
                over.set()

        def act() -> None:
            try:
                found.append(one.runner.measure_now(label, made, one.writer.folder / "measurements", settle))
            except Exception as error:  # passed to the caller; the laboratory continues
                refused.append(error)
                over.set()

        one.runner.timeline.post(act)
        if one.world.pacer is not None:
            one.world.pacer.wait(over.is_set, None)
        while not over.wait(0.2):
            if self._thread is None or not self._thread.is_alive():
                raise one.runner.failure or RunError("lab.closed", "the laboratory is not up")
        if refused:
            raise refused[0]
        measuring = found[0]
        if measuring.failure is not None:
            raise measuring.failure
        assert measuring.reading is not None
        return measuring.reading

    def _up(self) -> OneRun:
        if self._one is None:
            raise RunError("lab.closed", "the laboratory is not up", cure="use it inside its `with` block")
        return self._one


def begun(plan: Plan, folder: Path, capture: Capture | None, watcher: Watcher, again: int | None) -> Lab:
    """Begins a laboratory in the helper process."""
    lab = Lab.__new__(Lab)
    lab._set(plan, folder, capture, watcher)
    lab._again = again
    lab._begin()
    return lab


def ended(lab: Lab, failed: bool) -> None:
    """Ends a laboratory in the helper process."""
    lab._end(failed=failed)
