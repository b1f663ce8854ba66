"""The common interface of all measuring tools: ping, iperf3 and the traffic generator.

A tool defines its programs (:class:`Step`), and afterwards reads their output. In between
the runtime follows five rules for all tools:

1. ``files`` of every step are written into the measurement's folder, which its node can see;
   :meth:`Step.command` replaces :data:`FOLDER` in the command with that folder.
2. Steps with ``service=True`` start before the run's time zero, in the order given, and the run
   waits until each is ready.
3. The other steps start at ``at`` (ns after time zero).
4. When these have all ended, each service has ``linger`` ns to exit by itself, and is then sent
   SIGTERM. A step that still runs after ``limit`` ns is killed, and the outcome reports it.
5. Standard output and standard error of each step go to the files named by ``stdout`` and
   ``stderr`` in the measurement's folder, opened by the runtime and passed as descriptors: no
   tool needs a path of the host inside a node. Then :meth:`Tool.read` is called once.

A new tool is one file with a class that implements :class:`Tool` and a line in :mod:`airloom.measure`;
for the scenario also a model with ``at``, ``least``, ``expected`` and ``offered`` in
:mod:`airloom.scenario.model.measure`, and a rule in :mod:`airloom.planning.rules.measure`. Tests keep the
three tables of tools consistent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airloom.errors import RunError, ScenarioError
from airloom.measure.clock import ClockReading
from airloom.measure.columns import column, repeated
from airloom.units import html
from airloom.units.figures import of_metric
from airloom.units.text import seconds

FOLDER = "{folder}"
"""Placeholder in a command for the measurement's folder."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Ready when a socket of the node is bound to ``port``.

    Checked in ``/proc/PID/net/tcp``, ``tcp6``, ``udp`` or ``udp6`` (see
    :func:`airloom.measure.sockets.is_listening`), never by connecting: a one-shot server such as
    ``iperf3 -s -1`` would accept the test connection as its client.
    """

    protocol: Literal["tcp", "udp"]
    port: int
    within: int = 10_000_000_000


@dataclass(frozen=True, slots=True)
class Again:
    """Starts a program again that ended before it could begin."""

    when: Callable[[int | None, str], bool]
    """Whether it could not begin: exit code (None after a signal) and last line of standard error."""
    argv: Callable[[int], tuple[str, ...] | None]
    """The command after so many starts; None if there are no more."""
    pause: int
    """Time before the next start: ns."""


@dataclass(frozen=True, slots=True)
class Step:
    """One program of a measurement."""

    role: str
    """``client``, ``server``...; unique in the measurement."""
    node: str
    argv: tuple[str, ...]
    service: bool = False
    """Started before the run's time zero, and ended after the other steps."""
    at: int = 0
    """Start time of a step that is not a service: ns after time zero."""
    ready: Listening | None = None
    linger: int = 2_000_000_000
    """Time for a service to exit by itself after the other steps have ended: ns."""
    limit: int = 3_600_000_000_000
    """Maximum running time of the program: ns from its start."""
    expect: frozenset[int] = frozenset({0})
    """Exit codes for which the output is a result."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Name in the measurement's folder: content, written there before the program starts."""
    version: tuple[str, ...] = ()
    """Arguments with which the program prints its version; empty if it is Airloom's own."""
    again: Again | None = None
    """Output of further starts is appended."""

    def command(self, folder: Path) -> tuple[str, ...]:
        """The arguments of the command for a measurement in this folder."""
        return tuple(word.replace(FOLDER, str(folder.resolve())) for word in self.argv)

    @property
    def stdout(self) -> str:
        """Name of the file for standard output."""
        return f"{self.role}.out"

    @property
    def stderr(self) -> str:
        """Name of the file for standard error."""
        return f"{self.role}.err"


@dataclass(frozen=True, slots=True)
class Ended:
    """How one step ended; times in ns of CLOCK_MONOTONIC."""

    started: int
    ended: int
    code: int | None = None
    signal: int | None = None
    killed: bool = False
    """Whether it was killed for exceeding its limit."""


