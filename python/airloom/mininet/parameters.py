"""Every parameter of Mininet's constructors and of ``config``, and what becomes of it here.

The outcome of a parameter is one of three: it is *honoured*, *refused* by name when it is given, or *noted*:
it is accepted without effect, with a line in the log and in the notes of the verdict. So is a parameter
that Mininet does not have either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from airloom.mininet.log import warn
from airloom.mininet.session import current

Outcome = Literal["honoured", "refused", "noted"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a call."""

    call: str
    name: str
    outcome: Outcome
    how: str
    """What it does, or why it does nothing."""


def _of(call: str, outcome: Outcome, **names: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(call, name, outcome, how) for name, how in names.items())


_LINK, _INTF, _TC, _NODE = "Link, addLink", "Intf.config", "TCLink, TCIntf.config", "Node, addHost"
_CPU, _SWITCH, _OVS, _NET = "CPULimitedHost", "Switch, addSwitch", "OVSSwitch", "Mininet"
_USER, _CONTROLLER = "UserSwitch", "Controller"

PARAMETERS: tuple[Parameter, ...] = (
    *_of(
        _LINK,
        "honoured",
        port1="port at the first node; a taken one is an error",
        port2="port at the second node",
        intfName1="name of the first interface",
        intfName2="name of the second interface",
        addr1="hardware address of the first interface",
        addr2="hardware address of the second interface",
        intf="class of both interfaces",
        cls1="class of the first interface",
        cls2="class of the second interface",
        params1="parameters of the first interface",
        params2="parameters of the second interface",
        fast="interfaces are always made in their node at once",
        cls="class of the link",
    ),
    *_of(
        _INTF,
        "honoured",
        mac="hardware address",
        ip="IPv4 or IPv6 address with prefix length",
        ifconfig="`up`, `down`, or arguments of ifconfig",
        up="False, without an `ip`: the interface is down at first",
    ),
    *_of(
        _TC,
        "honoured",
        bw="rate in Mbit/s, of the whole frame with preamble, gap and check sequence; exact, without a burst",
        delay="propagation delay, such as `'5ms'`; a bare number is microseconds, as for tc",
        jitter="half the width of a uniform distribution around the delay; frames keep their order",
        loss="percent of frames, independently",
        max_queue_size="limit of the queue in frames; frames under way do not count. 1000 by default",
        speedup="the rate instead of `bw` at nodes whose name begins with s",
        use_htb="as by default: the rate is exact",
        use_hfsc="as by default: the rate is exact",
        use_tbf="without netem and RED, the queue holds `latency_ms` at the rate and 15,000 octets",
        latency_ms="with `use_tbf`; 120/bw by default",
        enable_ecn="RED marks ECN-capable packets between 30,000 and 35,000 octets of the mean queue and "
        "above, and drops others; weight 1/2, which tc computes from Mininet's burst",
        enable_red="RED between 30,000 and 35,000 octets drops, and drops all above; weight 1/2",
        txo="False: no transmit offloads; the node's kernel completes checksums and segments",
        rxo="False: no receive offloads; every frame reaches the node as on the wire",
        gro="False, if it is given: as `rxo=False`",
        disable_gro="the old name of `gro=False`",
    ),
    *_of(
        _NODE,
        "honoured",
        ip="IPv4 or IPv6 address of the first interface",
        mac="hardware address of the first interface",
        defaultRoute="default route",
        lo="state of the loopback interface",
        inNamespace="False: in the machine's network, as root",
        privateDirs="private folders",
        privateDir="old name of `privateDirs`",
        cls="class of the node",
    ),
    *_of(
        "NAT, addNAT",
        "honoured",
        connect="node that it is linked to",
        subnet="the hosts that may leave",
        localIntf="the interface towards the hosts",
        flush="between networks of the script; rules of the machine are neither used nor changed",
    ),
    *_of(
        _NODE,
        "noted",
        cpu="only a `CPULimitedHost` has a share",
        cores="only a `CPULimitedHost` has processors of its own",
    ),
    *_of(
        _CPU,
        "honoured",
        cpu="share of all processors, by the cgroup's CFS bandwidth; fixed when the host is made",
    ),
    *_of(_CPU, "noted", period_us="the period of the laboratory's control groups applies"),
    *_of(
        _CPU,
        "refused",
        sched="other than `cfs`: shares are held by the completely fair scheduler",
        cores="hosts are not bound to processors",
    ),
    *_of(
        _SWITCH,
        "honoured",
        dpid="datapath id",
        inNamespace="an Open vSwitch is always in a node of its own, the engine's switches in none",
        cls="class of the switch",
        stp="spanning tree of an Open vSwitch; refused at the engine's switches",
        rstp="rapid spanning tree, likewise",
    ),
    *_of(
        _SWITCH,
        "noted",
        opts="options of a program that does not run here; `UserSwitch` reads its two",
        listenPort="each Open vSwitch has its own network: `dpctl`, or ovs-ofctl in the switch",
    ),
    *_of(
        _OVS,
        "honoured",
        failMode="`secure` or `standalone`",
        datapath="`kernel` and `user` are both the userspace datapath",
        protocols="OpenFlow versions",
        batch="switches start one by one, with the same result",
    ),
    *_of(_OVS, "noted", reconnectms="other than 1000: a controller that is away is tried again each 0.5 s"),
    *_of(_OVS, "refused", inband="controllers are out of band"),
    *_of(
        _USER,
        "honoured",
        opts="`--inactivity-probe=SECONDS`, `--max-backoff=SECONDS`",
    ),
    *_of(_USER, "noted", dpopts="options of `ofdatapath`, which does not run here"),
    *_of(
        _CONTROLLER,
        "honoured",
        command="program",
        cargs="its arguments",
        cdir="its folder",
        ip="its address",
        port="its port",
        inNamespace="it has a node of its own",
    ),
    *_of(_CONTROLLER, "refused", protocol="other than `tcp`"),
    *_of(
        _NET,
        "honoured",
        topo="topology",
        switch="class of switches",
        host="class of hosts",
        controller="class of controllers",
        link="class of links",
        intf="class of interfaces",
        build="False: `build()` is called later",
        xterms="windows",
        cleanup="nothing is left to clean up",
        ipBase="network of the hosts' addresses",
        autoSetMacs="hardware addresses that follow the addresses",
        autoStaticArp="static neighbour entries",
        waitConnected="waits until the switches have met a controller",
    ),
    *_of(
        _NET,
        "refused",
        inNamespace="switches need no control network",
        autoPinCpus="hosts are not bound to processors",
    ),
    *_of(_NET, "noted", listenPort="each Open vSwitch has its own network"),
)


