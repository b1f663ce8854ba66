"""Utility functions of Mininet scripts: names, addresses, arguments, waiting, monitoring."""

from __future__ import annotations

import codecs
import contextlib
import errno
import importlib.util
import os
import re
import select
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from airloom.host.network_namespace import within
from airloom.mininet.errors import Unsupported
from airloom.mininet.log import error, output

__all__ = [
    "BaseString",
    "Python3",
    "buildTopo",
    "checkInt",
    "custom",
    "customClass",
    "decode",
    "dumpNetConnections",
    "dumpNodeConnections",
    "dumpPorts",
    "encode",
    "ensureRoot",
    "errFail",
    "errRun",
    "fixLimits",
    "ipAdd",
    "ipNum",
    "ipParse",
    "ipStr",
    "irange",
    "isShellBuiltin",
    "macColonHex",
    "makeIntfPair",
    "makeNumeric",
    "moveIntf",
    "natural",
    "naturalSeq",
    "netParse",
    "numCores",
    "oldQuietRun",
    "oneError",
    "pmonitor",
    "quietRun",
    "retry",
    "run",
    "specialClass",
    "splitArgs",
    "waitListening",
]


Python3 = True
BaseString = str


def irange(start: int, end: int) -> range:
    """Returns the range from ``start`` to ``end``, both included."""
    return range(start, end + 1)


def natural(text: str) -> list[Any]:
    """Returns a sort key that compares numbers in names by value: h2 before h10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", str(text))]


def naturalSeq(text: str) -> tuple[Any, ...]:
    """The same as :func:`natural`, as a tuple."""
    return tuple(natural(text))


# Commands on this machine


def _words(cmd: tuple[Any, ...]) -> list[str]:
    if len(cmd) == 1 and isinstance(cmd[0], str):
        return shlex.split(cmd[0])
    if len(cmd) == 1 and isinstance(cmd[0], list | tuple):
        return [str(word) for word in cmd[0]]
    return [str(word) for word in cmd]


def errRun(*cmd: Any, **kwargs: Any) -> tuple[str, str, int]:
    """Runs a command on this machine; returns its output, errors and exit code."""
    shell = kwargs.pop("shell", False)
    echo = kwargs.pop("echo", False)
    merged = kwargs.pop("stderr", None) == subprocess.STDOUT
    words: Any = " ".join(map(str, cmd)) if shell else _words(cmd)
    if echo:
        output(words, "\n")
    done = subprocess.run(
        words,
        shell=shell,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merged else subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return decode(done.stdout), decode(done.stderr or b""), done.returncode


def run(cmd: Any) -> int:
    """Runs a command on this machine, with inherited output; returns its exit code."""
    return subprocess.call(_words((cmd,)))


def quietRun(*cmd: Any, **kwargs: Any) -> str:
    """Runs a command on this machine; returns its output and errors as one text."""
    return errRun(*cmd, **{**kwargs, "stderr": subprocess.STDOUT})[0]


oldQuietRun = quietRun


def oneError(*cmd: Any, **kwargs: Any) -> str:
    """Runs a command on this machine; returns its errors."""
    return errRun(*cmd, **kwargs)[1]


def errFail(*cmd: Any, **kwargs: Any) -> tuple[str, str, int]:
    """Runs a command on this machine; raises an error if it fails."""
    out, err, code = errRun(*cmd, **kwargs)
    if code:
        raise RuntimeError(f"errFail: {' '.join(map(str, cmd))} failed with exit code {code}: {err}")
    return out, err, code


def isShellBuiltin(cmd: str) -> bool:
    """True if the first word of a command is a bash builtin."""
    first = str(cmd).split(" ", 1)[0]
    done = subprocess.run(
        ["bash", "-c", 'type -t -- "$0"', first], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() in ("builtin", "keyword")


def decode(octets: bytes | str) -> str:
    """Decodes octets to text."""
    return octets if isinstance(octets, str) else codecs.decode(octets, "utf-8", "replace")


def encode(text: bytes | str) -> bytes:
    """Encodes text to octets."""
    return text if isinstance(text, bytes) else text.encode()


# Addresses


def ipStr(ip: int) -> str:
    """Returns a number as an IPv4 address."""
    return ".".join(str(ip >> shift & 0xFF) for shift in (24, 16, 8, 0))


def ipNum(w: int, x: int, y: int, z: int) -> int:
    """Returns four numbers as an IPv4 address in one number."""
    return w << 24 | x << 16 | y << 8 | z


def ipParse(ip: str) -> int:
    """Returns an IPv4 address as a number; ``10.1`` is 10.0.0.1."""
    parts = [int(part) for part in ip.split(".")]
    if len(parts) > 4 or any(not 0 <= part < 256 for part in parts):
        raise ValueError(f"{ip!r} is no IPv4 address")
    w, x, y, z = [*parts[:-1], *[0] * (4 - len(parts)), parts[-1]]
    return ipNum(w, x, y, z)


def netParse(ipstr: str) -> tuple[int, int]:
    """Returns ``10.0.0.0/8`` as (number, prefix length); the default length is 8 per part."""
    address, slash, length = ipstr.partition("/")
    if not slash:
        parts = address.split(".")
        return ipParse(".".join([*parts, "0", "0", "0"][:4])), 8 * len(parts)
    parts = address.split(".")
    return ipParse(".".join([*parts, "0", "0", "0"][:4])), int(length)


def ipAdd(i: int, prefixLen: int = 8, ipBaseNum: int = 0x0A000000) -> str:
    """Returns the ``i``-th address of a network."""
    most = 0xFFFFFFFF >> prefixLen
    if not 0 <= i <= most:
        raise ValueError(f"there is no address {i} in a network of prefix length {prefixLen}")
    return ipStr((ipBaseNum & (0xFFFFFFFF ^ most)) + i)


def macColonHex(mac: int) -> str:
    """Returns a number as a MAC address."""
    return (mac & 0xFFFFFFFFFFFF).to_bytes(6, "big").hex(":")


# Arguments of options such as ``tree,depth=2,fanout=3``


def makeNumeric(text: str) -> Any:
    """Returns an int or float if the text is a number, otherwise the text."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def splitArgs(argstr: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Returns ``name,1,a=2`` as name, positional and keyword arguments."""
    name, *params = argstr.split(",")
    args = [makeNumeric(param) for param in params if "=" not in param]
    named = (param.partition("=") for param in params if "=" in param)
    return name, args, {key: makeNumeric(value) for key, _, value in named}


