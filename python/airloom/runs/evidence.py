"""Converts the engine's ledger and the host's samples into the evidence for the verdict."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

from airloom.host import idle_poll
from airloom.planning.plan import Plan
from airloom.results import LatenessMicros, Ledger
from airloom.results.details import COMPONENTS, Bin
from airloom.runs.host_monitor import HostWatch, NodeTrack
from airloom.scenario.model import Limits
from airloom.units.figures import readable
from airloom.units.text import duration, measured_percent, percent
from airloom.verdict import MEMORY_PRESSURE, MEMORY_TAKEN, Evidence, Lateness, Share, Verdict

MISSED = "port-overflow"
"""Frames lost because a port's kernel queue was full before the engine read them."""
DOWN = "link-down"
"""Frames dropped because their link is down."""
UNSENT = "node-kernel"
"""Packets dropped by the 802.11 stack of a node, which had no association for them."""
FULL = "socket-full"
"""Packets lost because the socket buffer of the receiving program was full."""
UNRESOLVED = "neighbour-table-full"
"""Packets lost because this machine's neighbour table, which all its namespaces share, was full."""


def gathered(
    ledger: Mapping[str, Any],
    lateness: Mapping[str, Any],
    in_full_sockets: Mapping[str, int],
    watch: HostWatch,
    **more: Any,
) -> Evidence:
    """Evidence of a run. ``more``: further `Evidence` fields that only the caller has."""
    full, full_by_port = in_sockets(in_full_sockets)
    return Evidence(
        offered=offered(ledger),
        host_lost=host_lost(ledger) | full,
        host_lost_by_port=host_lost_by_port(ledger) | full_by_port,
        delivery=lateness_of(lateness["delivery"]),
        ingress=lateness_of(lateness["ingress"]),
        cpu_pressure=watch.cpu_pressure(),
        hidden_pressure=watch.hidden_pressure(),
        steal=watch.steal(),
        memory_pressure=watch.memory_pressure(),
        memory_taken=watch.memory_taken(),
        engine_busy=engine_busy(lateness),
        engine_wait=engine_wait(lateness),
        node_wait=watch.node_wait(),
        node_throttled=watch.node_throttled(),
        node_used=watch.node_used(),
        node_share=watch.node_share(),
        blind=watch.blind,
        processors=os.cpu_count() or 0,
        processors_used=watch.busy(),
        interrupts=watch.interrupts(),
        neighbours=watch.neighbours(),
        node_kinds=watch.node_kinds(),
        clock=watch.clock(),
        halts=idle_poll.would_help() and not watch.polls,
        **more,
    )


def ledger_of(raw: Mapping[str, Any], lateness: Mapping[str, Any]) -> Ledger:
    """Converts the engine's ledger to the ledger of ``result.json``."""
    late = lateness_of(lateness["delivery"])
    return Ledger(
        delivered=int(raw["delivered"]),
        dropped={str(reason): int(frames) for reason, frames in raw["dropped"].items() if frames},
        host_lost=sum(host_lost(raw).values()),
        lateness_us=LatenessMicros(
            p50=late.p50 / 1e3, p99=late.p99 / 1e3, p999=late.p999 / 1e3, max=late.max / 1e3
        ),
    )


def lateness_of(raw: Mapping[str, Any]) -> Lateness:
    """Converts a lateness distribution of the engine."""
    return Lateness(
        p50=int(raw["p50"]),
        p99=int(raw["p99"]),
        p999=int(raw["p999"]),
        max=int(raw["max"]),
        count=int(raw["count"]),
        worst=tuple((int(at), int(late), str(port)) for at, late, port in raw["worst"]),
    )


def in_words(limits: Limits) -> dict[str, str]:
    """The limits as text for a report."""
    return {
        "lateness, 99 of 100 frames": duration(limits.lateness_p99),
        "lateness, every frame": duration(limits.lateness_max),
        "processor pressure": percent(limits.cpu_pressure),
        "processor time stolen": percent(limits.steal),
        "memory pressure": percent(MEMORY_PRESSURE),
        "memory in use": percent(MEMORY_TAKEN),
        "link stood still, degraded": f"{percent(limits.paused)} of the run",
        "link stood still, invalid": f"{percent(limits.paused_max)} of the run",
        "frames lost by the host": "0",
    }


