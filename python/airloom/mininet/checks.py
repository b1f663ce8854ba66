"""The built-in tests of a network: ping and iperf between its hosts."""

from __future__ import annotations

import re
import time
from typing import Any, Protocol

from airloom.errors import HostError
from airloom.host import programs
from airloom.mininet.errors import Misused
from airloom.mininet.log import debug, error, info, output, warn
from airloom.mininet.util import numCores, waitListening
from airloom.planning.links import neighbours

_READY = 10.0
"""Timeout in seconds for a server to listen, and to report after its client has ended."""


class Network(Protocol):
    """What is tested."""

    hosts: list[Any]


def parsePing(text: str) -> tuple[int, int]:
    """Returns the numbers of packets sent and of replies received."""
    if "connect: Network is unreachable" in text or "Network is unreachable" in text:
        return 1, 0
    found = re.search(r"(\d+) packets transmitted, (\d+)( packets)? received", text)
    if found is None:
        error(f"*** Error: could not parse ping output: {text}\n")
        return 1, 0
    return int(found.group(1)), int(found.group(2))


def parsePingFull(text: str) -> tuple[int, int, float, float, float, float]:
    """Returns sent, received, and the minimum, mean, maximum and deviation of the RTT in ms."""
    sent, received = parsePing(text)
    found = re.search(r"= ([\d.]+)/([\d.]+)/([\d.]+)/([\d.]+) ms", text)
    if found is None:
        return sent, received, 0.0, 0.0, 0.0, 0.0
    least, mean, most, deviation = (float(value) for value in found.groups())
    return sent, received, least, mean, most, deviation


def _pings(net: Network, hosts: list[Any] | None, timeout: Any) -> Any:
    hosts = list(hosts or net.hosts)
    wanted = len(hosts) * (len(hosts) - 1)
    advice = neighbours.advice_for(wanted, f"pings between {len(hosts)} hosts want {wanted}")
    if advice is not None:
        warn(f"*** {advice}\n")
    wait = f"-W {timeout} " if timeout else ""
    for src in hosts:
        output(f"{src.name} -> ")
        for dst in hosts:
            if src is dst:
                continue
            yield src, dst, src.cmd(f"ping -c1 {wait}{dst.IP()}") if dst.IP() else None
        output("\n")


def ping(net: Network, hosts: list[Any] | None = None, timeout: Any = None) -> float:
    """Pings between all pairs of hosts; returns the lost packets in percent."""
    output("*** Ping: testing ping reachability\n")
    sent = lost = 0
    for _, dst, text in _pings(net, hosts, timeout):
        # Hosts without an interface are skipped; hosts without an address count as unreachable.
        tried, received = (1 if dst.intfs else 0, 0) if text is None else parsePing(text)
        if received > tried:
            error(f"*** Error: received too many packets: {text}\n")
        sent += tried
        lost += tried - received
        output(f"{dst.name} " if received else "X ")
    share = 100.0 * lost / sent if sent else 0.0
    if sent:
        output(f"*** Results: {share:.0f}% dropped ({sent - lost}/{sent} received)\n")
    else:
        output("*** Warning: No packets sent\n")
    return share


def pingFull(net: Network, hosts: list[Any] | None = None, timeout: Any = None) -> list[Any]:
    """Pings between all pairs of hosts; returns (from, to, :func:`parsePingFull`) for each."""
    output("*** Ping: testing ping reachability\n")
    found = []
    for src, dst, text in _pings(net, hosts, timeout):
        figures = (1, 0, 0.0, 0.0, 0.0, 0.0) if text is None else parsePingFull(text)
        found.append((src, dst, figures))
        output(f"{dst.name} " if figures[1] else "X ")
    output("*** Results: \n")
    for src, dst, (sent, received, least, mean, most, deviation) in found:
        output(f" {src.name}->{dst.name}: {sent}/{received}, ")
        output(f"rtt min/avg/max/mdev {least:.3f}/{mean:.3f}/{most:.3f}/{deviation:.3f} ms\n")
    return found


def pingAll(net: Network, timeout: Any = None) -> float:
    """Pings between all hosts; returns the lost packets in percent."""
    return ping(net, timeout=timeout)


def pingPair(net: Network) -> float:
    """Pings between the first two hosts."""
    return ping(net, hosts=net.hosts[:2])


def pingAllFull(net: Network) -> list[Any]:
    """Pings between all hosts, with RTTs."""
    return pingFull(net)


def pingPairFull(net: Network) -> list[Any]:
    """Pings between the first two hosts, with RTTs."""
    return pingFull(net, hosts=net.hosts[:2])


