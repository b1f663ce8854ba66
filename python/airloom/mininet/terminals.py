"""Opens a script's network to other terminals: ``airloom exec``, ``shell``, ``node`` and ``capture``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from airloom import _engine
from airloom.errors import RunError
from airloom.lab.handles import direction_of, of_both, unknown
from airloom.lab.live_program import ClientProgram
from airloom.lab.server import Program
from airloom.mininet.emulation import Session
from airloom.mininet.standing import NODES, SWITCHES
from airloom.planning.capture import Source
from airloom.planning.links.encoding import changed
from airloom.runs.link_loads import DIRECTIONS, loads_of

_DEFAULT = "mininet"


def name_of_script() -> str:
    """Returns the name under which terminals find the network: that of the script, without its suffix."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(sys.argv[0] if sys.argv else "").stem)[:40].strip("-.")
    return name or _DEFAULT


class Terminals:
    """A session, as the server of other terminals needs it."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def info(self) -> dict[str, Any]:
        """Returns the network's description."""
        return {"scenario": name_of_script(), "nodes": self._session.nodes, "folder": os.getcwd()}

    def control(self, node: str, action: str) -> None:
        """Pauses or resumes a node; the script alone ends and starts its nodes."""
        world = self._session.world
        acts = {"pause": world.pause, "resume": world.resume}
        if action not in acts:
            raise RunError(
                "mininet.unsupported",
                f"{action} {node}: nodes of a Mininet script end and start by the script",
                cure="pause or resume",
            )
        self._session.node(node)
        acts[action](node)

    def sources(self) -> dict[str, Source]:
        """Returns what can be captured: nodes, and interfaces as Mininet names them."""
        of_nodes: dict[str, tuple[str, ...]] = {}
        found: dict[str, Source] = {}
        for port in self._session.ports:
            of_nodes[port.host] = (*of_nodes.get(port.host, ()), port.name)
            found[port.tap.name] = Source("port", (port.name,))
        return found | {name: Source("node", ports) for name, ports in of_nodes.items()}

    @property
    def engine(self) -> _engine.Engine:
        """The engine, for captures."""
        return self._session.world.engine

    def described_links(self) -> list[dict[str, Any]]:
        """Returns the links: ``h1-eth0-s1-eth1``, ends, settings as text, loads of both directions."""
        numbers, loads = self._session.link_numbers(), loads_of(self.engine)
        found = []
        for name, link in self._links().items():
            place = 2 * numbers[link.engineName]
            text = of_both(*(intf.shaped.text for intf in (link.intf1, link.intf2)))
            ends = [f"{intf.node.name}:{intf.name}" for intf in (link.intf1, link.intf2)]
            said = {"name": name, "a": ends[0], "b": ends[1], "up": link.isUp, "text": text}
            found.append(said | {way: asdict(loads[place + n]) for n, way in enumerate(DIRECTIONS)})
        return found

    def ledger(self) -> Mapping[str, Any]:
        """Returns the engine's ledger."""
        return self._session.world.engine.ledger()

    def change_link(self, link: str, direction: str, properties: Mapping[str, Any], up: bool | None) -> None:
        """Changes properties of a link, written as in a scenario; others stay, unlike ``config``."""
        links = self._links()
        if link not in links:
            raise unknown("link", link, links)
        ends = [one for one in (links[link].intf1, links[link].intf2) if direction in ("both", one.way)]
        if properties:
            queues = [None if (queue := intf.shaped.queue) is None else queue.said for intf in ends]
            change = direction_of(properties, queues)
            for intf in ends:
                intf.shapeAs(changed(intf.shaped, change))
        if up is not None:
            links[link].configStatus(up)

    def _links(self) -> dict[str, Any]:
        """Returns the script's links that are there, by the names of their two interfaces."""
        found: dict[str, Any] = {}
        for node in [*NODES.values(), *SWITCHES.values()]:
            for intf in node.intfList():
                link = intf.link
                if link is not None and link.intf2 is not None and not link.isCut:
                    found[f"{link.intf1.name}-{link.intf2.name}"] = link
        return found

    def apply(
        self, source: Path, *, overrides: Sequence[str], seed: int | None, dry_run: bool
    ) -> Sequence[object]:
        """Refuses: the script alone makes its network."""
        raise RunError(
            "mininet.unsupported",
            f"{source} cannot be applied: a Mininet script makes its network itself",
            cure="apply it to a laboratory of `airloom up`",
        )

    def admit(
        self, node: str, argv: Sequence[str], env: Mapping[str, str], descriptors: Sequence[int], tty: bool
    ) -> Program:
        """Starts a program in a node on the client's descriptors, or answers for tc."""
        stdin, stdout, stderr = descriptors
        text = self._session.tools.text(node, argv)
        if text is not None:
            os.write(stdout, text.encode())
            return _Done()
        if node in SWITCHES:
            SWITCHES[node].open_for_program()
        handle = self._session.node(node)
        env = {**env, **self._session.environment(node)}
        return ClientProgram(handle.start(argv, env=env, stdin=stdin, stdout=stdout, stderr=stderr, tty=tty))


class _Done:
    """What is left of a program that was answered at once."""

    def wait(self) -> int:
        """Returns its exit code."""
        return 0

    def signal(self, number: int) -> None:
        """Does nothing: it has ended."""
