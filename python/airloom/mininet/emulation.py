"""The live emulation that all networks of a process share.

Mininet's objects work as soon as they are created: a host runs commands before it has a link, and
links can be added while others carry traffic.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from airloom.cause import with_cause
from airloom.errors import HostError, RunError
from airloom.host import privilege
from airloom.images import Image
from airloom.mininet import interfaces
from airloom.mininet.errors import Misused
from airloom.mininet.log import debug
from airloom.mininet.nat import ExternalAccess
from airloom.mininet.tool_server import Tools
from airloom.nodes.kinds.container import ContainerNode
from airloom.nodes.kinds.netns import NetnsNode
from airloom.nodes.kinds.openvswitch import OpenVSwitchNode
from airloom.planning.plan import MountPlan, NodePlan, OffloadsPlan, OpenVSwitchPlan, Plan
from airloom.runs import evidence, link_loads
from airloom.runs.emulation import World
from airloom.runs.host_monitor import HostWatch
from airloom.scenario.model import Limits, Scenario
from airloom.scenario.suggest import nearest
from airloom.verdict import Verdict, judge

_SHARED = (Path("/tmp"), Path("/var/tmp"))
"""Folders shared with the host: Mininet scripts pass results through /tmp."""
_SYSCTL = {"net.ipv6.conf.default.disable_ipv6": "0"}
"""As in Mininet, where hosts have the kernel's default: IPv6 is enabled."""
_SWITCH = {"switch": {"ageing_ns": 300_000_000_000, "addresses": 8192}}

_LINK_COUNTS = ("entered", "left", "duplicated", "corrupted", "reordered", "marked", "queue_highest")


def _frames(counted: Any, count: str) -> str:
    """Says a count of a port or link of the ledger."""
    return f"{counted[count]} frames, {counted[f'{count}_octets']} octets"


class Port:
    """A node's interface as a port of the engine."""

    def __init__(self, name: str, host: str, tap: interfaces.Tap) -> None:
        self.name = name
        self.host = host
        self.tap = tap
        self.offloads = OffloadsPlan()


