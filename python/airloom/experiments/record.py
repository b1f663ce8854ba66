"""What was run: ``experiment.json`` beside an experiment's results, written when it has finished."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from airloom.experiments.extent import Extent
from airloom.results import stored
from airloom.results.folder import disk
from airloom.results.result import Part
from airloom.results.writer import write_atomically

FILE = "experiment.json"


class Record(Part):
    """Name, extent and kinds of a finished experiment."""

    experiment: str
    extent: str
    """``full``, ``quick`` or ``smoke``."""
    kinds: tuple[str, ...] = ()
    """Kinds that were asked for; empty for the experiment's default."""

    @property
    def command(self) -> str:
        """Returns the command that runs it again."""
        words = ["airloom experiment run", self.experiment]
        words += [f"--{self.extent}"] if self.extent != "full" else []
        return " ".join([*words, *(f"--kind {kind}" for kind in self.kinds)])


def write(folder: Path, experiment: str, extent: Extent, kinds: Sequence[str]) -> None:
    """Writes the record of an experiment that has finished."""
    record = Record(experiment=experiment, extent=extent.name.lower(), kinds=tuple(kinds))
    with disk(folder):
        write_atomically(folder / FILE, json.dumps(record.model_dump(mode="json"), indent=1) + "\n")


def read(folder: Path) -> Record | None:
    """Returns the record; None if there is none."""
    try:
        return stored.model(folder / FILE, Record)
    except FileNotFoundError:
        return None
