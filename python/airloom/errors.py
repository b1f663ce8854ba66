"""The exception hierarchy: each error has a stable code, a place in the scenario and a cure.

* LabError
  x ScenarioError     the scenario is wrong; nothing was started         exit code 2
  x HostError         this machine lacks a feature, which is named       exit code 3
  x RunError          the run failed; what was measured is kept          exit code 1
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST_SAID = 2000
"""Characters of the message of an error; more of a longer one is left out in the middle."""


class LabError(Exception):
    """Base class of all errors of Airloom.

    ``code`` is stable and dotted (``link.rate.zero``); ``where`` is the place (``net.yaml:12:11
    links[3].rate``: line, column, path); ``cure`` is what the user can do.
    """

    exit_code = 1
    further: tuple[LabError, ...] = ()
    """Further errors found at the same time."""

    def __init__(self, code: str, message: str, *, where: str | None = None, cure: str | None = None):
        if len(message) > MOST_SAID:
            # What is wrong may repeat a word of a file, which can be as long as the file.
            message = f"{message[: MOST_SAID // 2]} ... {message[-MOST_SAID // 2 :]}"
        super().__init__(message)
        self.code = code
        self.message = message
        self.where = where
        self.cure = cure if cure is None else cure[:MOST_SAID]

    def __reduce__(self) -> Any:
        return _restored, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        cure = f" ({self.cure})" if self.cure else ""
        return f"{place}{self.message}{cure} [{self.code}]"


def _restored(cls: type[LabError], args: tuple[Any, ...], state: dict[str, Any]) -> LabError:
    """Returns an error that was copied from another process."""
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class ScenarioError(LabError):
    """Bad input; nothing was started.

    The message describes the first mistake; ``further`` holds the others found with it.
    """

    exit_code = 2

    def __str__(self) -> str:
        count = len(self.further)
        return super().__str__() + (f" and {count} more mistake{'s' * (count > 1)}" if count else "")


class HostError(LabError):
    """The machine lacks a feature."""

    exit_code = 3


class RunError(LabError):
    """The run failed."""

    exit_code = 1


@contextlib.contextmanager
def writing(path: Path, code: str, what: str, cure: str) -> Iterator[None]:
    """Context manager: raises :class:`RunError` (``what`` cannot be written) for an ``OSError``."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise RunError(code, f"{what} cannot be written: {reason}", where=str(path), cure=cure) from error


_CURES = {
    "host.descriptor": "raise the limit of open files (ulimit -n)",
    "host.descriptors": "raise the hard limit of open files: ulimit -Hn, or LimitNOFILE= of the service",
    "host.interface": "name an interface that exists and run as root",
    "host.loop": "raise the limit of open files (ulimit -n); Linux 5.11 or later is needed",
    "host.radios": "modprobe mac80211_hwsim radios=0, or make the nodes of kind uml or qemu",
    "host.namespace": "run as root, or let ordinary users have namespaces (see `airloom doctor`)",
    "host.namespaces": "raise the sysctl user.max_net_namespaces",
    "host.tap-create": "run as root, or in a user namespace of its own",
    "host.tap-descriptor": "give the descriptor of a TAP made with IFF_NO_PI and IFF_VNET_HDR",
    "host.tun-device": "modprobe tun; without root /dev/net/tun must be open to this user (mode 0666)",
    "run.capture": "free space on the disk, or capture fewer ports",
    "run.engine-bug": "report it with the scenario and the seed",
}
_OF_THE_RUN = (
    "engine.settings",
    "engine.state",
    "engine.word",
    "node.closed",
    "node.kernel",
    "virtual.guest",
)
"""Codes for what the engine, a kernel or a guest refused or did although the scenario may be right."""


def from_engine(error: Exception, *, where: str | None = None) -> LabError:
    """Returns an error of the extension module as an error of this hierarchy, by its code.

    Codes ``host.*`` become :class:`HostError`. Codes ``run.*``, and calls refused because of the
    state of the engine or of a node, become :class:`RunError`. All others (``link.``, ``switch.``,
    ``radio.``, ``node.spec``...) become :class:`ScenarioError`.
    """
    code, message = (*error.args, "", "")[:2]
    code = str(code) or "engine"
    kind: type[LabError] = {"host": HostError, "run": RunError}.get(code.split(".")[0], ScenarioError)
    if code in _OF_THE_RUN:
        kind = RunError
    return kind(code, str(message) or str(error), where=where, cure=_CURES.get(code))


@contextlib.contextmanager
def translated(where: str | None = None) -> Iterator[None]:
    """Context manager: raises errors of the extension module as errors of this hierarchy."""
    from airloom import _engine

    try:
        yield
    except _engine.EngineError as error:
        raise from_engine(error, where=where) from error
