"""The agent: what executes runs on a machine of a fleet.

Each run has a process of its own and a scratch folder, which travels back as a tar archive.
"""

from __future__ import annotations

import os
import platform
import tarfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from airloom.fleet.folder import serve_in_folder
from airloom.host import files, programs
from airloom.host.machine import memory_octets, versions
from airloom.nodes import doctor
from airloom.nodes.kinds import uml
from airloom.planning import inputs
from airloom.rpc import Listener, Stays, Worker
from airloom.rpc.standing import serve


def main() -> NoReturn:
    """Serves the machine that started this process, until its end."""
    serve_in_folder(serve)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a machine is."""

    name: str
    """By its own kernel."""
    versions: Mapping[str, str]
    """As :func:`airloom.host.machine.versions`."""
    processors: tuple[int, ...]
    """Numbers of the processors that runs may use."""
    memory: int
    """Octets."""


def facts() -> Facts:
    """Returns what this machine is."""
    processors = tuple(sorted(os.sched_getaffinity(0)))
    return Facts(platform.node(), versions(), processors, memory_octets())


def abilities() -> str:
    """Returns in words what works on this machine for this user, as ``airloom doctor`` ends."""
    return doctor.summary(doctor.examine())


def differing(digests: Mapping[str, str]) -> dict[str, str]:
    """Returns the present digests of those inputs that differ from the given ones, by path."""
    present = {path: inputs.digest(path) for path in digests}
    return {path: digest for path, digest in present.items() if digest != digests[path]}


def require_basics(taps: bool, shares: Mapping[str, float], namespaces: bool) -> None:
    """Raises :class:`~airloom.errors.HostError` for what runs need and this machine lacks."""
    with Worker(namespaces=namespaces) as worker:
        worker.call(doctor.require_basics, taps=taps, shares=shares, namespaces=namespaces)


def kernel(wish: str | None) -> str:
    """Returns the digest of the kernel of User Mode Linux that a scenario names so, on this machine."""
    return inputs.digest(str(uml.kernel_of(wish)))


def environment() -> dict[str, str]:
    """Returns the variables of this process that programs of nodes see also in virtual time.

    The results depend on them: a program takes more calls of the kernel in another language. The home
    folder is that of each machine.
    """
    return {**_programs_see(os.environ), "PATH": programs.search_path()}


def _programs_see(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name == "LANG" or name.startswith("LC_")}


class Agent(Stays):
    """Executes runs on this machine, several at once."""

    def __init__(self, virtual: bool, environment: Mapping[str, str]) -> None:
        """``environment``: what programs of nodes have of it in virtual time (:func:`environment`)."""
        for name in _programs_see(os.environ):
            del os.environ[name]
        os.environ.update(environment)
        self._virtual = virtual
        self._idle: list[Worker] = []
        self._busy: dict[int, Worker] = {}
        self._changing = threading.Lock()

    def run(
        self,
        number: int,
        processors: Sequence[int],
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        watcher: Listener,
    ) -> None:
        """Calls ``function(folder, *arguments, watcher)`` in a process with these processors.

        The folder is new. What is in it at the end, also after an error, can be taken by :meth:`read`.
        """
        folder = _folder_of(number)
        folder.mkdir()
        with self._changing:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = Worker(namespaces=not self._virtual)
        with self._changing:
            self._busy[number] = worker
        try:
            worker.call(os.sched_setaffinity, 0, processors)
            worker.call(function, folder, *arguments, watcher)
        finally:
            with self._changing:
                del self._busy[number]
                if not worker.is_gone:
                    self._idle.append(worker)
            with tarfile.open(_archive_of(number), "w") as archive:
                archive.add(folder, ".")
            files.remove(folder)

    def read(self, number: int, offset: int, count: int) -> bytes:
        """Returns octets of the archive of a run; fewer than ``count`` at its end."""
        with _archive_of(number).open("rb") as source:
            source.seek(offset)
            return source.read(count)

    def forget(self, number: int) -> None:
        """Removes the archive of a run."""
        _archive_of(number).unlink()

    def signal(self, number: int, signal_number: int) -> None:
        """Sends a signal to a run."""
        with self._changing:
            worker = self._busy.get(number)
        if worker is not None:
            worker.signal(signal_number)


def _folder_of(number: int) -> Path:
    return Path(f"run-{number}").absolute()


def _archive_of(number: int) -> Path:
    return Path(f"run-{number}.tar").absolute()
