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
import difflib
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError

from airloom.errors import LabError, RunError, ScenarioError
from airloom.lab.handles import (
    Completed,
    LiveGuest,
    LiveLink,
    LiveNode,
    LiveProgram,
    Switched,
    code_of,
)
from airloom.lab.radio import LiveRadio, positions, radios_of
from airloom.lab.radio_view import Look
from airloom.lab.server import LiveServer
from airloom.measure import Reading
from airloom.nodes import doctor
from airloom.nodes.kind import Process
from airloom.planning.capture import Capture
from airloom.planning.extend import grown, regranted
from airloom.planning.flow_loops import FlowLoops
from airloom.planning.network import expand
from airloom.planning.rules.measure import measurements
from airloom.results import RunWriter
from airloom.runs import flow_loops
from airloom.runs.batch import RunResult, default_folder, kinds_of, prepare
from airloom.runs.measurement import Measuring
from airloom.runs.progress import Watcher
from airloom.runs.single import OneRun
from airloom.runs.tools import FIRST_PORT, tools_of
from airloom.scenario import problems
from airloom.scenario.model import Measurement, Scenario
from airloom.scenario.model.ready_tests import MOST_STREAMS
from airloom.scenario.source import Source
from airloom.units import html
from airloom.units.quantities import Duration
from airloom.verdict import Verdict

GRANT_LEAD = 10_000_000
"""ns from a call to the change of grants without a time: the engine knows all its parts by then."""

__all__ = ["Completed", "Lab", "LiveGuest", "LiveLink", "LiveNode", "LiveProgram", "LiveRadio"]


