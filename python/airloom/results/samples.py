"""Samples: the long table of all measured values, as Parquet.

During a run, each flush writes one complete Parquet file, a part, under a temporary name and
renames it. So a reader finds complete parts however the run ends. At the end the parts are joined
into ``samples.parquet``, in row groups of ``GROUP`` rows. Parts follow the wall clock; the joined file does
not, so that two runs with the same rows have the same file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airloom.host import files
from airloom.measure.columns import column, repeated

FILE = "samples.parquet"
PARTS = "samples.parts"
GROUP = 1 << 18
"""Rows of a row group."""

_BROKEN = (OSError, KeyError, ValueError, TypeError, pa.ArrowException)
"""What a damaged file raises."""
_WORDS = ("measurement", "metric", "unit", "point", "node")

SCHEMA = pa.schema(
    [
        pa.field("measurement", pa.string(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("unit", pa.string(), nullable=False),
        pa.field("t_ns", pa.int64(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
        pa.field("repetition", pa.int32(), nullable=False),
        pa.field("point", pa.string(), nullable=False),
        pa.field("node", pa.string(), nullable=False),
    ],
    metadata={b"airloom.schema": b"1"},
)

AS_READ = pa.schema(
    [
        field.with_type(pa.dictionary(pa.int32(), pa.string())) if field.name in _WORDS else field
        for field in SCHEMA
    ],
    metadata=SCHEMA.metadata,
)
"""The schema of readers: text columns are dictionaries, with or without rows."""

_WRITTEN: dict[str, Any] = {"compression": "zstd", "use_dictionary": list(_WORDS)}
"""How files are written. Times and values hardly repeat: a dictionary of them doubles the processor
time of writing and makes the file larger.
"""


class Buffer:
    """Rows that wait to be written; repeated column values are stored once."""

    def __init__(self, point: str, repetition: int):
        self._point = point
        self._repetition = repetition
        self._chunks: list[pa.RecordBatch] = []
        self.rows = 0

    def add(self, measurement: str, metric: str, unit: str, node: str, t_ns: Any, values: Any) -> None:
        """Adds the rows of one series; ``t_ns`` and ``values`` have the same length."""
        times = column(t_ns, pa.int64())
        figures = column(values, pa.float64())
        if len(times) != len(figures):
            raise ValueError(f"{measurement}.{metric}: {len(times)} times and {len(figures)} values")
        rows = len(times)
        if rows == 0:
            return
        self._append(
            rows,
            measurement=repeated(measurement, pa.string(), rows),
            metric=repeated(metric, pa.string(), rows),
            unit=repeated(unit, pa.string(), rows),
            t_ns=times,
            value=figures,
            node=repeated(node, pa.string(), rows),
        )

    def add_table(self, measurement: str, table: pa.Table) -> None:
        """Adds a table of several series: ``metric``, ``unit``, ``t_ns``, ``value``, ``node``."""
        for batch in table.combine_chunks().to_batches():
            rows = batch.num_rows
            given = {name: batch[name] for name in ("metric", "unit", "t_ns", "value", "node")}
            self._append(rows, measurement=repeated(measurement, pa.string(), rows), **given)

    def _append(self, rows: int, **columns: pa.Array) -> None:
        columns["repetition"] = repeated(self._repetition, pa.int32(), rows)
        columns["point"] = repeated(self._point, pa.string(), rows)
        arrays = [columns[field.name].cast(field.type) for field in SCHEMA]
        self._chunks.append(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
        self.rows += rows

    def take(self) -> pa.Table:
        """Returns all rows and empties the buffer."""
        table = pa.Table.from_batches(self._chunks, SCHEMA).combine_chunks()
        self._chunks = []
        self.rows = 0
        return table


def write_part(folder: Path, number: int, table: pa.Table) -> None:
    """Writes one part atomically."""
    parts = folder / PARTS
    path = parts / f"{number:06d}.parquet"
    temporary = path.with_suffix(".tmp")
    try:
        with temporary.open("wb") as sink:
            pq.write_table(table, sink, **_WRITTEN)
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def parts_of(folder: Path) -> list[Path]:
    """Returns the parts of a run in the order of writing."""
    return sorted((folder / PARTS).glob("*.parquet"))


def join_parts(folder: Path) -> None:
    """Joins the parts to ``samples.parquet`` and removes them."""
    parts = parts_of(folder)
    target = folder / FILE
    temporary = folder / f"{FILE}.tmp"
    try:
        with temporary.open("wb") as sink, pq.ParquetWriter(sink, SCHEMA, **_WRITTEN) as writer:
            for table in _regrouped(parts):
                writer.write_table(table, row_group_size=GROUP)
        temporary.rename(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    for leftover in (folder / PARTS).iterdir():
        leftover.unlink()
    (folder / PARTS).rmdir()


def _regrouped(parts: list[Path]) -> Iterator[pa.Table]:
    """Yields the rows of all parts in tables of ``GROUP`` rows, the last of which has the rest."""
    waiting = pa.Table.from_batches([], SCHEMA)
    for part in parts:
        source = pq.ParquetFile(part)
        for group in range(source.num_row_groups):
            waiting = pa.concat_tables([waiting, source.read_row_group(group).cast(SCHEMA)])
            while waiting.num_rows >= GROUP:
                yield waiting.slice(0, GROUP).combine_chunks()
                waiting = waiting.slice(GROUP)
    if waiting.num_rows:
        yield waiting.combine_chunks()


def read(
    folder: Path,
    measurement: str | None = None,
    metric: str | None = None,
    node: str | None = None,
    *,
    lost: Callable[[str], None] = lambda note: None,
) -> pa.Table:
    """Returns the samples of one run, from the joined file or from the available parts.

    Text columns are dictionaries, so that a million rows of one series stay small. Unreadable parts
    are omitted and reported through ``lost``.
    """
    wanted = {"measurement": measurement, "metric": metric, "node": node}
    words = {column: word for column, word in wanted.items() if word is not None}
    kept: list[pa.Table] = []
    for path in _files(folder):
        try:
            kept += [_filtered(table, words) for table in _groups(path)]
        except _BROKEN as error:
            lost(_unreadable(path, folder, error))
    return pa.concat_tables([pa.Table.from_batches([], AS_READ), *kept]).unify_dictionaries()


def lost_of(folder: Path, *, finished: bool) -> list[str]:
    """Returns notes on missing samples, as far as the files' footers show without a full read."""
    paths = _files(folder)
    if finished and not paths and not (folder / PARTS).is_dir():
        return [f"{FILE} is missing: there are no samples"]
    found = []
    for path in paths:
        try:
            with files.reader(path) as octets:
                pq.read_metadata(octets)
        except _BROKEN as error:
            found.append(_unreadable(path, folder, error))
    return found


def _files(folder: Path) -> list[Path]:
    whole = folder / FILE
    return [whole] if whole.exists() else parts_of(folder)


def _unreadable(path: Path, folder: Path, error: Exception) -> str:
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return f"{path.relative_to(folder)} cannot be read, its samples are missing: {first}"


def _filtered(table: pa.Table, wanted: dict[str, str]) -> pa.Table:
    for name, word in wanted.items():
        table = table.filter(pc.equal(table[name], word))
    return table


def _groups(path: Path) -> Iterator[pa.Table]:
    os.close(files.opened(path))
    source = pq.ParquetFile(path, read_dictionary=list(_WORDS))
    for group in range(source.num_row_groups):
        table = source.read_row_group(group).select(AS_READ.names).cast(AS_READ)
        table.validate(full=True)
        yield table
