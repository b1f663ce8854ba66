"""Loads of a page over HTTP: an HTTP server of Python, and curl in the place of a browser.

A load fetches the document, and then its objects over up to six connections at once, as browsers
do. Its time is from the start to the last octet.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from airloom.measure.tool import (
    FOLDER,
    Listening,
    MeasureError,
    Metric,
    Outcome,
    Place,
    Shown,
    Step,
    failed,
    joined,
    series,
)
from airloom.units.given import given

if TYPE_CHECKING:
    from airloom.scenario import model

CONNECTIONS = 6
"""Connections at once, as in browsers."""
OBJECTS = 10
SIZE = 50_000
_DOCUMENT = 10_000
"""Octets of the document."""
_GRACE = 60_000_000_000


@dataclass(frozen=True, slots=True, repr=False)
class WebReading(Shown):
    """Times of page loads."""

    began: tuple[int, ...]
    """CLOCK_REALTIME at the start of each load: ns."""
    times: tuple[int, ...]
    """Duration of each complete load: ns."""
    failures: int
    """Loads of which an object was missing."""
    octets: int
    """Octets of a page without headers."""
    zero_realtime: int = 0
    node: str = ""

    def metrics(self) -> list[Metric]:
        """Number and times of page loads."""
        found = [Metric("pages", "1", len(self.times)), Metric("failures", "1", self.failures)]
        if self.times:
            p50, p95, p99 = np.quantile(self.times, [0.5, 0.95, 0.99])
            found += [
                Metric("page_time_min", "ns", min(self.times)),
                Metric("page_time_mean", "ns", float(np.mean(self.times))),
                Metric("page_time_max", "ns", max(self.times)),
                Metric("page_time_p50", "ns", float(p50)),
                Metric("page_time_p95", "ns", float(p95)),
                Metric("page_time_p99", "ns", float(p99)),
            ]
        return found

    def in_force(self) -> dict[str, str]:
        """Nothing."""
        return {}

    def samples(self) -> pa.Table:
        """``page_time`` at the end of each load."""
        ends = [at + took - self.zero_realtime for at, took in zip(self.began, self.times, strict=True)]
        return joined([series("page_time", "ns", ends, self.times, self.node)] if ends else [])


def parse(text: str, octets: int) -> WebReading:
    """The loads in the client's output: lines of start, end and the number of failed transfers."""
    began, times, failures = [], [], 0
    for line in text.splitlines():
        words = line.split()
        if len(words) != 3 or not all(word.isdecimal() and len(word) < 20 for word in words):
            raise MeasureError("measure.web.unreadable", f"the client wrote {line[:80]!r}")
        start, end, missing = map(int, words)
        if missing:
            failures += 1
        else:
            began.append(start)
            times.append(max(0, end - start))
    return WebReading(tuple(began), tuple(times), failures, octets)


@dataclass(frozen=True, slots=True)
class WebTool:
    """An HTTP server and a client that loads a page again and again."""

    ask: model.Test
    place: Place

    @property
    def _size(self) -> int:
        return SIZE if self.ask.size is None else int(self.ask.size)

    @property
    def _objects(self) -> int:
        return given(self.ask.objects, OBJECTS)

    def steps(self) -> tuple[Step, ...]:
        """The server, and a shell that runs curl until the time is over."""
        ask = self.ask
        address = self.place.address(ask.to, ask.family)
        # Content without structure: nothing on the way can compress it.
        content = random.Random(self.place.seed).randbytes(max(_DOCUMENT, self._size))
        server = Step(
            role="server",
            node=self.place.node(ask.to),
            argv=(
                "python3",
                "-m",
                "http.server",
                "--directory",
                FOLDER,
                "--bind",
                address,
                str(self.place.port),
            ),
            service=True,
            ready=Listening("tcp", self.place.port),
            linger=0,
            files={"document": content[:_DOCUMENT], "object": content[: self._size]},
        )
        return server, self._client()

    def _client(self) -> Step:
        ask, port = self.ask, str(self.place.port)
        address = self.place.address(ask.to, ask.family)
        host = f"[{address}]" if ":" in address else address
        curl = "curl -s -f --noproxy '*' -o /dev/null -w '%{http_code}\\n'"
        base = f"http://{host}:{port}"
        script = f"""
over=$(( $(date +%s%N) + {int(ask.duration)} ))
while start=$(date +%s%N); [ "$start" -lt "$over" ]; do
  good=$({{ {curl} {base}/document &&
    {curl} -Z --parallel-max {CONNECTIONS} '{base}/object?[1-{self._objects}]'; }} | grep -c 200)
  echo "$start $(date +%s%N) $(( {self._objects} + 1 - good ))"
done
"""
        return Step(
            role="client",
            node=ask.source,
            argv=("sh", "-c", script),
            at=ask.at,
            limit=int(ask.duration) + _GRACE,
        )

    def read(self, outcome: Outcome) -> WebReading:
        """The loads."""
        client = self._client()
        if outcome.ended[client.role].code not in client.expect:
            raise failed("web", self.place.name, client, outcome)
        text = (outcome.folder / client.stdout).read_text("utf-8", "replace")
        reading = parse(text, _DOCUMENT + self._objects * self._size)
        return replace(reading, zero_realtime=outcome.zero_realtime, node=self.ask.source)
