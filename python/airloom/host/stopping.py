"""The first and the second signal that ask a process to end: SIGINT, SIGTERM."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def on_first_signal(act: Callable[[int], None]) -> Iterator[None]:
    """Inside, a first signal calls ``act`` with its number, and a second one ends this process at once.

    At once means without clean-up: the kernel releases what the process holds. In another thread than
    the main one, which receives no signals, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def received(number: int, _: Any) -> None:
        for again in before:
            signal.signal(again, lambda number, _: os._exit(128 + number))
        act(number)

    for number in before:
        signal.signal(number, received)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
