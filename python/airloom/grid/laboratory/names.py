"""SSIDs that runs of the shared laboratory announce.

A run announces the name of its slice, and names that begin with it. A name is a run's as long as one of
its radios has it, or will have it by a change that was asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

MOST_NAMES = 32
"""Names of a run at a time, besides that of its slice."""
LONGEST = 32
"""Octets of an SSID (IEEE 802.11-2020 9.4.2.2)."""


@dataclass(slots=True)
class Names:
    """What the runs of a laboratory announce."""

    _held: dict[str, Announced] = field(default_factory=dict)
    """The run that has a name."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def join(self, run: Announced) -> dict[str, list[str]] | None:
        """Gives a run the name of its slice.

        Returns the ports of a run that has announced this name, by its slice's name: they have to
        announce that from now on. None if the run of that slice is there already.
        """
        with self._lock:
            holder = self._held.get(run.slice)
            if holder is not None and holder.slice == run.slice:
                return None
            self._held[run.slice] = run
            return {} if holder is None else {holder.slice: holder.lose(run.slice)}

    def claim(self, run: Announced, port: str, at: int | None, now: int, name: str) -> str | None:
        """Lets a port announce a name from a time in ns on, ``None`` for now.

        Returns why it may not, or None. What the run announces no more is free again.
        """
        with self._lock:
            why = self.refusal(run, name)
            if why is not None:
                return why
            if name not in run.names() and len(run.names()) > MOST_NAMES:
                return f"a run has at most {MOST_NAMES} SSIDs at a time"
            run.announce(port, at, now, name)
            self._release(run, keep=run.names())
            self._held[name] = run
        return None

    def refusal(self, run: Announced, name: str) -> str | None:
        """Returns why a run may not announce a name at all, or None."""
        if not 1 <= len(name.encode(errors="surrogatepass")) <= LONGEST:
            return f"the SSID has 1 to {LONGEST} octets"
        if not name.startswith(run.slice):
            return f"the SSID {name!r} does not begin with the slice's name, {run.slice!r}"
        if self._held.get(name, run) is not run or name in run.booked:
            return f"the SSID {name!r} is in use"
        return None

    def leave(self, run: Announced) -> None:
        """Frees all names of a run."""
        with self._lock:
            self._release(run, keep=())

    def _release(self, run: Announced, keep: Collection[str]) -> None:
        gone = [name for name, whose in self._held.items() if whose is run and name not in keep]
        for name in gone:
            del self._held[name]


@dataclass(slots=True, eq=False)
class Announced:
    """Names of one run."""

    slice: str
    booked: frozenset[str] = frozenset()
    """Names of other slices, which hold reservations now or later."""
    _ports: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """The name of each port, and those it will have, with their times in ns."""

    def names(self) -> set[str]:
        """Returns what it announces now or later."""
        return {self.slice, *(name for names in self._ports.values() for _, name in names)}

    def announce(self, port: str, at: int | None, now: int, name: str) -> None:
        """Notes a name of a port, and forgets those of the past."""
        for one in self._ports:
            self._ports[one] = _from(self._ports[one], now)
        names = self._ports.get(port, [])
        later = [each for each in names if at is None or each[0] != at]
        self._ports[port] = _from(sorted([*later, (now if at is None else at, name)], key=_time), now)

    def lose(self, name: str) -> list[str]:
        """Forgets a name; returns the ports that had it."""
        lost = [port for port, names in self._ports.items() if any(each == name for _, each in names)]
        for port in lost:
            self._ports[port] = [each for each in self._ports[port] if each[1] != name]
        return lost


def _time(one: tuple[int, str]) -> int:
    return one[0]


def _from(names: Iterable[tuple[int, str]], now: int) -> list[tuple[int, str]]:
    """Returns the name in force at ``now``, and the later ones."""
    names = list(names)
    past = [one for one in names if one[0] <= now]
    return past[-1:] + [one for one in names if one[0] > now]
