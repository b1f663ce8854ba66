"""One interface for every measuring tool, so that the runtime treats ping, iperf3 and our own alike.

A tool says what to run (:class:`Step`), and afterwards reads what the programs wrote. In between
the runtime follows five rules, the same for all tools:

1. ``files`` of every step are written into the measurement's folder, which its node can see;
   :meth:`Step.command` names that folder where the command has :data:`FOLDER`.
2. Steps with ``service=True`` start before the run's time zero, in the order given, and the run
   waits until each is ready.
3. The other steps start at ``at`` (ns after time zero).
4. When these have all ended, each service has ``linger`` ns to end by itself, and is then sent
   SIGTERM. A step that is still there after ``limit`` ns is killed, and the outcome says so.
5. Standard output and standard error of each step go to the files named by ``stdout`` and
   ``stderr`` in the measurement's folder, opened by the runtime and passed as descriptors: no
   tool needs a path of the host inside a node. Then :meth:`Tool.read` is called once.

A new tool is one file with a class that follows :class:`Tool` and a line in :mod:`airloom.measure`;
and for the scenario a model with ``at``, ``least``, ``expected`` and ``offered`` in
:mod:`airloom.scenario.model.measure`, and a rule in :mod:`airloom.planning.rules.measure`. Tests hold the
three tables of tools together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airloom.errors import RunError, ScenarioError
from airloom.measure.clock import ClockReading
from airloom.units.text import seconds

FOLDER = "{folder}"
"""Stands in a command for the measurement's folder."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Ready when a socket of the node is bound to ``port``.

    It is looked up in ``/proc/PID/net/tcp``, ``tcp6``, ``udp`` or ``udp6`` (see
    :func:`airloom.measure.sockets.is_listening`), never tried by connecting: a one-shot server
    such as ``iperf3 -s -1`` would take the trial for its client.
    """

    protocol: Literal["tcp", "udp"]
    port: int
    within: int = 10_000_000_000


@dataclass(frozen=True, slots=True)
class Step:
    """One program of a measurement."""

    role: str
    """``client``, ``server``...; unique in the measurement."""
    node: str
    argv: tuple[str, ...]
    service: bool = False
    """Started before the run's time zero, and ended after the others."""
    at: int = 0
    """When a step that is no service starts: ns after time zero."""
    ready: Listening | None = None
    linger: int = 2_000_000_000
    """How long a service may take to end by itself once the others have ended: ns."""
    limit: int = 3_600_000_000_000
    """How long the program may run at all: ns from its start."""
    expect: frozenset[int] = frozenset({0})
    """Exit codes with which what it wrote is a result."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Name in the measurement's folder: content, written there before the program starts."""

    def command(self, folder: Path) -> tuple[str, ...]:
        """The words to run, for a measurement in this folder."""
        return tuple(word.replace(FOLDER, str(folder.resolve())) for word in self.argv)

    @property
    def stdout(self) -> str:
        """Name of the file that takes standard output."""
        return f"{self.role}.out"

    @property
    def stderr(self) -> str:
        """Name of the file that takes standard error."""
        return f"{self.role}.err"


@dataclass(frozen=True, slots=True)
class Ended:
    """How one step ended; times in ns of CLOCK_MONOTONIC."""

    started: int
    ended: int
    code: int | None = None
    signal: int | None = None
    killed: bool = False
    """It was over its limit and was killed."""


