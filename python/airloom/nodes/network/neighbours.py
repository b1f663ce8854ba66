"""The kernel's neighbour tables (ARP and IPv6), which all nodes of this machine share.

Namespaces have separate entries, but one limit applies to the whole kernel:
``net.ipv4.neigh.default.gc_thresh3``, 1024 by default. A packet to a neighbour is lost if the table
is full; this loss is caused by the host. The counter is ``table_fulls`` in /proc/net/stat/arp_cache
and ndisc_cache (kernel, ``net/core/neighbour.c``).
"""

from __future__ import annotations

from pathlib import Path

from airloom.planning.plan import Plan

_STAT = Path("/proc/net/stat")
_LIMIT = Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3")


def refused() -> int:
    """How often the table was full since boot; 0 if the counter is not readable."""
    return sum(_column(_STAT / name, "table_fulls") for name in ("arp_cache", "ndisc_cache"))


def advice(plan: Plan, limit: int | None = None) -> str | None:
    """Advice before a plan whose nodes may need more entries than the limit; None if it suffices."""
    # Each interface talks to at least one neighbour; a switch with many talkers needs more.
    wanted = sum(1 for node in plan.nodes.values() for interface in node.interfaces if interface.addresses)
    return advice_for(wanted, f"{wanted} interfaces may want more", limit)


def advice_for(wanted: int, why: str, limit: int | None = None) -> str | None:
    """Advice if ``wanted`` entries exceed the limit; None if they fit."""
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
    except OSError:  # only in the host's network namespace
        return None


def _column(path: Path, name: str) -> int:
    """The sum over all processors of one column of hexadecimal numbers."""
    try:
        head, *rows = path.read_text().splitlines()
    except OSError:
        return 0
    place = head.split().index(name)
    return sum(int(row.split()[place], 16) for row in rows)
