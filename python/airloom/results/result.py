"""Contents of ``result.json``: the verdict, the ledger, every measurement, every claim.

The keys are part of Airloom's public interface, versioned by ``schema``. A reader ignores unknown
keys and refuses a schema that is newer than its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from airloom.errors import RunError
from airloom.results import stored
from airloom.verdict import Verdict

SCHEMA = 1

Outcome = Literal["holds", "holds-in-shape", "undecided", "fails", "implausible-in-source"]

Number = Annotated[float, Field(allow_inf_nan=False)]


class Part(BaseModel):
    """Base of all parts of a result: frozen; ignores keys of later releases."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


class LatenessMicros(Part):
    """Delay of frame deliveries by the host, relative to the model, in microseconds."""

    p50: Number = 0.0
    p99: Number = 0.0
    p999: Number = 0.0
    max: Number = 0.0


class Ledger(Part):
    """Number of frames by outcome; each segment of a super-frame counts as one.

    ``dropped`` is emulated loss by reason; ``host_lost`` is loss by this machine, which no model
    intended.
    """

    delivered: int = 0
    dropped: dict[str, int] = {}
    host_lost: int = 0
    lateness_us: LatenessMicros = LatenessMicros()


class Measurement(Part):
    """A measured figure.

    ``mean`` is the mean over ``n`` observations; ``ci95`` is half the width of its 95 % confidence
    interval (mean - ci95 to mean + ci95), null where one observation gives none. ``mean`` is null
    when the measurement failed. ``labels`` say what else distinguishes it: a sweep's values, a
    direction.
    """

    name: str
    metric: str
    unit: str
    mean: Number | None
    ci95: Number | None = None
    n: int = 1
    labels: dict[str, str] = {}

    def to_json(self) -> str:
        """The figure as in ``result.json``."""
        return _json(self.model_dump(mode="json")).replace("\n", "\n    ")


class Claim(Part):
    """A claim about the results, and its outcome."""

    id: str
    statement: str
    source: str | None = None
    published: str = ""
    """Statement of the source, in its own figures."""
    expected: str = ""
    measured: str = ""
    outcome: Outcome
    why: str = ""


class Repeated(Part):
    """How often a point of an experiment was repeated, and why not more often.

    ``mean`` and ``ci95`` are those of its headline figure ``metric``, over ``n`` runs that gave it.
    """

    labels: dict[str, str]
    metric: str
    unit: str
    mean: Number | None = None
    ci95: Number | None = None
    n: int = 0
    invalid: int = 0
    """Number of its runs whose verdict is ``invalid``; ``n`` counts them only if all are."""
    within: Number | None = None
    """Half width that was asked for, as a share of the mean; null for a fixed number of runs."""
    stopped: str
    """Why it was not repeated more often."""


class Violation(Part):
    """Transmissions of a slice's radio that violated its grant in the same way, or settings of it that the
    grant forbids and that were refused.
    """

    t_ns: int
    """Engine time of the first one."""
    until_ns: int
    slice: str
    node: str
    """The sliver."""
    radio: str
    what: Literal["channel", "power", "address", "ssid", "bssid", "slot", "setting"]
    amount: Number = 0.0
    """By how much: MHz from the nearest granted channel, dB above the granted power, the longest time of
    one frame exchange outside of the slots in microseconds."""
    unit: str = ""
    """``MHz``, ``dB`` or ``us``; empty where there is no amount."""
    frames: int
    """Number of transmissions, or of refused attempts."""
    channel: int
    """Of the transmissions; of a refused setting the one that was asked for, or else that of the radio."""
    concerned: tuple[str, ...] = ()
    """Other slices with an overlapping channel, or the owner of the name."""


class Result(Part):
    """Contents of ``result.json``."""

    version: int = Field(default=SCHEMA, alias="schema")
    scenario: str
    seed: int
    kinds: tuple[str, ...]
    started: str = Field(description="ISO 8601, UTC")
    wall_seconds: Number
    time: Literal["wall", "virtual"] = "wall"
    """The clock of the run; that of a sweep is in its runs."""
    virtual_seconds: Number | None = None
    """Length of a run in virtual time, from time zero; None in wall time."""
    verdict: Verdict
    ledger: Ledger = Ledger()
    measurements: tuple[Measurement, ...] = ()
    claims: tuple[Claim, ...] = ()
    repeated: tuple[Repeated, ...] = ()
    """Experiments only: how often each point was repeated."""
    violations: tuple[Violation, ...] = ()
    """Transmissions of slices outside their grants; similar ones are one entry."""
    violations_unrecorded: int = 0
    """Further violating transmissions: there were too many different ones."""
    in_force: dict[str, str] = {}
    """Congestion controls, queues, traces, processors and scheduling in force, by path:
    ``measurements[tcp].congestion``, ``nodes[a].cpus``. Empty for a sweep: its runs have their own."""

    def to_json(self, measured: Sequence[str] | None = None) -> str:
        """Returns the text of ``result.json``; ``measured``: the measurements as text, if known.

        A run writes this file after each measurement, while others continue.
        """
        if measured is None:
            measured = [one.to_json() for one in self.measurements]
        text = _json(self.model_copy(update={"measurements": ()}).to_dict()) + "\n"
        if not measured:
            return text
        # JSON strings contain no line breaks, so only this key of the file begins a line like this.
        before, key, after = text.partition('\n  "measurements": [')
        return "".join([before, key, "\n    ", ",\n    ".join(measured), "\n  ", after])

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values."""
        return self.model_dump(mode="json", by_alias=True)


def _json(raw: dict[str, Any]) -> str:
    return json.dumps(raw, indent=2, ensure_ascii=False, allow_nan=False)


def read(path: Path) -> Result:
    """Reads a ``result.json``; an error names the faulty place."""
    try:
        raw = stored.json_object(path)
    except FileNotFoundError:
        raise RunError(
            "results.missing",
            "there is no result.json",
            where=str(path.parent),
            cure="name the folder that `airloom run --out` wrote",
        ) from None
    version = raw.get("schema")
    if isinstance(version, int) and version > SCHEMA:
        raise RunError(
            "results.newer",
            f"result.json has schema {version}; this release reads up to {SCHEMA}",
            where=str(path),
            cure="read it with the release that wrote it, or a later one",
        )
    return stored.checked(path, Result, raw)


def utc_now() -> str:
    """Returns the current time in the format of ``started``."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
