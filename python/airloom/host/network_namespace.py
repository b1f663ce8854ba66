"""Runs code in another network namespace."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import TypeVar

from airloom.host.user_namespace import CLONE_NEWNET

_Value = TypeVar("_Value")


def enter(namespace: int) -> None:
    """Moves the calling thread into a network namespace permanently; raises :class:`OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def within(namespace: int, act: Callable[[], _Value]) -> _Value:
    """Runs ``act`` in a network namespace and returns its value; this thread does not move."""
    results: list[_Value] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            enter(namespace)
            results.append(act())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="airloom-inside", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
