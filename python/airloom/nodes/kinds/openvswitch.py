"""The kind ``openvswitch``: a node on the host's kernel that runs Open vSwitch and nothing else.

ovsdb-server and ovs-vswitchd are the distribution's. Their database and sockets are in the node's
own /run/openvswitch, where ``ovs-vsctl`` and ``ovs-ofctl`` in the node find them. Frames use the
userspace datapath (``datapath_type=netdev``): no kernel module is needed. It opens the node's
interfaces as packet sockets. With ``userspace-tso-enable`` it accepts super-frames with partial
checksums, as the engine's TAPs deliver them, and forwards them unchanged.
"""

# Public methods are documented where they are declared, in kind.py.
# ruff: noqa: D102

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from airloom import _engine
from airloom.errors import HostError, RunError, ScenarioError
from airloom.host import programs
from airloom.nodes.kind import Exit, Nature, NodeHandle, Site
from airloom.nodes.kinds.netns import NetnsKind, NetnsNode
from airloom.nodes.network import packet_sockets
from airloom.nodes.network.controller_proxy import LOOPBACK, Line, Relay
from airloom.planning.plan import BridgePlan, ControllerPlan, NodePlan, OpenVSwitchPlan
from airloom.units.text import in_a_line

PACKAGE = "openvswitch-switch"
_PROGRAMS = ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_READY = b"ready\n"
_TIMEOUT = 60.0
"""Seconds for Open vSwitch to become ready; it needs 0.25."""
_REACHED = 3.0
"""Seconds for an external controller to accept a connection."""
_SCRIPT = """
run=/run/openvswitch
mkdir -p $run && cd $run || exit 1
ovsdb-tool create $run/conf.db "$SCHEMA" &&
ovsdb-server $run/conf.db --remote=punix:$run/db.sock --detach --no-chdir --pidfile \
    -vconsole:off --log-file=$run/ovsdb-server.log || exit 1
ovs-vswitchd unix:$run/db.sock --no-chdir --pidfile -vconsole:off --log-file=$run/ovs-vswitchd.log &
daemon=$!
{ ovs-vsctl --timeout=50 -- "$@" && { [ -z "$FLOWS" ] ||
    ovs-ofctl -O OpenFlow13 add-flows "$FLOWS" - ; } && echo ready ; } || kill $daemon
wait $daemon
echo "ovs-vswitchd has ended with exit code $?"
tail -n 2 $run/ovs-vswitchd.log
"""
_GENERAL = (
    "other_config:userspace-tso-enable=true",
    "other_config:n-handler-threads=1",
    "other_config:n-revalidator-threads=1",
    "other_config:vlan-limit=2",
)
"""Settings of the whole switch: TSO (see the module), one thread per task, two VLAN tags."""
_SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"


class OpenVSwitchNode(NetnsNode):
    """A node that runs one Open vSwitch."""

    needs_checksums = True

    def __init__(
        self, plan: NodePlan, kind: str, namespace: _engine.Namespace, site: Site, relay: Relay
    ) -> None:
        super().__init__(plan, kind, namespace, site)
        self._relay = relay
        self._switch = plan.openvswitch or OpenVSwitchPlan()
        self._words = ["set", "Open_vSwitch", ".", *_GENERAL]
        for bridge in self._switch.bridges:
            self._words += ["--", *self.bridge_words(bridge)]
        self._said: int | None = None
        """Read end of the start script's output; None when the switch is up."""

    def bridge_words(self, bridge: BridgePlan) -> list[str]:
        """ovs-vsctl(8) arguments that create a bridge. Opens the channels to its controllers."""
        rows = [
            ["add-br", bridge.name],
            ["set", "bridge", bridge.name, "datapath_type=netdev"]
            + [f"{key}={value}" for key, value in bridge.settings.items()],
        ]
        for port in bridge.ports:
            rows.append(["add-port", bridge.name, port.name])
            row = ["set", "interface", port.name, f"ofport_request={port.number}"]
            rows.append([*row, "type=patch", f"options:peer={port.peer}"] if port.peer else row)
        rows += self._controller_rows(bridge)
        return [word for row in rows for word in ("--", *row)][1:]

    def _controller_rows(self, bridge: BridgePlan) -> Iterator[list[str]]:
        """ovs-vsctl(8) arguments for a bridge's controllers, and their channels."""
        every = bridge.controllers
        groups = [every] if every and bridge.failover else [(one,) for one in every]
        names = []
        for controller, *standby in groups:
            line = self._relay.open(self.name, self.namespace.fileno(), bridge.name, controller, standby)
            target = f'target="tcp:{LOOPBACK}:{line.port}"'
            names.append(f"@c{line.port}")
            columns = {"connection_mode": "out-of-band", "max_backoff": "1000", **bridge.channel}
            yield [
                *(f"--id={names[-1]}", "create", "controller", target),
                *(f"{column}={value}" for column, value in columns.items()),
            ]
        if names:
            yield ["set", "bridge", bridge.name, f"controller=[{','.join(names)}]"]

    def on_channel(self, act: Callable[[Line], None]) -> None:
        """Sets a function that is called, by another thread, when a channel connects or ends."""
        self._relay.on_change(lambda line: act(line) if line.switch == self.name else None)

    @property
    def bridges(self) -> tuple[BridgePlan, ...]:
        """The bridges of the plan."""
        return self._switch.bridges

    def vsctl(self, words: Sequence[str]) -> str:
        """Runs ovs-vsctl(8), which waits until the change is applied. Returns its output."""
        self.await_ready()
        done = self.exec(["ovs-vsctl", "--timeout=30", "--", *words], env={"PATH": _PATH})
        if not done.exit.ok:
            raise RunError("node.openvswitch", f"Open vSwitch {self.name}: {done.stderr.strip()}")
        packet_sockets.enlarge([self.namespace.fileno()])
        return done.stdout

    def lost(self) -> dict[str, int]:
        """Interface: frames lost because the packet socket of Open vSwitch was full."""
        try:
            return packet_sockets.lost(self.namespace.fileno())
        except OSError:
            return {}  # this kernel does not provide it

    def has_met_controller(self) -> bool:
        """Whether each bridge that has controllers is connected to one of them."""
        return not any(line.switch == self.name for line in self._relay.waiting())

    def forget_controllers(self) -> None:
        """Closes the channels to all its controllers."""
        self._relay.shut([line for line in self._relay.lines if line.switch == self.name])

    def start_daemons(self) -> None:
        """Starts the daemons without waiting for them."""
        reading, writing = os.pipe()
        try:
            flows = os.memfd_create("flows")
            try:
                os.write(flows, "".join(f"{row}\n" for row in self._switch.flows).encode())
                os.lseek(flows, 0, os.SEEK_SET)
                self.start(
                    ["/bin/sh", "-c", _SCRIPT, self.name, *self._words],
                    env={
                        "PATH": _PATH,
                        "SCHEMA": _SCHEMA,
                        "FLOWS": self._switch.bridges[0].name if self._switch.flows else "",
                    },
                    stdin=flows,
                    stdout=writing,
                    on_exit=self._daemon_ended,
                )
            finally:
                os.close(flows)
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self._said = reading

    def await_ready(self) -> None:
        """Waits until it forwards frames. Raises :class:`RunError` with its output if it fails."""
        reading, self._said = self._said, None
        if reading is None:
            return
        said = b""
        until = time.monotonic() + _TIMEOUT
        poller = select.poll()
        poller.register(reading, select.POLLIN)
        try:
            while _READY not in said:
                left = until - time.monotonic()
                if left <= 0 or not poller.poll(left * 1000):
                    raise self._failed(f"not ready within {_TIMEOUT:g} s", said)
                piece = os.read(reading, 4096)
                if not piece:
                    raise self._failed("its daemons have ended", said)
                said += piece
        finally:
            os.close(reading)

    def restart(self) -> None:
        super().restart()
        self.start_daemons()
        self.await_ready()
        packet_sockets.enlarge([self.namespace.fileno()])

    def _failed(self, why: str, said: bytes) -> RunError:
        return RunError("node.openvswitch", f"Open vSwitch {self.name}: {why}: {in_a_line(said)}")

    def _daemon_ended(self, how: Exit) -> None:
        """The daemon has ended. The node fails, unless it was being switched off."""
        if self._state == "up":
            self._fail("ovs-vswitchd has ended")


