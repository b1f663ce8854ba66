"""Creates and ends all nodes of a plan, of all kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from airloom import _engine
from airloom.errors import LabError, RunError, ScenarioError, translated
from airloom.host import binaries
from airloom.nodes.guests.guest import GuestNode
from airloom.nodes.guests.shared import GuestKind
from airloom.nodes.kernel_radios import KernelRadios
from airloom.nodes.kind import Kind, NodeHandle, Site
from airloom.nodes.kinds.container import ContainerKind
from airloom.nodes.kinds.native import NativeKind
from airloom.nodes.kinds.netns import NetnsKind, NetnsNode
from airloom.nodes.kinds.openvswitch import OpenVSwitchKind, OpenVSwitchNode
from airloom.nodes.kinds.qemu import QemuKind
from airloom.nodes.kinds.uml import UmlKind
from airloom.nodes.network import neighbours
from airloom.nodes.network.control_capture import ControlCapture
from airloom.nodes.network.controller_proxy import Relay
from airloom.nodes.network.unsent import Passed
from airloom.nodes.process import scheduling
from airloom.nodes.process.supervisor import Supervisor
from airloom.nodes.virtual_time import Pacer
from airloom.planning.links.neighbours import settle
from airloom.planning.plan import NodePlan, Plan, shares_of
from airloom.units.text import of_nodes

KINDS: dict[str, type[Kind]] = {
    kind.name: kind for kind in (NetnsKind, NativeKind, ContainerKind, OpenVSwitchKind, UmlKind, QemuKind)
}
"""All kinds by their name in a scenario."""

FEW = 256
"""Most nodes of which also those without programs are asked what their network layers have passed on."""


class Nodes:
    """Brings up the nodes of a plan, all or none, and ends them together."""

    def __init__(
        self,
        plan: Plan,
        supervisor: Supervisor,
        *,
        visible: Sequence[Path] = (),
        on_failure: Callable[[NodeHandle], None] | None = None,
        log_path: Callable[[str, str], Path] | None = None,
        control: ControlCapture | None = None,
        pacer: Pacer | None = None,
    ) -> None:
        self._advice: list[str] = []
        self._weighs = False
        self._weighed: str | None = None
        """How shares are held, if a node has one; None without any."""
        self.shares: dict[str, float] = {}
        """Per node or shared guest with a limit: largest share of one processor that it may use."""
        self._plan = plan
        self._site = Site(
            supervisor,
            tuple(path.resolve() for path in visible),
            tuple(path.resolve() for path in binaries.hidden_folders()),
            on_failure,
            tuple(plan.links.values()),
            self.namespace_of,
            lambda: self._weighs,
            log_path,
            control,
            KernelRadios(plan.nodes.values()),
            pacer,
        )
        self._kinds: list[Kind] = []
        self._refused = 0
        self._nodes: dict[str, NodeHandle] = {}

    def bring_up(self) -> dict[str, NodeHandle]:
        """Creates all nodes. Nodes with their own kernel may still be booting afterwards."""
        self._hold_shares(list(self._plan.nodes.values()))
        by_kind: dict[str, list[NodePlan]] = {}
        settled = settle(self._plan)
        for plan in settled.plan.nodes.values():
            by_kind.setdefault(plan.kind, []).append(plan)
        self.announce(self._plan.hosts)
        made: dict[str, NodeHandle] = {}
        try:
            for name, plans in by_kind.items():
                kind = KINDS[name](self._site)
                self._kinds.append(kind)
                made |= kind.bring_up(plans)
        except BaseException:
            self._end()
            raise
        self._nodes = {name: made[name] for name in self._plan.nodes}
        self._advice = [settled.note] if settled.note is not None else []
        self._refused = neighbours.refused()
        return dict(self._nodes)

    @property
    def notes(self) -> list[str]:
        """Parts of the plan that this machine or a kind does not support; the list may grow."""
        whose: dict[str, list[str]] = {}
        for name, node in {**self._nodes, **self.guests}.items():
            for note in node.notes:
                whose.setdefault(note, []).append(name)
        of_kinds = [note for kind in self._kinds for note in kind.notes]
        held = [self._weighed] if self._weighed is not None else []
        return [
            *of_kinds,
            *self._advice,
            *held,
            *(f"{of_nodes(names)}: {note}" for note, names in whose.items()),
        ]

    def _hold_shares(self, plans: Sequence[NodePlan]) -> None:
        """Raises an error for processor shares that this machine cannot enforce."""
        shares = shares_of(plans)
        self._site.supervisor.require_shares(shares)
        self.shares |= shares
        self._hold_weights(plans)

    def _hold_weights(self, plans: Sequence[NodePlan]) -> None:
        """Decides whether control groups or nice values hold the shares of `cpus`."""
        wishes = {plan.name: plan.cpus for plan in plans}
        for guest in (plan.guest for plan in plans):
            if guest is not None and guest.shared is not None:
                wishes[guest.shared] = guest.cpus
        shared = {name: one for name, one in wishes.items() if one is not None and one.share is not None}
        if not shared:
            return
        why = self._site.supervisor.why_no_shares()
        self._weighs = why is None
        if why is None:
            return
        far = [name for name, one in shared.items() if one.share_as_nice > scheduling.LEAST_NICE]
        if scheduling.groups_sessions():
            why += ", and nice values act only within a session (kernel.sched_autogroup_enabled)"
        elif far:
            why += f", and nice values hold at most 1:69, not that of {of_nodes(far)}"
        else:
            self._weighed = f"shares of processors are held by nice values, within 12 %: {why}"
            return
        raise ScenarioError(
            "cpus.share",
            f"{of_nodes(list(shared))}: a share (`cpus`) cannot be held on this machine: {why}",
            cure="run as root with control groups of its own, or take `share` out",
        )

    @property
    def scheduling(self) -> dict[str, str]:
        """By node or shared guest: its processors and scheduling in force, where a scenario sets them."""
        found = {name: node.scheduling for name, node in {**self._nodes, **self.guests}.items()}
        return {name: words for name, words in found.items() if words is not None}

    def announce(self, hosts: dict[str, str]) -> None:
        """Sets the host names and addresses that nodes on this machine's kernel resolve.

        Without any, too: nodes that are there get no file of their own later.
        """
        self._site.supervisor.common_files({"/etc/hosts": hosts_file(hosts)})

    def settle(self) -> None:
        """Waits until all nodes can run programs and are reachable."""
        for kind in self._kinds:
            kind.settle()

    def add(self, plan: NodePlan) -> NodeHandle:
        """Adds a node while the others are up."""
        if plan.name in self._nodes:
            raise RunError("node.exists", f"there is a node {plan.name} already")
        self._hold_shares([plan])
        kind = next((one for one in self._kinds if one.name == plan.kind), None)
        if kind is None:
            kind = KINDS[plan.kind](self._site)
            self._kinds.append(kind)
        handle = self._nodes[plan.name] = kind.bring_up([plan])[plan.name]
        return handle

    @property
    def guests(self) -> dict[str, GuestNode]:
        """The guests that several nodes share; a guest is not a node itself."""
        return {
            name: guest
            for kind in self._kinds
            if isinstance(kind, GuestKind)
            for name, guest in kind.shared.items()
        }

    def change(self, plan: NodePlan) -> None:
        """Gives a running node the interfaces, addresses and routes of a plan."""
        kind = self._nodes[plan.name].kind
        next(one for one in self._kinds if one.name == kind).change(plan)

    def forget_neighbours(self) -> None:
        """Makes the nodes on this machine's kernel ask for the addresses of their neighbours anew."""
        for node in self._nodes.values():
            if isinstance(node, NetnsNode) and node.state == "up":
                with translated():
                    node.namespace.forget_neighbours()

    def drop(self, name: str) -> None:
        """Removes a node while the others stay up."""
        handle = self._nodes.pop(name)
        for kind in self._kinds:
            if kind.name == handle.kind:
                kind.drop(name)

    def wake(self, names: Sequence[str]) -> None:
        """Prepares several nodes to run programs, in parallel."""
        for name in names:
            self._nodes[name].wake()

    def counters(self) -> dict[str, dict[str, dict[str, int]]]:
        """The counters of all nodes; all interfaces are read at about the same time."""
        counted = self.counters_here(self._nodes)
        return {
            name: counted[name] if name in counted else node.counters() for name, node in self._nodes.items()
        }

    def counters_here(self, names: Iterable[str]) -> dict[str, dict[str, dict[str, int]]]:
        """The counters of those of the nodes whose kernel is this machine's."""
        local = {
            name: node
            for name in names
            if isinstance(node := self._nodes[name], NetnsNode) and not KINDS[node.kind].properties.own_kernel
        }
        with translated():
            read = _engine.counters_of([node.namespace for node in local.values()])
        return dict(zip(local, read, strict=True))

    def full_sockets(self) -> dict[str, int]:
        """Per Open vSwitch port: frames lost because its socket buffer was full."""
        switches = [node for node in self._nodes.values() if isinstance(node, OpenVSwitchNode)]
        return {f"{node.name}:{port}": lost for node in switches for port, lost in node.lost().items()}

    def datagrams_refused(self) -> dict[str, int]:
        """Per node: UDP datagrams lost because the socket buffer of a receiving program was full."""
        found = {name: node.datagrams_refused() for name, node in self._nodes.items()}
        return {name: count for name, count in found.items() if count}

    @property
    def relay(self) -> Relay | None:
        """The proxy of the OpenFlow control channels; None without an Open vSwitch."""
        return next((kind.relay for kind in self._kinds if isinstance(kind, OpenVSwitchKind)), None)

    def neighbours_refused(self) -> int:
        """How often this machine's neighbour table was full since bring-up, for whatever namespace."""
        return neighbours.refused() - self._refused

    def passed(self) -> dict[str, Passed]:
        """What the network layers of nodes have passed on, of those that can tell."""
        # Each idle node costs a thread and a descriptor.
        few = len(self._nodes) <= FEW
        found = {name: node.passed(idle=few) for name, node in self._nodes.items()}
        return {name: one for name, one in found.items() if one is not None}

    def close(self) -> None:
        """Ends all nodes. Tries every step and reports all failures in one error."""
        errors = self._end()
        if errors:
            raise RunError("nodes.end", "; ".join(_words(error) for error in errors))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def namespace_of(self, name: str) -> int | None:
        """The network namespace of a running node, as a descriptor; None while it is off."""
        node = self._nodes.get(name)
        return node.namespace.fileno() if isinstance(node, NetnsNode) and node.state == "up" else None

    def _end(self) -> list[Exception]:
        kinds, self._kinds = self._kinds, []
        self._nodes = {}
        errors = [error for kind in kinds for error in kind.close()]
        self._site.radios.close()
        return errors


def hosts_file(hosts: dict[str, str]) -> str:
    """/etc/hosts of every node: the loopback addresses, and all names of the plan."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    lines += [f"{address} {name}" for name, address in hosts.items()]
    return "\n".join(lines) + "\n"


def _words(error: Exception) -> str:
    return error.message if isinstance(error, LabError) else str(error)