@dataclass(frozen=True, slots=True)
class Skew:
    """Clock offset of a step's node from the host, at the start and the end of a measurement."""

    first: ClockReading
    last: ClockReading

    @property
    def error(self) -> int:
        """Largest error of a converted time: ns."""
        return max(self.first.error, self.last.error)

    def to_host(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Converts the node's CLOCK_MONOTONIC times to the host's on the line through both
        readings.
        """
        if self.first.ahead == self.last.ahead or self.last.at == self.first.at:
            return np.asarray(times - self.first.ahead, np.int64)
        drift = (self.last.ahead - self.first.ahead) / (self.last.at - self.first.at)
        since = times - (self.first.at + self.first.ahead)
        gained = np.rint(since * (drift / (1 + drift))).astype(np.int64)
        return np.asarray(times - self.first.ahead - gained, np.int64)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Files and exit status after all steps have ended."""

    folder: Path
    """Folder of the files named by ``Step.stdout`` and ``Step.stderr``."""
    zero: int
    """The run's time zero in CLOCK_MONOTONIC ns; sample times count from it."""
    zero_realtime: int
    """The same moment in CLOCK_REALTIME ns, for tools that use wall-clock timestamps."""
    ended: Mapping[str, Ended]
    """Role of a step: how it ended."""
    skews: Mapping[str, Skew] = field(default_factory=dict)
    """Role of a step: its node's clock skew; absent if the node uses the host's clock."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of a measurement. Units: ``ns``, ``bit/s``, ``packets``, ``octets``, ``1``..."""

    name: str
    unit: str
    value: float

    @property
    def text(self) -> str:
        """The value as a reader sees it, such as ``94.1 Mbit/s``, or ``1.2 %`` of a loss."""
        return of_metric(self.name, self.value, self.unit)


class Reading(Protocol):
    """Results of a tool."""

    def metrics(self) -> list[Metric]:
        """The figures for ``result.json``."""

    def samples(self) -> pa.Table:
        """The time series, an Arrow table with a row for each value: ``metric``, ``unit``, ``t_ns``
        (ns from the run's time zero), ``value`` and ``node``.
        """

    def in_force(self) -> dict[str, str]:
        """Settings that the programs report and the scenario may leave open, by key."""


class Shown:
    """Display of a reading: its figures, and not its samples."""

    __slots__ = ()

    def __repr__(self) -> str:
        figures = ", ".join(f"{one.name} {one.text}" for one in self._figures())
        return f"{type(self).__name__}({figures})"

    def _repr_html_(self) -> str:
        rows = [(one.name.replace("_", " "), one.text) for one in self._figures()]
        return html.table(["metric", "value"], rows, numeric=[1])

    def _figures(self) -> list[Metric]:
        read: Reading = self  # type: ignore[assignment]
        return read.metrics()


class Tool(Protocol):
    """One measurement: its programs, and how to read their output."""

    def steps(self) -> tuple[Step, ...]:
        """The programs, services first."""

    def read(self, outcome: Outcome) -> Reading:
        """The results. Raises :class:`MeasureError` if they cannot be read."""


@dataclass(frozen=True, slots=True)
class Place:
    """The run's data that a tool needs."""

    name: str
    """The measurement's name."""
    addresses: Mapping[str, Sequence[str]]
    """Node: its addresses without prefix length, starting with the one that its name resolves to."""
    port: int
    """A port that no other measurement of the run uses."""
    seed: int
    """For random patterns: derived by the runtime from run, repetition and measurement."""
    traffic: str = "airloom-traffic"
    """Path of the traffic generator."""
    folder: Path = Path()
    """Base folder of relative paths in the scenario (traces)."""

    def address(self, target: str, family: Literal["ipv4", "ipv6"] | None = None) -> str:
        """The address of ``target``: a node's name (its first of the family) or an address."""
        version = {"ipv4": 4, "ipv6": 6, None: 0}[family]
        known = self.addresses.get(target, ())
        fitting = [one for one in known if version in (0, ip_address(one).version)]
        if fitting:
            return fitting[0]
        if known:
            raise ScenarioError(
                "measure.target.family",
                f"node {target} has no {family} address",
                where=f"measurement {self.name}",
                cure="give it one, or leave 'family' out",
            )
        try:
            return str(ip_address(target))
        except ValueError:
            raise ScenarioError(
                "measure.target.unknown",
                f"{target!r} is neither a node with an address nor an address",
                where=f"measurement {self.name}",
                cure=f"nodes are {', '.join(sorted(self.addresses)) or 'none'}",
            ) from None

    def node(self, target: str) -> str:
        """The node to which ``target``, a node's name or one of its addresses, belongs."""
        if target in self.addresses:
            return target
        wanted = self.address(target)
        for node, addresses in self.addresses.items():
            if wanted in (str(ip_address(address)) for address in addresses):
                return node
        raise ScenarioError(
            "measure.target.elsewhere",
            f"no node has the address {target}",
            where=f"measurement {self.name}",
            cure="the receiving end runs in a node of this scenario: name it",
        )


class MeasureError(RunError):
    """A tool failed, or its output cannot be read."""


def failed(tool: str, name: str, step: Step, outcome: Outcome) -> MeasureError:
    """The error for a program that failed, with the last line of its output."""
    ended = outcome.ended[step.role]
    how = f"exit code {ended.code}" if ended.signal is None else f"signal {ended.signal}"
    if ended.killed:
        how = f"killed after its limit of {seconds(step.limit)}"
    said = ""
    for file in (step.stderr, step.stdout):
        path = outcome.folder / file
        lines = path.read_text("utf-8", "replace").split("\n") if path.exists() else []
        said = said or next((line.strip() for line in reversed(lines) if line.strip()), "")
    return MeasureError(
        f"measure.{tool}.failed",
        f"{tool} in node {step.node} ended with {how}{': ' + said[:300] if said else ''}",
        where=f"measurement {name}",
        cure=f"its output is in {outcome.folder / step.stdout} and {outcome.folder / step.stderr}",
    )


READING_SCHEMA = pa.schema(
    [
        ("metric", pa.string()),
        ("unit", pa.string()),
        ("t_ns", pa.int64()),
        ("value", pa.float64()),
        ("node", pa.string()),
    ]
)
"""Columns of :meth:`Reading.samples`: ``t_ns`` counts from the run's time zero."""

SAMPLE_SCHEMA = pa.schema(
    [
        ("measurement", pa.string()),
        ("metric", pa.string()),
        ("unit", pa.string()),
        ("t_ns", pa.int64()),
        ("value", pa.float64()),
        ("repetition", pa.int32()),
        ("point", pa.string()),
        ("node", pa.string()),
    ]
)
"""The columns of ``samples.parquet``."""


def series(
    metric: str,
    unit: str,
    times: npt.ArrayLike,
    values: npt.ArrayLike,
    node: str = "",
) -> pa.Table:
    """One time series as a table of :data:`READING_SCHEMA`; ``times`` in ns after time zero."""
    t_ns = np.asarray(times, dtype=np.int64)
    figures = np.asarray(values, dtype=np.float64)
    if t_ns.shape != figures.shape:
        raise ValueError(f"{metric}: {t_ns.size} times for {figures.size} values")

    def same(text: str) -> pa.Array:
        return repeated(text, pa.string(), t_ns.size)

    columns = [same(metric), same(unit), column(t_ns, pa.int64()), column(figures, pa.float64()), same(node)]
    return pa.table(columns, schema=READING_SCHEMA)


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Several series as one table; an empty table with the same columns if there are none."""
    return pa.concat_tables(tables) if tables else READING_SCHEMA.empty_table()


def labelled(table: pa.Table, measurement: str, *, repetition: int = 0, point: str = "{}") -> pa.Table:
    """Converts a reading to rows of ``samples.parquet``; ``point``: the sweep point as JSON."""
    rows = table.num_rows
    columns = {
        "measurement": repeated(measurement, pa.string(), rows),
        "repetition": repeated(repetition, pa.int32(), rows),
        "point": repeated(point, pa.string(), rows),
    }
    return pa.table(
        [
            columns.get(name, table[name] if name in table.column_names else None)
            for name in SAMPLE_SCHEMA.names
        ],
        schema=SAMPLE_SCHEMA,
    )
