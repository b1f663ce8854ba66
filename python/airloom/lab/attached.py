"""A laboratory that another process runs, from Python: :meth:`airloom.Lab.attach`.

Each call is one request on a connection of its own to the laboratory's server
(:mod:`airloom.lab.server`), as for ``airloom exec``. Nothing here belongs to the laboratory: only the
programs that were started through it end with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from airloom.errors import RunError, ScenarioError
from airloom.lab.client import Client
from airloom.lab.handles import link_of, unknown
from airloom.lab.live_program import Completed, described, require_ok
from airloom.lab.running import Running, find
from airloom.runs.link_loads import LinkLoad, require_direction
from airloom.runs.programs import signal_number
from airloom.scenario.command_line import words_of

_Answer = TypeVar("_Answer")


class AttachedLab:
    """A laboratory that is up in another process of this user on this machine.

    ::

        with airloom.Lab.attach("star") as lab:
            lab["h1"].run("ping -c 3 h2").stdout
            lab.link("h1", "s1").set(delay="20 ms")

    It stays up after :meth:`detach`, and after the ``with`` block. Calls after its end raise
    :class:`~airloom.RunError` with the code ``live.ended`` or ``live.gone``.
    """

    def __init__(self, running: Running) -> None:
        self._running = running
        self._programs: list[AttachedProgram] = []
        self._is_attached = True
        self._info = self._asked(Client.info)

    def __repr__(self) -> str:
        return f"<laboratory {self.name} of process {self.pid}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()

    def detach(self) -> None:
        """Leaves the laboratory, which stays up; kills the programs that :meth:`AttachedNode.start` began."""
        self._is_attached = False
        while self._programs:
            self._programs.pop().close()

    @property
    def name(self) -> str:
        """Its name: that of the scenario, or of a Mininet script."""
        return self._running.name

    @property
    def pid(self) -> int:
        """The process that runs it."""
        return self._running.pid

    @property
    def folder(self) -> Path:
        """The folder of its results; of a Mininet script its working folder."""
        return Path(self._info["folder"])

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes now."""
        return list(self._asked(Client.info)["nodes"])

    def __getitem__(self, name: str) -> AttachedNode:
        nodes = self.nodes
        if name not in nodes:
            raise unknown("node", name, nodes)
        return AttachedNode(self, name)

    @property
    def links(self) -> list[AttachedLink]:
        """All links now."""
        return [AttachedLink(self, said) for said in self._asked(Client.links)]

    def link(self, first: str, second: str | None = None) -> AttachedLink:
        """A link by its name, or by its two ends if they have exactly one link."""
        return link_of({link.name: link for link in self.links}, first, second)

    def ledger(self) -> dict[str, Any]:
        """Returns the engine's ledger."""
        return self._asked(Client.ledger)

    def apply(
        self,
        file: str | Path,
        *,
        overrides: Sequence[str] = (),
        seed: int | None = None,
        dry_run: bool = False,
    ) -> list[str]:
        """Makes the laboratory what a changed scenario file describes; returns the steps in words.

        ``dry_run``: changes nothing. What cannot change raises :class:`~airloom.ScenarioError`.
        """
        return self._asked(lambda client: client.apply(Path(file), overrides, seed, dry_run=dry_run))

    def _asked(self, ask: Callable[[Client], _Answer]) -> _Answer:
        with self._connection() as client:
            return ask(client)

    def _connection(self) -> Client:
        if not self._is_attached:
            raise RunError("live.detached", f"{self.name} was detached", cure="attach to it again")
        return Client(self._running)


class AttachedNode:
    """A node of a laboratory in another process: ``lab["h1"]``."""

    def __init__(self, lab: AttachedLab, name: str) -> None:
        self._lab = lab
        self.name = name

    def __repr__(self) -> str:
        return f"<node {self.name} of {self._lab.name}>"

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = None,
        input: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        check: bool = False,
    ) -> Completed:
        """Runs a command to its end, at most ``timeout`` seconds; node names resolve to addresses.

        A command with shell syntax runs in ``/bin/sh``. With ``check`` a failure raises
        :class:`~airloom.RunError`.
        """
        with contextlib.closing(self._begun(command, env, input, apart=True)) as program:
            timed_out = False
            try:
                program.wait(timeout)
            except TimeoutError:
                timed_out = True
                program.signal("KILL")
            code = program.wait()
            done = Completed(program.argv, code, program.output, program.errors, timed_out)
        if check:
            require_ok(done, self.name)
        return done

    def start(self, command: str | Sequence[str], *, env: Mapping[str, str] | None = None) -> AttachedProgram:
        """Starts a program and returns. It is killed when this process detaches or ends."""
        program = self._begun(command, env, b"", apart=False)
        self._lab._programs.append(program)
        return program

    def _begun(
        self, command: str | Sequence[str], env: Mapping[str, str] | None, input: str | bytes, *, apart: bool
    ) -> AttachedProgram:
        argv = words_of(command if isinstance(command, str) else list(command))
        octets = input.encode() if isinstance(input, str) else input
        return AttachedProgram(self._lab._connection(), self.name, argv, env or {}, octets, apart=apart)

    def pause(self) -> None:
        """Pauses all programs, and in a guest the kernel."""
        self._control("pause")

    def resume(self) -> None:
        """Resumes after a pause."""
        self._control("resume")

    def stop(self) -> None:
        """Stops: SIGTERM to programs, then SIGKILL; links go down."""
        self._control("stop")

    def kill(self) -> None:
        """Stops immediately, like a power failure."""
        self._control("kill")

    def restart(self) -> None:
        """Starts again, with the addresses and routes of the scenario and its programs that ran."""
        self._control("restart")

    def _control(self, action: str) -> None:
        self._lab._asked(lambda client: client.control(self.name, action))


