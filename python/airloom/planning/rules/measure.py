"""Rules of events, measurements and claims."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Any

from airloom.errors import ScenarioError
from airloom.host import captured_packets
from airloom.planning import replayed, tables
from airloom.planning.links import queues
from airloom.planning.network import Network
from airloom.planning.rules import media
from airloom.planning.rules.links import change
from airloom.planning.rules.names import unique
from airloom.planning.rules.nodes import node_exists
from airloom.planning.slices import handover, stages
from airloom.scenario.model import Event, Iperf3, Measurement, Ping, Scenario, Test, Traffic
from airloom.scenario.model.measure import TOOLS
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.scenario.suggest import nearest
from airloom.units.given import given as or_else

_ACTIONS: dict[str, tuple[str, ...]] = {
    "link": ("up", "down"),
    "node": ("start", "stop", "kill", "pause", "resume"),
    "radio": ("up", "down"),
    "program": ("start", "stop", "signal"),
    "slice": (),
    "turns": ("start", "stop"),
}
_LARGEST_PAYLOAD = 65507
"""Largest UDP payload or ICMP echo over IPv4, in octets: 65535 - 20 - 8."""
_LARGEST_WRITE = 16 << 20
_FRAME_HEADERS = 14 + 20 + 8 + 4
"""Ethernet, IPv4, UDP and FCS, in octets."""
_PING_STEP = 1_000_000
"""Resolution of ping's interval, in ns: iputils cuts off what is below."""
_SHORTEST_GAP = 100
"""Least time from packet to packet in ns: no processor sends ten million datagrams a second by a socket."""
_IPV6_MORE = 20
"""Octets by which the IPv6 header is longer than that of IPv4."""


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that is wrong with events, measurements and claims."""
    links = {wire.name for wire in network.wires}
    programs = {program.name for program in scenario.programs if program.name is not None}
    before = queues.before_events(scenario, network)
    for index, event in enumerate(scenario.events):
        yield from _event(event, ("events", index), scenario, network, links, programs)
        if event.set is not None and event.link in links:
            yield from change(event.set, ("events", index, "set"), before.get(index, ()))
    yield from handover.problems(scenario, network)
    yield from measurements(scenario, network)
    yield from _claims(scenario)


def _event(
    event: Event, path: Path_, scenario: Scenario, network: Network, links: set[str], programs: set[str]
) -> Iterator[Problem]:
    targets = [name for name in _ACTIONS if getattr(event, name) is not None]
    if len(targets) != 1:
        yield Problem(
            "event.target",
            f"an event has one target, not {' and '.join(targets)}" if targets else "the event has no target",
            path,
            "exactly one of link, node, radio, program, slice, turns",
        )
        return
    if scenario.duration is not None and event.at > scenario.duration:
        yield Problem(
            "event.time",
            f"{event.at.text} is after the end of the run at {scenario.duration.text}",
            (*path, "at"),
            "let the run last longer, or the event come earlier",
        )
    target = targets[0]
    title = "group of turns" if target == "turns" else target
    granted = {name for name, one in scenario.slices.items() if one.grant is not None}
    known = {"link": links, "program": programs, "slice": granted, "turns": set(scenario.turns)}
    name = getattr(event, target)
    if target == "node":
        if name not in network.open_switches and name not in scenario.guests:
            yield from node_exists(name, (*path, "node"), network)
    elif target != "radio" and name not in known[target]:
        yield Problem(
            f"{target}.unknown",
            f"there is no {title} {name!r}",
            (*path, target),
            nearest(name, sorted(known[target])),
        )
    words = ("set", "tune", "position", "grant", "action")
    given = [word for word in words if getattr(event, word) is not None]
    if len(given) != 1:
        yield Problem(
            "event.action",
            "the event has no action"
            if not given
            else f"an event has one action, not both {' and '.join(map(repr, given))}",
            path,
            "'set' for a link, 'tune' for a radio, 'position' for a node, 'grant' for a slice, or 'action'",
        )
        return
    for word, whose in (("tune", "radio"), ("position", "node"), ("grant", "slice")):
        if given == [word] and target != whose:
            yield Problem(
                "event.action", f"{word!r} is for a {whose}, not for a {title}", (*path, word), key=True
            )
            return
    yield from media.of_event(event, path, scenario, network)
    if event.grant is not None and not stages.given(event.grant):
        yield Problem(
            "event.action", "'grant' names no limit", (*path, "grant"), "such as grant: {channels: [40]}"
        )
    if event.set is not None:
        if not event.set.model_fields_set:
            yield Problem(
                "event.action", "'set' names no property", (*path, "set"), "such as set: {delay: 20 ms}"
            )
        if target != "link":
            yield Problem("event.action", f"'set' is for links, not for a {title}", (*path, "set"), key=True)
    elif event.action is not None and event.action not in _ACTIONS[target]:
        yield Problem(
            "event.action",
            f"a {title} cannot {event.action!r}",
            (*path, "action"),
            f"allowed: {', '.join(_ACTIONS[target]) or 'grant'}",
        )
    if event.direction != "both" and (target != "link" or event.set is None):
        yield Problem("event.action", "a direction goes with 'set' on a link", (*path, "direction"), key=True)
    yield from _signal(event, path)


def _signal(event: Event, path: Path_) -> Iterator[Problem]:
    if (event.signal is not None) != (event.action == "signal"):
        yield Problem(
            "event.signal", "'action: signal' and 'signal:' go together", path, "such as signal: SIGHUP"
        )
    elif event.signal is not None and event.signal not in signal.Signals.__members__:
        yield Problem(
            "event.signal",
            f"{event.signal!r} is no signal",
            (*path, "signal"),
            nearest(
                event.signal, [name for name in signal.Signals.__members__ if not name.startswith("SIGRT")]
            ),
        )


def measurements(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that is wrong with measurements."""
    linked = {end.name for wire in network.wires for end in wire.ends}
    linked |= {radio.node for radio in network.radios}
    yield from unique("measurements", (measurement.name for measurement in scenario.measurements))
    for index, measurement in enumerate(scenario.measurements):
        path: Path_ = ("measurements", index)
        given = [name for name in TOOLS if getattr(measurement, name) is not None]
        if len(given) != 1:
            yield Problem(
                "measurement.tool",
                f"a measurement has one tool, not {' and '.join(given)}"
                if given
                else "the measurement has no tool",
                path,
                f"exactly one of {', '.join(TOOLS)}",
            )
            continue
        yield from _tool(measurement, (*path, given[0]), scenario, network, linked)


