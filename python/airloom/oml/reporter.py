"""Sends the samples of finished runs as OML streams: to a collection server, or into a file.

Each node of a run is a sender, and each series of a measurement is a stream
``airloom_MEASUREMENT_METRIC`` with the fields ``value``, ``unit``, ``point`` (of a sweep) and
``repetition``. The domain is the name of the run's folder, unless another is given.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from airloom.errors import HostError, RunError, ScenarioError, writing
from airloom.host import output
from airloom.oml.collector import PORT
from airloom.oml.stream import EXPERIMENT, MOST_SCHEMAS, Header, Schema, Tuple, name_of
from airloom.results import RunReader

APPLICATION = "airloom"
VERSION = 4
FIELDS = (("value", "double"), ("unit", "string"), ("point", "string"), ("repetition", "int32"))
TIMEOUT_S = 10.0

Write = Callable[[bytes], Any]


@dataclass(frozen=True, slots=True)
class Sent:
    """What was sent of a run."""

    senders: int
    tuples: int


def send(run: RunReader, uri: str, domain: str | None = None) -> Sent:
    """Sends a run's samples, each sender over a connection of its own.

    ``uri`` is ``tcp:HOST[:PORT]`` as in ``OML_COLLECT``, or ``file:DIR`` for a file ``SENDER.oml`` of each
    sender. Raises an error if there is nothing to send or nobody takes it.
    """
    samples = run.samples()
    if samples.empty:
        raise RunError("oml.empty", "there are no samples to send", where=str(run.folder))
    zero = datetime.fromisoformat(run.result.started).timestamp()
    destination = _destination(uri)
    tuples = 0
    nodes = sorted(samples["node"].unique())
    for node in nodes:
        rows = samples[samples["node"] == node].sort_values("t_ns", kind="stable")
        series = sorted(set(zip(rows["measurement"], rows["metric"], strict=True)))
        if len(series) >= MOST_SCHEMAS:
            raise RunError("oml.schemas", f"{node!r} has {len(series)} series, and OML at most 255")
        schemas = _schemas(series)
        header = Header(VERSION, name_of(domain or run.name), zero, name_of(node or APPLICATION), APPLICATION)
        header.schemas = {0: EXPERIMENT, **{schema.number: schema for schema in schemas.values()}}
        with destination(header.sender) as write:
            write(header.written().encode())
            sequences = dict.fromkeys(schemas, 0)
            for row in rows.itertuples(index=False):
                key = (row.measurement, row.metric)
                values = (float(row.value), str(row.unit), str(row.point), int(row.repetition))
                # The protocol's start has whole seconds.
                t_s = zero - int(zero) + row.t_ns / 1e9
                write(Tuple(schemas[key], sequences[key], t_s, values).written().encode())
                sequences[key] += 1
            tuples += len(rows)
    return Sent(len(nodes), tuples)


def _schemas(series: list[tuple[str, str]]) -> dict[tuple[str, str], Schema]:
    """Returns a schema for each series, with a name of its own."""
    found: dict[tuple[str, str], Schema] = {}
    names: set[str] = set()
    for number, key in enumerate(series, 1):
        name = name_of(APPLICATION, *key)
        if name in names:
            name = f"{name[:59]}_{number}"
        names.add(name)
        found[key] = Schema(number, name, FIELDS)
    return found


def _destination(uri: str) -> Callable[[str], AbstractContextManager[Write]]:
    """Returns what opens the destination of a sender."""
    kind, _, rest = uri.partition(":")
    if kind == "file" and rest:
        return lambda sender: _file(Path(rest, f"{sender}.oml"))
    host, colon, port = rest.rpartition(":")
    if not colon:
        host, port = rest, str(PORT)
    host = host.removeprefix("[").removesuffix("]")
    if kind != "tcp" or not host or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ScenarioError(
            "oml.uri", f"{uri[:80]!r} is not where OML streams go", where="--to",
            cure="tcp:HOST:3003 or file:DIR",
        )  # fmt: skip
    return lambda _: _connection(host, int(port))


@contextmanager
def _file(path: Path) -> Iterator[Write]:
    with writing(path, "oml.file", "the file", "free space, or give another folder"):
        path.parent.mkdir(parents=True, exist_ok=True)
        output.refuse_others(path, output.OML, "give another folder")
        with path.open("wb") as sink:
            yield sink.write


@contextmanager
def _connection(host: str, port: int) -> Iterator[Write]:
    try:
        with (
            socket.create_connection((host, port), TIMEOUT_S) as connection,
            connection.makefile("wb") as sink,
        ):
            yield sink.write
    except OSError as error:
        raise HostError(
            "oml.unreachable", f"the collection server does not take the stream: {error}",
            where=f"tcp:{host}:{port}", cure="is oml2-server or `airloom oml collect` running there?",
        ) from None  # fmt: skip