class Lab:
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
        out: str | Path | None = None,
        capture: bool | Capture = False,
        watcher: Watcher | None = None,
    ) -> None:
        """Checks the scenario; nothing is created before the ``with`` block is entered."""
        plans = prepare(source, overrides=overrides, seed=seed).plans
        if len(plans) != 1:
            raise ScenarioError(
                "lab.sweep",
                f"a live laboratory is one run, and this scenario describes {len(plans)}",
                cure="take `sweep` and `repetitions` out, or use airloom.run",
            )
        self.plan = plans[0]
        self.folder = Path(out) if out is not None else default_folder(self.plan.scenario.name)
        self._capture = Capture.of(capture)
        if self._capture is not None:
            self._capture.wanted(self.plan)  # refused before anything starts
        self._watcher = watcher or Watcher()
        self._stack = contextlib.ExitStack()
        self._one: OneRun | None = None
        self._thread: threading.Thread | None = None
        self._links: dict[str, LiveLink] = {}
        self._measured = 0
        self._counting = threading.Lock()
        self._changing = threading.Lock()

    def watch(self, watcher: Watcher) -> None:
        """Sets the receiver of the progress; before the ``with`` block is entered."""
        self._watcher = watcher

    def __repr__(self) -> str:
        state = "up" if self._one is not None else "not up"
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

    # Start and stop

    def __enter__(self) -> Self:
        plan = self.plan
        doctor.require_basics(taps=plan.has_taps, shares=plan.shares)
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
            one = OneRun(plan, writer, self._watcher, capture=self._capture, measure=False)
            stack.enter_context(one)
            self._one = one
            one.runner.begin(open_ended=True)
            self._thread = threading.Thread(target=one.runner.timeline.run, name="airloom-lab", daemon=True)
            self._thread.start()
            stack.callback(self._end_timeline)
            self._links = {name: LiveLink(link, one.world) for name, link in plan.links.items()}
            server = LiveServer(plan.scenario.name, self)
            stack.callback(server.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        one = self._one
        with self._stack:
            self._end_timeline()
            if one is not None:
                one.runner.stop()
                self._one = None
                if error is None:
                    one.close()
                    one.finish()

    def _end_timeline(self) -> None:
        if self._thread is not None and self._one is not None:
            timeline = self._one.runner.timeline
            timeline.post(timeline.end)
            self._thread.join()
            self._thread = None

    # State

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
    def links(self) -> list[LiveLink]:
        """All links."""
        return list(self._links.values())

    def __getitem__(self, name: str) -> LiveNode:
        try:
            plan = self.plan.nodes[name]
        except KeyError:
            raise self._no_node(name) from None
        return LiveNode(self._up().world, plan, self._up().writer.log_path)

    def guest(self, name: str) -> LiveGuest:
        """A guest that several nodes share."""
        world = self._up().world
        try:
            return LiveGuest(world, world.guests[name])
        except KeyError:
            raise _unknown("guest", name, world.guests) from None

    def _no_node(self, name: str) -> LabError:
        guests = self._up().world.guests
        if name not in guests:
            return _unknown("node", name, self.plan.nodes)
        inside = ", ".join(part.name for part in guests[name].parts)
        return RunError(
            "node.unknown", f"{name} is no node but the guest of {inside}", cure="name one of these"
        )

    def add(self, name: str, *, links: Iterable[Mapping[str, Any]] = (), **properties: Any) -> LiveNode:
        """Adds a node of any kind and links it to existing switches or hubs.

        ``lab.add("h9", links=[{"ends": ["h9", "s1"], "delay": "1 ms"}], kind="container",
        image="web.tar")``: ``links`` and ``properties`` are written as in a scenario. Nodes made
        from now on can resolve its name; existing nodes reach it by its address.
        """
        one = self._up()
        with self._changing:
            plan = grown(self.plan, name, properties, [dict(link) for link in links])
            one.world.grow(plan, name)
            self.plan = one.plan = one.runner.plan = plan
        self._links |= {
            link: LiveLink(made, one.world) for link, made in plan.links.items() if link not in self._links
        }
        return self[name]

    def link(self, first: str, second: str | None = None) -> LiveLink:
        """A link by its name, or by its two ends if they have exactly one link."""
        self._up()
        if second is None:
            if first in self._links:
                return self._links[first]
            raise _unknown("link", first, self._links)
        found = [
            link
            for link in self._links.values()
            if (_end(link.a, first) and _end(link.b, second))
            or (_end(link.a, second) and _end(link.b, first))
        ]
        if len(found) == 1:
            return found[0]
        names = ", ".join(link.name for link in found)
        raise RunError(
            "link.unknown" if not found else "link.ambiguous",
            f"{'no link joins' if not found else f'{len(found)} links join'} {first} and {second}",
            cure=f"name one: {names}" if found else f"links are: {', '.join(self._links)}",
        )

    def change_grants(self, changes: Mapping[str, Mapping[str, Any]], *, at: str | int | None = None) -> int:
        """Changes the grants of slices, all at one time; returns that engine time in ns.

        ``lab.change_grants({"one": {"channels": [40]}, "two": {"channels": [36]}}, at="12 s")`` hands
        channels over, and ``{"one": {"nodes": ["n2"]}, "two": {"nodes": ["n1", "n2"]}}`` a radio of n1.
        Limits are written as in an event's ``grant``, and those that are not named stay.
        Without ``at`` it is 10 ms after the call. What two slices would hold at once, then or at a
        change that is planned for later, is refused with :class:`ScenarioError`, and nothing changes.
        """
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
    def radios(self) -> list[LiveRadio]:
        """All radios."""
        return list(radios_of(self._up().world).values())

    def radio(self, name: str) -> LiveRadio:
        """A radio by ``node:interface``, or by its node if that has only one."""
        radios = radios_of(self._up().world)
        found = [radio for port, radio in radios.items() if name in (port, port.partition(":")[0])]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(radio.name for radio in found)
            raise RunError("radio.ambiguous", f"{name} has {len(found)} radios", cure=f"name one: {names}")
        raise _unknown("radio", name, radios)

    def positions(self) -> dict[str, tuple[float, float, float]]:
        """Position of each node with radios, in metres (east, north, height)."""
        return positions(self._up().world)

    def unmet_controllers(self) -> list[str]:
        """Open vSwitches without a connection to a controller: ``s1: tcp:c0:6653``."""
        relay = self._up().world.relay
        return [str(line) for line in relay.waiting()] if relay is not None else []

    def flow_loops(self) -> FlowLoops:
        """Finds loops in the flow tables that its Open vSwitches have now; each is traced there."""
        return flow_loops.found(self._up().world)

    def air(self) -> Look:
        """Returns the state of all radios and channels, for :mod:`airloom.lab.radio_view`."""
        world = self._up().world
        return Look(world.now(), world.radios(), world.channels())

    def now(self) -> int:
        """Returns the engine time in nanoseconds."""
        return self._up().world.now()

    def ledger(self) -> dict[str, Any]:
        """Returns the engine's ledger."""
        return dict(self._up().world.engine.ledger())

    def verdict(self) -> Verdict:
        """Returns the verdict on the run so far."""
        return self._up().verdict()

    @property
    def result(self) -> RunResult:
        """The results; complete after the end of the block."""
        return RunResult(self.folder)

    # Actions

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
        _refuse(measurement, one.plan.scenario)
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

    # The interface for other terminals (see airloom.lab.server)

    def info(self) -> dict[str, Any]:
        """Description of the laboratory for other terminals."""
        return {"scenario": self.plan.scenario.name, "nodes": self.nodes, "folder": str(self.folder)}

    def admit(
        self, node: str, argv: Sequence[str], env: Mapping[str, str], descriptors: Sequence[int], tty: bool
    ) -> ClientProgram:
        """Starts a program for another terminal."""
        if node not in self.plan.nodes:
            raise self._no_node(node)
        stdin, stdout, stderr = descriptors
        handle = self._up().world.nodes[node]
        return ClientProgram(handle.start(argv, env=env, stdin=stdin, stdout=stdout, stderr=stderr, tty=tty))

    def control(self, node: str, action: str) -> None:
        """Controls a node or shared guest for another terminal."""
        acts = {"pause": Switched.pause, "resume": Switched.resume, "stop": Switched.stop}
        acts |= {"kill": Switched.kill, "start": Switched.restart}
        acts[action](self.guest(node) if node in self._up().world.guests else self[node])

    def _up(self) -> OneRun:
        if self._one is None:
            raise RunError("lab.closed", "the laboratory is not up", cure="use it inside its `with` block")
        return self._one


class ClientProgram:
    """A program started from another terminal."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def wait(self) -> int:
        """Waits for the end; returns the exit code as a shell does."""
        return code_of(self._process.wait())

    def signal(self, number: int) -> None:
        """Sends a signal to the program."""
        self._process.signal(number)


def measurement_of(name: str, tool: Mapping[str, Any]) -> Measurement:
    """Returns a validated measurement; raises :class:`~airloom.ScenarioError`."""
    try:
        return Measurement.model_validate({"name": name, **tool})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ScenarioError(
            "measurement.wrong", f"{place}: {first['msg']}", where=f"measurement {name}"
        ) from None


def _refuse(measurement: Measurement, scenario: Scenario) -> None:
    """Applies the rules of a scenario's measurements to one that is made now."""
    asked = scenario.model_copy(update={"measurements": [measurement], "duration": None})
    problems.raise_first(measurements(asked, expand(asked)), Source({}, None, Path()))


def _end(end: str, name: str) -> bool:
    return name in (end, end.partition(":")[0])


def _unknown(what: str, name: str, known: Iterable[str]) -> LabError:
    names = list(known)
    near = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(names[:20]) or 'none'}"
    return RunError(f"{what}.unknown", f"there is no {what} {name}", cure=hint)
