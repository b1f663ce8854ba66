"""Models of a path as a scenario, fitted to the first half of its packets and tested with the second."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from airloom.calibration.paired import Paired, Way
from airloom.calibration.path_check import Compared, compared, distance, through_the_engine
from airloom.calibration.path_model import LEAST, PathModel, fitted
from airloom.planning.gate import check
from airloom.scenario.source import write

WAYS = ("forward", "backward")
_LONG = 300_000
"""Octets of a queue from which on the default limit of 1000 packets may not hold it."""


@dataclass(frozen=True, slots=True)
class Tested:
    """The model of a direction, and how the held-out packets fare with it."""

    model: PathModel
    packets: int
    """Packets of the first half."""
    held_out: int
    """Packets of the second half."""
    figures: tuple[Compared, ...]
    distance: float
    """Of the distributions of delay, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """A scenario with the link, and the files that it names."""

    text: str
    files: Mapping[str, str]
    ways: Mapping[str, Tested]


def tables(stem: str) -> list[str]:
    """Returns the names of the files that a scenario may need."""
    return [f"{stem}.{word}.jitter" for word in WAYS]


def fragment(pair: Paired, stem: str, seed: int = 1) -> Fragment:
    """Fits and tests the directions that have enough packets; files are named by ``stem``."""
    ways = {
        word: way
        for word, way in zip(WAYS, (pair.forward, pair.backward), strict=True)
        if int(way.came.sum()) >= 2 * LEAST
    }
    if not ways:
        # The larger one says what is missing.
        fitted(_halves(max(pair.forward, pair.backward, key=lambda way: way.sent.size))[0])
    halves = {word: _halves(way) for word, way in ways.items()}
    models = {word: fitted(first) for word, (first, _) in halves.items()}
    data, files = _scenario(models, stem)
    text = write(data)
    settings = _settings(text, files)
    tested = {}
    for word, (first, second) in halves.items():
        modelled = through_the_engine(second, settings[word], seed)
        tested[word] = Tested(
            models[word],
            len(first.sent),
            len(second.sent),
            compared(second, modelled),
            distance(second, modelled),
        )
    return Fragment(text, files, tested)


def _halves(way: Way) -> tuple[Way, Way]:
    """Returns the first and the second half of the time; each has its own share of the duplicates."""
    if not way.sent.size:
        return way, way
    first, last = int(way.sent[0]), int(way.sent[-1])
    middle = (first + last) // 2
    parts = way.between(first, middle), way.between(middle, last + 1)
    return tuple(replace(part, duplicates=way.duplicates // 2) for part in parts)  # type: ignore[return-value]


def _scenario(models: Mapping[str, PathModel], stem: str) -> tuple[dict[str, Any], dict[str, str]]:
    link: dict[str, Any] = {"ends": ["a", "b"], "name": "path"}
    files: dict[str, str] = {}
    for word, name in zip(WAYS, tables(stem), strict=True):
        if word not in models:
            continue
        link[word], table = _direction(models[word], name)
        files |= table
    return {"name": stem, "nodes": {"a": {}, "b": {}}, "links": [link]}, files


def _direction(model: PathModel, file: str) -> tuple[dict[str, Any], dict[str, str]]:
    said: dict[str, Any] = {}
    if model.rate is not None:
        said["rate"] = f"{round(model.rate / 1e3)} kbit/s"
    said["delay"] = f"{model.delay / 1e6:.3f} ms"
    files: dict[str, str] = {}
    if model.jitter:
        said["jitter"] = {"table": file}
        files[file] = "".join(f"{one / 1e6:.4f} ms\n" for one in model.jitter)
    if model.reorders:
        said["jitter_reorders"] = True
    if model.bursts is not None:
        into, back = model.bursts
        said["loss"] = {"good_to_bad": _percent(into), "bad_to_good": _percent(back)}
    elif model.loss:
        said["loss"] = _percent(model.loss)
    if model.duplicate:
        said["duplicate"] = _percent(model.duplicate)
    if model.queue is not None:
        said["queue"] = {"size": f"{model.queue} B"}
    elif model.longest > _LONG:
        said["queue"] = {"size": f"{2 * model.longest} B"}
    return said, files


def _percent(share: float) -> str:
    return (
        f"{np.format_float_positional(100 * share, precision=4, unique=False, fractional=False, trim='-')} %"
    )


def _settings(text: str, files: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Returns the engine's settings of the link, by direction, as any run of the scenario has them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in files.items():
            (folder / file).write_text(content)
        (folder / "path.yaml").write_text(text)
        link = check(folder / "path.yaml").plans[0].links["path"]
        return {"forward": link.forward.engine(), "backward": link.backward.engine()}