class Session:
    """The emulation and its nodes."""

    def __init__(self, emptied: Callable[[], None]) -> None:
        """``emptied``: called when its last node has gone."""
        self._emptied = emptied
        self._stack = contextlib.ExitStack()
        self.process = os.getpid()
        """Owner's PID: a forked process lacks the threads that communicate with the nodes."""
        self._hosts: dict[str, NetnsNode] = {}
        self._in_machine: set[str] = set()
        """Hosts in the host machine's network namespace."""
        self._external_access: dict[str, ExternalAccess] = {}
        self._switches: set[str] = set()
        self._ports: dict[str, Port] = {}
        self._paths: dict[str, tuple[str, str]] = {}
        """Links between two switches, each with the two switches."""
        self._count = 0
        self._links_made = 0
        self._link_numbers: dict[str, int] = {}
        self._notes: list[str] = []
        self._run_folders = {f"/run/{one.name}/.keep": "" for one in Path("/run").iterdir() if one.is_dir()}
        """Each host has its own /run, with the machine's folders that daemons expect."""
        plan = Plan(Scenario(name="mininet"), 1, {}, {}, {}, {})
        self.world = self._stack.enter_context(
            World(plan, visible=[path for path in _SHARED if path.is_dir()])
        )
        self._watch = self._stack.enter_context(HostWatch(self.world))
        self._stack.callback(self._close_external_access)
        self.world.begin()
        self.tools = Tools()
        self._stack.callback(self.tools.close)

    def at_close(self, act: Callable[[], None]) -> None:
        """Does something when it closes, while the nodes are there."""
        self._stack.callback(act)

    # Nodes

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes in which programs run."""
        return list(self._hosts)

    @property
    def ports(self) -> list[Port]:
        """The interfaces of the nodes."""
        return list(self._ports.values())

    def node(self, name: str) -> NetnsNode:
        """Returns the handle of a node; raises :class:`~airloom.errors.RunError` for another name."""
        if name not in self._hosts:
            raise self._no_node(name)
        return self._hosts[name]

    def _no_node(self, name: str) -> RunError:
        """Returns the error for a name that is not a node's."""
        if name in self._switches:
            return RunError(
                "mininet.unsupported",
                f"{name} is a switch of the engine, in which no program runs",
                cure="switch=OVSSwitch in the script makes it an Open vSwitch",
            )
        return RunError("node.unknown", f"there is no node {name}", cure=nearest(name, self.nodes))

    def add_host(self, name: str, cpu: float | None, machine_network: bool = False) -> NetnsNode:
        """Adds a node without interfaces, or one in the host machine's network namespace."""
        self._must_be_free(name)
        if machine_network and privilege.ensure(restart=False) != "root":
            raise HostError(
                "host.privilege", f"node {name} stands in the machine's own network", cure="run as root"
            )
        files = {} if machine_network else self._run_folders
        handle = self._add(
            name, "netns", cpu=cpu, files=files, sysctl=_SYSCTL, machine_network=machine_network
        )
        if machine_network:
            self._in_machine.add(name)
        network = "the machine's network" if machine_network else "a network of its own"
        share = "" if cpu is None else f", at most {cpu:g} processors"
        debug(f"*** {name}: node in {network}{share}\n")
        return handle

    def _add(self, name: str, kind: str, **more: Any) -> NetnsNode:
        """Adds a node without interfaces and routes, which does not forward."""
        empty: dict[str, Any] = {"cpu": None, "files": {}, "sysctl": {}}
        plan = NodePlan(name=name, kind=kind, interfaces=(), routes=(), forwarding=False, **(empty | more))
        handle = self.world.add_node(plan)
        assert isinstance(handle, NetnsNode)
        self._hosts[name] = handle
        return handle

    def environment(self, name: str) -> dict[str, str]:
        """Returns variables of the programs in a node: tools that ask the session come first."""
        handle = self._hosts[name]
        if isinstance(handle, ContainerNode):
            return {}
        handle.wake()
        made = None if name in self._in_machine else handle._made
        return self.tools.environment(name, None if made is None else made.pid)

    @property
    def reaches_machine(self) -> bool:
        """True if a node connects the network to the host machine's network."""
        return bool(self._in_machine)

    def open_external_access(self, name: str, subnet: IPv4Network) -> ExternalAccess:
        """Connects a node to the host machine's network, for packets from ``subnet``."""
        made = ExternalAccess(name, self._hosts[name].namespace.fileno(), subnet)
        self._external_access[name] = made
        return made

    def _close_external_access(self) -> None:
        while self._external_access:
            self._external_access.popitem()[1].close()

    def add_openvswitch(self, name: str) -> OpenVSwitchNode:
        """Adds an Open vSwitch node without bridges."""
        self._must_be_free(name)
        handle = self._add(name, "openvswitch", openvswitch=OpenVSwitchPlan())
        assert isinstance(handle, OpenVSwitchNode)
        debug(f"*** {name}: node with an Open vSwitch\n")
        return handle

    def add_container(
        self, name: str, image: Image, mounts: Sequence[MountPlan], cpu: float | None
    ) -> NetnsNode:
        """Adds a node whose root file system is an image."""
        self._must_be_free(name)
        handle = self._add(name, "container", cpu=cpu, sysctl=_SYSCTL, image=image, mounts=tuple(mounts))
        debug(f"*** {name}: container\n")
        return handle

    def open_switches(self) -> list[str]:
        """Returns the names of the Open vSwitch nodes."""
        return [name for name, handle in self._hosts.items() if isinstance(handle, OpenVSwitchNode)]

    def add_switch(self, name: str) -> str:
        """Adds a learning switch; returns its name in the engine, which is never reused."""
        self._must_be_free(name)
        self._switches.add(name)
        self._count += 1
        engine_name = f"{name}.{self._count}"
        self.world.engine.add_switch(engine_name, _SWITCH)
        debug(f"*** {name}: learning switch {engine_name} of the engine\n")
        return engine_name

    def open_switch(self, name: str) -> OpenVSwitchNode:
        """Makes an Open vSwitch node in place of a learning switch of the engine."""
        self._switches.discard(name)
        try:
            return self.add_openvswitch(name)
        except BaseException:
            self._switches.add(name)
            raise

    def reconnect(self, link: str, end: str, host: str, interface: str) -> Port:
        """Moves the end ``a`` or ``b`` of a link from a learning switch to a new interface of a node."""
        port = self.plug(host, interface)
        self.world.engine.move_to_port(link, end, port.name)
        return port

    def link_numbers(self) -> dict[str, int]:
        """Returns the number of each link of the engine."""
        if len(self._link_numbers) != self._links_made:
            self._link_numbers = link_loads.numbers_of(self.world.engine)
        return self._link_numbers

    def drop(self, name: str) -> None:
        """Ends a node or a switch; the end of the last one closes the emulation."""
        if name in self._external_access:
            self._external_access.pop(name).close()
        if name in self._hosts:
            self.tools.forget(name)
            del self._hosts[name]
            self._in_machine.discard(name)
            self.world.drop_node(name)
        debug(f"*** {name}: ended\n")
        self._switches.discard(name)
        if not self._hosts and not self._switches:
            self._emptied()

    def wake(self, names: list[str]) -> None:
        """Prepares these hosts for programs."""
        for name in names:
            self._hosts[name].wake()
            debug(f"*** {name}: ready for programs\n")

    # Interfaces and links

    def plug(self, host: str, interface: str) -> Port:
        """Adds an interface to a host."""
        self._count += 1
        name = f"{host}:{interface}.{self._count}"
        # The machine's network outlives the host, so its interface must end with the descriptor.
        keep = host not in self._in_machine
        tap = interfaces.make_tap(self._hosts[host].namespace.fileno(), interface, keep)
        node = self._hosts[host]
        transit = isinstance(node, OpenVSwitchNode)
        self.world.engine.add_tap_port(name, tap.descriptor, transit, node.needs_checksums)
        port = self._ports[name] = Port(name, host, tap)
        debug(f"*** {interface}: port {name} of the engine\n")
        return port

    def set_offloads(self, port: Port, interface: str, offloads: OffloadsPlan) -> None:
        """Sets the offloads of an interface, by its current name, in its kernel and at the engine."""
        if offloads != port.offloads:
            node = self._hosts[port.host]
            self.world.engine.attach_tap(
                port.name, port.tap.descriptor, node.needs_checksums, offloads.engine
            )
            interfaces.set_offloads(node.namespace.fileno(), interface, offloads)
            port.offloads = offloads

    def move(self, port: Port, interface: str, host: str) -> None:
        """Moves an interface, by its current name, with its link to another node."""
        if port.host != host:
            old, new = (self._hosts[name].namespace.fileno() for name in (port.host, host))
            interfaces.move_interface(old, new, interface)
            port.host = host

    def unplug(self, port: Port) -> None:
        """Removes an interface from its host."""
        self._detach(port)
        interfaces.remove_tap(port.tap)

    def release(self, port: Port) -> None:
        """Leaves the removal of an interface to the end of its host's namespace."""
        self._detach(port)
        os.close(port.tap.descriptor)

    def _detach(self, port: Port) -> None:
        del self._ports[port.name]
        debug(f"*** {port.tap.name}: no port of the engine any more\n")
        if self.world.running:
            self.world.engine.detach(port.name)

    def join(
        self, label: str, a: str, b: str, forward: Mapping[str, Any], backward: Mapping[str, Any]
    ) -> str:
        """Links two ports or switches, by their engine names; returns the link's engine name."""
        self._count += 1
        name = f"{label}.{self._count}"
        self.world.engine.connect(name, a, b, dict(forward), dict(backward))
        self._links_made += 1
        debug(f"*** {name}: link between {a} and {b}\n")
        return name

    def joined(self, a: str) -> set[str]:
        """Returns the switches that links between switches join to one, with itself."""
        beside: dict[str, list[str]] = {}
        for x, y in self._paths.values():
            beside.setdefault(x, []).append(y)
            beside.setdefault(y, []).append(x)
        reached, further = {a}, [a]
        while further:
            new = [there for there in beside.get(further.pop(), ()) if there not in reached]
            reached.update(new)
            further += new
        return reached

    def bridge(self, link: str, a: str, b: str) -> None:
        """Records a link between two switches; raises an error if it would close a loop."""
        if b in self.joined(a):
            raise Misused(
                "loop",
                f"the link between {a} and {b} closes a loop of switches, in which learning switches "
                "would send broadcasts round for ever",
                cure="take the link out, or use OVSBridge with stp=True, or OVSSwitch and a controller that "
                "knows of loops",
            )
        self._paths[link] = (a, b)

    def unbridge_all(self, switch: str) -> None:
        """Removes the records of the links of a switch."""
        self._paths = {link: ends for link, ends in self._paths.items() if switch not in ends}

    def unbridge(self, link: str) -> None:
        """Removes the record of a link between two switches."""
        self._paths.pop(link, None)

    # Verdict

    def verdict(self) -> Verdict:
        """Returns the verdict on everything measured until now."""
        engine = self.world.engine
        ledger = evidence.with_kernel_drops(engine.ledger(), self._counters())
        fulls, unsent = self.world.neighbours_refused(), self.world.unsent()
        ledger["unresolved"] = evidence.unresolved(fulls, unsent)
        full = self.world.full_sockets()
        notes = [*self.world.notes, *self._notes, *evidence.unsent_notes(fulls, unsent)]
        seen = evidence.gathered(ledger, engine.lateness(), full, self._watch, notes=notes)
        return with_cause(judge(seen, Limits()), seen, Limits())

    def note(self, text: str) -> bool:
        """Adds a note to the verdict; false if it is there."""
        if text in self._notes:
            return False
        self._notes.append(text)
        return True

    def counts(self) -> Iterator[str]:
        """Yields what passed the ports and links until now, a line for each count."""
        ledger = self.world.engine.ledger()
        for name, port in ledger["ports"].items():
            for count in ("offered", "delivered"):
                yield f"port {name}: {count} {_frames(port, count)}"
            for reason, frames in port["dropped"].items():
                yield f"port {name}: dropped as {reason} {frames} frames"
        for name, link in ledger["links"].items():
            for way, counted in link.items():
                for count in _LINK_COUNTS:
                    yield f"link {name} {way}: {count.replace('_', ' ')} {_frames(counted, count)}"
                for reason, frames in counted["dropped"].items():
                    yield f"link {name} {way}: dropped as {reason} {frames} frames"

    def _counters(self) -> dict[str, dict[str, dict[str, int]]]:
        """Returns the interface counters of the hosts' kernels, by port name."""
        read = self.world.counters()
        found: dict[str, dict[str, dict[str, int]]] = {}
        for port in self._ports.values():
            counted = read.get(port.host, {}).get(port.tap.name)
            if counted is not None:
                found.setdefault(port.host, {})[port.name.partition(":")[2]] = counted
        return found

    def close(self) -> None:
        """Ends all remaining nodes."""
        self._stack.close()

    def _must_be_free(self, name: str) -> None:
        if name in self._hosts or name in self._switches:
            raise Misused(
                "name", f"there is a node {name} already", cure="stop the network before, or rename"
            )