def carried_note(plan: Plan) -> str | None:
    """Effect on timing of links that carry super-frames unsegmented; None if no link does.

    A super-frame of S octets leaves a link of rate R no earlier than its last segment would. A
    transit node receives it when its first segment has arrived. A later segment can therefore reach
    that node too early, by the serialisation time of the segments before it: at most (S - one
    segment) * 8 / R per hop.
    """
    slowest: tuple[int, str] | None = None
    for link in plan.links.values():
        for settings in (link.forward, link.backward):
            bits = settings.constant_rate
            if settings.segments == "carried" and bits and (slowest is None or bits < slowest[0]):
                slowest = (bits, link.name)
    if slowest is None:
        return None
    bound = duration((65536 - 1500) * 8 * 10**9 / slowest[0])
    return (
        "links with `segments: carried` pass super-frames whole: a segment may be seen up to "
        f"{bound} from its own time (64 kB on link {slowest[1]} at {readable(slowest[0], 'bit/s')})"
    )


def carrier_note(plan: Plan) -> str | None:
    """Interfaces that should lose their carrier by an event and cannot; None without any.

    The driver of User Mode Linux behind a TAP (``vector``) implements no carrier.
    """
    down = {
        event.link
        for event in plan.scenario.events
        if event.link is not None and event.set is None and event.action == "down"
    }
    keeping = {
        end
        for link in plan.links.values()
        if link.name in down
        for end, received in ((link.a, link.backward), (link.b, link.forward))
        if received.carrier == "follow" and _keeps_carrier(plan, end)
    }
    if not keeping:
        return None
    named = ", ".join(sorted(keeping))
    return f"interfaces of `network: tap` keep their carrier while the link is down: {named}"


def _keeps_carrier(plan: Plan, end: str) -> bool:
    node = plan.nodes.get(end.partition(":")[0])
    return node is not None and node.kind == "uml" and node.guest is not None and node.guest.network == "tap"


def advised(verdict: Verdict, plan: Plan) -> Verdict:
    """The verdict, with a note on polling where processors that halt may have made the engine late."""
    late = {"delivery.late", "delivery.stall", "link.paused"} & set(verdict.codes)
    if plan.idle_poll or not late or not idle_poll.would_help():
        return verdict
    note = (
        "idle processors of this virtual machine halt, and the hypervisor wakes them late; "
        "`engine: {idle: poll}` keeps them awake"
    )
    return verdict.model_copy(update={"notes": (*verdict.notes, note)})


def refused_note(refused: Mapping[str, int]) -> str | None:
    """Note on datagrams lost to full socket buffers, by node. Generator flows are judged too."""
    if not refused:
        return None
    named = ", ".join(
        f"{node} {count}" for node, count in sorted(refused.items(), key=lambda one: -one[1])[:5]
    )
    return (
        f"sockets dropped datagrams because their buffers were full; their programs read too slowly: {named}"
    )


def unresolved(fulls: int, unsent: Mapping[str, int]) -> int:
    """Packets of this run that were lost because this machine's neighbour table was full.

    ``fulls`` counts for the whole machine, so no more than this run's nodes miss: ``unsent``, by node.
    """
    return min(fulls, sum(unsent.values()))


def unsent_notes(fulls: int, unsent: Mapping[str, int]) -> list[str]:
    """Notes on packets that no interface and so no account has, and on a full table of this machine."""
    found = []
    if unsent and fulls < sum(unsent.values()):
        most = sorted(unsent.items(), key=lambda one: -one[1])[:5]
        named = ", ".join(f"{node} {count}" for node, count in most)
        found.append(
            "kernels of nodes dropped packets before their interfaces, so no other account has them, as of "
            f"neighbours whose address was not resolved yet, at least: {named}"
        )
    if fulls > sum(unsent.values()):
        found.append(
            f"the neighbour table of this machine, which all its namespaces share, was full {fulls} times "
            f"meanwhile; {sum(unsent.values()) or 'no'} packets of this run are missing"
        )
    return found


