"""Runs in a sliver: lets its sender run only in its turns, as if slivers shared one processor.

usage: turns.py MILLISECONDS NUMBER COUNT

The calendar's clock is cut into turns; sliver NUMBER of COUNT has every COUNT-th. Outside its turns the
traffic sender of this sliver is stopped. This file is copied into nodes of any kind, so it needs nothing but
Python.
"""

import contextlib
import os
import signal
import sys
import time


def senders() -> list[int]:
    """Process ids of traffic senders that this process can see."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue  # it has ended
            if words[0].endswith(b"airloom-traffic") and b"send" in words[1:2]:
                found.append(int(name))
    return found


def tell(number: int, processes: list[int]) -> None:
    """Sends a signal to those that are still there."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def main(turn: float, number: int, count: int) -> None:
    """Stops and continues senders until it is ended; ``turn`` in seconds."""
    while True:
        now = time.time()
        mine = int(now / turn) % count == number
        tell(signal.SIGCONT if mine else signal.SIGSTOP, senders())
        time.sleep(max(0.0, (int(now / turn) + 1) * turn - time.time()))


if __name__ == "__main__":
    main(float(sys.argv[1]) / 1000, int(sys.argv[2]), int(sys.argv[3]))