class AttachedProgram:
    """A program that runs in a node of a laboratory in another process.

    It writes to files in memory, so it never waits for a reader.
    """

    def __init__(
        self,
        client: Client,
        node: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        input: bytes,
        *,
        apart: bool,
    ) -> None:
        self.node = node
        self.argv = tuple(argv)
        self._client = client
        self._code: int | None = None
        with contextlib.ExitStack() as stack:
            stack.callback(client.close)
            stdin = stack.enter_context(_memory())
            self._output = stack.enter_context(_memory())
            self._errors = stack.enter_context(_memory()) if apart else self._output
            with open(stdin, "wb", closefd=False) as file:
                file.write(input)
            os.lseek(stdin, 0, os.SEEK_SET)
            client.start(node, argv, env, [stdin, self._output, self._errors], tty=False)
            self._stack = stack.pop_all()

    def __repr__(self) -> str:
        return described(self.argv[0], self.node, self.code)

    @property
    def code(self) -> int | None:
        """Exit code, 128 + n after signal n; None while it runs."""
        with contextlib.suppress(TimeoutError):
            return self.wait(0)
        return None

    @property
    def output(self) -> str:
        """Output so far; of :meth:`AttachedNode.start` with what was written to standard error."""
        return _text(self._output)

    @property
    def errors(self) -> str:
        """What was written to standard error so far."""
        return _text(self._errors)

    def wait(self, timeout: float | None = None) -> int:
        """Waits ``timeout`` seconds for the end. Returns the exit code, or raises :class:`TimeoutError`."""
        if self._code is None:
            ready, _, _ = select.select([self._client], [], [], timeout)
            if not ready:
                raise TimeoutError(f"{self.argv[0]} in {self.node} has not ended within {timeout:g} s")
            self._code = self._client.wait()
        return self._code

    def signal(self, which: int | str) -> None:
        """Sends a signal: ``15``, ``"TERM"`` or ``"SIGTERM"``."""
        self._client.signal(signal_number(str(which)))

    def stop(self, grace: float = 2.0) -> int:
        """Sends SIGTERM, after ``grace`` seconds SIGKILL. Returns the exit code."""
        self.signal(signal.SIGTERM)
        try:
            return self.wait(grace)
        except TimeoutError:
            self.signal(signal.SIGKILL)
            return self.wait()

    def close(self) -> None:
        """Kills it if it runs, and forgets its output."""
        self._stack.close()


class AttachedLink:
    """A link of a laboratory in another process: ``lab.link("h1", "h2")``."""

    def __init__(self, lab: AttachedLab, said: Mapping[str, Any]) -> None:
        self._lab = lab
        self.name: str = said["name"]
        self.a: str = said["a"]
        """First end: ``node:interface`` or a switch."""
        self.b: str = said["b"]
        """Second end."""

    def __repr__(self) -> str:
        return f"<link {self.name}: {self.a} <-> {self.b}>"

    @property
    def is_up(self) -> bool:
        """True if the link is up, or comes up with its nodes."""
        return bool(self._now()["up"])

    def describe(self) -> str:
        """Properties as text; of both directions if they differ."""
        return str(self._now()["text"])

    def load(self, direction: str = "forward") -> LinkLoad:
        """Returns what waits in the queue now, and how much was carried, dropped and marked so far.

        ``direction``: ``forward`` is from :attr:`a` to :attr:`b`.
        """
        require_direction(direction)
        return LinkLoad(**self._now()[direction])

    def set(self, /, *, direction: str = "both", **properties: Any) -> None:
        """Changes properties now, written as in a scenario: ``set(delay="20 ms", loss="1 %")``.

        Other properties stay. ``direction``: ``forward`` is from :attr:`a` to :attr:`b`. Files that
        properties name are read in the folder of the process that runs the laboratory.
        """
        try:
            json.dumps(properties, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ScenarioError(
                "link.value", f"link {self.name}: {error}", cure="write values as in a scenario"
            ) from None
        self._lab._asked(lambda client: client.change_link(self.name, direction, properties))

    def up(self) -> None:
        """Sets the link up."""
        self._lab._asked(lambda client: client.change_link(self.name, up=True))

    def down(self) -> None:
        """Sets the link down: frames are dropped as ``link-down``, and interfaces lose their carrier."""
        self._lab._asked(lambda client: client.change_link(self.name, up=False))

    def _now(self) -> Mapping[str, Any]:
        for said in self._lab._asked(Client.links):
            if said["name"] == self.name:
                return said
        raise RunError("link.unknown", f"the link {self.name} is not there any more")


def attach(lab: str | int | None) -> AttachedLab:
    """Attaches to the laboratory with a name or process id, or to the only one that is up."""
    return AttachedLab(find(None if lab is None else str(lab)))


@contextlib.contextmanager
def _memory() -> Iterator[int]:
    """A file in memory: its descriptor, closed at the end."""
    descriptor = os.memfd_create("airloom-attached", os.MFD_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _text(descriptor: int) -> str:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode("utf-8", "replace")