def _tool(
    measurement: Measurement, path: Path_, scenario: Scenario, network: Network, linked: set[str]
) -> Iterator[Problem]:
    tool = measurement.tool
    for word, name in (("from", tool.source), ("to", tool.to)):
        if word == "to" and is_address(name):
            continue  # the owner is known once all addresses are assigned: see planning.reach
        wrong = list(node_exists(name, (*path, word), network))
        yield from wrong
        if not wrong and name not in linked:
            yield Problem(
                "measurement.unlinked", f"{name!r} has no link", (*path, word), "give it one under 'links:'"
            )
    if tool.source == tool.to:
        yield Problem("measurement.self", "both ends are the same node", (*path, "to"))
    if scenario.duration is not None and tool.at + tool.least > scenario.duration:
        yield Problem(
            "event.time",
            f"the measurement would end after the run, which lasts {scenario.duration.text}",
            path,
            "let the run last longer, or leave 'duration' out",
        )
    yield from _nothing(tool, path, "duration", "interval")
    yield from _RULES[measurement.word](tool, path)


def is_address(text: str) -> bool:
    """True if the text is an address and not a node's name."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _nothing(tool: Any, path: Path_, *names: str) -> Iterator[Problem]:
    for name in names:
        if getattr(tool, name, None) == 0:
            yield Problem("measurement.zero", f"{name!r} must be above zero", (*path, name))


def _ping(tool: Ping, path: Path_) -> Iterator[Problem]:
    if tool.interval % _PING_STEP:
        yield Problem(
            "measurement.interval",
            f"{tool.interval.text} is no whole number of milliseconds, which ping counts",
            (*path, "interval"),
            "such as interval: 10 ms; traffic sends packets closer together",
        )
    if tool.size > _LARGEST_PAYLOAD:
        yield Problem(
            "measurement.size", f"at most {_LARGEST_PAYLOAD} B fit into one packet", (*path, "size")
        )


def _iperf3(tool: Iperf3, path: Path_) -> Iterator[Problem]:
    yield from _nothing(tool, path, "rate", "size")
    if tool.protocol == "udp" and tool.rate is None:
        yield Problem("measurement.rate", "UDP needs a rate", path, "such as rate: 10 Mbit/s")
    if tool.protocol == "udp" and tool.congestion is not None:
        yield Problem(
            "measurement.protocol", "UDP has no congestion control", (*path, "congestion"), key=True
        )
    if tool.protocol == "udp" and tool.size is not None and tool.size > _LARGEST_PAYLOAD:
        yield Problem(
            "measurement.size", f"at most {_LARGEST_PAYLOAD} B fit into one packet", (*path, "size")
        )


def _traffic(tool: Traffic, path: Path_) -> Iterator[Problem]:
    yield from _nothing(tool, path, "rate", "size", "on")
    if tool.protocol != "tcp" and tool.size > _LARGEST_PAYLOAD:
        yield Problem(
            "measurement.size", f"at most {_LARGEST_PAYLOAD} B fit into one packet", (*path, "size")
        )
    if tool.stages and tool.protocol == "tcp":
        yield Problem(
            "measurement.stages",
            "TCP has no packets of its own to follow",
            (*path, "stages"),
            "protocol: udp, or leave 'stages' out",
            key=True,
        )
    yield from _sizes(tool, path)
    yield from _too_dense(tool, path)
    yield from _replay(tool, path)
    if tool.pattern in _TIMED:
        for name in ("rate", "interval"):
            if getattr(tool, name) is not None:
                yield Problem(
                    "measurement.pattern",
                    f"the {_TIMED[tool.pattern]} says when, so there is no {name!r}",
                    (*path, name),
                    key=True,
                )
    if tool.pattern == "trace":
        if tool.trace is None:
            yield Problem("measurement.pattern", "the pattern trace needs 'trace', a file", path)
        else:
            least = 1 if tool.protocol == "tcp" else tool.least_payload
            most = _LARGEST_WRITE if tool.protocol == "tcp" else _LARGEST_PAYLOAD
            try:
                tables.packets(tool.trace, least, most)
            except tables.TableError as error:
                yield Problem(error.code, error.message, (*path, "trace"), error.cure)
    elif tool.trace is not None:
        yield Problem("measurement.pattern", "'trace' goes with pattern: trace", (*path, "trace"), key=True)
    if tool.pattern not in _TIMED:
        # TCP without a rate limit sends as fast as it can.
        neither = tool.rate is None and tool.interval is None
        greedy = neither and tool.protocol == "tcp" and tool.pattern == "constant"
        if (tool.rate is None) == (tool.interval is None) and not greedy:
            yield Problem(
                "measurement.rate",
                "a rate or an interval between packets, not both"
                if tool.rate is not None
                else "no load is given",
                path,
                "exactly one of rate, interval",
            )
    for name in ("on", "off"):
        given = getattr(tool, name) is not None
        if given != (tool.pattern == "on-off"):
            yield Problem(
                "measurement.pattern",
                f"{name!r} goes with pattern: on-off" if given else f"the pattern on-off needs {name!r}",
                (*path, name) if given else path,
                key=given,
            )


_TIMED = {"trace": "trace", "replay": "capture"}
"""Patterns whose packets have times of their own, and the files that give them."""


def _replay(tool: Traffic, path: Path_) -> Iterator[Problem]:
    """Checks a capture and what it excludes."""
    if tool.pattern != "replay":
        for name in ("capture", "speed", "only_from", "split"):
            if name in tool.model_fields_set:
                yield Problem(
                    "measurement.pattern", f"{name!r} goes with pattern: replay", (*path, name), key=True
                )
        return
    if tool.protocol == "tcp":
        yield Problem(
            "measurement.pattern",
            "TCP makes its own frames, so it cannot send those of a capture",
            (*path, "protocol"),
            "protocol: udp; or a program that sends the frames as they are: airloom replay FILE eth0",
        )
    for name in ("size", "frame"):
        if name in tool.model_fields_set:
            yield Problem(
                "measurement.size",
                f"the capture says how long, so there is no {name!r}",
                (*path, name),
                key=True,
            )
    if tool.capture is None:
        yield Problem("measurement.pattern", "the pattern replay needs 'capture', a file", path)
        return
    if tool.only_from is not None:
        try:
            captured_packets.packed(tool.only_from)
        except ValueError:
            yield Problem(
                "address.syntax",
                f"{tool.only_from!r} is no IPv4, IPv6 or MAC address",
                (*path, "only_from"),
                "such as 192.0.2.1",
            )
            return
    try:
        replayed.schedule(tool)
    except tables.TableError as error:
        key = "only_from" if error.code == "capture.empty" and tool.only_from else "capture"
        yield Problem(error.code, error.message, (*path, key), error.cure)


def _too_dense(tool: Traffic, path: Path_) -> Iterator[Problem]:
    """Refuses loads that no processor sends: the schedule would last far longer than the run."""
    key, between = "interval", 0 if tool.interval is None else float(tool.interval)
    if tool.rate is not None and tool.protocol != "tcp":
        key, between = "rate", or_else(tool.frame, tool.size) * 8e9 / max(1, tool.rate)
    if 0 < between < _SHORTEST_GAP:
        yield Problem(
            "measurement.load",
            f"packets are {between:.3g} ns apart, the generator sends them {_SHORTEST_GAP} ns apart at best",
            (*path, key),
            "a longer interval" if key == "interval" else "a lower rate, or larger packets",
        )
    if tool.on is not None and tool.off is not None and 0 < tool.on + tool.off < _SHORTEST_GAP:
        yield Problem(
            "measurement.load",
            f"on and off together are shorter than {_SHORTEST_GAP} ns, the least between two packets",
            (*path, "on"),
            "longer periods",
        )


def _sizes(tool: Traffic, path: Path_) -> Iterator[Problem]:
    """Checks that packets have room for the generator's header."""
    least = tool.least_payload
    if tool.protocol != "tcp" and tool.frame is None and 0 < tool.size < least:
        yield Problem(
            "measurement.size", f"the generator needs {least} B or more in a packet", (*path, "size")
        )
    if tool.protocol == "tcp":
        for name in sorted({"frame", "rate_of"} & tool.model_fields_set):
            yield Problem(
                "measurement.size", f"TCP makes its own frames: no {name!r}", (*path, name), key=True
            )
    elif tool.frame is not None:
        headers = _FRAME_HEADERS + (_IPV6_MORE if tool.family == "ipv6" else 0)
        if "size" in tool.model_fields_set or tool.pattern == "trace":
            other = "'trace'" if tool.pattern == "trace" else "'size'"
            yield Problem("measurement.size", f"{other} or 'frame', not both", (*path, "frame"), key=True)
        elif not least + headers <= tool.frame <= _LARGEST_PAYLOAD + headers:
            allowed = f"{least + headers} to {_LARGEST_PAYLOAD + headers} B"
            yield Problem("measurement.size", f"the frame is not of {allowed}", (*path, "frame"))


