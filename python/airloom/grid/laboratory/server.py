"""The shared laboratory of a testbed: it owns the engine with the medium, and runs join it.

::

    with Laboratory(testbed, path, manager) as laboratory:
        laboratory.serve()

A run joins over a Unix socket with a token of its user and its reservation. The grid manager decides
whether both are good, so the laboratory keeps no accounts. The run makes its nodes itself, in its own
process, and gives the laboratory the descriptors of their TAPs: the laboratory starts no program of
a run and sees no file of it. When the run ends, in whatever way, the kernel closes its socket, and
the laboratory takes its radios off the air.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

from airloom import _engine
from airloom.errors import HostError, LabError, RunError, ScenarioError, translated
from airloom.grid.answers import Lent
from airloom.grid.inventory import MEDIUM, Testbed
from airloom.grid.laboratory import messages
from airloom.grid.laboratory.messages import Add, Begin, Change, Join, Read
from airloom.grid.laboratory.processors import Processors
from airloom.grid.laboratory.tenant import Shared, Tenant
from airloom.grid.messages import MOST_VIOLATIONS, Violation
from airloom.lab.messages import closed, error_of, receive, send
from airloom.lab.packet_server import PacketServer
from airloom.lab.running import peer_of
from airloom.planning.radio import media

ASK_S = 5.0
"""How often the manager is asked whether a reservation still stands."""
RATE, BURST = 100.0, 400
"""Messages of a run: a second, and at once. More are answered later."""
_MOST = 64
"""Most connections at a time."""
_LAST = (1 << 24) - 1
"""Last number of a run: it is part of the addresses of its radios."""


class Manager(Protocol):
    """The grid manager, called with the token of a run's user."""

    def grant_of(self, token: str, reservation: str) -> Lent:
        """Returns the grant of a reservation; an error if it does not stand."""

    def report(self, token: str, reservation: str, found: Sequence[Violation], unrecorded: int) -> None:
        """Reports violations of a reservation, and how many so far have no record."""


class Reporter:
    """Reports the violations of a run to the manager."""

    def __init__(self, manager: Manager, join: Join, tenant: Tenant) -> None:
        self._manager = manager
        self._join = join
        self._tenant = tenant
        self._sent: dict[Hashable, int] = {}
        """Transmissions that the manager knows of, by violation."""
        self._lost = 0
        """Violations without a record that the manager knows of."""

    def send(self) -> None:
        """Reports what is new since the last call. What the manager did not take is sent again."""
        found = {(one.at, one.radio, one.what, one.channel): one for one in self._tenant.reported()}
        new = [(key, one) for key, one in found.items() if self._sent.get(key) != one.frames]
        lost = self._tenant.unrecorded()
        batches = [
            dict(new[begin : begin + MOST_VIOLATIONS]) for begin in range(0, len(new), MOST_VIOLATIONS)
        ]
        if lost != self._lost and not batches:
            batches = [{}]
        with contextlib.suppress(LabError):
            for batch in batches:
                told = list(batch.values())
                self._manager.report(self._join.token, self._join.reservation, told, lost)
                self._sent |= {key: one.frames for key, one in batch.items()}
                self._lost = lost


