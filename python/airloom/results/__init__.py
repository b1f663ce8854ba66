"""A run's folder: how it is written while the run lasts, and read afterwards.

Writing, by whoever runs a scenario::

    with RunWriter(folder, scenario="chain", seed=1, kinds=["netns"], scenario_text=text) as writer:
        writer.record("rtt", "rtt", "s", t_ns=[...], values=[...], node="h1")    # any number of times
        writer.measured(Measurement(name="rtt", metric="max", unit="s", mean=0.0021, ci95=None, n=10))
        result = writer.finish(verdict, ledger, claims=claims, details=details)

From the first line on the folder holds a ``result.json`` that says ``invalid`` because the run has
not finished, and every few seconds what was recorded becomes a complete Parquet file of its own. So
a run that is killed leaves a true verdict and readable samples. An exception inside the ``with``
block, Ctrl-C included, closes the folder as ``invalid`` with the reason.

A sweep, or more than one repetition, is a folder of such folders with an index, and is resumed by
opening it again::

    with SweepWriter(folder, scenario="chain", seed=1, sweep={"nodes": [2, 3]}, repetitions=5,
                     scenario_text=text, inputs=digests) as sweep:
        for point in sweep.unfinished():                 # finished points are kept
            with sweep.run(point, kinds=["netns"], seed=7) as writer:
                ...
        result = sweep.finish(claims)

A folder has one writer at a time; another is refused (``results.locked``).

Reading: ``RunReader(folder)`` for both: ``.result``, ``.samples("rtt")`` (pandas), ``.table("rtt")``
(Arrow), ``.measurements`` (pandas), ``.details``, ``.points``; ``.notes`` say what is missing or damaged.

The formats are fixed in ``docs/guide/results.md``.
"""

from __future__ import annotations

from airloom.results.claims import Values, evaluate, from_measurements
from airloom.results.details import Details
from airloom.results.reader import RunReader
from airloom.results.result import (
    SCHEMA,
    Claim,
    LatenessMicros,
    Ledger,
    Measurement,
    Outcome,
    Result,
)
from airloom.results.sweep import Point, SweepWriter
from airloom.results.writer import RunWriter
from airloom.verdict import Status, Verdict

__all__ = [
    "SCHEMA",
    "Claim",
    "Details",
    "LatenessMicros",
    "Ledger",
    "Measurement",
    "Outcome",
    "Point",
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
