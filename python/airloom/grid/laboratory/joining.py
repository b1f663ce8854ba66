"""A run in the shared laboratory: the engine's part in :class:`World`, played over a socket.

::

    with join(path, token, identity) as seat:
        experiment = seat.fitted(experiment)
        execute(experiment, folder, engine=seat.engine)

The run makes its nodes as always. Its engine is the laboratory's: ports and radios are added there,
and state and accounts are read from there, each for the run's own radios.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from airloom import _engine
from airloom.errors import HostError, RunError, ScenarioError
from airloom.grid.laboratory.messages import Add, Begin, Change, Join, Read, Scanned
from airloom.lab.messages import error_from, receive, send
from airloom.lab.running import TIMEOUT, peer_of
from airloom.planning.expand import expand
from airloom.planning.gate import Experiment
from airloom.planning.plan import MediumPlan, NodePlan, Plan
from airloom.planning.radio import media
from airloom.scenario.model import Medium

_OVERFLOW = Path("/proc/sys/kernel/overflowuid")


class Seat:
    """A run's place in the laboratory."""

    def __init__(self, channel: socket.socket, said: Mapping[str, Any]) -> None:
        self._channel = channel
        self._macs: str = said["macs"]
        self._medium: dict[str, Any] = said["medium"]
        self._zero: int = said["zero"]
        self._lock = threading.Lock()
        self._lent: dict[str, str] = {}
        self.held_apart: bool = said["processors"]
        """Whether the run's share of the processors is held against the other runs."""

    def fitted(self, experiment: Experiment) -> Experiment:
        """Returns the experiment for this laboratory: its medium, and addresses of the run's own.

        Raises :class:`ScenarioError` for what a shared laboratory does not have.
        """
        plans = tuple(self._fitted(plan) for plan in experiment.plans)
        if len(plans) != 1:
            raise _refused(f"one run joins, and this scenario describes {len(plans)}", "sweep")
        return dataclasses.replace(experiment, plans=plans)

    def engine(self, seed: int) -> _engine.Engine:
        """Returns the laboratory's engine as far as a run of radios needs it; its seed is its own."""
        return cast(_engine.Engine, JoinedEngine(self, self._zero, self._lent))

    def ask(self, message: BaseModel, descriptors: tuple[int, ...] = ()) -> Any:
        """Sends a message; returns the answer. Raises the laboratory's error."""
        with self._lock:
            try:
                send(self._channel, message, descriptors)
                octets, _ = receive(self._channel)
            except OSError:
                octets = b""
        if not octets:
            raise RunError("lab.ended", "the laboratory ended the run's part in it")
        answer = json.loads(octets)
        if "error" in answer:
            raise error_from(answer["error"])
        return answer["done"]

    def _fitted(self, plan: Plan) -> Plan:
        if plan.links or plan.switches or plan.tunnels:
            raise _refused("links, switches and tunnels are not part of it", "links")
        if plan.idle_poll or plan.engine_scheduling is not None:
            raise _refused("the engine is the testbed's: leave out how it is scheduled", "engine")
        if len(plan.media) != 1:
            raise _refused("it has one medium", "media")
        (medium,) = plan.media.values()
        said = plan.scenario.media[medium.name]
        if medium.settings not in (self._medium, media.medium(Medium(), [])):
            raise _refused("the medium is the testbed's: leave its laws out", f"media.{medium.name}")
        if medium.cards or medium.noise or medium.frame_errors or said.slots is not None:
            what = "cards, noise, frame_errors and slots are the testbed's"
            raise _refused(what, f"media.{medium.name}")
        for number, one in enumerate(plan.scenario.measurements):
            if one.traffic is not None and one.traffic.stages:
                raise _refused("the stages of packets are not followed in it", f"measurements[{number}]")
        slivers = expand(plan.scenario).slivers if plan.scenario.slices else {}
        macs = {}
        for number, radio in enumerate(medium.radios):
            macs[radio.port] = f"{self._macs}:{number >> 8:02x}:{number & 255:02x}"
            sliver = slivers.get(radio.node)
            self._lent[radio.port] = radio.port if sliver is None else f"{sliver.node}:{sliver.radio}"
        old = {
            interface.mac: macs.get(f"{node.name}:{interface.name}")
            for node in plan.nodes.values()
            for interface in node.interfaces
        }
        nodes = {name: _readdressed(node, old) for name, node in plan.nodes.items()}
        radios = tuple(
            dataclasses.replace(
                radio,
                settings={**radio.settings, "mac": [int(one, 16) for one in macs[radio.port].split(":")]},
            )
            for radio in medium.radios
        )
        fitted: dict[str, MediumPlan] = {
            medium.name: dataclasses.replace(medium, settings=self._medium, radios=radios)
        }
        return dataclasses.replace(plan, nodes=nodes, media=fitted)