class OpenVSwitchKind(NetnsKind):
    """Creates nodes that run Open vSwitch."""

    name: ClassVar[str] = "openvswitch"
    nature: ClassVar[Nature] = Nature(
        taxonomy="OS-level virtualization",
        backend="virtual routing",
        own_files=False,
        start="a quarter of a second",
        memory="13 MB with the two daemons of Open vSwitch (`bench ovs`)",
        porting="none: the userspace datapath, as distributed",
        isolation="as `netns`",
        transparency="the unmodified Open vSwitch",
        flexibility="the installed version",
    )

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        require_programs()
        self.relay = Relay(site.namespace_of, site.control)

    def bring_up(self, plans: Sequence[NodePlan]) -> dict[str, NodeHandle]:
        for place in {place for plan in plans for place in _outside(plan)}:
            reach(place)
        made = super().bring_up(plans)
        switches = [node for node in made.values() if isinstance(node, OpenVSwitchNode)]
        for node in switches:
            node.wake()
        for node in switches:
            node.start_daemons()
        ready = [node for node in switches if node.bridges]
        for node in ready:
            node.await_ready()
        if ready:
            packet_sockets.enlarge(node.namespace.fileno() for node in ready)
        return made

    @classmethod
    def lacks(cls) -> list[HostError]:
        try:
            require_programs()
        except HostError as error:
            return [error]
        return []

    def node(self, plan: NodePlan, namespace: _engine.Namespace) -> NetnsNode:
        return OpenVSwitchNode(plan, self.name, namespace, self.site, self.relay)

    def drop(self, name: str) -> None:
        self.relay.shut([line for line in self.relay.lines if line.switch == name])
        super().drop(name)

    def close(self) -> list[Exception]:
        self.relay.close()
        return super().close()


def require_programs() -> None:
    """Raises :class:`HostError` if Open vSwitch is not installed."""
    missing = [name for name in _PROGRAMS if programs.find(name) is None]
    if missing or not os.path.exists(_SCHEMA):
        raise HostError(
            "host.program.missing",
            f"Open vSwitch is not installed: there is no {missing[0] if missing else _SCHEMA}",
            cure=f"sudo apt-get install {PACKAGE}",
        )


def reach(place: ControllerPlan) -> None:
    """Raises :class:`ScenarioError` if no controller accepts connections at an external address."""
    try:
        with contextlib.closing(socket.create_connection((place.host, place.port), _REACHED)):
            return
    except OSError as error:
        why = error.strerror or str(error)
    raise ScenarioError(
        "controller.unreachable",
        f"no controller answers at {place}: {why.lower()}",
        cure="start it before, or run it in a node: tcp:NODE:PORT",
    )


def _outside(plan: NodePlan) -> list[ControllerPlan]:
    bridges = plan.openvswitch.bridges if plan.openvswitch is not None else ()
    return [place for bridge in bridges for place in bridge.controllers if place.node is None]
