"""Handles of a live laboratory's nodes and links, as :class:`airloom.Lab` returns them."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from airloom.errors import LabError, RunError, ScenarioError
from airloom.lab.live_program import Completed, LiveProgram, code_of, require_ok
from airloom.lab.radio import move
from airloom.lab.readiness import ready_of, wait_ready
from airloom.nodes.guests.guest import GuestNode
from airloom.nodes.kind import NodeHandle, State
from airloom.planning.links.encoding import changed
from airloom.planning.links.link_settings import LinkSettings
from airloom.planning.plan import LinkPlan, NodePlan
from airloom.rpc import Stays
from airloom.runs.emulation import World
from airloom.runs.link_loads import LinkLoad, load_of, numbers_of, require_direction
from airloom.runs.programs import POLL
from airloom.runs.runner import Runner
from airloom.scenario.command_line import words_of
from airloom.scenario.model import Direction, Queue


class Switched(Stays):
    """Base class of nodes and shared guests, which can be paused, stopped, killed and started."""

    name: str

    def __init__(self, runner: Runner, handle: NodeHandle) -> None:
        self._switching = runner.switching
        self._world = runner.world
        self._handle = handle

    @property
    def state(self) -> State:
        """``up``, ``paused``, ``stopped``, or ``failed`` by itself."""
        return self._handle.state

    def pause(self) -> None:
        """Pauses all programs, and in a guest the kernel."""
        self._world.pause(self.name)

    def resume(self) -> None:
        """Resumes after a pause."""
        self._world.resume(self.name)

    def stop(self, grace: float = 2.0) -> None:
        """Stops: SIGTERM to programs, SIGKILL after ``grace`` seconds; links go down."""
        self._switching.off(self.name, grace)

    def kill(self) -> None:
        """Stops immediately, like a power failure."""
        self._switching.off(self.name, None)

    def restart(self) -> None:
        """Starts again, with the addresses and routes of the scenario and its programs that ran.

        One that is up is stopped first.
        """
        self._switching.again(self.name)


class LiveGuest(Switched):
    """A guest that several nodes share: ``lab.guest("box")``."""

    def __init__(self, runner: Runner, guest: GuestNode) -> None:
        super().__init__(runner, guest)
        self.name = guest.name

    def __repr__(self) -> str:
        return f"<guest {self.name} of {', '.join(self.nodes)}: {self.state}>"

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes inside."""
        return self._world.members(self.name)


class LiveNode(Switched):
    """A node of a running laboratory: ``lab["h1"]``."""

    def __init__(self, runner: Runner, plan: NodePlan, log_path: Callable[[str, str], Path]) -> None:
        super().__init__(runner, runner.world.nodes[plan.name])
        self.name = plan.name
        self._plan = plan
        self._log_path = log_path

    def __repr__(self) -> str:
        return f"<node {self.name} ({self.kind}): {self._handle.state}>"

    @property
    def kind(self) -> str:
        """Kind of the node."""
        return self._plan.kind

    @property
    def interfaces(self) -> dict[str, list[str]]:
        """Addresses with prefix lengths, by interface."""
        return {one.name: [str(address) for address in one.addresses] for one in self._plan.interfaces}

    @property
    def address(self) -> str | None:
        """First address, without prefix length."""
        for interface in self._plan.interfaces:
            for address in interface.addresses:
                return str(address.ip)
        return None

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = None,
        input: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        folder: str | None = None,
        check: bool = False,
    ) -> Completed:
        """Runs a command to its end, at most ``timeout`` seconds; node names resolve to addresses.

        A command with shell syntax runs in ``/bin/sh``. With ``check`` a failure raises
        :class:`~airloom.RunError`.
        """
        argv = words_of(command if isinstance(command, str) else list(command))
        done = self._handle.exec(argv, timeout=timeout, input=input, env=env, folder=folder)
        completed = Completed(tuple(argv), code_of(done.exit), done.stdout, done.stderr, done.timed_out)
        if check:
            require_ok(completed, self.name)
        return completed

    def start(
        self,
        command: str | Sequence[str],
        *,
        name: str | None = None,
        env: Mapping[str, str] | None = None,
        folder: str | None = None,
        ready: Mapping[str, Any] | None = None,
    ) -> LiveProgram:
        """Starts a program and returns; its output goes to a log in the results.

        With ``ready`` it returns when the program is ready. The keys are those of a scenario's
        ``ready``: ``{"port": 80}``, ``{"log": "listening"}`` or ``{"command": "..."}``, with
        ``"within": "10 s"``. A program that is not ready in time is stopped and raises
        :class:`~airloom.RunError`.
        """
        check = None if ready is None else ready_of(ready)
        argv = words_of(command if isinstance(command, str) else list(command))
        stem = name or Path(argv[0]).name
        log = self._log_path(self.name, stem)
        count = 1
        while log.exists():
            count += 1
            log = self._log_path(self.name, f"{stem}-{count}")
        process = self._handle.start(argv, env=env, folder=folder, stdout=log)
        program = LiveProgram(self.name, argv, process, log)
        if check is not None:
            handle, within = self._handle, check.within / 1e9
            wait_ready(
                check,
                program,
                self._world,
                self.listens,
                lambda words: code_of(handle.exec(words, timeout=within, env=env, folder=folder).exit),
            )
        return program

    def listens(self, port: int, protocol: str = "tcp") -> bool:
        """True if a program in the node listens on the port."""
        return self._handle.listens("udp" if protocol == "udp" else "tcp", port)

    def wait_port(self, port: int, protocol: str = "tcp", timeout: float = 10.0) -> None:
        """Waits until a program in the node listens on the port.

        Raises :class:`TimeoutError` after ``timeout`` seconds.
        """
        if not self._world.wait(lambda: self.listens(port, protocol), round(timeout * 1e9), POLL):
            raise TimeoutError(f"no program in {self.name} listens on {protocol} port {port}")

    def counters(self) -> dict[str, dict[str, int]]:
        """Packets, octets, errors and drops by interface, from the node's kernel."""
        return self._handle.counters()

    def move(self, *position: str) -> None:
        """Moves the node to a fixed position: ``move("10 m", "0 m")``, height third."""
        move(self._world, self.name, position)


