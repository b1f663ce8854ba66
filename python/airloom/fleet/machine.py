"""One machine of a fleet, as the process that shares out runs has it."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from airloom.errors import HostError, LabError, RunError, ScenarioError
from airloom.fleet import agent
from airloom.fleet.launchers import Launch, launches
from airloom.host import files
from airloom.host.machine import versions
from airloom.nodes.doctor import Needs
from airloom.nodes.kinds import uml
from airloom.planning import inputs
from airloom.rpc import Listener, Remote

_CHUNK = 4 << 20
"""Octets of an archive that one message has."""
_MUST_AGREE = ("airloom", "engine")
"""Versions without which the same run would give other results."""
_CLEANS_S = 15.0
"""Seconds that a lost machine has to remove what its agent has left."""
_NOT_FOUND = 127
"""Exit code of a shell, and so of ``ssh``, whose command does not exist."""


class MachineLost(RunError):
    """A machine is gone: its connection has ended, or it is silent."""


def connect(spec: str) -> list[Machine]:
    """Connects to all machines of a fleet at once; a failure of one ends the connections to all.

    Raises :class:`~airloom.errors.ScenarioError` for what is no fleet, and for a machine that cannot be
    reached, and :class:`~airloom.errors.HostError` for one with another Airloom.
    """
    wanted = launches(spec)
    with ExitStack() as stack, ThreadPoolExecutor(len(wanted)) as pool:
        coming = [pool.submit(Machine, launch) for launch in wanted]
        failures = [error for one in coming if (error := one.exception()) is not None]
        machines = [stack.enter_context(one.result()) for one in coming if one.exception() is None]
        if failures:
            raise failures[0]
        for machine in machines:
            machine.require_same_versions()
        stack.pop_all()
        return machines


class Machine:
    """A machine with an agent. A ``with`` block ends the agent, and what it started."""

    def __init__(self, launch: Launch) -> None:
        self.name = launch.name
        self._launch = launch
        self._connected = False
        self._remote = Remote(launch.command, self._lost)
        self._connected = True
        self._stack = ExitStack()
        self._stack.enter_context(self._remote)
        self._numbers = itertools.count(1)
        self._cleans: subprocess.Popen[bytes] | None = None
        try:
            self.facts: agent.Facts = self._remote.call(agent.facts)
        except LabError:
            self._stack.close()
            raise
        self.processors = self.facts.processors[: launch.processors]
        """Numbers of the processors that runs may use there."""
        self._agent: agent.Agent | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        if self._cleans is not None:
            try:
                self._cleans.wait(_CLEANS_S)
            except subprocess.TimeoutExpired:
                self._cleans.kill()
                self._cleans.wait()

    def require_same_versions(self) -> None:
        """Raises :class:`HostError` if its Airloom would give other results than this one."""
        here = versions()
        for what in _MUST_AGREE:
            there = self.facts.versions.get(what)
            if there != here[what]:
                raise HostError(
                    "fleet.version",
                    f"{what} is {there} there, and {here[what]} here",
                    where=self.name,
                    cure="install the same Airloom on both machines",
                )

    def require_for(
        self, needs: Needs, kernels: Mapping[str | None, str], digests: Mapping[str, str]
    ) -> None:
        """Raises :class:`HostError` for what runs need and it lacks, or has in another form.

        That are its abilities, kernels of User Mode Linux as scenarios name them and inputs, both by digest.
        """
        try:
            self._remote.call(agent.require_basics, needs.has_taps, needs.shares, not needs.virtual)
            for wish, kernel in kernels.items():
                if self._remote.call(agent.kernel, wish) != kernel:
                    raise HostError(
                        "fleet.kernel",
                        f"the kernel {wish or uml.PROGRAM} of its guests is another one than here",
                        cure="copy it there: results depend on it",
                    )
        except HostError as error:
            error.where = self.name
            raise
        differing: dict[str, str] = self._remote.call(agent.differing, digests)
        for path, digest in differing.items():
            missing = digest == inputs.MISSING
            raise HostError(
                "fleet.input",
                f"{path} {'is missing there' if missing else 'has another content there'}",
                where=self.name,
                cure="copy it to the same path there, or use a file system that both share",
            )

    def abilities(self) -> str:
        """Returns in words what works there for this user."""
        words: str = self._remote.call(agent.abilities)
        return words

    def begin(self, *, virtual: bool) -> None:
        """Makes it ready for runs in virtual time, or in wall time."""
        self._agent = self._remote.call(agent.Agent, virtual, agent.environment())

    def number(self) -> int:
        """Returns a number for the next run."""
        return next(self._numbers)

    def run(
        self,
        number: int,
        folder: Path,
        made: str,
        processors: tuple[int, ...],
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        watcher: Listener,
    ) -> None:
        """Calls ``function(FOLDER, *arguments, watcher)`` there, and moves what it made here.

        ``made`` is a path below both folders; what is there now is replaced, also if the function fails.
        Raises :class:`MachineLost` if the machine is gone; then nothing is replaced.
        """
        assert self._agent is not None
        failure: BaseException | None = None
        try:
            self._agent.run(number, processors, function, arguments, watcher)
        except MachineLost:
            raise
        except BaseException as error:
            failure = error
        self._take(number, folder, made)
        if failure is not None:
            raise failure

    def signal(self, number: int, signal_number: int) -> None:
        """Sends a signal to a run."""
        assert self._agent is not None
        with contextlib.suppress(MachineLost):
            self._agent.signal(number, signal_number)

    def _take(self, number: int, folder: Path, made: str) -> None:
        assert self._agent is not None
        with tempfile.TemporaryDirectory(prefix=".from-fleet-", dir=folder) as place:
            archive, content = Path(place, "archive.tar"), Path(place, "content")
            with archive.open("wb") as sink:
                while True:
                    octets = self._agent.read(number, sink.tell(), _CHUNK)
                    sink.write(octets)
                    if len(octets) < _CHUNK:
                        break
            self._agent.forget(number)
            with tarfile.open(archive) as opened:
                opened.extractall(content, filter="data")
            if (content / made).exists():
                target = folder / made
                files.remove(target)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(content / made, target)

    def _lost(self, code: int, said: str) -> LabError:
        if not self._connected:
            cure = (
                f"install Airloom there: pip install airloom=={versions()['airloom']}"
                if code == _NOT_FOUND
                else f"see that `{self._launch.trial}` works, without a password and without a word"
            )
            why = said or f"its agent ended with exit code {code}"
            return ScenarioError("fleet.unreachable", why, where=self.name, cure=cure)
        self._clean()
        how = f": {said}" if said else ""
        return MachineLost(
            "fleet.lost",
            f"its connection ended{how}",
            where=self.name,
            cure="--resume does the rest and keeps what is finished",
        )

    def _clean(self) -> None:
        """Starts another agent there, which removes what the lost one has left, and ends at once."""
        if self._cleans is None:
            nothing = subprocess.DEVNULL
            self._cleans = subprocess.Popen(
                self._launch.command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
            )