def parseIperf(text: str) -> str:
    """Returns the last rate that iperf reports, such as ``9.57 Mbits/sec``, or an empty string."""
    found = re.findall(r"([\d.]+ [KMGT]?bits/sec)", text)
    if not found:
        error(f"could not parse iperf output: {text}")
        return ""
    return str(found[-1])


def iperfVals(line: str, serverip: str) -> dict[str, str]:
    """Returns the fields of a line of ``iperf -yc``."""
    names = ("date", "cip", "cport", "sip", "sport", "ipver", "interval", "sent", "rate")
    fields = line.strip().split(",")
    found = dict(zip(names, fields, strict=False))
    if found.get("cip") == serverip:
        found["sip"], found["cip"] = found["cip"], found["sip"]
        found["sport"], found["cport"] = found["cport"], found["sport"]
    return found if "rate" in found else {"rate": "0"}


def iperf(
    net: Network,
    hosts: Any = None,
    l4Type: str = "TCP",
    udpBw: str = "10M",
    fmt: str | None = None,
    seconds: int = 5,
    port: int = 5001,
) -> list[str]:
    """Measures TCP or UDP throughput from the first host to the second (by default the last).

    Uses iperf 2 if it is installed, otherwise iperf3. Returns ``[server's rate, client's rate]``;
    for UDP, ``udpBw`` precedes them.
    """
    hosts = hosts or [net.hosts[0], net.hosts[-1]]
    if len(hosts) != 2:
        raise Misused("iperf", f"iperf is between two hosts, not {len(hosts)}")
    if l4Type not in ("TCP", "UDP"):
        raise Misused("iperf", f"l4Type {l4Type!r}", cure="TCP or UDP")
    client, server = hosts
    output(f"*** Iperf: testing {l4Type} bandwidth between {client} and {server}\n")
    tool = "iperf" if programs.find("iperf") else "iperf3"
    if programs.find(tool) is None:
        raise HostError(
            "host.program.missing", "neither iperf nor iperf3 is installed", cure="sudo apt-get install iperf"
        )
    udp = " -u" if l4Type == "UDP" else ""
    form = f" -f {fmt}" if fmt else ""
    own = "-1" if tool == "iperf3" else udp
    server.sendCmd(f"{tool} -s -p {port} {own}{form}".rstrip())
    try:
        _wait_for(server, port, "TCP" if tool == "iperf3" else l4Type, tool)
        rate = f" -b {udpBw}" if udp else ""
        said = client.cmd(f"{tool} -c {server.IP()} -p {port} -t {seconds}{udp}{rate}{form}")
        debug(f"Client output: {said}\n")
        heard = _report(server)
    finally:
        if server.waiting:
            server.sendInt()
    heard += server.waitOutput()
    debug(f"Server output: {heard}\n")
    result = [parseIperf(heard), parseIperf(said)]
    if udp:
        result.insert(0, udpBw)
    output(f"*** Results: {result}\n")
    return result


def _wait_for(server: Any, port: int, protocol: str, tool: str) -> None:
    if protocol == "TCP":
        listening = waitListening(server=server, port=port, timeout=_READY)
    else:
        until = time.monotonic() + _READY
        while not (listening := server.handle.listens("udp", port)) and time.monotonic() < until:
            time.sleep(0.02)
    if not listening:
        raise Misused(
            "iperf", f"{tool} in {server} does not listen on port {port}: {server.monitor(0).strip()}"
        )


def _report(server: Any) -> str:
    """Returns the server's report of the received data, which may arrive after the client's end."""
    heard = ""
    until = time.monotonic() + _READY
    while server.waiting and not re.search(r"bits/sec", heard) and time.monotonic() < until:
        heard += server.monitor(timeoutms=100)
    return heard


def runCpuLimitTest(net: Network, cpu: float, duration: int = 5) -> list[float]:
    """Runs a busy loop on every host for ``duration`` s; returns percent of all CPUs."""
    info(f"*** Testing CPU {cpu * 100:.0f}% bandwidth limit\n")
    for host in net.hosts:
        host.cmd("while true; do a=1; done &")
    time.sleep(1)
    before = [host.cpuSeconds() for host in net.hosts]
    began = time.monotonic()
    time.sleep(duration)
    span = time.monotonic() - began
    shares = [
        100 * (host.cpuSeconds() - used) / span / numCores()
        for host, used in zip(net.hosts, before, strict=True)
    ]
    for host in net.hosts:
        host.cmd("kill $!")
    output(f"*** Results: {[round(share, 2) for share in shares]}\n")
    return shares