class LiveLink(Stays):
    """A link of a running laboratory: ``lab.link("h1", "h2")``."""

    def __init__(self, plan: LinkPlan, world: World) -> None:
        self._plan = plan
        self._world = world
        self._number: int | None = None

    def __repr__(self) -> str:
        return f"<link {self.name}: {self.a} <-> {self.b} {'up' if self.is_up else 'down'} {self.describe()}>"

    @property
    def name(self) -> str:
        """Its name."""
        return self._plan.name

    @property
    def a(self) -> str:
        """First end: ``node:interface`` or a switch."""
        return self._plan.a

    @property
    def b(self) -> str:
        """Second end."""
        return self._plan.b

    @property
    def is_up(self) -> bool:
        """True if the link is up, or comes up with its nodes."""
        return self._world.is_wanted_up(self.name)

    def describe(self) -> str:
        """Properties as text; of both directions if they differ."""
        return of_both(*(one.text for one in self._in_force().values()))

    def load(self, direction: str = "forward") -> LinkLoad:
        """Returns what waits in the queue now, and how much was carried, dropped and marked so far.

        ``direction``: ``forward`` is from :attr:`a` to :attr:`b`. Two readings give the utilization
        between them: ``after.utilization_since(before)``.
        """
        require_direction(direction)
        if self._number is None:
            self._number = numbers_of(self._world.engine)[self.name]
        return load_of(self._world.engine, {self.name: self._number}, self.name, direction)

    def set(self, /, *, direction: str = "both", **properties: Any) -> None:
        """Changes properties now, written as in a scenario: ``set(delay="20 ms", loss="1 %")``.

        Other properties stay. ``direction``: ``forward`` is from :attr:`a` to :attr:`b`.
        """
        if direction not in ("both", "forward", "backward"):
            raise ScenarioError(
                "word.unknown", f"{direction!r} is no direction", cure="both, forward or backward"
            )
        now = self._in_force()
        chosen = [one for one in now if direction in ("both", one)]
        queues = [None if (queue := now[one].queue) is None else queue.said for one in chosen]
        change = direction_of(properties, queues)
        for one in chosen:
            self._world.set_link(self.name, one, changed(now[one], change))

    def _in_force(self) -> dict[str, LinkSettings]:
        if self.name not in self._world.plan.links:
            raise RunError("link.unknown", f"the link {self.name} is not there any more")
        return self._world.link_settings(self.name)

    def down(self) -> None:
        """Sets the link down: frames are dropped as ``link-down``, and interfaces lose their carrier."""
        self._world.set_link_up(self.name, False)

    def up(self) -> None:
        """Sets the link up."""
        self._world.set_link_up(self.name, True)


def of_both(there: str, back: str) -> str:
    """Returns the properties of both directions of a link as text."""
    return there if there == back else f"{there} / {back}"


class Joining(Protocol):
    """A link with its two ends."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def a(self) -> str:
        """First end: ``node:interface`` or a switch."""

    @property
    def b(self) -> str:
        """Second end."""


_Link = TypeVar("_Link", bound=Joining)


def link_of(links: Mapping[str, _Link], first: str, second: str | None) -> _Link:
    """Returns a link by its name, or by its two ends if they have exactly one link."""
    if second is None:
        if first in links:
            return links[first]
        raise unknown("link", first, links)
    found = [
        link
        for link in links.values()
        if (_is_at(link.a, first) and _is_at(link.b, second))
        or (_is_at(link.a, second) and _is_at(link.b, first))
    ]
    if len(found) == 1:
        return found[0]
    names = ", ".join(link.name for link in found)
    raise RunError(
        "link.unknown" if not found else "link.ambiguous",
        f"{'no link joins' if not found else f'{len(found)} links join'} {first} and {second}",
        cure=f"name one: {names}" if found else f"links are: {', '.join(links)}",
    )


def _is_at(end: str, name: str) -> bool:
    return name in (end, end.partition(":")[0])


def unknown(what: str, name: str, known: Iterable[str]) -> LabError:
    """Returns the error for a name that is not there, with the nearest one."""
    names = list(known)
    near = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(names[:20]) or 'none'}"
    return RunError(f"{what}.unknown", f"there is no {what} {name}", cure=hint)


def direction_of(properties: Mapping[str, Any], queues: Iterable[Queue | None] = ()) -> Direction:
    """Returns the validated properties of a link; raises :class:`~airloom.ScenarioError`.

    ``queues`` are those that a new queue changes.
    """
    from pydantic import ValidationError

    from airloom.planning.rules.links import change
    from airloom.scenario import problems
    from airloom.scenario.source import Source

    source = Source(dict(properties), None, Path())
    try:
        made = Direction.model_validate(dict(properties), context={"folder": Path(os.getcwd())})
    except ValidationError as error:
        raise problems.of_shape(error, source) from None
    problems.raise_first(change(made, (), queues), source)
    return made