class Laboratory:
    """Serves runs until closed; an exception ends only one run's part."""

    def __init__(self, testbed: Testbed, path: Path, manager: Manager, *, seed: int = 1) -> None:
        if testbed.inventory.medium.propagation.model == "matrix":
            raise ScenarioError(
                "lab.matrix", "a laboratory has radios that come and go, and no matrix of their losses",
                where="medium.propagation", cure="give another model",
            )  # fmt: skip
        self._testbed = testbed
        self._path = path
        self._manager = manager
        self._seed = seed
        self._stack = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._runs = 0
        self.processors = Processors()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack, translated():
            listening = stack.enter_context(_listening(self._path))
            self._server = PacketServer(listening, self._serve, most=_MOST)
            stack.callback(self._path.unlink, missing_ok=True)
            stack.enter_context(self.processors)
            engine = _engine.Engine(self._seed)
            said = self._testbed.inventory.medium
            self.settings = media.medium(said, [])
            engine.add_medium(MEDIUM, self.settings)
            for number, noise in enumerate(said.noise):
                engine.add_noise(MEDIUM, media.noise(noise), media.motion(noise), f"noise {number}")
            self._shared = Shared(self._testbed, engine, engine.start())
            stack.callback(engine.stop)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._stack.close()

    def close(self) -> None:
        """Ends :meth:`serve` and disconnects all runs. Callable from any thread."""
        self._server.close()

    def serve(self) -> None:
        """Lets runs join until :meth:`close`."""
        for thread in self._server.accept():
            thread.join()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.ExitStack() as stack:
            tenant = self._admitted(client, stack)
            client.settimeout(None)
            left = float(BURST)
            before = time.monotonic()
            while self._answer(client, tenant):
                now = time.monotonic()
                left, before = min(float(BURST), left + (now - before) * RATE) - 1, now
                if left < 0:
                    time.sleep(1 / RATE)

    def _admitted(self, client: socket.socket, stack: contextlib.ExitStack) -> Tenant:
        """Returns the part of a run whose first message proves that it may join."""
        octets, descriptors = receive(client)
        closed(descriptors)
        if not octets:
            raise ConnectionResetError
        message = messages.parse(octets)
        if not isinstance(message, Join):
            raise RunError("lab.message", "the first message is `join`")
        lent = self._manager.grant_of(message.token, message.reservation)
        with self._lock:
            self._runs += 1
            number = self._runs
        if number > _LAST:
            raise RunError("lab.full", "the laboratory has had too many runs", cure="start it again")
        tenant = Tenant(self._shared, lent, number)
        report = Reporter(self._manager, message, tenant)
        stack.callback(tenant.forget)
        stack.callback(report.send)
        stack.callback(tenant.leave)
        over = threading.Event()
        watch = threading.Thread(target=self._watch, args=(client, message, lent, report, over), daemon=True)
        watch.start()
        stack.callback(over.set)
        held = self.processors.hold(number, peer_of(client).pid)
        stack.callback(self.processors.release, number)
        done = {"zero": self._shared.zero, "macs": tenant.macs.hex(":"), "medium": self.settings}
        send(client, {"done": {**done, "slice": lent.slice, "processors": held}})
        return tenant

    def _watch(
        self, client: socket.socket, join: Join, lent: Lent, report: Reporter, over: threading.Event
    ) -> None:
        """Ends the run's part with the window, or when the reservation does not stand any more."""
        end = time.monotonic() + lent.remaining_s
        while (left := end - time.monotonic()) > 0:
            if over.wait(min(ASK_S, left)):
                return
            report.send()
            try:
                end = time.monotonic() + self._manager.grant_of(join.token, join.reservation).remaining_s
            except HostError:
                continue  # the manager is away: the window ends it
            except LabError as error:
                if error.exit_code != 1:
                    break
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def _answer(self, client: socket.socket, tenant: Tenant) -> bool:
        """Answers a message; False at the end of the connection."""
        octets, descriptors = receive(client)
        try:
            if not octets:
                return False
            done = _done(tenant, messages.parse(octets), descriptors)
        except LabError as error:
            send(client, error_of(error))
        except Exception as error:  # of what the run sent: it is told, and others go on
            why = f"the laboratory cannot do that: {type(error).__name__}"
            send(client, error_of(RunError("lab.failed", why)))
        else:
            send(client, {"done": done})
        finally:
            closed(descriptors)
        return True


def _done(tenant: Tenant, message: messages.Message, descriptors: list[int]) -> Any:
    if len(descriptors) != isinstance(message, Add):
        raise RunError("lab.message", "not understood: `add` has one descriptor, other messages have none")
    match message:
        case Add():
            return tenant.add(message, descriptors[0])
        case Change():
            return tenant.change(message)
        case Begin():
            return tenant.begin()
        case Read():
            return tenant.read(message.what)
        case Join():
            raise RunError("lab.message", "the run has joined already")
        case _:
            return tenant.scanned(message.port)


@contextlib.contextmanager
def _listening(path: Path) -> Any:
    """Context manager: a listening socket that every user of the machine may connect to."""
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
            if path.is_socket() and not _answers(path):
                path.unlink()
            one.bind(os.fspath(path))
            path.chmod(0o666)
        except OSError as error:
            raise HostError(
                "lab.socket", f"cannot listen: {error.strerror or error}", where=str(path),
                cure="give another path with --socket; one laboratory listens at a path",
            ) from None  # fmt: skip
        one.listen(16)
        yield one
    finally:
        one.close()


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        try:
            probe.connect(os.fspath(path))
        except OSError:
            return False
        return True
