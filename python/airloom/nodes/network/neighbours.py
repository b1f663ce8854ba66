"""The kernel's table of neighbours (ARP and IPv6), which all nodes of this machine share.

Namespaces have entries of their own, but the limit on their number is one for the whole kernel:
``net.ipv4.neigh.default.gc_thresh3``, 1024 if nobody raised it. A packet to a neighbour for whom
there is no room is lost, and that is this machine's doing. The counter is ``table_fulls`` in
/proc/net/stat/arp_cache and ndisc_cache (kernel, ``net/core/neighbour.c``).
"""

from __future__ import annotations

from pathlib import Path

from airloom.planning.plan import Plan

_STAT = Path("/proc/net/stat")
_LIMIT = Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3")


def refused() -> int:
    """How often there was no room since the machine started; 0 where it cannot be seen."""
    return sum(_column(_STAT / name, "table_fulls") for name in ("arp_cache", "ndisc_cache"))


def advice(plan: Plan, limit: int | None = None) -> str | None:
    """What to do before a plan whose nodes may need more entries than there are; None if enough."""
    # Each interface talks to one neighbour at least; a switch full of talkers needs more.
    wanted = sum(1 for node in plan.nodes.values() for interface in node.interfaces if interface.addresses)
    return advice_for(wanted, f"{wanted} interfaces may want more", limit)


def advice_for(wanted: int, why: str, limit: int | None = None) -> str | None:
    """What to do before so many entries are wanted; None if there is room for them."""
    most = _limit() if limit is None else limit
    if most is None or wanted <= most:
        return None
    return (
        f"this machine's kernel keeps at most {most} neighbours for all nodes together, and "
        f"{why}: run `sysctl -w net.ipv4.neigh.default.gc_thresh3={4 * wanted}`"
    )


def _limit() -> int | None:
    try:
        return int(_LIMIT.read_text())
    except OSError:  # the host's alone: not to be seen in a network namespace
        return None


def _column(path: Path, name: str) -> int:
    """The sum over all processors of one column of hexadecimal numbers."""
    try:
        head, *rows = path.read_text().splitlines()
    except OSError:
        return 0
    place = head.split().index(name)
    return sum(int(row.split()[place], 16) for row in rows)
