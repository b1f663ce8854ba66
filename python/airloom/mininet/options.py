"""``airloom mn``: the options of ``mn`` and their execution."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from airloom.errors import ScenarioError
from airloom.host import files
from airloom.mininet import hook
from airloom.mininet.cli import CLI
from airloom.mininet.errors import Misused, Unsupported
from airloom.mininet.link import Link, OVSLink, TCLink, TCULink
from airloom.mininet.log import LEVELS, info, setLogLevel
from airloom.mininet.net import Mininet
from airloom.mininet.node import (
    Controller,
    CPULimitedHost,
    DefaultController,
    Host,
    NullController,
    OVSBridge,
    OVSController,
    OVSSwitch,
    RemoteController,
    Ryu,
    UserSwitch,
)
from airloom.mininet.nodelib import LinuxBridge
from airloom.mininet.topo import LinearTopo, MinimalTopo, SingleSwitchReversedTopo, SingleSwitchTopo
from airloom.mininet.topolib import TorusTopo, TreeTopo
from airloom.mininet.util import buildTopo, custom, customClass, splitArgs

WITHOUT_MEANING = {
    "--listenport": "each switch has a network of its own; use dpctl, or ovs-ofctl in the switch",
    "--pin": "hosts are not bound to processors",
    "--cluster": "a laboratory is on one machine",
    "--placement": "a laboratory is on one machine",
}
"""Options of ``mn`` that are refused, each with the reason."""
_IN_ENGINE = ("default", "lxbr")
"""Switches without a network namespace."""
_REFUSED_CHOICES = {
    "switch": {"ivs": "no system packages it; use --switch ovs"},
    "controller": {"nox": "no system packages it any more; use --controller remote"},
    "host": {"rt": "shares are held by the completely fair scheduler: --host cfs"},
}
_CHOICES: dict[str, dict[str, Any]] = {
    "switch": {
        "default": None,
        "ovs": OVSSwitch,
        "ovsk": OVSSwitch,
        "ovsbr": OVSBridge,
        "lxbr": LinuxBridge,
        "user": UserSwitch,
    },
    "host": {"proc": Host, "cfs": custom(CPULimitedHost, sched="cfs")},
    "controller": {
        "default": DefaultController,
        "ref": Controller,
        "ovsc": OVSController,
        "remote": RemoteController,
        "ryu": Ryu,
        "none": NullController,
    },
    "link": {"default": Link, "tc": TCLink, "tcu": TCULink, "ovs": OVSLink},
    "topo": {
        "minimal": MinimalTopo,
        "linear": LinearTopo,
        "reversed": SingleSwitchReversedTopo,
        "single": SingleSwitchTopo,
        "torus": TorusTopo,
        "tree": TreeTopo,
    },
}
_CUSTOM = {
    "switches": "switch",
    "hosts": "host",
    "controllers": "controller",
    "links": "link",
    "topos": "topo",
}
"""Names in a --custom file, each with the option that it extends."""
_TESTS: dict[str, Callable[..., Any]] = {
    "pingall": Mininet.pingAll,
    "pingpair": Mininet.pingPair,
    "iperf": Mininet.iperf,
    "iperfudp": lambda net, **kw: net.iperf(l4Type="UDP", **kw),
    "all": lambda net: (net.pingAll(), net.iperf()),
    "none": lambda net: None,
    "build": lambda net: None,
    "cli": CLI,
}


class _Usage(argparse.HelpFormatter):
    """Begins the help text like Mininet's."""

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, prefix or "Usage: ")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ScenarioError("mn.option", message, cure="airloom mn --help lists the options")


def parser() -> argparse.ArgumentParser:
    """Returns the parser of ``mn``'s supported and refused options."""
    made = _Parser(
        prog="mn",
        usage="%(prog)s [options]",
        description="Makes a network from Mininet's options; tests it or prompts. Called as `airloom mn`.",
        formatter_class=_Usage,
    )
    for name in ("switch", "host", "controller", "link", "topo"):
        default = {"topo": "minimal", "host": "proc"}.get(name, "default")
        words = "|".join(_CHOICES[name])
        made.add_argument(f"--{name}", default=default, metavar="NAME[,PARAM=VALUE...]", help=words)
    made.add_argument("-c", "--clean", action="store_true", help="nothing is ever left behind; ends at once")
    made.add_argument(
        "--custom",
        action="append",
        default=[],
        metavar="FILE,...",
        help="read classes and topologies from .py files",
    )
    made.add_argument("--test", action="append", default=[], metavar="TEST", help="|".join(_TESTS))
    made.add_argument("-i", "--ipbase", default="10.0.0.0/8", help="addresses of hosts")
    made.add_argument("--mac", action="store_true", help="hardware addresses that follow the IP addresses")
    made.add_argument("-x", "--xterms", action="store_true", help="open a window for each node")
    made.add_argument("--arp", action="store_true", help="tell all hosts each other's hardware address")
    made.add_argument("-v", "--verbosity", default="info", choices=list(LEVELS), help="what is told")
    made.add_argument(
        "--nat",
        nargs="?",
        const="",
        metavar="PARAM=VALUE,...",
        help="add a node by which hosts reach the machine's network",
    )
    made.add_argument("--innamespace", action="store_true", help="always so with Open vSwitch")
    made.add_argument("--nolistenport", action="store_true", help="always so")
    made.add_argument("--pre", metavar="FILE", help="commands before the tests")
    made.add_argument("--post", metavar="FILE", help="commands after the tests")
    made.add_argument(
        "-w", "--wait", action="store_true", help="wait until all switches have met a controller"
    )
    made.add_argument("-t", "--twait", metavar="SECONDS", type=float, help="the same, at most so long")
    made.add_argument("--version", action="store_true", help="print the version and end")
    for name, why in WITHOUT_MEANING.items():
        made.add_argument(name, nargs="?", const=True, metavar="...", help=f"refused: {why}")
    return made


