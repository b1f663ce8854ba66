"""NET's wireless chain as scenarios: a row of nodes in which only neighbours hear each other.

Two kinds of radio. ``ideal`` is NET's: 11 Mbit/s in each direction of each pair of neighbours, full
duplex, without collisions, headers or acknowledgments. It consists of links; a bridge in each node
combines two links to one interface. Its ports are isolated, so a node's frames reach both
neighbours and no frame passes through without being routed. ``802.11b`` is a medium with the real distributed
coordination function, in which the neighbours share one channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from airloom.experiments.polling import POLLING
from airloom.host.binaries import shipped
from airloom.scenario.model import Measurement, Scenario

Radio = Literal["ideal", "802.11b"]
Routing = Literal["aodv", "aodv-kernel", "babel"]
"""AODV whose daemon forwards every data packet itself, as AODV-UU did; AODV whose daemon leaves
that to the kernel; Babel, whose daemon sees no data."""

RATE = 11_000_000
"""Rate in bit/s."""
QUEUE = 50
"""Transmit queue of a radio in packets. TCP fills it, and a lost packet delays everything behind it
by an RTT: a queue of 200 packets would stall one flow of 8 s by 0.2 s and not the next."""
STAGGER_MS = 150
"""Delay in ms between the starts of neighbours' daemons, which compete for processors."""
SPACING, RANGE = 100, 150
"""Spacing of neighbours and radio range in metres."""
AODV = shipped("examples") / "aodv"
_NO_REDIRECTS = {
    f"net.ipv4.conf.{which}.{what}_redirects": 0
    for which in ("all", "default")
    for what in ("send", "accept")
}
"""Packets leave by the interface that they arrived on, which is correct in this network."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Parameters of the scenario."""

    radio: Radio
    routing: Routing
    nodes: int
    kind: str = "netns"
    """Kind of the nodes."""

    @property
    def name(self) -> str:
        """Returns the name of its run's folder."""
        kind = "" if self.kind == "netns" else f"{self.kind}-"
        return f"{kind}{self.radio.replace('.', '')}-{self.routing}-{self.nodes:03}"

    @property
    def on_demand(self) -> bool:
        """True if the daemon is that of ``examples/aodv``."""
        return self.routing != "babel"

    @property
    def ready_after(self) -> float:
        """Returns the seconds until all daemons have started and found their neighbours."""
        return self.nodes * STAGGER_MS / 1000 + 2.2

    def scenario(self, measurements: list[Measurement], *, tag: str = "") -> Scenario:
        """Returns the scenario; its measurements begin when every node has found its neighbours."""
        numbers = range(1, self.nodes + 1)
        programs = [self._daemon(number) for number in numbers]
        programs.append(self._wait_for_route())
        described: dict[str, Any] = {
            "name": f"net-wireless-chain-{self.name}{tag}",
            "kind": self.kind,
            "nodes": {f"n{number}": self._node(number) for number in numbers},
            "programs": programs,
            "measurements": measurements,
            "engine": POLLING,
            # The daemons manage host routes, so each node is a network of its own.
            "addresses": {"ipv4": None},
        }
        if self.radio == "ideal":
            described["links"] = [
                {
                    "ends": [f"n{number}:eth{min(number, 2) - 1}", f"n{number + 1}:eth0"],
                    "rate": f"{RATE} bit/s",
                    "overhead": "0 B",
                    "queue": {"packets": QUEUE},
                }
                for number in numbers[:-1]
            ]
        else:
            described["media"] = {
                "air": {
                    "propagation": {"model": "disk", "range": f"{RANGE} m"},
                    "radio": {"phy": "802.11b", "channel": 1, "rate": f"{RATE} bit/s", "queue": QUEUE},
                }
            }
        return Scenario.model_validate(described)

    def _node(self, number: int) -> dict[str, Any]:
        node: dict[str, Any] = {"forwarding": True, "routing": "none", "sysctl": dict(_NO_REDIRECTS)}
        if self.radio == "ideal":
            # The planner requires an address on every interface; the program below moves
            # them to the bridge.
            node["interfaces"] = {
                f"eth{port}": {"addresses": [f"10.0.{port}.{number}/32"]}
                for port in range(self._ports(number))
            }
        else:
            node["radios"] = {"wlan0": {}}
            node["interfaces"] = {"wlan0": {"addresses": [f"10.0.0.{number}/32"]}}
            node["position"] = [f"{SPACING * (number - 1)} m", "0 m"]
        if self.on_demand:
            node["files"] = {f"/opt/aodv/{one.name}": one.read_text() for one in sorted(AODV.glob("*.py"))}
        return node

    def _ports(self, number: int) -> int:
        return 1 if number in (1, self.nodes) else 2

    def _daemon(self, number: int) -> dict[str, Any]:
        if self.on_demand:
            # Rings of 2, 4, 6, 8, then 35, as AODV-UU 0.8 had them.
            # A guest kernel has the device in a module.
            device = "" if self.kind == "netns" else "test -e /dev/net/tun || modprobe tun; "
            forward = "user" if self.routing == "aodv" else "kernel"
            run = f"{device}exec python3 -u /opt/aodv --interface wlan0 --ttl-start 2 --forward {forward}"
            ready: dict[str, Any] = {"log": "routing for", "within": "60 s"}
        else:
            babel = "default type wireless hello-interval 1 update-interval 4"
            run = f"exec babeld -I /tmp/babeld.pid -S /tmp/babeld.state -C '{babel}' wlan0"
            ready = {"command": "test -s /tmp/babeld.pid", "within": "60 s"}
        later = f"sleep {(number - 1) * STAGGER_MS / 1000}; "
        words = ["/bin/sh", "-ec", self._card(number) + later + run]
        return {
            "node": f"n{number}",
            "name": f"n{number}-{self.routing}",
            "run": words,
            "until_end": True,
            "ready": ready,
        }

    def _card(self, number: int) -> str:
        """Returns the ideal radio's interface ``wlan0``, made of the links to the neighbours."""
        if self.radio != "ideal":
            return ""
        lines = ["ip link add wlan0 type bridge forward_delay 0 mcast_snooping 0"]
        lines.append(f"ip link set wlan0 address 02:00:00:01:{number >> 8:02x}:{number & 255:02x}")
        for port in range(self._ports(number)):
            lines.append(f"ip address flush dev eth{port}")
            lines.append(f"ip link set eth{port} master wlan0")
            lines.append(f"bridge link set dev eth{port} isolated on")
        lines.append(f"ip address add 10.0.0.{number}/32 dev wlan0")
        lines.append("ip link set wlan0 up")
        return "; ".join(lines) + "; "

    def _wait_for_route(self) -> dict[str, Any]:
        """Returns a program that is ready after two hellos (AODV) or with a route (Babel)."""
        # ping also fills the path's neighbour caches, which AODV's replies do implicitly.
        waits = "sleep 2.2" if self.on_demand else f"ping -c 1 -W 1 10.0.0.{self.nodes}"
        return {
            "node": "n1",
            "name": "wait-for-route",
            "run": "sleep infinity",
            "until_end": True,
            "ready": {"command": waits, "within": "120 s"},
        }
