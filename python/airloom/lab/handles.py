"""Handles of a live laboratory's nodes, links and programs, as :class:`airloom.Lab` returns them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airloom.errors import RunError, ScenarioError
from airloom.lab.radio import move
from airloom.lab.readiness import ready_of, wait_ready
from airloom.nodes.guests.guest import GuestNode
from airloom.nodes.kind import Exit, NodeHandle, Process, State
from airloom.planning.plan import LinkPlan, NodePlan
from airloom.planning.settings import changed
from airloom.runs.emulation import World
from airloom.runs.programs import POLL, signal_number
from airloom.scenario.command_line import words_of
from airloom.scenario.model import Direction


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that has ended or reached its time limit."""

    argv: tuple[str, ...]
    code: int
    """Exit code; 128 + n after signal n."""
    stdout: str
    stderr: str
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """True if the exit code is 0."""
        return self.code == 0


def code_of(exit: Exit) -> int:
    """Returns the exit code: 128 + n after signal n, 255 if the node stopped."""
    if exit.code is not None:
        return exit.code
    return 128 + exit.signal if exit.signal is not None else 255


class LiveProgram:
    """A program running in a node."""

    def __init__(self, node: str, argv: Sequence[str], process: Process, log: Path) -> None:
        self.node = node
        self.argv = tuple(argv)
        self.log = log
        """The file with its output."""
        self._process = process

    def __repr__(self) -> str:
        code = self.code
        state = "runs" if code is None else f"ended with {code}"
        return f"<program {self.argv[0]} in {self.node}: {state}>"

    @property
    def code(self) -> int | None:
        """Exit code; None while it runs."""
        exit = self._process.poll()
        return None if exit is None else code_of(exit)

    @property
    def output(self) -> str:
        """Output so far."""
        return self.log.read_text("utf-8", "replace")

    def wait(self, timeout: float | None = None) -> int:
        """Waits ``timeout`` seconds for the end. Returns the exit code, or raises :class:`TimeoutError`."""
        return code_of(self._process.wait(timeout))

    def signal(self, which: int | str) -> None:
        """Sends a signal: ``15``, ``"TERM"`` or ``"SIGTERM"``."""
        self._process.signal(signal_number(str(which)))

    def stop(self, grace: float = 2.0) -> int:
        """Sends SIGTERM, after ``grace`` seconds SIGKILL. Returns the exit code."""
        self._process.signal(signal.SIGTERM)
        try:
            return self.wait(grace)
        except TimeoutError:
            self._process.signal(signal.SIGKILL)
            return self.wait()


class Switched:
    """Base class of nodes and shared guests, which can be paused, stopped, killed and started."""

    name: str

    def __init__(self, world: World, handle: NodeHandle) -> None:
        self._world = world
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
        self._world.switch_off(self.name, grace)

    def kill(self) -> None:
        """Stops immediately, like a power failure."""
        self._world.switch_off(self.name)

    def restart(self) -> None:
        """Starts again, with the initial addresses and routes."""
        self._world.switch_on(self.name)


class LiveGuest(Switched):
    """A guest that several nodes share: ``lab.guest("box")``."""

    def __init__(self, world: World, guest: GuestNode) -> None:
        super().__init__(world, guest)
        self.name = guest.name

    def __repr__(self) -> str:
        return f"<guest {self.name} of {', '.join(self.nodes)}: {self.state}>"

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes inside."""
        return self._world.members(self.name)


class LiveNode(Switched):
    """A node of a running laboratory: ``lab["h1"]``."""

    def __init__(self, world: World, plan: NodePlan, log_path: Callable[[str, str], Path]) -> None:
        super().__init__(world, world.nodes[plan.name])
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
        if check and not completed.ok:
            last = (done.stderr or done.stdout).strip().rpartition("\n")[2]
            raise RunError(
                "command.failed", f"{argv[0]} in {self.name} ended with exit code {completed.code}: {last}"
            )
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
        until = time.monotonic() + timeout
        while not self.listens(port, protocol):
            if time.monotonic() >= until:
                raise TimeoutError(f"no program in {self.name} listens on {protocol} port {port}")
            time.sleep(POLL / 1e9)

    def counters(self) -> dict[str, dict[str, int]]:
        """Packets, octets, errors and drops by interface, from the node's kernel."""
        return self._handle.counters()

    def move(self, *position: str) -> None:
        """Moves the node to a fixed position: ``move("10 m", "0 m")``, height third."""
        move(self._world, self.name, position)


class LiveLink:
    """A link of a running laboratory: ``lab.link("h1", "h2")``."""

    def __init__(self, plan: LinkPlan, world: World) -> None:
        self._plan = plan
        self._world = world
        self._now = {"forward": plan.forward, "backward": plan.backward}
        self._up = True

    def __repr__(self) -> str:
        return f"<link {self.name}: {self.a} <-> {self.b} {'up' if self._up else 'down'} {self.describe()}>"

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
        """True if the link is up."""
        return self._up

    def describe(self) -> str:
        """Properties as text; of both directions if they differ."""
        there, back = self._now["forward"].text, self._now["backward"].text
        return there if there == back else f"{there} / {back}"

    def set(self, /, *, direction: str = "both", **properties: Any) -> None:
        """Changes properties now, written as in a scenario: ``set(delay="20 ms", loss="1 %")``.

        Other properties stay. ``direction``: ``forward`` is from :attr:`a` to :attr:`b`.
        """
        if direction not in ("both", "forward", "backward"):
            raise ScenarioError(
                "word.unknown", f"{direction!r} is no direction", cure="both, forward or backward"
            )
        change = direction_of(properties)
        for one in ("forward", "backward"):
            if direction in ("both", one):
                after = changed(self._now[one], change)
                self._world.set_link(self.name, one, after)
                self._now[one] = after

    def down(self) -> None:
        """Sets the link down: frames are dropped as ``link-down``, and interfaces lose their carrier."""
        self._world.set_link_up(self.name, False)
        self._up = False

    def up(self) -> None:
        """Sets the link up."""
        self._world.set_link_up(self.name, True)
        self._up = True


def direction_of(properties: Mapping[str, Any]) -> Direction:
    """Returns the validated properties of a link; raises :class:`~airloom.ScenarioError`."""
    from pydantic import ValidationError

    from airloom.planning.rules.links import direction
    from airloom.scenario import problems
    from airloom.scenario.source import Source

    source = Source(dict(properties), None, Path())
    try:
        made = Direction.model_validate(dict(properties), context={"folder": Path(os.getcwd())})
    except ValidationError as error:
        raise problems.of_shape(error, source) from None
    problems.raise_first(direction(made, ()), source)
    return made
