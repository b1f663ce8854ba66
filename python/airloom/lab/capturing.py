"""Captures that readers follow while a laboratory or a run is up (:mod:`airloom.lab.server`).

The engine's thread that writes captures writes pcapng to the reader's descriptor: a pipe, or a file.
Nothing waits for the reader. Copies of frames that it is too slow for are dropped and counted.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Protocol

from airloom import _engine
from airloom.errors import translated
from airloom.lab.messages import Capture
from airloom.planning.capture import Source, chosen, must_fit, sources
from airloom.runs.single import OneRun

PERIOD = 0.1
"""Seconds between two times at which the reader gets what there is."""
_LAST = 10.0
"""Seconds that the end waits for its captures, whose readers have 2 s for what they have not read."""


class Captured(Protocol):
    """What has an engine with frames to capture."""

    def sources(self) -> Mapping[str, Source]:
        """Returns what can be captured, by name."""

    @property
    def engine(self) -> _engine.Engine:
        """The engine."""


def known(host: Captured) -> dict[str, Source]:
    """Returns what can be captured now, by name, with the ports that the engine has."""
    engine = host.engine
    with translated():
        there = engine.ledger()["ports"]
    return {
        name: source
        if source.what == "medium"
        else Source(source.what, tuple(port for port in source.ports if port in there))
        for name, source in host.sources().items()
    }


class CapturedRun:
    """A run, with what its plan names now."""

    def __init__(self, one: OneRun) -> None:
        self._one = one

    def sources(self) -> Mapping[str, Source]:
        """Returns what can be captured, by name."""
        return sources(self._one.plan)

    @property
    def engine(self) -> _engine.Engine:
        """The engine."""
        return self._one.world.engine


class Captures:
    """The captures of a laboratory that are read now."""

    def __init__(self) -> None:
        self._closing = threading.Event()
        self._changed = threading.Condition()
        self._going = 0

    @contextlib.contextmanager
    def going(self) -> Iterator[None]:
        """Context manager of a capture, and of telling its client how it ended: :meth:`close` waits."""
        with self._changed:
            self._going += 1
        try:
            yield
        finally:
            with self._changed:
                self._going -= 1
                self._changed.notify_all()

    def begin(self, host: Captured, asked: Capture, descriptor: int) -> _engine.LiveCapture:
        """Begins a capture that writes to a descriptor; without names, of all ports and media."""
        must_fit(asked.snap)
        ports = chosen(asked.names, known(host)) if asked.names else None
        filters = None
        if asked.filters is not None:
            filters = {int(link_type): program for link_type, program in asked.filters.items()}
        with translated():
            return _engine.LiveCapture(host.engine, descriptor, ports, snap=asked.snap, filters=filters)

    def conduct(
        self, capture: _engine.LiveCapture, descriptor: int, client: socket.socket
    ) -> _engine.CaptureCounts:
        """Returns when the reader or the client has gone or the client says so, or on :meth:`close`."""
        watch = select.poll()
        watch.register(client, select.POLLIN)
        watch.register(descriptor, 0)  # that nobody reads a pipe any more is reported in any case
        with translated():
            while not self._closing.is_set() and not watch.poll(PERIOD * 1000):
                if capture.push()["failed"]:
                    break
            return capture.end()

    def close(self) -> None:
        """Ends all captures, and waits until their clients have been told."""
        self._closing.set()
        with self._changed:
            self._changed.wait_for(lambda: self._going == 0, _LAST)


def said(counts: _engine.CaptureCounts) -> str:
    """Returns the account of a capture in words."""
    written, skipped = counts["written"], counts["skipped"]
    frames = f"{written:,} frame{'s' * (written != 1)}"
    if not skipped:
        return f"captured {frames}"
    return f"captured {frames}; {skipped:,} copies were dropped, since the reader was too slow"
