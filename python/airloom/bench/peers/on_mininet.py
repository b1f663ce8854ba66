"""Measurements on Mininet's API, run by Mininet itself and by Airloom's implementation of it.

A plain Mininet script: it imports nothing of Airloom, and prints one line of JSON.

    on_mininet.py standing HOSTS             a row of switches with a host each: time up and down, memory
    on_mininet.py tcp SWITCHES SECONDS       one TCP flow from end to end of such a row, without shaping
    on_mininet.py fat-tree K RATE SECONDS    TCP from each host to the next, by links of RATE Mbit/s
    on_mininet.py network FILE               programs in a network of TCLinks that the file describes
"""

import json
import re
import shutil
import subprocess
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

GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL."""


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


def network(file: str) -> dict[str, Any]:
    """Runs programs in a described network of TCLinks; returns their exit codes by name.

    ``mininet_scenario.py`` writes the description. Programs that are no service start at their times,
    and services before them. When the others have ended, services have their ``linger`` seconds to end by
    themselves, as in a run: the end mark for a receiver may have been lost in a full queue.
    """
    with open(file) as source:
        asked = json.load(source)
    net = Mininet(switch=LinuxBridge, host=Host, link=TCLink, controller=None)
    nodes: dict[str, Any] = {}
    for number, name in enumerate(asked["hosts"], 1):
        nodes[name] = net.addHost(name, ip=f"10.0.0.{number}/24")
    for name in asked["switches"]:
        nodes[name] = net.addSwitch(name)
    for one, other, rate in asked["links"]:
        net.addLink(nodes[one], nodes[other], bw=rate)
    net.start()
    for name, node in nodes.items():
        names = [interface.name for interface in node.intfList() if interface.name != "lo"]
        for interface in names + ([name] if name in asked["switches"] else []):
            node.cmd(f"ip link set dev {interface} mtu {asked['mtu']}")
        if asked["six"] and name in asked["hosts"]:
            node.cmd(f"ip -6 address add {asked['hosts'][name]}/64 dev {names[0]} nodad")
    for name, settings in asked["sysctl"].items():
        for key, value in settings.items():
            commanded(nodes[name], f"sysctl -q -w '{key}={value}'")
    for one in asked["shaping"]:
        node = nodes[one["node"]]
        own, _ = node.connectionsTo(nodes[one["peer"]])[0]
        commanded(node, one["run"].replace("{eth}", own.name))
    for one, other in asked["reached"]:
        nodes[one].cmd(f"ping -c 2 -i 0.2 -W 5 {asked['hosts'][other]}")
    codes = running(nodes, asked["programs"])
    net.stop()
    return {"codes": codes}


def commanded(node: Any, command: str) -> None:
    """Runs a command in a node, and raises an error if it fails."""
    said = node.cmd(f"{command} && echo done").strip()
    if not said.endswith("done"):
        raise RuntimeError(f"{command}: {said}")


def running(nodes: dict[str, Any], programs: list[dict[str, Any]]) -> dict[str, int]:
    """Starts programs at their times and waits for their ends; returns exit codes by name."""
    started: dict[str, Any] = {}

    def start(one: dict[str, Any]) -> None:
        same = one["out"] == one["err"]
        with open(one["out"], "wb") as out, open(one["out"] if same else one["err"], "ab") as err:
            started[one["name"]] = nodes[one["host"]].popen(
                one["run"], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT if same else err
            )

    for one in programs:
        if one["service"]:
            start(one)
    for one in programs:
        deadline = time.monotonic() + 30
        while one["service"] and one["ready"] and not re.search(one["ready"], text_of(one["out"])):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{one['name']} is not ready")
            time.sleep(0.05)
    time.sleep(0.5)
    begun = time.monotonic()
    others = sorted((one for one in programs if not one["service"]), key=lambda one: one["at"])
    for one in others:
        time.sleep(max(0.0, begun + one["at"] - time.monotonic()))
        start(one)
    codes = {one["name"]: started[one["name"]].wait() for one in others}
    for one in programs:
        if one["service"]:
            codes[one["name"]] = ended(started[one["name"]], one["linger"])
    return codes


def ended(program: subprocess.Popen[bytes], linger: float) -> int:
    """Returns the exit code of a program, which is sent SIGTERM after ``linger`` seconds."""
    for seconds, stop in ((linger, program.terminate), (GRACE, program.kill)):
        try:
            return program.wait(seconds)
        except subprocess.TimeoutExpired:
            stop()
    return program.wait()


def text_of(path: str) -> str:
    """Returns what a program has written."""
    with open(path, errors="replace") as file:
        return file.read()


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
        said = network(words[0])
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    if shutil.which("iperf3") is None:
        sys.exit("iperf3 is missing")
    main()
