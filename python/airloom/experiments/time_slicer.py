"""Runs in a sliver: time-slices its sender, as if slivers shared one processor.

usage: turns.py MILLISECONDS NUMBER COUNT

Wall-clock time is divided into turns; sliver NUMBER of COUNT owns every COUNT-th. Outside its turns
the traffic sender of this sliver is stopped. This file is copied into nodes of any kind, so it
needs only Python.
"""

import contextlib
import os
import signal
import sys
import time


def senders() -> list[int]:
    """Returns the PIDs of the visible traffic senders."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue  # the process has ended
            if words[0].endswith(b"airloom-traffic") and b"send" in words[1:2]:
                found.append(int(name))
    return found


def tell(number: int, processes: list[int]) -> None:
    """Sends a signal to the processes that still exist."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def main(turn: float, number: int, count: int) -> None:
    """Stops and continues senders until terminated; ``turn`` in seconds."""
    while True:
        now = time.time()
        mine = int(now / turn) % count == number
        tell(signal.SIGCONT if mine else signal.SIGSTOP, senders())
        time.sleep(max(0.0, (int(now / turn) + 1) * turn - time.time()))


if __name__ == "__main__":
    main(float(sys.argv[1]) / 1000, int(sys.argv[2]), int(sys.argv[3]))