_ONLY = {
    "streams": ("tcp_nup",),
    "congestion": ("rrul", "rrul_be", "tcp_nup"),
    "sample": ("rrul", "rrul_be", "tcp_nup"),
    "idle": ("rrul", "rrul_be", "tcp_nup"),
    "objects": ("web_page",),
    "size": ("web_page",),
}
"""Keys of ready tests, and the tests that have them."""
_LARGEST_OBJECT = 64 << 20
_SHORTEST_SAMPLE = 50_000_000
"""Shortest time between samples of sockets, in ns: each sample starts four programs."""


def _test(tool: Test, path: Path_) -> Iterator[Problem]:
    yield from _nothing(tool, path, "size")
    for name, kinds in _ONLY.items():
        if name in tool.model_fields_set and tool.kind not in kinds:
            yield Problem(
                "measurement.test",
                f"{tool.kind} has no {name!r}",
                (*path, name),
                f"it is for {', '.join(kinds)}",
                key=True,
            )
    if tool.size is not None and tool.size > _LARGEST_OBJECT:
        yield Problem("measurement.size", f"an object has at most {_LARGEST_OBJECT} B", (*path, "size"))
    if 0 < tool.sample < _SHORTEST_SAMPLE:
        yield Problem(
            "measurement.test",
            "samples of sockets are at least 50 ms apart",
            (*path, "sample"),
            "such as sample: 200 ms, or 0 s for none",
        )


_RULES: dict[str, Callable[[Any, Path_], Iterator[Problem]]] = {
    "ping": _ping,
    "iperf3": _iperf3,
    "traffic": _traffic,
    "test": _test,
}
"""Rules of single tools."""


def _claims(scenario: Scenario) -> Iterator[Problem]:
    if not scenario.claims:
        return
    # Loaded here because the claims module takes long to import.
    from airloom.scenario.claims_grammar import parse

    measured = [measurement.name for measurement in scenario.measurements]
    yield from unique("claims", (claim.id for claim in scenario.claims), "id")
    for index, claim in enumerate(scenario.claims):
        path: Path_ = ("claims", index)
        try:
            parsed = parse(claim.check)
        except ScenarioError as error:
            yield Problem(error.code, error.message, (*path, "check"), error.cure)
            continue
        for name in parsed.names():
            first, dot, _ = name.partition(".")
            if dot and first not in measured:
                yield Problem(
                    "claim.unknown",
                    f"there is no measurement {first!r}",
                    (*path, "check"),
                    nearest(first, measured),
                )
