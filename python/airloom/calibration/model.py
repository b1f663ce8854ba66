"""Calibration of a node kind on this machine: packet-rate ceiling, added delay and jitter.

A calibration is made once for a kind and a machine (``airloom calibrate``) and stored in
``$XDG_DATA_HOME/airloom/calibration`` (``~/.local/share`` by default). It compares two nodes of the
kind, on an emulated wire without rate or delay, with two of the host's own network stacks on a bare
wire (kind ``native``):

=================  ==============================================================================
figure             how
=================  ==============================================================================
ceiling            the highest rate of 64-octet frames of which at most 1 % are lost (in the manner of
                   RFC 2544, section 26.1), for one pair of nodes and for two pairs at once
added delay        mean one-way delay of 200 packets/s, minus the native one
added jitter       mean jitter (RFC 4689) of the same flow, minus the native one
spread             standard deviation of the one-way delay: how constant the addition is
cost               processor time of node kernels, host kernel and engine for each packet
=================  ==============================================================================

Each is a mean over rounds with its 95 % interval (Student).
"""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import Field

from airloom.errors import LabError, RunError, ScenarioError, writing
from airloom.host import files
from airloom.host.machine import machine
from airloom.results.result import Part

_LARGEST = 16 << 20
"""Octets of a calibration."""

SCHEMA = 1
PAIRS = (1, 2)


class Figure(Part):
    """A mean over rounds, and half of its 95 % interval; null if there was one round."""

    value: float
    half_width: float | None = None

    least: float
    """Minimum over the rounds."""


class Calibration(Part):
    """Calibration of one kind on one machine."""

    version: int = Field(default=SCHEMA, alias="schema")
    kind: str
    made: str
    airloom: str
    machine: dict[str, str | int | float]
    rounds: int
    ceilings: dict[int, Figure]
    """Packets/s of each pair, by the number of pairs that send at once."""
    native_ceiling: Figure
    delay_ns: Figure
    """Addition to the mean one-way delay."""
    jitter_ns: Figure
    """Addition to the mean jitter."""
    spread_ns: Figure
    cost_ns: Figure

    def ceiling(self, pairs: int) -> tuple[float, bool]:
        """Returns packets/s of each pair (minimum of the rounds), and whether that was measured.

        Beyond the measured numbers of pairs, the processors are assumed to be shared evenly: the
        ceiling is proportional to ``1 / pairs``.
        """
        if pairs in self.ceilings:
            return self.ceilings[pairs].least, True
        most = max(self.ceilings)
        return self.ceilings[most].least * min(1.0, most / pairs), False


def folder() -> Path:
    """Returns the folder of calibrations."""
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "airloom" / "calibration"


def load(kind: str) -> Calibration | None:
    """Returns a kind's calibration on this machine; None without one, or for another machine's."""
    path = folder() / f"{kind}.json"
    if not path.exists():
        return None
    found = _read(path, f"make it anew: airloom calibrate {kind}", RunError)
    here = machine()
    same = all(found.machine.get(name) == here[name] for name in ("processors", "architecture"))
    return found if same and found.version == SCHEMA else None


def read(path: Path) -> Calibration:
    """Returns the calibration in a file, of whatever machine; raises :class:`ScenarioError`."""
    found = _read(path, "name a file that `airloom calibrate` has made", ScenarioError)
    if found.version != SCHEMA or not found.ceilings:
        raise ScenarioError(
            "calibration.unreadable", "this release cannot use this calibration", where=str(path)
        )
    return found


def _read(path: Path, cure: str, kind: type[LabError]) -> Calibration:
    try:
        return Calibration.model_validate_json(files.content(path, _LARGEST))
    except (OSError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise kind(
            "calibration.unreadable", f"this calibration cannot be read: {first}", where=str(path), cure=cure
        ) from error


def keep(calibration: Calibration) -> Path:
    """Stores a calibration; returns its path."""
    path = folder() / f"{calibration.kind}.json"
    with writing(path, "calibration.unwritable", "the calibration", "set XDG_DATA_HOME to another folder"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(calibration.model_dump_json(indent=2, by_alias=True) + "\n", encoding="utf-8")
    return path