class JoinedEngine:
    """What a run with radios uses of :class:`airloom._engine.Engine`, in the shared laboratory."""

    def __init__(self, seat: Seat, zero: int, lent: dict[str, str]) -> None:
        self._seat = seat
        self._engine_zero = zero
        self._lent = lent
        self._taps: dict[str, _engine.Tap | int] = {}
        self._scheduled: list[tuple[int, str, dict[str, Any]]] = []
        self._zero: int | None = None
        self._final: dict[str, Any] = {}
        """What was read when the run ended."""

    def add_tap_port(
        self,
        name: str,
        tap: _engine.Tap | int,
        transit: bool = False,
        complete_checksums: bool = False,
        offloads: tuple[bool, bool] = (True, True),
    ) -> None:
        """Keeps the TAP until its radio is added."""
        self._taps[name] = tap

    def add_medium(self, name: str, settings: dict[str, Any]) -> None:
        """The laboratory has its medium."""

    def add_radio(
        self, medium: str, port: str, settings: dict[str, Any], motion: dict[str, Any], node: str
    ) -> None:
        """Adds a radio with its TAP; it stands where the inventory has it."""
        tap = self._taps.pop(port)
        descriptor = tap if isinstance(tap, int) else tap.fileno()
        self._seat.ask(Add(port=port, lent=self._lent[port], settings=settings), (descriptor,))

    def police(self, port: str, grant: dict[str, Any]) -> None:
        """The laboratory holds the radio to the reservation, whatever the run says."""

    def set_radio(self, port: str, change: dict[str, Any]) -> None:
        """Changes a radio now."""
        self._seat.ask(Change(port=port, change=change))

    def schedule_radio(self, at: int, port: str, change: dict[str, Any]) -> None:
        """Schedules a change; before the start it is kept until then."""
        if self._zero is None:
            self._scheduled.append((at, port, change))
        else:
            self._seat.ask(Change(port=port, change=change, at=self._zero + at))

    def start(self) -> int:
        """Begins the run's time; returns CLOCK_MONOTONIC in ns at its time zero."""
        self._seat.ask(Begin())
        self._zero = time.monotonic_ns()
        for at, port, change in self._scheduled:
            self._seat.ask(Change(port=port, change=change, at=self._zero + at))
        return self._zero

    def stop(self) -> None:
        """Reads the run's accounts for the last time; the laboratory goes on."""
        for what in ("ledger", "lateness", "radios", "channels", "violations"):
            self._final[what] = self._read(what)

    def radios(self) -> Any:
        """The run's radios (see ``Engine.radios``)."""
        return self._read("radios")

    def channels(self) -> Any:
        """The channels of the grant, with what all runs sent on them."""
        return self._read("channels")

    def cards(self) -> Any:
        """None: a run of the laboratory has no cards."""
        return []

    def guests(self) -> Any:
        """None: its nodes have no machines with devices of the engine."""
        return {}

    def violations(self) -> Any:
        """The run's violations of its grant."""
        return self._read("violations")

    def ledger(self) -> Any:
        """The account of the run's ports."""
        return self._read("ledger")

    def lateness(self) -> Any:
        """The lateness of the laboratory since the run began."""
        return self._read("lateness")

    def scanned(self, port: str) -> Any:
        """The scans of a radio."""
        return self._seat.ask(Scanned(port=port))

    def _read(self, what: Any) -> Any:
        return self._final[what] if what in self._final else self._seat.ask(Read(what=what))


