"""Whether a program listens, read from the kernel's socket tables without touching the program."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

_WAITING = {"tcp": "0A", "udp": "07"}
"""State in the table of a socket that waits for peers: TCP_LISTEN, and TCP_CLOSE for an unconnected UDP."""


def is_listening(pid: int, protocol: Literal["tcp", "udp"], port: int) -> bool:
    """Whether in the network namespace of ``pid`` a socket waits on ``port``.

    The tables have one line a socket: ``sl local_address rem_address st ...`` with
    hexadecimal ``ADDRESS:PORT`` (Linux, ``Documentation/networking/proc_net_tcp.rst``).
    """
    return any(
        waits(table.read_text("ascii", "replace"), protocol, port)
        for table in (Path(f"/proc/{pid}/net/{protocol}"), Path(f"/proc/{pid}/net/{protocol}6"))
        if table.exists()
    )


def waits(table: str, protocol: Literal["tcp", "udp"], port: int) -> bool:
    """Whether the text of such a table has a waiting socket on ``port``."""
    for line in table.splitlines()[1:]:
        words = line.split()
        if len(words) > 3 and words[3] == _WAITING[protocol] and words[1].endswith(f":{port:04X}"):
            return True
    return False
