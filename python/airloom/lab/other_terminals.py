"""What a laboratory does for other terminals, through :mod:`airloom.lab.server`."""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from airloom.errors import LabError, RunError
from airloom.lab.handles import LiveGuest, LiveLink, LiveNode, Switched, link_of
from airloom.lab.live_program import ClientProgram
from airloom.lab.steering import TOUCHED
from airloom.lab.whereabouts import where_it_is
from airloom.planning.plan import Plan
from airloom.rpc import Stays
from airloom.runs.link_loads import DIRECTIONS, loads_of, numbers_of
from airloom.runs.single import OneRun


class ForOtherTerminals(Stays, ABC):
    """A laboratory that other terminals use."""

    plan: Plan
    folder: Path
    _there: Any
    _links: dict[str, LiveLink]

    @abstractmethod
    def _up(self) -> OneRun:
        """The run; raises :class:`~airloom.RunError` if it is not up."""

    @abstractmethod
    def _no_node(self, name: str) -> LabError:
        """The error for a name that is no node's."""

    @abstractmethod
    def __getitem__(self, name: str) -> LiveNode:
        """A node."""

    @abstractmethod
    def guest(self, name: str) -> LiveGuest:
        """A shared guest."""

    def info(self) -> dict[str, Any]:
        """Description of the laboratory for other terminals."""
        return {
            "scenario": self.plan.scenario.name,
            "nodes": list(self.plan.nodes),
            "folder": str(self.folder),
        }

    def admit(
        self, node: str, argv: Sequence[str], env: Mapping[str, str], descriptors: Sequence[int], tty: bool
    ) -> ClientProgram:
        """Starts a program for another terminal, which lets virtual time pass until its end."""
        if tty and self.plan.virtual:
            raise RunError(
                "time.virtual",
                "a program at a terminal waits for its keyboard, for which virtual time would not wait",
                cure="airloom exec NODE -- COMMAND, without a terminal",
            )
        with self._alone():
            program = self.attached(node, argv, env, descriptors, tty)
            self._touched(f"{argv[0]} was started in {node} from another terminal")
        return program

    def attached(
        self,
        node: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        descriptors: Sequence[int],
        tty: bool = False,
    ) -> ClientProgram:
        """Starts a program on three descriptors of this process."""
        if self._there is not None:
            raise RunError(
                "lab.elsewhere",
                "descriptors of this process cannot be given to the process that runs the laboratory",
                cure="`airloom exec` gives those of its terminal",
            )
        if node not in self.plan.nodes:
            raise self._no_node(node)
        stdin: int | None
        stdin, stdout, stderr = descriptors
        if self.plan.virtual and os.isatty(stdin):
            stdin = None
        handle = self._up().world.nodes[node]
        return ClientProgram(handle.start(argv, env=env, stdin=stdin, stdout=stdout, stderr=stderr, tty=tty))

    @where_it_is
    def control(self, node: str, action: str) -> None:
        """Controls a node or shared guest for another terminal."""
        acts = {"pause": Switched.pause, "resume": Switched.resume, "stop": Switched.stop}
        acts |= {"kill": Switched.kill, "restart": Switched.restart}
        one = self._up()
        found = self.guest(node) if node in one.world.guests else self[node]
        with self._alone():
            if action == "start":
                one.runner.switching.on(node)
            else:
                acts[action](found)
            self._touched(f"{node} was told by hand: {action}")

    @where_it_is
    def described_links(self) -> list[dict[str, Any]]:
        """The links for another process: names, ends, settings as text, loads of both directions."""
        world = self._up().world
        numbers, loads = numbers_of(world.engine), loads_of(world.engine)
        return [
            {"name": link.name, "a": link.a, "b": link.b, "up": link.is_up, "text": link.describe()}
            | {way: asdict(loads[2 * numbers[link.name] + n]) for n, way in enumerate(DIRECTIONS)}
            for link in list(self._links.values())
            if link.name in numbers
        ]

    @where_it_is
    def change_link(self, link: str, direction: str, properties: Mapping[str, Any], up: bool | None) -> None:
        """Changes a link for another process."""
        self._up()
        found = link_of(self._links, link, None)
        with self._alone():
            if properties:
                found.set(direction=direction, **properties)
            if up is not None:
                (found.up if up else found.down)()
            self._touched(f"link {link} was changed by hand")

    def _alone(self) -> contextlib.AbstractContextManager[None]:
        """In virtual time: no other thread lets time pass meanwhile."""
        pacer = None if self._there is not None else self._up().world.pacer
        return contextlib.nullcontext() if pacer is None else pacer.alone()

    def _touched(self, what: str) -> None:
        """Notes for the verdict that a run in virtual time is not what its script alone makes."""
        one = self._up()
        if self.plan.virtual:
            one.note(f"{TOUCHED}: at {one.world.now() / 1e9:.9f} s {what}")
