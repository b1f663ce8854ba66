"""Measurements on Mininet's API, run by Mininet itself and by Airloom's implementation of it.

A plain Mininet script: it imports nothing of Airloom, and prints one line of JSON.

    on_mininet.py standing HOSTS             a row of switches with a host each: time up and down, memory
    on_mininet.py tcp SWITCHES SECONDS       one TCP flow from end to end of such a row, without shaping
    on_mininet.py fat-tree K RATE SECONDS    TCP from each host to the next, by links of RATE Mbit/s
    on_mininet.py stream TRAFFIC RATE MTU FOLDER FAMILY WORD...   two hosts, a switch, one recorded flow
"""

import json
import shutil
import sys
import time
from typing import Any

import mininet.net
from mininet.link import TCLink
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Host
from mininet.nodelib import LinuxBridge
from mininet.topo import LinearTopo

# Mininet would raise limits of the whole machine, which is not needed here.
mininet.net.fixLimits = lambda: None


def memory() -> int:
    """Returns the machine's available memory in octets."""
    with open("/proc/meminfo") as file:
        lines = dict(line.split(":", 1) for line in file)
    return int(lines["MemAvailable"].split()[0]) * 1024


def row(switches: int) -> Any:
    """Returns a started row of switches with a host each."""
    net = Mininet(LinearTopo(switches), switch=LinuxBridge, host=Host, controller=None)
    net.start()
    return net


def standing(hosts: int) -> dict[str, Any]:
    """Measures bring-up and teardown in seconds, and memory."""
    free, begun = memory(), time.monotonic()
    net = row(hosts)
    up, used = time.monotonic(), free - memory()
    first, last = net.get("h1"), net.get(f"h{hosts}")
    answered = " 0% packet loss" in first.cmd(f"ping -c 1 -W 5 {last.IP()}")
    ending = time.monotonic()
    net.stop()
    ended = time.monotonic()
    return {"up": up - begun, "down": ended - ending, "octets_a_host": used / hosts, "answered": answered}


def tcp(switches: int, seconds: int) -> dict[str, Any]:
    """Returns bit/s of one flow of iperf3 with cubic, without the first second."""
    net = row(switches)
    client, server = net.get("h1"), net.get(f"h{switches}")
    client.cmd(f"ping -c 1 -W 5 {server.IP()}")
    listening = server.popen(["iperf3", "-s", "-1", "-p", "5201"])
    time.sleep(0.5)
    said = client.cmd(f"iperf3 -c {server.IP()} -p 5201 -t {seconds + 1} -O 1 -C cubic -J")
    listening.wait()
    net.stop()
    return {"bits_a_second": json.loads(said)["end"]["sum_received"]["bits_per_second"]}


def fat_tree(k: int, rate: float, seconds: int) -> dict[str, Any]:
    """Returns bit/s of all flows together, one from each host to the next, without the first second.

    The switches find a tree among the links (802.1D). Neighbours are numbered one after the other,
    so no two flows share a direction of a link.
    """
    net = Mininet(switch=LinuxBridge, host=Host, link=TCLink, controller=None)
    half, bridges = k // 2, 0

    def switch() -> Any:
        nonlocal bridges
        bridges += 1
        return net.addSwitch(f"s{bridges}", stp=True)

    def join(*pair: Any) -> None:
        net.addLink(*pair, bw=rate)

    cores = [switch() for _ in range(half * half)]
    hosts: list[Any] = []
    for _ in range(k):
        aggregations, edges = [switch() for _ in range(half)], [switch() for _ in range(half)]
        for position, aggregation in enumerate(aggregations):
            for other in cores[position * half : (position + 1) * half] + edges:
                join(aggregation, other)
        for edge in edges:
            for _ in range(half):
                hosts.append(net.addHost(f"h{len(hosts) + 1}"))
                join(edge, hosts[-1])
    net.start()
    net.waitConnected()
    pairs = list(zip(hosts, hosts[1:] + hosts[:1], strict=True))
    deadline = time.monotonic() + 120
    for client, server in pairs:
        while " 0% packet loss" not in client.cmd(f"ping -c 1 -W 1 {server.IP()}"):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{client.name} does not reach {server.name}")
    servers = [host.popen(["iperf3", "-s", "-1"]) for host in hosts]
    time.sleep(1)
    clients = [
        client.popen(
            ["iperf3", "-c", server.IP(), "-t", str(seconds + 1), "-O", "1", "-C", "cubic", "-J"], text=True
        )
        for client, server in pairs
    ]
    said = [json.loads(client.communicate()[0]) for client in clients]
    for server in servers:
        server.wait()
    net.stop()
    return {"bits_a_second": sum(one["end"]["sum_received"]["bits_per_second"] for one in said)}


def stream(traffic: str, rate: str, mtu: str, folder: str, family: str, *words: str) -> dict[str, Any]:
    """Records one flow over a `rate` Mbit/s TCLink; returns the receiver's output."""
    net = Mininet(switch=LinuxBridge, link=TCLink, controller=None)
    hosts = [net.addHost(f"h{n}", ip=f"10.0.0.{n}/8") for n in (1, 2)]
    switch = net.addSwitch("s1")
    for host in hosts:
        net.addLink(host, switch, bw=float(rate))
    net.start()
    for node, names in (
        (hosts[0], ["h1-eth0"]),
        (hosts[1], ["h2-eth0"]),
        (switch, ["s1-eth1", "s1-eth2", "s1"]),
    ):
        for name in names:
            node.cmd(f"ip link set dev {name} mtu {mtu}")
    addresses = [host.IP() for host in hosts]
    if family == "ipv6":
        addresses = ["fd00::1", "fd00::2"]
        for number, host in enumerate(hosts, 1):
            host.cmd(f"ip -6 address add fd00::{number}/64 dev h{number}-eth0 nodad")
    hosts[0].cmd(f"ping -c 2 -i 0.2 -W 5 {addresses[1]}")
    receiver = hosts[1].popen(
        [
            traffic,
            "receive",
            "--port",
            "6000",
            "--record",
            f"{folder}/receiver.rec",
            "--idle",
            "2 s",
            "--json",
        ]
    )
    time.sleep(0.5)
    sender = hosts[0].popen(
        [
            traffic,
            "send",
            "--to",
            addresses[1],
            "--port",
            "6000",
            "--record",
            f"{folder}/sender.rec",
            "--json",
            *words,
        ]
    )
    codes = [sender.wait(), receiver.wait()]
    net.stop()
    return {"codes": codes}


def main() -> None:
    """Runs the measurement of the command line."""
    setLogLevel("error")
    what, *words = sys.argv[1:]
    if what == "standing":
        said = standing(int(words[0]))
    elif what == "tcp":
        said = tcp(int(words[0]), int(words[1]))
    elif what == "fat-tree":
        said = fat_tree(int(words[0]), float(words[1]), int(words[2]))
    else:
        said = stream(*words)
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    if shutil.which("iperf3") is None:
        sys.exit("iperf3 is missing")
    main()
