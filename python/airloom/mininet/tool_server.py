"""Serves tools of the machine that a script, or a program in a node, starts for the script's network.

In Mininet the interfaces of switches, and the bridges of Open vSwitch, are the machine's own: scripts read
``tc -s qdisc show dev s1-eth2`` and set rules by ``ovs-ofctl add-flow s1 ...`` beside the API. While a
session is open, the folder ``machine_tools`` is first in the script's ``PATH``. A tool of it that names a
switch or an interface of one runs there, or is answered from the engine; any other is the real tool. In
nodes the folder ``node_tools`` has tc alone, which is answered for the queues of the node's own interfaces.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airloom.errors import LabError
from airloom.host import programs
from airloom.lab.live_program import ClientProgram
from airloom.lab.packet_server import PacketServer
from airloom.lab.running import peer_of
from airloom.mininet import link_queue
from airloom.mininet.standing import NODES, SWITCHES

_HERE = Path(__file__).resolve().parent
MACHINE = _HERE / "machine_tools"
NODE = _HERE / "node_tools"
_WHERE = "AIRLOOM_TOOLS"
_IN_NODE = "/run/airloom-tools"
_LONGEST = 1 << 16
_ELSEWHERE = b"elsewhere"
_MOST = 64
"""Most tools at a time on one socket."""


class Tools:
    """The sockets of a session, and what they answer."""

    def __init__(self) -> None:
        self._key = secrets.token_hex(16).encode()
        name = f"airloom-tools/{os.getpid()}/{secrets.token_hex(4)}"
        self._servers: dict[str, tuple[socket.socket, PacketServer]] = {}
        self._listen("", f"\0{name}")
        self._before = {word: os.environ.get(word) for word in ("PATH", "AIRLOOM_PYTHON", _WHERE)}
        path = os.pathsep.join([str(MACHINE), self._before["PATH"] or os.defpath])
        os.environ.update(
            {"PATH": path, "AIRLOOM_PYTHON": sys.executable, _WHERE: f"{name}#{self._key.decode()}"}
        )

    def environment(self, node: str, pid: int | None) -> dict[str, str]:
        """Returns variables of a program in a node, whose tc asks this session.

        ``pid`` is that of the node's first process; None of a node in the machine's network.
        """
        folders = programs.search_path().split(os.pathsep)
        own = {"PATH": os.pathsep.join(folder for folder in folders if folder != str(MACHINE))}
        if not self._is_served(node, pid):
            return own
        return {"PATH": os.pathsep.join([str(NODE), own["PATH"]]), _WHERE: _IN_NODE}

    def close(self) -> None:
        """Stops listening, and restores the script's environment."""
        for node in list(self._servers):
            self.forget(node)
        for word, value in self._before.items():
            if value is None:
                os.environ.pop(word, None)
            else:
                os.environ[word] = value

    def forget(self, node: str) -> None:
        """Stops listening in a node that ends."""
        listening, server = self._servers.pop(node, (None, None))
        if listening is not None and server is not None:
            server.close()
            listening.close()

    def _is_served(self, node: str, pid: int | None) -> bool:
        """True if a socket in the node's own /run listens."""
        if node in self._servers:
            return True
        if pid is None:
            return False
        with contextlib.suppress(OSError):
            self._listen(node, f"/proc/{pid}/root{_IN_NODE}")
            return True
        return False

    def _listen(self, node: str, address: str) -> None:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            listening.bind(address)
            listening.listen(16)
        except OSError:
            listening.close()
            raise
        server = PacketServer(listening, lambda client: self._serve(node, client), most=_MOST)
        self._servers[node] = (listening, server)
        threading.Thread(target=server.accept, name="airloom-tools", daemon=True).start()

    def _serve(self, node: str, client: socket.socket) -> None:
        octets, descriptors, _, _ = socket.recv_fds(client, _LONGEST, 3)
        try:
            key, folder, *words = octets.split(b"\0")
            argv = [os.fsdecode(word) for word in words]
            known = node or (peer_of(client).uid == os.geteuid() and hmac.compare_digest(key, self._key))
            if not known or not argv or len(descriptors) != 3:
                client.send(_ELSEWHERE)
                return
            text = self.text(node, argv)
            if text is not None:
                os.write(descriptors[1], text.encode())
                client.send(b"exited 0")
                return
            place = None if node else _owner(argv)
            if place is None:
                client.send(_ELSEWHERE)
                return
            program = _started(place, argv, descriptors, os.fsdecode(folder))
        except (LabError, ValueError) as error:
            with contextlib.suppress(OSError):
                os.write(descriptors[2], f"{error}\n".encode())
            client.send(b"exited 1")
            return
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        client.settimeout(None)
        threading.Thread(target=_pass_signals, args=(client, program), daemon=True).start()
        client.send(b"exited %d" % program.wait())

    def text(self, node: str, argv: Sequence[str]) -> str | None:
        """Returns what tc says of queues of the engine; None if this is something else.

        ``node``: where it is asked; empty on the machine, which has the interfaces of all switches.
        """
        request = link_queue.request_of(argv)
        if request is None:
            return None
        if node:
            owners = [one[node] for one in (SWITCHES, NODES) if node in one][:1]
        else:
            owners = [] if request.device is None else list(SWITCHES.values())
        found = [
            (owner, intf)
            for owner in owners
            for intf in owner.intfList()
            if intf.link is not None and request.device in (None, intf.name)
        ]
        # The kernel of a node knows the interfaces that no link of the engine shapes.
        if not found or any(one.pid is not None and not link_queue.is_shaped(intf) for one, intf in found):
            return None
        return link_queue.answer(request, [intf for _, intf in found])


def _started(switch: Any, argv: Sequence[str], descriptors: Sequence[int], folder: str) -> ClientProgram:
    """Starts a program in a switch, in the folder of who asks."""
    stdin, stdout, stderr = descriptors
    return ClientProgram(switch.handle.start(argv, folder=folder, stdin=stdin, stdout=stdout, stderr=stderr))


def _pass_signals(client: socket.socket, program: ClientProgram) -> None:
    """Forwards signals; kills the program when its client has gone."""
    while True:
        number = 9
        with contextlib.suppress(OSError, ValueError):
            number = int(client.recv(_LONGEST) or b"9")
        with contextlib.suppress(LabError, OSError):
            program.signal(number)
        if number == 9:
            return


def _owner(argv: Sequence[str]) -> Any:
    """Returns the switch that a command names by its name or by an interface; None without one."""
    words = {word for argument in argv[1:] for word in (argument, argument.rpartition("=")[2])}
    for switch in list(SWITCHES.values()):
        names = {intf.name for intf in switch.intfList() if intf.link is not None}
        if argv[0].startswith("ovs-"):
            names.add(switch.name)
        if names & words:
            return switch
    if argv[0] in ("ovs-vsctl", "ovs-dpctl", "ovs-appctl"):
        return next((one for one in list(SWITCHES.values()) if one.pid is not None), None)
    return None
