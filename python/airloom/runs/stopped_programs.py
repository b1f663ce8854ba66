"""Watches whether the programs of measurements are stopped while they measure.

A program that a signal or a debugger has stopped (state T or t of ``proc_pid_status(5)``) neither sends
nor receives, and its figures look like those of a slower network. Sampled four times a second, so that
shorter stops may be missed and times are known to a quarter of a second. Programs inside guests have
kernels of their own and are not seen.
"""

from __future__ import annotations

from collections.abc import Mapping

from airloom.runs.emulation import World
from airloom.runs.measurement import Measuring
from airloom.runs.sampler import Sampler
from airloom.verdict import Stopped

PERIOD = 0.25
"""Seconds between samples."""


class StoppedPrograms(Sampler):
    """Samples the programs of the measurements that are running."""

    _of_model = False

    def __init__(self, world: World, measurings: Mapping[str, Measuring]) -> None:
        super().__init__(world, PERIOD, "stopped")
        self._measurings = measurings
        self._found: dict[tuple[str, str, str, str], list[tuple[int, int]]] = {}
        """Measurement, role, node and program: when it was seen stopped, first and last."""

    @property
    def found(self) -> list[Stopped]:
        """Each stop, in order of time."""
        stops = [
            Stopped(*key, start, end + int(PERIOD * 1e9))
            for key, spans in self._found.items()
            for start, end in spans
        ]
        return sorted(stops, key=lambda one: one.start)

    def _sample(self) -> None:
        halted: dict[str, frozenset[int]] = {}
        now = self._world.now()
        for measuring in list(self._measurings.values()):
            for role, program in measuring.alive():
                node = self._world.nodes.get(program.node)
                if node is None or node.state != "up":
                    continue
                if node.name not in halted:
                    halted[node.name] = node.halted()
                if program.pid in halted[node.name]:
                    self._note((measuring.name, role, node.name, program.argv[0].rpartition("/")[2]), now)

    def _sample_last(self) -> None:
        """Nothing: the programs have ended."""

    def _note(self, key: tuple[str, str, str, str], now: int) -> None:
        spans = self._found.setdefault(key, [])
        if spans and now - spans[-1][1] < 3 * PERIOD * 1e9:
            spans[-1] = (spans[-1][0], now)
        else:
            spans.append((now, now))