def asked(arguments: Sequence[str]) -> argparse.Namespace:
    """Returns the parsed options; raises :class:`ScenarioError` for unsupported ones."""
    options = parser().parse_args(list(arguments))
    for name, why in WITHOUT_MEANING.items():
        if getattr(options, name[2:]) is not None:
            raise ScenarioError("mn.without-meaning", f"{name}: {why}")
    for name, refused in _REFUSED_CHOICES.items():
        word = getattr(options, name).partition(",")[0]
        if word in refused:
            raise ScenarioError("mn.without-meaning", f"--{name} {word}: {refused[word]}")
    switch = options.switch.partition(",")[0]
    if options.innamespace and switch in _IN_ENGINE:
        raise ScenarioError(
            "mn.without-meaning",
            f"--innamespace: switches of --switch {switch} are part of the engine",
            cure="--switch user or --switch ovs",
        )
    for file in (options.pre, options.post):
        if file is not None and not Path(file).is_file():
            raise ScenarioError("mn.file", f"there is no file {file}")
    return options


def network(options: argparse.Namespace, tests: dict[str, Callable[..., Any]] | None = None) -> Mininet:
    """Returns the network of the options; nodes and links exist, nothing is started."""
    choices = {name: dict(words) for name, words in _CHOICES.items()}
    for file in [file for listed in options.custom for file in listed.split(",")]:
        for name, value in _read(file).items():
            if name in _CUSTOM:
                choices[_CUSTOM[name]].update(value)
            elif name == "tests" and tests is not None:
                tests.update(value)

    def chosen(name: str) -> Any:
        try:
            if name == "switch" and options.switch == "default":
                return None
            if name == "topo":
                return buildTopo(choices[name], options.topo)
            return customClass(choices[name], getattr(options, name))
        except (ValueError, TypeError, OverflowError) as error:
            raise ScenarioError("mn.option", f"--{name} {getattr(options, name)}: {error}") from None

    return Mininet(
        topo=chosen("topo"),
        switch=chosen("switch"),
        host=chosen("host"),
        controller=chosen("controller"),
        link=chosen("link"),
        ipBase=options.ipbase,
        autoSetMacs=options.mac,
        autoStaticArp=options.arp,
        xterms=options.xterms,
        waitConnected=options.twait or options.wait,
    )


def main(arguments: Sequence[str]) -> None:
    """Runs ``mn`` with these arguments."""
    options = asked(arguments)
    if options.version:
        from airloom import __version__

        print(f"airloom {__version__}, with the options of mn 2.3")
        return
    if options.clean:
        print("nothing to clean: what Airloom makes ends with its process")
        return
    setLogLevel(options.verbosity)
    tests = dict(_TESTS)
    began = time.monotonic()
    try:
        net = network(options, tests)
        wanted = []
        for test in options.test or ["cli"]:
            name, args, kwargs = splitArgs(test)
            if name not in tests:
                name = name.lower()  # other tools write pingAll and iperfUDP
            if name not in tests:
                raise ScenarioError("mn.option", f"--test {test}: unknown; there are: {', '.join(tests)}")
            wanted.append((name, args, kwargs))
        try:
            if options.nat is not None:
                _, args, kwargs = splitArgs(f"nat,{options.nat}" if options.nat else "nat")
                net.addNAT(*args, **kwargs).configDefault()
            net.start()
            if options.pre:
                CLI(net, script=options.pre)
            for name, args, kwargs in wanted:
                tests[name](net, *args, **kwargs)
            if options.post:
                CLI(net, script=options.post)
        finally:
            net.stop()
    except Unsupported as error:
        raise ScenarioError("mn.without-meaning", error.message, cure=error.cure) from None
    except Misused as error:  # caused by the options: there is no script
        raise ScenarioError(error.code, error.message, cure=error.cure) from None
    info(f"completed in {time.monotonic() - began:.3f} seconds\n")


_LARGEST = 16 << 20
"""Octets of a --custom file."""


def _read(file: str) -> dict[str, Any]:
    """Returns the names that a --custom file defines."""
    try:
        text = files.content(file, _LARGEST)
    except OSError as error:
        raise ScenarioError("mn.file", f"there is no file {file}: {error.strerror or error}") from None
    hook.install()
    found: dict[str, Any] = {"__name__": Path(file).stem, "__file__": file}
    exec(compile(text, file, "exec"), found)
    return found
