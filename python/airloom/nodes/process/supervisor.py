"""The supervisor process (`Supervisor`): creates each node's first process and cleans up.

There is one for each run. Ctrl-C does not reach it. When this process dies for any reason, the
supervisor ends all nodes, removes the control groups that it created, and exits. Create it before
the nodes: programs inherit the descriptor limit of that moment.
"""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from airloom.errors import HostError, RunError
from airloom.host import binaries
from airloom.nodes.process.channel import Channel, Dispatcher, Message
from airloom.planning.plan import MountPlan
from airloom.units.text import of_nodes

_PROTOCOL = 13
"""As in ``init/src/message.rs``."""
_GREETING = 5.0
"""Seconds for the supervisor to send its greeting; versions before 2 send none."""
_TIMEOUT = 30.0
"""Seconds for the supervisor to answer; it normally takes microseconds."""


@dataclass(frozen=True, slots=True)
class Made:
    """A node's first process, as created by the supervisor."""

    channel: Channel
    """The channel to the process itself."""
    pid: int
    """PID in this process's namespace."""
    group: Path | None
    """Its control group, version 2."""
    cpu_group: Path | None
    """The version 1 control group that limits its processor share, if version 2 does not."""
    notes: tuple[str, ...]


class Supervisor:
    """Client of the supervisor process, ``airloom-init supervise``."""

    def __init__(self, folder: Path | None = None) -> None:
        """``folder``: nodes have no namespaces and no control groups, which needs no rights. It makes this
        folder for the files of their machines, and removes it at the end.
        """
        self.folder = folder
        program = binaries.find("airloom-init")
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with far:
            try:
                self._process = _spawn(program, far, folder)
            except OSError as error:
                near.close()
                raise HostError(
                    "host.keeper", f"cannot start {program}: {error}", cure="run `make setup`"
                ) from None
        self.dispatcher = Dispatcher()
        self._channel = Channel(near)
        self._lock = threading.Condition()
        self._waiting: dict[str, Message | None] = {}
        self._ends: dict[str, Callable[[Message], None]] = {}
        self._gone = False
        self._closed = False
        self._common: Mapping[str, str] = {}
        self.failure: str | None = None
        """Why it cannot create more nodes; None while it can."""
        self._protocol: int | None = None
        self._shares: Message | None = None
        self.dispatcher.join(self._channel, self._heard, self._lost)
        self._check_version(program)

    @property
    def pid(self) -> int:
        """PID of the supervisor process."""
        return self._process.pid

    @property
    def common(self) -> Mapping[str, str]:
        """The files mounted over the host's in every node."""
        return self._common

    def common_files(self, files: Mapping[str, str]) -> None:
        """Sets the files that all nodes see read-only over the host's."""
        if files != self._common:
            self._common = dict(files)
            self._send({"op": "common", "files": self._common})

    def require_shares(self, shares: Mapping[str, float]) -> None:
        """Tests whether this machine can enforce shares. Raises :class:`HostError` if not."""
        if not shares:
            return
        why = self.why_no_shares()
        if why is not None:
            raise HostError(
                "host.cpu-share",
                f"{of_nodes(list(shares))}: a share of a processor (`cpu`) cannot be held on this machine: "
                f"{why}",
                cure="run as root with control groups of its own, or take `cpu` out",
            )

    def why_no_shares(self) -> str | None:
        """Tests whether control groups limit and weigh processor time here; why not, or None."""
        self._send({"op": "shares"})
        with self._lock:
            there = self._lock.wait_for(lambda: self._gone or self._shares is not None, _TIMEOUT)
            answer, self._shares = self._shares, None
        if answer is None:
            raise self._broken("it has ended" if there else f"no answer within {_TIMEOUT:g} s")
        why: str | None = answer["why"]
        return why

    def make(
        self,
        name: str,
        namespace: int,
        *,
        files: Mapping[str, str],
        visible: Sequence[Path],
        cpu: float | None,
        weight: float | None = None,
        image: Message | None = None,
        mounts: Sequence[MountPlan] = (),
        on_end: Callable[[Message], None],
    ) -> Made:
        """Creates a node's first process in a network namespace; ``on_end`` is called when it ends.

        ``cpu`` limits its processor time; ``weight`` is its share against the other nodes, 1 by default.
        ``image``: its root file system, if not the host's: ``root``, ``user``, ``folder``. ``mounts``:
        paths of the host at paths of the node.
        """
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with self._lock:
            self._waiting[name] = None
            self._ends[name] = on_end
        request: Message = {
            "op": "node",
            "name": name,
            "files": dict(files),
            "visible": [str(path) for path in visible],
            "cpu": cpu,
            **({} if weight is None else {"weight": weight}),
            "image": image,
            "mounts": [asdict(one) for one in mounts],
        }
        try:
            with far:
                self._send(request, [namespace, far.fileno()])
            answer = self._answer(name)
        except BaseException:
            near.close()
            with self._lock:
                self._waiting.pop(name, None)
                self._ends.pop(name, None)
            raise
        if answer["event"] != "made":
            near.close()
            with self._lock:
                self._ends.pop(name, None)
            raise HostError(
                "host.namespace",
                f"node {name}: its first process cannot be made: {answer['why']}",
                cure="see `airloom doctor`",
            )
        group, cpu_group = (Path(answer[word]) if answer[word] else None for word in ("group", "cpu_group"))
        return Made(
            Channel(near),
            answer["pid"],
            group,
            cpu_group,
            tuple(answer["notes"]),
        )

    def kill(self, name: str) -> None:
        """Kills a node's first process, and with it all processes in the node."""
        self._send({"op": "kill", "name": name})

    def close(self) -> None:
        """Ends all nodes and waits for the supervisor's clean-up. A second call has no effect."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._channel.close()
        try:
            self._process.wait(_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.dispatcher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_version(self, program: Path) -> None:
        """Waits for the supervisor's greeting, which it sends when it is ready."""
        with self._lock:
            self._lock.wait_for(lambda: self._gone or self._protocol is not None, _GREETING)
        if self._protocol == _PROTOCOL:
            return
        ended = self._process.poll()
        self.close()
        if self._protocol is None and ended not in (None, 2):
            raise HostError(
                "host.keeper",
                f"{program} may not make namespaces (exit code {ended})",
                cure="run as root, or see `airloom doctor`",
            )
        raise HostError(
            "host.keeper", f"{program} is not of this version of Airloom", cure="run `make setup`"
        )

    def _send(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        try:
            self._channel.send(message, descriptors)
        except OSError as error:
            raise self._broken(error.strerror) from None

    def _answer(self, name: str) -> Message:
        with self._lock:
            there = self._lock.wait_for(lambda: self._gone or self._waiting[name] is not None, _TIMEOUT)
            answer = self._waiting.pop(name)
            if answer is not None:
                return answer
        raise self._broken("it has ended" if there else f"no answer within {_TIMEOUT:g} s")

    def _broken(self, why: str | None) -> RunError:
        return RunError("run.keeper", f"the supervisor of the nodes does not answer: {self.failure or why}")

    def _heard(self, message: Message) -> None:
        if message["event"] == "hello":
            with self._lock:
                self._protocol = message["protocol"]
                self._lock.notify_all()
            return
        if message["event"] == "shares":
            with self._lock:
                self._shares = message
                self._lock.notify_all()
            return
        name = message["name"]
        if message["event"] == "ended":
            with self._lock:
                on_end = self._ends.pop(name, None)
            if on_end is not None:
                on_end(message)
            return
        with self._lock:
            if name in self._waiting:
                self._waiting[name] = message
            elif not name:
                self.failure = f"files for all nodes: {message['why']}"
            self._lock.notify_all()

    def _lost(self, why: str | None) -> None:
        with self._lock:
            self._gone = True
            if not self._closed:
                self.failure = self.failure or ("it has ended" if why is None else f"it said {why}")
            ends, self._ends = self._ends, {}
            self._lock.notify_all()
        for on_end in ends.values():
            on_end({"event": "ended", "code": None, "signal": None})


def _spawn(program: Path, far: socket.socket, folder: Path | None) -> subprocess.Popen[bytes]:
    """Starts the supervisor in a new session, so that Ctrl-C in this terminal does not reach it."""
    return subprocess.Popen(
        [str(program), "supervise", str(far.fileno()), *([] if folder is None else [str(folder)])],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[far.fileno()],
        start_new_session=True,
        cwd="/",
    )
