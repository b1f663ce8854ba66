"""Counter of packets lost because the kernel's neighbour table, common to all nodes, was full.

The limit, and what a plan does about it, are in :mod:`airloom.planning.links.neighbours`. The counter is
``table_fulls`` in /proc/net/stat/arp_cache and ndisc_cache (kernel, ``net/core/neighbour.c``).
"""

from __future__ import annotations

from pathlib import Path

_STAT = Path("/proc/net/stat")


def refused() -> int:
    """How often the table was full since boot; 0 if the counter is not readable."""
    return sum(_column(_STAT / name, "table_fulls") for name in ("arp_cache", "ndisc_cache"))


def _column(path: Path, name: str) -> int:
    """The sum over all processors of one column of hexadecimal numbers."""
    try:
        head, *rows = path.read_text().splitlines()
    except OSError:
        return 0
    place = head.split().index(name)
    return sum(int(row.split()[place], 16) for row in rows)
