"""Results of a run: writing its folder during the run, and reading it afterwards.

Writing::

    with RunWriter(folder, scenario="chain", seed=1, kinds=["netns"], scenario_text=text) as writer:
        writer.record("rtt", "rtt", "s", t_ns=[...], values=[...], node="h1")    # any number of times
        writer.measured(Measurement(name="rtt", metric="max", unit="s", mean=0.0021, ci95=None, n=10))
        result = writer.finish(verdict, ledger, claims=claims, details=details)

From the start, the folder contains a ``result.json`` with verdict ``invalid`` because the run has
not finished; every few seconds the recorded samples are written to a complete Parquet file. So a
killed run leaves a correct verdict and readable samples. An exception inside the ``with`` block,
Ctrl-C included, closes the folder as ``invalid`` with the reason.

A sweep, or several repetitions, is a folder of such folders with an index. Opening it again resumes
it::

    with SweepWriter(folder, scenario="chain", seed=1, sweep={"nodes": [2, 3]}, repetitions=5,
                     scenario_text=text, inputs=digests) as sweep:
        for point in sweep.unfinished():                 # finished points are kept
            with sweep.run(point, kinds=["netns"], seed=7) as writer:
                ...
        result = sweep.finish(claims)

A folder has one writer at a time; a second one is refused (``results.locked``).

Reading: ``RunReader(folder)`` for both: ``.result``, ``.samples("rtt")`` (pandas),
``.table("rtt")`` (Arrow), ``.measurements`` (pandas), ``.details``, ``.points``; ``.notes`` lists
missing or damaged parts.

``docs/guide/results.md`` specifies the formats.
"""

from __future__ import annotations

from airloom.results.claims import Interval, Values, evaluate, from_measurements
from airloom.results.details import Details
from airloom.results.reader import RunReader
from airloom.results.result import (
    SCHEMA,
    Claim,
    LatenessMicros,
    Ledger,
    Measurement,
    Outcome,
    Repeated,
    Result,
)
from airloom.results.sweep import Point, SweepWriter
from airloom.results.writer import RunWriter
from airloom.verdict import Status, Verdict

__all__ = [
    "SCHEMA",
    "Claim",
    "Details",
    "Interval",
    "LatenessMicros",
    "Ledger",
    "Measurement",
    "Outcome",
    "Point",
    "Repeated",
    "Result",
    "RunReader",
    "RunWriter",
    "Status",
    "SweepWriter",
    "Values",
    "Verdict",
    "evaluate",
    "from_measurements",
]