def late_note(raw: Mapping[str, Any]) -> str | None:
    """Segments that entered a link later than if they had been handed over alone; None without any.

    A node forwards segments that were handed over together. If other frames have entered the next
    link since a segment came there, it enters behind them.
    """
    links = [account for both in raw["links"].values() for account in both.values()]
    late, entered = (sum(int(account[name]) for account in links) for name in ("late", "entered"))
    if not late:
        return None
    bound = duration(max(int(account["late_most_ns"]) for account in links))
    return (
        f"segments handed over together entered their next link behind other frames, by up to {bound} "
        f"too late: {late}, {measured_percent(late / entered)} of all frames on links"
    )


_SPREADS: Mapping[str, Callable[[Mapping[str, Any]], float]] = {
    "uniform": lambda law: law["spread_ns"] / math.sqrt(3),
    "normal": lambda law: law["sigma_ns"],
    "exponential": lambda law: law["mean_ns"],
    "pareto": lambda law: law["scale_ns"] / (law["shape"] - 1),
    "table": lambda law: statistics.pstdev(law["values_ns"]),
}
"""A measure of the width of each law of jitter in ns: its standard deviation, of the Pareto law the mean."""
_CHANGED = 0.05
"""Share of that width by which keeping the order may change the mean delay without a note."""


def order_notes(plan: Plan, raw: Mapping[str, Any]) -> list[str]:
    """Links whose jitter keeps the order, and has another mean delay than its law says because of it.

    Frames closer together than the jitter is wide wait for those before them, so that the mean grows with
    the rate of packets.
    """
    found = []
    for name, both in raw["links"].items():
        link = plan.links.get(name)
        for direction, account in both.items():
            law = None if link is None else getattr(link, direction).jitter
            left, held = int(account["left"]), int(account["held"])
            if law is None or not left or not held:
                continue
            more = int(account["held_ns"]) / left
            if more > _CHANGED * _SPREADS[law.word](law.parameters):
                share, longer = measured_percent(held / left), duration(round(more))
                found.append(
                    f"link {name} {direction}: jitter keeps the order of frames, so {share} waited for "
                    f"earlier ones, and the mean delay is {longer} longer than its law says "
                    "(`jitter_reorders: true` keeps the law)"
                )
    return found


def offered(raw: Mapping[str, Any]) -> int:
    """Frames that nodes sent: those the engine received, and those lost before it."""
    return int(raw["offered"]) + int(raw["missed"]) + int(raw.get("unresolved", 0))


def host_lost(raw: Mapping[str, Any]) -> dict[str, int]:
    """Frames lost by this machine, by reason: in the engine's ports and before the engine."""
    found = {str(reason): int(frames) for reason, frames in raw["host_lost"].items() if frames}
    if raw["missed"]:
        found[MISSED] = int(raw["missed"])
    if raw.get("unresolved"):
        found[UNRESOLVED] = int(raw["unresolved"])
    return found


def paused(raw: Mapping[str, Any]) -> dict[str, int]:
    """Link directions that stalled because the engine was late, with the duration in ns."""
    return {
        f"{name} {direction}": int(account["paused_ns"])
        for name, both in raw["links"].items()
        for direction, account in both.items()
        if account["paused_ns"]
    }