def custom(cls: Callable[..., Any], **params: Any) -> Callable[..., Any]:
    """Returns a constructor with some parameters preset."""
    made = partial(cls, **params)
    made.__dict__["__name__"] = f"custom({getattr(cls, '__name__', cls)},{params})"
    return made


specialClass = custom


def customClass(classes: dict[str, Any], argStr: str) -> Callable[..., Any]:
    """Returns the class named by an option such as ``tc,bw=10``, with preset parameters."""
    name, args, kwargs = splitArgs(argStr)
    if name not in classes:
        raise ValueError(f"unknown name {name!r}; there are: {', '.join(sorted(classes))}")
    if args:
        raise ValueError(f"{argStr}: parameters are written as name=value")
    return custom(classes[name], **kwargs) if kwargs else classes[name]


def buildTopo(topos: dict[str, Any], topoStr: str) -> Any:
    """Returns the topology named by an option such as ``tree,2,3``."""
    name, args, kwargs = splitArgs(topoStr)
    if name not in topos:
        raise ValueError(f"unknown topology {name!r}; there are: {', '.join(sorted(topos))}")
    return topos[name](*args, **kwargs)


def checkInt(text: str) -> None:
    """Raises an error if the text is not a number."""
    int(text)


# The machine


def numCores() -> int:
    """Returns the number of processors."""
    return os.cpu_count() or 1


def retry(retries: int, delaySecs: float, fn: Callable[..., Any], *args: Any, **keywords: Any) -> None:
    """Calls a function until its result is true, at most ``retries`` times."""
    for _ in range(retries):
        if fn(*args, **keywords):
            return
        time.sleep(delaySecs)
    error(f"*** gave up after {retries} retries\n")


def makeIntfPair(intf1: str, intf2: str, *args: Any, **kwargs: Any) -> None:
    """Not supported: interface pairs of the host stay unchanged."""
    raise Unsupported(
        f"makeIntfPair({intf1!r}, {intf2!r})", "links are made by the engine", cure="addLink, or Link"
    )


def moveIntf(intf: str, dstNode: Any, *args: Any, **kwargs: Any) -> None:
    """Not supported: the host's interfaces stay in its namespace."""
    raise Unsupported(
        f"moveIntf({str(intf)!r}, {dstNode})",
        "the interfaces of the machine stay in it",
        cure=f"Intf({str(intf)!r}, node=a switch)",
    )


