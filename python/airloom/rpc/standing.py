"""A helper process that serves its standard input and output, on this machine or another one.

It ends when its caller does: its standard input ends, or has brought nothing for a lease
(:mod:`airloom.rpc.lease`).
"""

from __future__ import annotations

import os
import sys
import threading

from airloom.rpc.helper import Helper
from airloom.rpc.lease import keep
from airloom.rpc.wire import Pipes

GREETING = b"airloom-agent-1\n"
"""What comes first: another word is of the shell or the command that started the process."""


def serve() -> None:
    """Serves the caller behind standard input and output, until its end."""
    reads, writes = os.dup(0), os.dup(1)
    # What prints must not write between the messages.
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.write(writes, GREETING)
    served = Helper(Pipes(reads, writes))
    served.ready()
    threading.Thread(target=_keep, args=(served,), name="airloom-lease", daemon=True).start()
    served.serve()


def _keep(served: Helper) -> None:
    keep(served)
    print("airloom: the machine that started this run is gone", file=sys.stderr)
    os._exit(1)
