"""Tests whether a program listens, from the kernel's socket tables and without a connection."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

_WAITING = {"tcp": "0A", "udp": "07"}
"""Socket state of a listener in the table: TCP_LISTEN, and TCP_CLOSE for an unconnected UDP socket."""


def is_listening(pid: int, protocol: Literal["tcp", "udp"], port: int) -> bool:
    """Whether a socket in the network namespace of ``pid`` listens on ``port``.

    The tables have one line per socket: ``sl local_address rem_address st ...`` with hexadecimal
    ``ADDRESS:PORT`` (Linux, ``Documentation/networking/proc_net_tcp.rst``).
    """
    return any(
        waits(table.read_text("ascii", "replace"), protocol, port)
        for table in (Path(f"/proc/{pid}/net/{protocol}"), Path(f"/proc/{pid}/net/{protocol}6"))
        if table.exists()
    )


def waits(table: str, protocol: Literal["tcp", "udp"], port: int) -> bool:
    """Whether the text of such a table contains a listening socket on ``port``."""
    for line in table.splitlines()[1:]:
        words = line.split()
        if len(words) > 3 and words[3] == _WAITING[protocol] and words[1].endswith(f":{port:04X}"):
            return True
    return False
