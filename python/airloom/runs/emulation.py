"""The emulation of a plan: nodes with their network stacks, connected by the engine.

::

    with World(plan, visible=[folder]) as world:
        world.begin()                     # time zero
        world.nodes["h1"].exec(["ping", "-c1", "h2"])
        world.set_link("h1-h2", "both", settings)

Everything it created is removed when the block ends, or when this process dies for any reason.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from airloom import _engine
from airloom.errors import RunError, translated
from airloom.host import idle_poll, privilege
from airloom.nodes.all_nodes import Nodes
from airloom.nodes.guests import scratch
from airloom.nodes.guests.guest import GuestNode
from airloom.nodes.kind import NodeHandle
from airloom.nodes.network import unsent
from airloom.nodes.network.control_capture import ControlCapture
from airloom.nodes.network.controller_proxy import Relay
from airloom.nodes.network.published_ports import PublishedPorts
from airloom.nodes.network.unsent import Passed
from airloom.nodes.process import scheduling
from airloom.nodes.process.scheduling import on_processors
from airloom.nodes.process.supervisor import Supervisor
from airloom.nodes.virtual_time import TIME_OF_DAY, Pacer
from airloom.planning import timed_changes
from airloom.planning.capture import Capture
from airloom.planning.links.link_settings import LinkSettings
from airloom.planning.machine.cpus import POLICIES, available
from airloom.planning.plan import LinkPlan, NodePlan, Plan
from airloom.planning.routing import resolved
from airloom.runs import engine_setup, underlay
from airloom.runs.link_states import LinkStates
from airloom.runs.one_processor import one_processor
from airloom.runs.radio_control import RadioControl
from airloom.runs.refusals import Refusals

_PAUSE = 0.001
"""Seconds between two checks for guests that request service."""


class World:
    """The nodes and the engine of one run."""

    def __init__(
        self,
        plan: Plan,
        *,
        visible: Sequence[Path] = (),
        capture: Capture | None = None,
        captured: Path | None = None,
        control: ControlCapture | None = None,
        on_node_failure: Callable[[NodeHandle], None] | None = None,
        log_path: Callable[[str, str], Path] | None = None,
        engine: Callable[[int], _engine.Engine] = _engine.Engine,
    ) -> None:
        """``engine``: makes the engine from the plan's seed."""
        self._make_engine = engine
        self.plan = plan
        self.nodes: Mapping[str, NodeHandle] = {}
        self._unknown: tuple[str, ...] = ()
        self.running = False
        self._passed: dict[str, Passed] = {}
        self._last_counters: dict[str, dict[str, dict[str, int]]] | None = None
        self._idle_polled = 0
        self.early_drops: dict[str, int] = {}
        """By port: frames that the node's kernel dropped before the port could take any, as it sends the
        first ones (IPv6) while an interface comes up."""
        self.zero = time.monotonic_ns()
        """CLOCK_MONOTONIC (in virtual time the calendar) at time zero in ns; before it, at the creation."""
        self.ports: set[str] = set()
        """Ports that the engine has or had for interfaces of nodes."""
        self.switches: dict[str, Any] = {}
        """Switches that the engine has or had, with their settings."""
        self.laws: dict[str, Any] = {}
        """Media that the engine has or had, with their settings."""
        self._off: set[str] = set()
        """Nodes that are switched off."""
        self._silenced: dict[str, list[str]] = {}
        """Per node that is switched off: its radios that were switched off with it."""
        self.link_states = LinkStates()
        self.supervisor_pid = 0
        """PID of the supervisor, the ancestor of all node processes, while the emulation is open."""
        self._visible = tuple(visible)
        self._capture, self._captured = capture, captured
        """What is captured, and the file or folder of that."""
        self.refusals = Refusals()
        self.control = control
        """Captures the control channels of switches; None without captures."""
        self._on_node_failure, self._log_path = on_node_failure, log_path
        self._nodes: Nodes | None = None
        self.published = PublishedPorts(self._namespace_of)
        self._radio_control: RadioControl | None = None
        self._engine_tasks: list[int] = []
        self._meeting = contextlib.ExitStack()
        """Serves guests' devices until time zero."""
        self._stack = contextlib.ExitStack()
        budget = plan.scenario.engine.guest_budget / 1e9
        self.pacer = (
            Pacer(plan.seed, budget=budget, turns=plan.turns, processors=plan.processors)
            if plan.virtual
            else None
        )
        """Lets virtual time pass; None in wall time."""
        self.at_begin: list[Callable[[], None]] = []
        """What is done at time zero in virtual time."""
        self._engine: _engine.Engine | None = None

    @property
    def engine(self) -> _engine.Engine:
        """The engine. It exists while the emulation is open."""
        if self._engine is None:
            raise RunError("world.closed", "the laboratory is not up")
        return self._engine

    def __enter__(self) -> World:
        with translated(), contextlib.ExitStack() as stack:
            unknown = underlay.survey([self.plan])
            tunnels = {
                name: stack.enter_context(underlay.sockets(tunnel))
                for name, tunnel in self.plan.tunnels.items()
            }
            stack.enter_context(self.published)
            self.published.reserve(self.plan.nodes.values())
            if self.pacer is not None:
                self.zero = 0
                stack.callback(self.pacer.close)
                stack.enter_context(one_processor())
            supervisor = stack.enter_context(Supervisor(self._scratch()))
            self.supervisor_pid = supervisor.pid
            nodes = stack.enter_context(
                Nodes(
                    self.plan,
                    supervisor,
                    visible=self._visible,
                    on_failure=self._on_node_failure,
                    log_path=self._log_path,
                    control=self.control,
                    pacer=self.pacer,
                )
            )
            self.nodes = nodes.bring_up()
            self._unknown = tuple(unknown)
            self._nodes = nodes
            self._engine = self._make_engine(self.plan.seed)
            stack.callback(self._close_engine)
            if self.pacer is not None:
                self.pacer.attach(self._engine)
            for name, sockets in tunnels.items():
                engine_setup.add_tunnel(self._engine, self.plan.tunnels[name], name, sockets)
            self.ports |= engine_setup.add_network(self._engine, self.plan, self.nodes)
            self.switches = {name: switch.settings for name, switch in self.plan.switches.items()}
            self.laws = {name: medium.settings for name, medium in self.plan.media.items()}
            if self._capture is not None and self._captured is not None:
                wanted, apart = self._capture.wanted(self.plan), not self._capture.merged
                self._engine.capture(self._captured, wanted, apart=apart, snap=self._capture.snap)
            self._meeting = stack.enter_context(contextlib.ExitStack())
            self._meeting.enter_context(self._accepting(self._engine))
            nodes.settle()
            stack.callback(self._end_radio_control)
            self.control_radios(self.plan)
            self.published.follow(self.plan.nodes.values())
            stack.callback(self.published.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _scratch(self) -> Path | None:
        """The folder for files of guests without namespaces; None with the right to make namespaces.

        In wall time nodes need them.
        """
        if self.pacer is None or privilege.is_capable():
            return None
        return scratch.folder_for(self.plan.nodes.values())

    def begin(self) -> None:
        """Sets time zero: starts the engine's clock."""
        with translated():
            for port, frame in resolved.announced(self.plan):
                self.engine.offer(port, 0, frame)
        self.forgive_drops(self.nodes)
        if self.pacer is not None:
            self.zero = self.pacer.begin()
            self._have_begun()
            return
        fixed = self.plan.engine_scheduling
        if self.plan.idle_poll:
            self._stack.enter_context(idle_poll.announced())
            self.engine.poll_idle(available())
        self._meeting.close()
        with translated(), on_processors(self.plan.engine_processors) as started:
            if fixed is not None:
                self.engine.schedule(POLICIES[fixed.policy], fixed.priority, fixed.nice)
            self.zero = self.engine.start()
        self._engine_tasks = started
        self._have_begun()

    def forgive_drops(self, nodes: Iterable[str]) -> None:
        """Notes the frames that interfaces of new nodes, or of all at time zero, dropped until now."""
        for node, counted in self.all_nodes.counters_here(nodes).items():
            for interface, count in counted.items():
                self.early_drops[f"{node}:{interface}"] = count["tx_dropped"]

    @contextlib.contextmanager
    def forgiving(self, node: str, interfaces: Collection[str]) -> Iterator[None]:
        """Notes what interfaces drop while they are added or changed, for which they go down and up."""
        before = self.all_nodes.counters_here([node]).get(node, {})
        yield
        for interface, count in self.all_nodes.counters_here([node]).get(node, {}).items():
            if interface in interfaces:
                port, known = f"{node}:{interface}", before.get(interface)
                so_far = 0 if known is None else self.early_drops.get(port, 0) - known["tx_dropped"]
                self.early_drops[port] = so_far + count["tx_dropped"]

    def _have_begun(self) -> None:
        self.running = True
        for act in self.at_begin:
            act()

    def end(self) -> None:
        """Stops the engine's clock. The ledger is final afterwards."""
        if self.running:
            # Frames that a node sends after its ports are closed are not part of the run.
            self._passed = self._have_passed()
            self._last_counters = self.counters()
            self.idle_polled()
            self.running = False
            with translated():
                self.engine.stop()

    def idle_polled(self) -> int:
        """Nanoseconds of processor time that idle processors have polled."""
        if self.running and self.plan.idle_poll:
            # The engine forgets it when it stops.
            self._idle_polled = max(self._idle_polled, self.engine.idle_polled())
        return self._idle_polled

    def now(self) -> int:
        """Engine time in nanoseconds."""
        return (time.monotonic_ns() if self.pacer is None else self.pacer.now()) - self.zero

    def monotonic(self) -> int:
        """CLOCK_MONOTONIC of this machine in ns; in virtual time the calendar's time."""
        return self.zero + self.now()

    def pass_time(self, span: int) -> None:
        """Waits for ``span`` ns of the run; in virtual time, lets them pass."""
        if self.pacer is None:
            time.sleep(span / 1e9)
        else:
            self.pacer.wait(lambda: False, self.pacer.now() + span)

    def wait(self, done: Callable[[], bool], within: int, every: int) -> bool:
        """Waits until ``done``, which is asked each ``every`` ns; returns False after ``within`` ns."""
        end = self.now() + within
        while not done():
            left = end - self.now()
            if left <= 0:
                return False
            self.pass_time(min(every, left))
        return True

    @property
    def zero_realtime(self) -> int:
        """CLOCK_REALTIME at time zero: ns. Guests in virtual time have that clock too."""
        offset = _engine.realtime_offset() if self.pacer is None else TIME_OF_DAY
        return self.zero + offset

    def counters(self) -> dict[str, dict[str, dict[str, int]]]:
        """By node and interface: the kernel's packets, octets, errors and drops until the end."""
        if self._last_counters is not None:
            return self._last_counters
        with translated():
            return self._nodes.counters() if self._nodes is not None else {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What the plan leaves out, and its parts that this machine does not support, as far as known."""
        of_nodes = self._nodes.notes if self._nodes is not None else ()
        return (*self.plan.notes, *of_nodes, *self._unknown)

    @property
    def shares(self) -> dict[str, float]:
        """For each node with a limit: the largest share of one processor that the plan allows."""
        return self._nodes.shares if self._nodes is not None else {}

    @property
    def scheduling(self) -> dict[str, str]:
        """Processors and scheduling in force, by path, where the scenario sets them."""
        of_nodes = self._nodes.scheduling if self._nodes is not None else {}
        guests = self.guests
        found = {
            f"{'guests' if name in guests else 'nodes'}[{name}].cpus": words
            for name, words in of_nodes.items()
        }
        if self.plan.engine_processors or self.plan.engine_scheduling is not None:
            tasks = scheduling.of_engine(self._engine_tasks)
            found |= {"engine.cpus": " / ".join(one.text for one in tasks)} if tasks else {}
        if self.plan.idle_poll:
            found["engine.idle"] = "poll"
        return found

    def neighbours_refused(self) -> int:
        """How often this machine's neighbour table was full meanwhile, for whatever namespace."""
        return self._nodes.neighbours_refused() if self._nodes is not None else 0

    def unsent(self) -> dict[str, int]:
        """Per node: packets that its kernel dropped before its interfaces until the end, at least."""
        passed = self._passed if self._last_counters is not None else self._have_passed()
        counted = self.counters()
        found = {name: unsent.packets(one, counted.get(name, {})) for name, one in passed.items()}
        return {name: count for name, count in found.items() if count}

    def _have_passed(self) -> dict[str, Passed]:
        return self._nodes.passed() if self._nodes is not None else {}

    def full_sockets(self) -> dict[str, int]:
        """Per Open vSwitch port: frames lost because its socket buffer was full."""
        return self._nodes.full_sockets() if self._nodes is not None else {}

    def datagrams_refused(self) -> dict[str, int]:
        """Per node: UDP datagrams lost because the socket buffer of a receiving program was full."""
        return self._nodes.datagrams_refused() if self._nodes is not None else {}

    @property
    def relay(self) -> Relay | None:
        """The proxy of the OpenFlow control channels; None without an Open vSwitch."""
        return self._nodes.relay if self._nodes is not None else None

    def wake(self, names: Sequence[str]) -> None:
        """Prepares nodes to run programs, several at once, so that the first start is not delayed."""
        if self._nodes is not None and names:
            self._nodes.wake(names)

    # Nodes can be added and removed while the emulation is open; the plan is only its initial
    # state.

    @property
    def all_nodes(self) -> Nodes:
        """What makes and ends the nodes. It exists while the emulation is open."""
        if self._nodes is None:
            raise RunError("world.closed", "the laboratory is not up")
        return self._nodes

    def add_node(self, plan: NodePlan, *, publish: bool = True) -> NodeHandle:
        """Adds a node. Its interfaces become ports of the engine.

        ``publish``: takes and relays its ports of this machine, too.
        """
        nodes = self.all_nodes
        if publish:
            self.published.reserve([plan])
        with translated():
            handle = nodes.add(plan)
            self.nodes = {**self.nodes, plan.name: handle}
            engine_setup.add_ports(self.engine, plan, handle, self.ports)
        self.forgive_drops([plan.name])
        if publish:
            self.published.add(plan)
        return handle

    def _namespace_of(self, name: str) -> int | None:
        return None if self._nodes is None else self._nodes.namespace_of(name)

    def refuse_in_virtual_time(self, what: str) -> None:
        """Raises an error if the run is in virtual time."""
        if self.pacer is not None:
            raise RunError("time.virtual", f"{what} is not built for virtual time", cure="say time: wall")

    def drop_node(self, name: str) -> None:
        """Removes an added node. The caller has detached the ports of interfaces added to it."""
        self.nodes = {other: handle for other, handle in self.nodes.items() if other != name}
        if self._nodes is not None:
            with translated():
                self._nodes.drop(name)

    def is_emulated(self, link: LinkPlan) -> bool:
        """True for links of the engine; False for a veth pair between two native nodes."""
        return engine_setup.is_emulated(self.plan, link)

    def set_link(self, name: str, direction: str, settings: LinkSettings) -> None:
        """Applies new settings to a link now. ``direction``: forward, backward or both."""
        self._must_be_emulated(name)
        with translated():
            self.engine.set_link(name, direction, settings.engine())
        self.link_states.changed(self.now(), name, direction, settings)

    def set_link_up(self, name: str, up: bool) -> None:
        """Sets a link down or up now. If its node is off, it comes up with the node."""
        self._must_be_emulated(name)
        self.link_states.raised(self.now(), name, up)
        if not self._off.intersection(self._ends(name)):
            self._carry(name, up)

    def _must_be_emulated(self, name: str) -> None:
        link = self.plan.links.get(name)
        if link is not None and not self.is_emulated(link):
            raise RunError(
                "native.link",
                f"the link {name} between native nodes cannot change",
                cure="it is a veth pair of the kernel: make the nodes of kind netns",
            )

    @property
    def guests(self) -> dict[str, GuestNode]:
        """The guests that several nodes share, by name."""
        return self._nodes.guests if self._nodes is not None else {}

    def members(self, name: str) -> list[str]:
        """The nodes of a shared guest; for the name of a node, that node."""
        guest = self.guests.get(name)
        return [name] if guest is None else [part.name for part in guest.parts]

    def pause(self, name: str) -> None:
        """Suspends a node, or a whole shared guest."""
        (self.guests.get(name) or self.nodes[name]).pause()

    def resume(self, name: str) -> None:
        """Resumes a node or a shared guest."""
        (self.guests.get(name) or self.nodes[name]).resume()

    def switch_off(self, name: str, grace: float | None = None) -> None:
        """Switches off a node, or a shared guest with all its nodes, with their links and radios.

        Programs are killed at once, or have ``grace`` seconds to end by themselves.
        """
        guest = self.guests.get(name)
        if guest is not None:
            self._switch_off_guest(guest, grace)
        elif grace is None:
            self.silence(name)
            self.nodes[name].kill()
        else:
            self.nodes[name].stop(grace, ended=lambda: self.silence(name))

    def _switch_off_guest(self, guest: GuestNode, grace: float | None) -> None:
        if grace is not None:
            guest.resume()
        running = [part.name for part in guest.parts if part.state in ("up", "paused")]
        # In virtual time one thread lets time pass.
        at_once = len(running) if self.pacer is None else 1
        if at_once <= 1:
            for part in running:
                self.switch_off(part, grace)
        else:
            with ThreadPoolExecutor(at_once) as pool:
                list(pool.map(lambda part: self.switch_off(part, grace), running))
        if grace is None:
            guest.kill()
        else:
            guest.stop(grace)

    def silence(self, name: str) -> None:
        """Takes down the links and radios of a node that is being switched off."""
        if name in self._off:
            return
        self._off.add(name)
        for link in self._links_of(name):
            self._carry(link, False)
        if self.plan.media:
            on = [radio["port"] for radio in self.radios() if radio["wanted_on"]]
            self._silenced[name] = [port for port in on if port.partition(":")[0] == name]
            for port in self._silenced[name]:
                self.set_radio(port, {"on": False})

    def switch_on(self, name: str) -> None:
        """Switches on a node, or a shared guest's nodes; links come up unless scheduled to be down."""
        self.refuse_in_virtual_time("a node's action 'start'")
        if name in self.guests:
            for part in self.guests[name].parts:
                if part.state in ("stopped", "failed"):
                    self.switch_on(part.name)
            return
        self.nodes[name].restart()
        self.unsilence(name)

    def unsilence(self, name: str) -> None:
        """Takes up the radios and links of a node that has been switched on."""
        self._off.discard(name)
        for port in self._silenced.pop(name, ()):
            self.set_radio(port, {"on": True})
        for link in self._links_of(name):
            if self.is_link_up(link):
                self._carry(link, True)

    def is_link_up(self, name: str) -> bool:
        """True if a link was not set down, by a call or on schedule, and its nodes are on."""
        return self.is_wanted_up(name) and not self._off.intersection(self._ends(name))

    def is_wanted_up(self, name: str) -> bool:
        """True if a link was not set down, by a call or on schedule."""
        return self.link_states.is_up(name, self.now())

    def link_settings(self, name: str) -> dict[str, LinkSettings]:
        """The settings of a link now, by direction (``forward``, ``backward``)."""
        return self.link_states.settings(self.plan.links[name], self.now())

    def schedule_link(
        self, at: int, name: str, direction: str, settings: LinkSettings | None, up: bool | None
    ) -> None:
        """Schedules a link change in the engine at an exact time. Call before :meth:`begin`."""
        if up is not None:
            self.link_states.raised(at, name, up)
        if settings is not None:
            self.link_states.changed(at, name, direction, settings)
        with translated():
            encoded = None if settings is None else settings.engine()
            self.engine.schedule_link(at, name, direction, encoded, up)

    def _carry(self, link: str, up: bool) -> None:
        with translated():
            self.engine.set_link_up(link, up)

    def _ends(self, link: str) -> set[str]:
        plan = self.plan.links[link]
        return {end.partition(":")[0] for end in (plan.a, plan.b)}

    def _links_of(self, node: str) -> list[str]:
        """The emulated links that end at a node."""
        return [
            link.name
            for link in self.plan.links.values()
            if node in self._ends(link.name) and self.is_emulated(link)
        ]

    def set_radio(self, port: str, change: dict[str, Any]) -> None:
        """Changes a radio now. ``change`` uses the engine's keys: ``{"channel": 40}``."""
        with translated():
            self.engine.set_radio(port, change)

    def schedule_radio(self, at: int, port: str, change: dict[str, Any]) -> None:
        """Schedules a radio change in the engine at an exact time. Call before :meth:`begin`."""
        with translated():
            self.engine.schedule_radio(at, port, change)

    def withdraw_changes(self) -> int:
        """Withdraws all changes that were scheduled for later; returns the engine time in ns."""
        with translated():
            since = self.engine.withdraw_changes()
        self.link_states.withdraw(since)
        return since

    def schedule(self, plan: Plan, since: int | None = None) -> None:
        """Schedules a plan's timed changes in the engine: all, or those later than ``since`` ns."""
        for change in timed_changes.link_changes(plan):
            if since is None or change.at > since:
                self.schedule_link(change.at, change.link, change.direction, change.settings, change.up)
        for tuned in timed_changes.radio_changes(plan):
            if since is None or tuned.at > since:
                self.schedule_radio(tuned.at, tuned.port, tuned.change)

    def control_radios(self, plan: Plan) -> None:
        """Lets programs in the nodes of a plan control their radios. Not in virtual time, for which the
        thread that answers would not wait.
        """
        if self.pacer is not None or (self._radio_control is None and not plan.media):
            return
        self._radio_control = self._radio_control or RadioControl(self)
        self._radio_control.follow(plan)

    def _end_radio_control(self) -> None:
        if self._radio_control is not None:
            self._radio_control.close()

    def radios(self) -> list[_engine.RadioState]:
        """The current state of all radios (see ``Engine.radios``)."""
        with translated():
            return self.engine.radios()

    def scanned(self, port: str) -> _engine.ScanState:
        """Results of a radio's last scan (see ``Engine.scanned``)."""
        with translated():
            return self.engine.scanned(port)

    def channels(self) -> list[_engine.ChannelState]:
        """All channels used so far (see ``Engine.channels``)."""
        with translated():
            return self.engine.channels()

    def violations(self) -> _engine.ViolationsState:
        """Violations of slices' grants so far (see ``Engine.violations``)."""
        with translated():
            return self.engine.violations()

    def cards(self) -> list[_engine.CardState]:
        """All cards (see ``Engine.cards``)."""
        with translated():
            return self.engine.cards()

    @contextlib.contextmanager
    def _accepting(self, engine: _engine.Engine) -> Iterator[None]:
        """Serves the guests' network devices meanwhile.

        A kernel waits for the answer when it reads a device's configuration, which it does while it boots and
        also later, when an interface comes up: meanwhile nothing in the guest runs.
        """
        over = threading.Event()

        def accept() -> None:
            while not over.is_set():
                if not engine.meet_guests():
                    over.wait(_PAUSE)

        met = any(node.vhost_sockets or node.wlan_device for node in self.nodes.values())
        if self.pacer is not None or not met:
            yield
            return
        thread = threading.Thread(target=accept, name="airloom-vhost", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _close_engine(self) -> None:
        self.end()
        self._engine = None
