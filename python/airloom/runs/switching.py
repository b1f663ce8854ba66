"""Switches nodes and shared guests off and on during a run, with the scenario's programs in them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial

from airloom.errors import LabError
from airloom.runs.emulation import World
from airloom.runs.programs import GRACE, Supervised
from airloom.runs.timeline import Timeline


class Switching:
    """The nodes that are off, and the programs that start with them again."""

    def __init__(
        self,
        world: World,
        timeline: Timeline,
        programs: Mapping[str, Supervised],
        fail: Callable[[LabError], None],
    ) -> None:
        """``fail``: called with the error of a node that cannot be switched off."""
        self._world = world
        self._timeline = timeline
        self._programs = programs
        self._fail = fail
        self._down: dict[str, list[Supervised]] = {}
        """Nodes that are off, with the programs that ran."""
        self._going: dict[str, threading.Thread] = {}
        """Nodes that are being switched off, with the thread that does it."""

    # From any thread but that of the timeline

    def off(self, name: str, grace: float | None) -> None:
        """Switches a node or a shared guest off; programs are killed, or have ``grace`` seconds to end."""
        self._ask(lambda: self._expect_off(name))
        self._world.switch_off(name, grace)

    def on(self, name: str) -> None:
        """Switches a node or a shared guest's nodes on, with the programs that ran before.

        Raises :class:`~airloom.errors.RunError` for a node that is up.
        """
        members = self._world.members(name)
        self._ask(lambda: self._have_gone(*members))
        self._world.switch_on(name)
        for member in members:
            self._ask(partial(self._revive, member))

    def again(self, name: str) -> None:
        """Switches a node or a shared guest off, unless it is, and on again."""
        self._world.refuse_in_virtual_time("a node's action 'start'")
        nodes = self._world.nodes
        if any(nodes[member].state in ("up", "paused") for member in self._world.members(name)):
            self.off(name, GRACE / 1e9)
        self.on(name)

    def _ask(self, act: Callable[[], object]) -> None:
        """Acts on the timeline, but in a run that has failed, whose programs are not judged any more."""
        if not self._timeline.ended:
            self._timeline.ask(act)

    # On the timeline

    def stop(self, name: str, *, kill: bool = False) -> None:
        """Switches off a node or a shared guest: interfaces go down, programs end or are killed."""
        members = self._expect_off(name)
        if not members:
            return
        if kill:
            self._world.switch_off(name)
            return
        # Switching off takes time and must not delay other work that is due.
        if self._world.pacer is not None:
            self._switch_off(name)
            return
        going = threading.Thread(target=self._switch_off, args=(name,), daemon=True)
        self._going |= dict.fromkeys(members, going)
        going.start()

    def start(self, name: str) -> None:
        """Switches on a node or a shared guest's nodes, with the programs that ran before."""
        for member in self._world.members(name):
            if member in self._down:
                self._have_gone(member)
                self._world.switch_on(member)
                self._revive(member)

    def forget(self, program: Supervised) -> None:
        """Forgets a program that is to start with its node."""
        self._down = {name: [one for one in here if one is not program] for name, here in self._down.items()}

    def take(self, name: str) -> list[Supervised]:
        """Takes a node that is to be made anew; returns the programs that were to start with it."""
        self._have_gone(name)
        return self._down.pop(name, [])

    def finish(self) -> None:
        """Waits until all nodes that are being switched off are off."""
        self._have_gone(*list(self._going))

    def _expect_off(self, name: str) -> list[str]:
        """Tells the programs of nodes that they are being switched off; returns those that are not off."""
        members = [member for member in self._world.members(name) if member not in self._down]
        for member in members:
            here = [one for one in self._programs.values() if one.node == member and one.alive]
            self._down[member] = here
            for supervised in here:
                supervised.expect_end()
        return members

    def _switch_off(self, name: str) -> None:
        try:
            self._world.switch_off(name, GRACE / 1e9)
        except LabError as error:
            self._fail(error)

    def _revive(self, member: str) -> None:
        for supervised in self._down.pop(member, ()):
            supervised.start()

    def _have_gone(self, *names: str) -> None:
        """Waits until nodes that are being switched off are off."""
        for name in names:
            thread = self._going.pop(name, None)
            if thread is not None:
                thread.join()