def host_lost_by_port(raw: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Lost frames by port and reason."""
    found: dict[str, dict[str, int]] = {}
    for name, port in raw["ports"].items():
        named = {str(reason): int(frames) for reason, frames in port["host_lost"].items() if frames}
        if port["missed"]:
            named[MISSED] = int(port["missed"])
        if named:
            found[name] = named
    return found


def in_sockets(lost: Mapping[str, int]) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Packets lost to full socket buffers: by reason, and by place and reason."""
    if not lost:
        return {}, {}
    return {FULL: sum(lost.values())}, {f"socket of {name}": {FULL: frames} for name, frames in lost.items()}


def with_kernel_drops(
    raw: Mapping[str, Any],
    counters: Mapping[str, Mapping[str, Mapping[str, int]]],
    stacks: Collection[str] = (),
    early: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, Any]:
    """The ledger with the frames that the nodes' kernels dropped before the engine.

    An interface counts them as transmit drops; ``counters`` are by node and interface. Frames that it
    dropped because it had no carrier count as offered and dropped as ``link-down``, as if they had
    reached the link. The others are frames for which the ring to the engine was full: they are
    missed. ``stacks`` are the ports of wireless devices: between such an interface and the engine is
    the node's own 802.11 stack, which drops what it has no association, peer or key for
    (``node-kernel``). Its driver's ring to the engine cannot drop packets of the interface. ``early``: by
    port, what an interface dropped before it was part of the run, which is no loss.
    """
    ports = {name: {**port, "dropped": dict(port["dropped"])} for name, port in raw["ports"].items()}
    dropped = dict(raw["dropped"])
    offered = raw["offered"]
    for node, interfaces in counters.items():
        for interface, count in interfaces.items():
            name = f"{node}:{interface}"
            port = ports.get(name)
            if port is None:
                continue
            if name in stacks:
                why, unsent = UNSENT, count["tx_dropped"]
            else:
                why, unsent = DOWN, without_carrier(port["unsent"], count["tx_dropped"])
            port["missed"] += max(0, count["tx_dropped"] - unsent - early.get(name, 0))
            if unsent:
                port["offered"] += unsent
                port["dropped"][why] = port["dropped"].get(why, 0) + unsent
                dropped[why] = dropped.get(why, 0) + unsent
                offered += unsent
    return {
        **raw,
        "offered": offered,
        "dropped": dropped,
        "ports": ports,
        "missed": sum(port["missed"] for port in ports.values()),
    }


def without_carrier(unsent: Mapping[str, Any] | None, dropped: int) -> int:
    """How many of ``dropped`` frames an interface dropped because it had no carrier.

    ``unsent`` is null for the interface of a guest that lost its carrier: its driver stops its queue
    when the ring is full, and drops frames only without carrier.
    """
    if unsent is None:
        return dropped
    frames, since = unsent["frames"], unsent["since"]
    at_present = 0 if since is None else max(0, dropped - since)
    return min(int(frames) + at_present, dropped)


def engine_busy(lateness: Mapping[str, Any]) -> list[Share]:
    """Share of each second in which the engine's thread ran or was ready to run."""
    return [_share(second, "busy") for second in lateness["status"]]


def engine_wait(lateness: Mapping[str, Any]) -> list[Share]:
    """Share of each second in which the engine's thread was ready but had no processor."""
    return [_share(second, "waited") for second in lateness["status"]]


def processors(tracks: Mapping[str, NodeTrack], lateness: Mapping[str, Any], length: int) -> dict[str, float]:
    """Average number of processors used over ``length`` ns, by component.

    A node with its own kernel is measured on both sides. The user time that the host counts is
    divided in the ratio that the guest kernel reports for programs and kernel. Only the ratio is
    used, because guest ticks include time without a processor. Boot time is excluded.
    """
    if length <= 0:
        return {}
    found = dict.fromkeys(COMPONENTS, 0.0)
    for track in tracks.values():
        begin, end = track.used[0], track.used[-1]
        if not track.within:
            found["guest_user"] += end.user_ns / length
            found["host_kernel"] += end.system_ns / length
            continue
        user = end.user_ns - begin.user_ns
        inside, before = track.within[-1], track.within[0]
        programs, kernel = inside.user_ns - before.user_ns, inside.system_ns - before.system_ns
        share = programs / (programs + kernel) if programs + kernel > 0 else 0.0
        found["guest_user"] += user * share / length
        found["guest_kernel"] += user * (1 - share) / length
        found["host_kernel"] += (end.system_ns - begin.system_ns) / length
    found["engine"] = sum(second["cpu"] for second in lateness["status"]) / length
    return found


def bins(lateness: Mapping[str, Any]) -> tuple[Bin, ...]:
    """The histogram of delivery lateness for the report.

    The engine gives the largest value of each bucket. Each power of two has 64 buckets of equal
    width.
    """
    found = []
    for top, count in lateness["delivery"]["buckets"]:
        width = 1 << max(0, top.bit_length() - 7)
        found.append(Bin(from_ns=top + 1 - width, to_ns=top + 1, count=count))
    return tuple(found)


def _share(second: Mapping[str, int], what: str) -> Share:
    span = second["end"] - second["start"]
    return Share(second["start"], second["end"], min(1.0, second[what] / span) if span > 0 else 0.0)