def known(*calls: str) -> frozenset[str]:
    """Returns the names of the parameters of some calls that are not merely noted."""
    return frozenset(one.name for one in PARAMETERS if one.call in calls and one.outcome != "noted")


OF_INTERFACE = known(_INTF)
OF_SHAPED_INTERFACE = known(_INTF, _TC)
OF_NODE = known(_NODE)
OF_LIMITED_HOST = known(_NODE, _CPU)
OF_SWITCH = known(_SWITCH, _OVS, _USER)
OF_OPEN_SWITCH = known(_OVS) - known(_SWITCH)
"""Parameters of switches that only an Open vSwitch has."""
OF_CONTROLLER = known(_CONTROLLER)


def note_unused(owner: str, given: Mapping[str, Any], used: Iterable[str]) -> None:
    """Notes the given parameters that have no effect."""
    reasons = {one.name: one.how for one in PARAMETERS if one.outcome == "noted"}
    allowed = frozenset(used)
    for name, value in given.items():
        if name not in allowed and value is not None:
            why = reasons.get(name, "there is no such parameter")
            note(f"{owner}: {name}={value!r} has no effect: {why}")


def note(text: str) -> None:
    """Says something once, in the log and in the notes of the verdict."""
    opened = current()
    if opened is None or opened.note(text):
        warn(f"*** {text}\n")


def call_with(owner: Any, results: dict[str, Any], method: str, **param: Any) -> Any:
    """Calls a method with a parameter's value and stores the result, unless the value is None."""
    ((name, value),) = param.items()
    if value is None:
        return None
    act = getattr(owner, method)
    if isinstance(value, list):
        result = act(*value)
    elif isinstance(value, dict):
        result = act(**value)
    else:
        result = act(value)
    results[name] = result
    return result