def default_path() -> Path:
    """Returns where the laboratory of this machine listens."""
    return Path("/run/airloom-grid/laboratory.sock")


def check_owner(path: Path) -> None:
    """Raises an error unless the laboratory at this path is root's or the caller's: it gets a token."""
    with contextlib.suppress(OSError):
        owner = path.stat().st_uid
        if not stat.S_ISSOCK(path.stat().st_mode) or owner not in _trusted():
            raise HostError("lab.stranger", "this is no laboratory of root or of yours", where=str(path))


@contextlib.contextmanager
def join(path: Path, token: str, identity: str) -> Iterator[Seat]:
    """Context manager: a place in the laboratory for the run of this process."""
    check_owner(path)
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with channel:
        channel.settimeout(6 * TIMEOUT)  # the laboratory asks the manager meanwhile
        try:
            channel.connect(os.fspath(path))
            if peer_of(channel).uid not in _trusted():
                raise HostError("lab.stranger", "this is no laboratory of root or of yours", where=str(path))
            send(channel, Join(token=token, reservation=identity))
            octets, _ = receive(channel)
        except OSError as error:
            raise HostError(
                "lab.unreachable", f"no laboratory answers: {error.strerror or error}", where=str(path),
                cure="airloom grid lab INVENTORY",
            ) from None  # fmt: skip
        answer = json.loads(octets or b"{}")
        if "error" in answer:
            raise error_from(answer["error"])
        if "done" not in answer:
            raise HostError("lab.unreachable", "the laboratory ended", where=str(path))
        try:
            yield Seat(channel, answer["done"])
        finally:
            with contextlib.suppress(OSError):
                channel.shutdown(socket.SHUT_WR)
                while receive(channel)[0]:  # the end: the radios are off and free for others
                    pass


def _trusted() -> set[int]:
    """Returns the users whose laboratory may see a token.

    In a user namespace, which a command enters by starting again after it has looked at the path
    outside of it, root outside is the overflow user.
    """
    mapped = Path("/proc/self/uid_map").read_text().split()
    if mapped == ["0", "0", "4294967295"]:
        return {0, os.geteuid()}
    return {0, os.geteuid(), int(_OVERFLOW.read_text())}


def _readdressed(node: NodePlan, macs: Mapping[str, str | None]) -> NodePlan:
    """Returns a node with the laboratory's addresses of its radios."""
    if node.kind not in ("netns", "container"):
        raise _refused("nodes are of the kinds netns and container", f"nodes.{node.name}.kind")
    if any(interface.wlan is not None or interface.real is not None for interface in node.interfaces):
        raise _refused("radios have no wireless device or real interface", f"nodes.{node.name}")
    interfaces = tuple(
        dataclasses.replace(interface, mac=macs.get(interface.mac) or interface.mac)
        for interface in node.interfaces
    )
    neighbours = tuple(
        dataclasses.replace(neighbour, mac=macs.get(neighbour.mac) or neighbour.mac)
        for neighbour in node.neighbours
    )
    return dataclasses.replace(node, interfaces=interfaces, neighbours=neighbours)


def _refused(message: str, where: str) -> ScenarioError:
    cure = "see docs/guide/grid.md, Several runs in one laboratory; without --lab it is possible"
    return ScenarioError("lab.unsupported", f"in a shared laboratory: {message}", where=where, cure=cure)