def fixLimits() -> None:
    """Does nothing: Airloom raises the limits that it needs."""


def ensureRoot() -> None:
    """Exits unless the script may create network namespaces."""
    from airloom.errors import LabError
    from airloom.nodes import doctor
    from airloom.runs import notebook

    try:
        doctor.require_basics(restart=not notebook.is_here())
    except LabError as error:
        sys.exit(f"*** {error}")


# Networks


def dumpNodeConnections(nodes: Iterable[Any]) -> None:
    """Prints the interfaces of every node and their peers."""
    for node in nodes:
        output(node.name)
        _dumpConnections(node)
        output("\n")


def dumpNetConnections(net: Any) -> None:
    """Prints the connections of all nodes of a network."""
    dumpNodeConnections([*net.controllers, *net.switches, *net.hosts])


def dumpPorts(switches: Iterable[Any]) -> None:
    """Prints the interfaces of every switch with their port numbers."""
    for switch in switches:
        output(f"{switch.name} ")
        for intf in switch.intfList():
            output(f"{intf}:{switch.ports[intf]} ")
        output("\n")


def _dumpConnections(node: Any) -> None:
    for intf in node.intfList():
        output(f" {intf}:")
        if intf.link:
            first, second = intf.link.intf1, intf.link.intf2
            output(second if first == intf else first)
        else:
            output(" ")


def pmonitor(
    popens: dict[Any, Any], timeoutms: int = 500, readline: bool = True, readmax: int = 1024
) -> Iterator[tuple[Any, str]]:
    """Yields output of many programs as it arrives: (key, text), or (None, "") after a timeout.

    Removes ended programs from ``popens``; ends when ``popens`` is empty.
    """
    poller = select.poll()
    by_descriptor = {}
    for key, popen in popens.items():
        descriptor = popen.stdout.fileno()
        by_descriptor[descriptor] = key
        poller.register(descriptor, select.POLLIN | select.POLLHUP)
    while popens:
        ready = poller.poll(timeoutms)
        if not ready:
            yield None, ""
        for descriptor, event in ready:
            key = by_descriptor[descriptor]
            popen = popens[key]
            if event & select.POLLIN:
                piece = popen.stdout.readline() if readline else os.read(descriptor, readmax)
                yield key, decode(piece)
            elif event & select.POLLHUP:
                poller.unregister(descriptor)
                popen.poll()
                del popens[key]


def waitListening(
    client: Any = None, server: Any = "127.0.0.1", port: Any = 80, timeout: float | None = None
) -> bool:
    """Waits until a program in ``server`` listens on a TCP port; false after ``timeout`` seconds.

    The check is a TCP connection from ``client``, or from this machine if ``server`` is an address.
    Otherwise it reads the socket table of the node, which the server does not notice.
    """
    until = None if timeout is None else time.monotonic() + timeout
    number = {"ssh": 22, "http": 80}.get(port, port)
    while True:
        if client is None and not isinstance(server, str):
            there = server.listens(int(number))
        else:
            failed = _connect(client, server if isinstance(server, str) else server.IP(), int(number))
            there = failed == 0
            if failed in (errno.ENETUNREACH, errno.EHOSTUNREACH):
                error(f"no route to {server}\n")
                return False
        if there:
            return True
        if until is not None and time.monotonic() > until:
            return False
        time.sleep(0.02)


def _connect(client: Any, address: str | None, port: int) -> int:
    """Opens and closes a TCP connection from a node or this machine; returns the errno, or 0."""

    def act() -> int:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
            made.settimeout(1.0)
            return made.connect_ex((address or "127.0.0.1", port))

    return act() if client is None else within(client.handle.namespace.fileno(), act)


class _Pexpect:
    """The package pexpect, whose ``spawn`` speaks text unless an encoding is given."""

    def __init__(self, package: Any) -> None:
        self._package = package

    def spawn(self, *args: Any, **kwargs: Any) -> Any:
        """Starts a program on a terminal."""
        return self._package.spawn(*args, **{"encoding": "utf-8", **kwargs})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._package, name)


def __getattr__(name: str) -> Any:
    """Returns ``pexpect`` where that package is installed."""
    if name == "pexpect" and importlib.util.find_spec(name) is not None:
        return _Pexpect(importlib.import_module(name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