@dataclass(frozen=True, slots=True)
class Skew:
    """How the clock of a step's node stood to the host's at the begin and at the end of a measurement."""

    first: ClockReading
    last: ClockReading

    @property
    def error(self) -> int:
        """Largest error of a time that was moved: ns."""
        return max(self.first.error, self.last.error)

    def to_host(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Times of the node's CLOCK_MONOTONIC as the host's, on the line through both readings."""
        if self.first.ahead == self.last.ahead or self.last.at == self.first.at:
            return np.asarray(times - self.first.ahead, np.int64)
        drift = (self.last.ahead - self.first.ahead) / (self.last.at - self.first.at)
        since = times - (self.first.at + self.first.ahead)
        gained = np.rint(since * (drift / (1 + drift))).astype(np.int64)
        return np.asarray(times - self.first.ahead - gained, np.int64)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is left when all steps have ended."""

    folder: Path
    """Where the files named by ``Step.stdout`` and ``Step.stderr`` are."""
    zero: int
    """The run's time zero in CLOCK_MONOTONIC ns; sample times count from it."""
    zero_realtime: int
    """The same moment in CLOCK_REALTIME ns, for tools that stamp with the calendar's clock."""
    ended: Mapping[str, Ended]
    """Role of a step: how it ended."""
    skews: Mapping[str, Skew] = field(default_factory=dict)
    """Role of a step: how its node's clock stood to the host's; none where they are one clock."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of a measurement. Units: ``ns``, ``bit/s``, ``packets``, ``octets``, ``1``..."""

    name: str
    unit: str
    value: float


class Reading(Protocol):
    """What a tool measured."""

    def metrics(self) -> list[Metric]:
        """The figures for ``result.json``."""

    def samples(self) -> pa.Table:
        """The time series, with the columns of :data:`SAMPLE_SCHEMA`."""


class Tool(Protocol):
    """One measurement: what to run, and how to read it."""

    def steps(self) -> tuple[Step, ...]:
        """The programs, services first."""

    def read(self, outcome: Outcome) -> Reading:
        """The results, or a :class:`MeasureError`."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a tool must know of the world in which it runs."""

    name: str
    """The measurement's name."""
    addresses: Mapping[str, Sequence[str]]
    """Node: its addresses without prefix length; the first is the one that its name stands for."""
    port: int
    """A port that no other measurement of the run uses."""
    seed: int
    """For random patterns: derived by the runtime from run, repetition and measurement."""
    traffic: str = "airloom-traffic"
    """Path of the generator."""
    folder: Path = Path()
    """Where relative paths in the scenario (traces) begin."""

    def address(self, target: str, family: Literal["ipv4", "ipv6"] | None = None) -> str:
        """The address of ``target``, a node's name (then the first of this family) or an address."""
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
        """The node that ``target``, a node's name or one of its addresses, belongs to."""
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
    """A tool failed, or what it wrote cannot be read."""


def failed(tool: str, name: str, step: Step, outcome: Outcome) -> MeasureError:
    """The error for a program that ended wrongly, with the last thing that it said."""
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
"""What :meth:`Reading.samples` gives: ``t_ns`` counts from the run's time zero."""

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
    column = np.asarray(values, dtype=np.float64)
    if t_ns.shape != column.shape:
        raise ValueError(f"{metric}: {t_ns.size} times for {column.size} values")

    def same(text: str) -> pa.Array:
        return pa.repeat(pa.scalar(text, pa.string()), t_ns.size)

    return pa.table(
        [same(metric), same(unit), pa.array(t_ns), pa.array(column), same(node)],
        schema=READING_SCHEMA,
    )


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Several series as one table; an empty one of the right shape for none."""
    return pa.concat_tables(tables) if tables else READING_SCHEMA.empty_table()


def labelled(table: pa.Table, measurement: str, *, repetition: int = 0, point: str = "{}") -> pa.Table:
    """The rows of a reading as rows of ``samples.parquet``; ``point`` is the sweep point as JSON."""
    rows = table.num_rows
    columns = {
        "measurement": pa.repeat(pa.scalar(measurement, pa.string()), rows),
        "repetition": pa.repeat(pa.scalar(repetition, pa.int32()), rows),
        "point": pa.repeat(pa.scalar(point, pa.string()), rows),
    }
    return pa.table(
        [
            columns.get(name, table[name] if name in table.column_names else None)
            for name in SAMPLE_SCHEMA.names
        ],
        schema=SAMPLE_SCHEMA,
    )
