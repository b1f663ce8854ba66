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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from airloom import _engine
from airloom.errors import RunError, translated
from airloom.host import idle_poll
from airloom.nodes.all_nodes import Nodes
from airloom.nodes.guests.guest import GuestNode
from airloom.nodes.kind import NodeHandle
from airloom.nodes.network.control_capture import ControlCapture
from airloom.nodes.network.controller_proxy import Relay
from airloom.nodes.network.published_ports import PublishedPorts
from airloom.nodes.process import scheduling
from airloom.nodes.process.scheduling import on_processors
from airloom.nodes.process.supervisor import Supervisor
from airloom.planning.capture import Capture
from airloom.planning.cpus import POLICIES, available
from airloom.planning.link_settings import LinkSettings
from airloom.planning.plan import LinkPlan, NodePlan, Plan
from airloom.runs import engine_setup, underlay
from airloom.runs.radio_control import RadioControl

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
        self._last_counters: dict[str, dict[str, dict[str, int]]] | None = None
        self._idle_polled = 0
        self.zero = time.monotonic_ns()
        """CLOCK_MONOTONIC at time zero in ns; the creation time before :meth:`begin`."""
        self._off: set[str] = set()
        """Nodes that are switched off."""
        self._silenced: dict[str, list[str]] = {}
        """Per node that is switched off: its radios that were switched off with it."""
        self._requested: list[tuple[int, str, bool]] = []
        """Link states set or scheduled: (engine time in ns, link, True for up)."""
        self._changed: list[tuple[int, str, str, LinkSettings]] = []
        """Link settings set or scheduled: (engine time in ns, link, direction, settings)."""
        self.supervisor_pid = 0
        """PID of the supervisor, the ancestor of all node processes, while the emulation is open."""
        self._visible = tuple(visible)
        self._capture = capture
        self._captured = captured
        self.control = control
        """Captures the control channels of switches; None without captures."""
        """File or folder of the capture."""
        self._on_node_failure = on_node_failure
        self._log_path = log_path
        self._nodes: Nodes | None = None
        self._published = PublishedPorts(self._namespace_of)
        self._engine_tasks: list[int] = []
        self._stack = contextlib.ExitStack()
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
            stack.enter_context(self._published)
            for node in self.plan.nodes.values():
                self._published.listen(node)
            supervisor = stack.enter_context(Supervisor())
            self.supervisor_pid = supervisor.pid
            nodes = stack.enter_context(
                Nodes(
                    self.plan,
                    supervisor,
                    visible=self._visible,
                    on_failure=self._on_node_failure,
                    log_path=self._log_path,
                    control=self.control,
                )
            )
            self.nodes = nodes.bring_up()
            self._unknown = tuple(unknown)
            self._nodes = nodes
            self._engine = self._make_engine(self.plan.seed)
            stack.callback(self._close_engine)
            for name, sockets in tunnels.items():
                engine_setup.add_tunnel(self._engine, self.plan.tunnels[name], name, sockets)
            engine_setup.add_network(self._engine, self.plan, self.nodes)
            if self._capture is not None and self._captured is not None:
                wanted, apart = self._capture.wanted(self.plan), not self._capture.merged
                self._engine.capture(self._captured, wanted, apart=apart, snap=self._capture.snap)
            with self._accepting(self._engine):
                nodes.settle()
            if self.plan.media:
                stack.callback(RadioControl(self).close)
            self._published.serve()
            stack.callback(self._published.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def begin(self) -> None:
        """Sets time zero: starts the engine's clock."""
        fixed = self.plan.engine_scheduling
        if self.plan.idle_poll:
            self._stack.enter_context(idle_poll.announced())
            self.engine.poll_idle(available())
        with translated(), on_processors(self.plan.engine_processors) as started:
            if fixed is not None:
                self.engine.schedule(POLICIES[fixed.policy], fixed.priority, fixed.nice)
            self.zero = self.engine.start()
        self._engine_tasks = started
        self.running = True

    def end(self) -> None:
        """Stops the engine's clock. The ledger is final afterwards."""
        if self.running:
            # Frames that a node sends after its ports are closed are not part of the run.
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
        return time.monotonic_ns() - self.zero

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
        """How often the host's neighbour table was full, so that a node lost a packet."""
        return self._nodes.neighbours_refused() if self._nodes is not None else 0

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

    def add_node(self, plan: NodePlan) -> NodeHandle:
        """Adds a node. Its interfaces become ports of the engine."""
        if self._nodes is None:
            raise RunError("world.closed", "the laboratory is not up")
        self._published.listen(plan)
        with translated():
            handle = self._nodes.add(plan)
            self.nodes = {**self.nodes, plan.name: handle}
            engine_setup.add_ports(self.engine, plan, handle)
        self._published.serve()
        return handle

    def _namespace_of(self, name: str) -> int | None:
        return None if self._nodes is None else self._nodes.namespace_of(name)

    def grow(self, plan: Plan, name: str) -> NodeHandle:
        """Adds the new node of an extended plan and connects its links."""
        if self._nodes is None:
            raise RunError("world.closed", "the laboratory is not up")
        self._nodes.announce(plan.hosts)
        handle = self.add_node(plan.nodes[name])
        before, self.plan = self.plan, plan
        with translated():
            for link in plan.links.values():
                if link.name not in before.links and self.is_emulated(link):
                    engine_setup.add_link(self.engine, link)
        return handle

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
        self._changed.append((self.now(), name, direction, settings))

    def set_link_up(self, name: str, up: bool) -> None:
        """Sets a link down or up now. If its node is off, it comes up with the node."""
        self._must_be_emulated(name)
        self._requested.append((self.now(), name, up))
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
            self._silence(name)
            self.nodes[name].kill()
        else:
            self.nodes[name].stop(grace, ended=lambda: self._silence(name))

    def _switch_off_guest(self, guest: GuestNode, grace: float | None) -> None:
        if grace is not None:
            guest.resume()
        running = [part.name for part in guest.parts if part.state in ("up", "paused")]
        with ThreadPoolExecutor(max(1, len(running))) as pool:
            list(pool.map(lambda part: self.switch_off(part, grace), running))
        if grace is None:
            guest.kill()
        else:
            guest.stop(grace)

    def _silence(self, name: str) -> None:
        """Takes down the links and radios of a node that is being switched off."""
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
        if name in self.guests:
            for part in self.guests[name].parts:
                if part.state in ("stopped", "failed"):
                    self.switch_on(part.name)
            return
        self.nodes[name].restart()
        self._off.discard(name)
        for port in self._silenced.pop(name, ()):
            self.set_radio(port, {"on": True})
        for link in self._links_of(name):
            if self.is_link_up(link):
                self._carry(link, True)

    def is_link_up(self, name: str) -> bool:
        """True if a link was not set down, by a call or on schedule, and its nodes are on."""
        now = self.now()
        wishes = [(at, up) for at, which, up in self._requested if which == name and at <= now]
        wanted = max(wishes, key=lambda wish: wish[0], default=(0, True))[1]
        return wanted and not self._off.intersection(self._ends(name))

    def link_settings(self, name: str) -> dict[str, LinkSettings]:
        """The settings of a link now, by direction (``forward``, ``backward``)."""
        now, plan = self.now(), self.plan.links[name]
        found = {"forward": plan.forward, "backward": plan.backward}
        for at, which, direction, settings in sorted(self._changed, key=lambda change: change[0]):
            if which == name and at <= now:
                found |= dict.fromkeys(found if direction == "both" else (direction,), settings)
        return found

    def schedule_link(
        self, at: int, name: str, direction: str, settings: LinkSettings | None, up: bool | None
    ) -> None:
        """Schedules a link change in the engine at an exact time. Call before :meth:`begin`."""
        if up is not None:
            self._requested.append((at, name, up))
        if settings is not None:
            self._changed.append((at, name, direction, settings))
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
        """Serves the guests' network devices meanwhile, without which their kernels cannot boot."""
        over = threading.Event()

        def accept() -> None:
            while not over.is_set():
                if not engine.meet_guests():
                    over.wait(_PAUSE)

        if not any(node.vhost_sockets or node.wlan_device for node in self.nodes.values()):
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
