"""``CLI(net)``: Mininet's prompt, on Airloom's own (see :mod:`airloom.lab.repl`).

A line that begins with a node's name is a command in that node, with the names of other nodes
replaced by their addresses. Subclasses add commands as methods ``do_NAME(self, line)``.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

from airloom.errors import LabError
from airloom.lab.conversation import History
from airloom.lab.repl import Misuse, Prompt, _replaced
from airloom.mininet.default_switch import DefaultSwitch
from airloom.mininet.errors import Unsupported
from airloom.mininet.log import info, output
from airloom.mininet.session import session
from airloom.mininet.shell import END_OF_INPUT
from airloom.mininet.switches import OVSSwitch
from airloom.mininet.term import makeTerms
from airloom.mininet.util import dumpNetConnections, dumpPorts


class _Lab:
    """Adapts a network to the interface of the prompt."""

    def __init__(self, net: Any) -> None:
        self._net = net

    @property
    def nodes(self) -> list[str]:
        return list(self._net)

    @property
    def switches(self) -> list[str]:
        return []

    @property
    def addresses(self) -> dict[str, str]:
        return {name: address for name in self._net if (address := self._net[name].IP())}

    @property
    def links(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(a=one.intf1.node.name, b=one.intf2.node.name) for one in self._net.links]

    def verdict(self) -> Any:
        return session().verdict()


class CLI(Prompt):
    """Prompt of a network; the constructor runs it until ``exit``."""

    prompt = "mininet> "
    intro = ""
    link_actions = ("up", "down")
    doc_header = "Documented commands (type help <topic>):"

    def __init__(
        self, mininet: Any, stdin: IO[str] | None = None, script: str | None = None, **_: Any
    ) -> None:
        stdin = stdin or sys.stdin
        lab: Any = _Lab(mininet)
        super().__init__(lab, interactive=script is None and stdin.isatty())
        self.mn = mininet
        self.locals: dict[str, Any] = {"net": mininet}
        self.inputFile = stdin
        if script is not None:
            self.do_source(script)
        elif self.interactive:
            self.run()
        else:
            self._all(stdin)

    def run(self) -> None:
        """Reads commands from the terminal."""
        info("*** Starting CLI:\n")
        with History():
            while True:
                try:
                    self.cmdloop()
                    return
                except KeyboardInterrupt:
                    output("\nInterrupt\n")

    def getLocals(self) -> dict[str, Any]:
        """Returns the variables of ``py`` and ``px``: ``net``, and every node by its name."""
        self.locals.update(self.mn.items())
        return self.locals

    def _all(self, lines: Iterator[str] | IO[str]) -> None:
        for line in lines:
            if self.onecmd(line):
                break

    def onecmd(self, line: str) -> bool:
        """Executes one line; an error is printed, and the prompt continues."""
        return super().onecmd(line.partition("#")[0].strip() if line.lstrip().startswith("#") else line)

    def emptyline(self) -> bool:
        """Ignores an empty line."""
        return False

    # Commands

    def do_nodes(self, rest: str) -> None:
        """List all nodes: nodes"""
        self.say(f"available nodes are: \n{' '.join(sorted(self.mn))}")

    def do_net(self, rest: str) -> None:
        """List the connections of all nodes: net"""
        dumpNetConnections(self.mn)

    def do_links(self, rest: str) -> None:
        """List the links and their state: links"""
        for link in self.mn.links:
            self.say(f"{link} {link.status()}")

    def do_intfs(self, rest: str) -> None:
        """List the interfaces of all nodes: intfs"""
        for node in self.mn.values():
            self.say(f"{node.name}: {','.join(str(intf) for intf in node.intfList())}")

    def do_ports(self, rest: str) -> None:
        """Show the ports of every switch: ports"""
        dumpPorts(self.mn.switches)

    def do_dump(self, rest: str) -> None:
        """Show every node: dump"""
        for node in self.mn.values():
            self.say(repr(node))

    def do_pingall(self, rest: str) -> None:
        """Ping between all hosts: pingall [SECONDS TO WAIT]"""
        self.mn.pingAll(rest.strip() or None)

    def do_pingpair(self, rest: str) -> None:
        """Ping between the first two hosts: pingpair"""
        self.mn.pingPair()

    def do_pingallfull(self, rest: str) -> None:
        """Ping between all hosts, with times: pingallfull"""
        self.mn.pingAllFull()

    def do_pingpairfull(self, rest: str) -> None:
        """Ping between the first two hosts, with times: pingpairfull"""
        self.mn.pingPairFull()

    def do_iperf(self, rest: str) -> None:
        """Measure TCP throughput: iperf [HOST HOST]"""
        self._iperf(rest.split(), {})

    def do_iperfudp(self, rest: str) -> None:
        """Measure UDP throughput: iperfudp [RATE [HOST HOST]], such as iperfudp 10M h1 h2"""
        words = rest.split()
        self._iperf(words[1:], {"l4Type": "UDP", "udpBw": words[0] if words else "10M"})

    def _iperf(self, words: list[str], options: dict[str, Any]) -> None:
        if len(words) not in (0, 2):
            raise Misuse("iperf HOST HOST")
        for word in words:
            if word not in self.mn:
                raise Misuse(f"there is no node {word}")
        self.mn.iperf([self.mn[word] for word in words] or None, **options)

    def do_link(self, rest: str) -> None:
        """Take the links between two nodes up or down: link A B up|down"""
        words = rest.split()
        if len(words) != 3:
            raise Misuse("link A B up|down")
        self.mn.configLinkStatus(*words)

    def do_switch(self, rest: str) -> None:
        """Start or stop a switch: switch NAME start|stop"""
        words = rest.split()
        if len(words) != 2 or words[1] not in ("start", "stop"):
            raise Misuse("switch NAME start|stop")
        found = next((one for one in self.mn.switches if one.name == words[0]), None)
        if found is None:
            raise Misuse(f"there is no switch {words[0]}")
        if words[1] == "start":
            found.start(self.mn.controllers)
        else:
            found.stop(deleteIntfs=False)

    def do_dpctl(self, rest: str) -> None:
        """Run ovs-ofctl on the bridge of every switch: dpctl COMMAND [ARGUMENT...]"""
        if not rest.split():
            raise Misuse("dpctl COMMAND [ARGUMENT...]")
        for switch in self.mn.switches:
            self.say(f"*** {switch.name} {'-' * 72}")
            self.say(switch.dpctl(*rest.split()).rstrip())

    def do_sh(self, rest: str) -> None:
        """Run a command on this machine; ovs-... in the Open vSwitch that it names, or in all: sh COMMAND"""
        words = rest.split()
        if words and words[0].startswith("ovs-"):
            for one in self.mn.switches:
                if isinstance(one, DefaultSwitch) and one.name in words:
                    one.become_open()
        switches = [one for one in self.mn.switches if isinstance(one, OVSSwitch)]
        if not words or not words[0].startswith("ovs-") or not switches:
            super().do_sh(rest)
            return
        named = [one for one in switches if one.name in words]
        for switch in named or switches:
            self.say(switch.cmd(rest).rstrip())

    def do_xterm(self, rest: str, term: str = "xterm") -> None:
        """Open a window for nodes: xterm NODE..."""
        if not rest.split():
            raise Misuse("xterm NODE...")
        for name in rest.split():
            if name not in self.mn:
                raise Misuse(f"there is no node {name}")
            self.mn.terms += makeTerms([self.mn[name]], term=term)

    def do_gterm(self, rest: str) -> None:
        """Not here: windows are those of xterm."""
        self.do_xterm(rest, "gterm")

    def do_x(self, rest: str) -> None:
        """Not here: programs in a node have no display."""
        raise Unsupported(f"x {rest}".strip(), "programs in a node have no display", cure="xterm NODE")

    def do_noecho(self, rest: str) -> None:
        """Run a command in a node: noecho NODE COMMAND"""
        self.default(rest)

    def do_wait(self, rest: str) -> None:
        """Wait until all switches are connected: wait"""
        self.mn.waitConnected()

    def do_time(self, rest: str) -> None:
        """Say how long a command takes: time COMMAND"""
        began = time.monotonic()
        self.onecmd(rest)
        self.say(f"*** Elapsed time: {time.monotonic() - began:.6f} secs")

    def do_py(self, rest: str) -> None:
        """Show a Python expression; the network is `net`: py h1.IP()"""
        with self._said():
            value = eval(rest, self.getLocals())
            if value is not None:
                self.say(value if isinstance(value, str) else repr(value))

    def do_px(self, rest: str) -> None:
        """Do a Python statement: px print(h1.IP())"""
        with self._said():
            exec(rest, self.getLocals())

    @contextlib.contextmanager
    def _said(self) -> Iterator[None]:
        try:
            yield
        except LabError:
            raise
        except Exception as error:
            raise Misuse(f"{type(error).__name__}: {error}") from error

    def do_source(self, rest: str) -> None:
        """Do the commands in a file: source FILE"""
        if not Path(rest.strip()).is_file():
            raise Misuse(f"there is no file {rest.strip() or '(source FILE)'}")
        super().do_source(rest)

    def _run(self, node: str, command: str) -> None:
        found = self.mn[node]
        text = _replaced(f"{node} {command}", self.lab.addresses).partition(" ")[2]
        with found.shell.canonical() if self.interactive else contextlib.nullcontext():
            found.sendCmd(text)
            self.waitForNode(found)

    def waitForNode(self, node: Any) -> None:
        """Relays between the terminal and the command of a node until the command ends."""
        poller = select.poll()
        poller.register(node.stdout.fileno(), select.POLLIN)
        keyboard = self.inputFile.fileno() if self.interactive else None
        if keyboard is not None:
            poller.register(keyboard, select.POLLIN)
        while node.waiting:
            try:
                for descriptor, _ in poller.poll():
                    if descriptor == keyboard:
                        typed = os.read(descriptor, 4096).decode("utf-8", "replace")
                        node.write(typed or END_OF_INPUT)
                    else:
                        self.stdout.write(node.monitor())
                        self.stdout.flush()
            except KeyboardInterrupt:
                node.sendInt()
