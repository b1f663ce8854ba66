"""Experiments by name: folders with an ``experiment.py`` that reproduces a published result.

``experiment.py`` has a docstring whose first line is its summary, and a function
``run(folder, *, extent, progress)`` that runs everything and returns the results. The folder also
contains its scenarios and the published numbers as data. Experiments are searched in
``experiments/`` of the working folder, of the source tree, and of the installed package.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from airloom.errors import ScenarioError
from airloom.host.binaries import shipped
from airloom.scenario.suggest import nearest

if TYPE_CHECKING:
    from airloom.experiments.extent import Extent
    from airloom.results import Result

Progress = Callable[[str], None]

_SUMMARY = re.compile(r'(?:#[^\n]*\n|\s)*"""([^"\\\n]+?)(?:"""|\n)')
"""The first line of a docstring at the beginning of a file."""


class Run(Protocol):
    """Signature of ``run`` in an ``experiment.py``."""

    def __call__(self, folder: Path, *, extent: Extent, progress: Progress, **choices: Any) -> Result:
        """Runs as much of the experiment as ``extent`` says.

        If the node kind is selectable, ``kinds`` takes the names of kinds.
        """


@dataclass(frozen=True, slots=True)
class Experiment:
    """An available experiment."""

    name: str
    path: Path

    @property
    def summary(self) -> str:
        """The first line of its documentation, read from the file."""
        text = self.path.read_text(encoding="utf-8")
        found = _SUMMARY.match(text)
        if found is not None:
            return found[1].strip()
        # Another form. To parse all files takes longer than the completion of a name may.
        return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]

    @property
    def shipped(self) -> bool:
        """Whether it is one of Airloom's own, from the source tree or the installed package."""
        return self.path.resolve().is_relative_to(shipped("experiments").resolve())

    def load(self) -> Run:
        """Returns its function ``run``."""
        module_name = f"airloom_experiment_{self.name.replace('-', '_')}"
        run: Run = _load(module_name, self.path).run
        return run

    def choices(self, run: Run, kinds: Sequence[str]) -> dict[str, Any]:
        """Returns the ``kinds`` argument for ``run``; raises an error if it takes none."""
        if not kinds:
            return {}
        if "kinds" not in inspect.signature(run).parameters:
            raise ScenarioError(
                "experiment.kinds", f"{self.name} has no choice of kinds", where="--kind", cure="leave it out"
            )
        # Loading all kinds is needed only if kinds are named.
        from airloom.experiments.usable_kinds import every

        for kind in kinds:
            if kind not in every():
                cure = f"there are: {', '.join(every())}"
                raise ScenarioError(
                    "experiment.kinds", f"there is no kind {kind!r}", where="--kind", cure=cure
                )
        return {"kinds": tuple(dict.fromkeys(kinds))}


def beside(experiment: str, name: str) -> ModuleType:
    """Imports a module from an experiment's folder; ``experiment`` is its ``__file__``."""
    path = Path(experiment).with_name(f"{name}.py")
    module_name = f"airloom_experiment_{path.parent.name.replace('-', '_')}_{name}"
    return _load(module_name, path)


def _load(module_name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ScenarioError("experiment.unreadable", "this file cannot be loaded", where=str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    return module


def folders() -> list[Path]:
    """Returns the search path of experiments; the first folder with a name has priority."""
    return [Path.cwd() / "experiments", shipped("experiments")]


def discover() -> dict[str, Experiment]:
    """Returns all experiments by name."""
    found: dict[str, Experiment] = {}
    for folder in folders():
        for path in sorted(folder.glob("*/experiment.py")):
            name = path.parent.name
            found.setdefault(name, Experiment(name, path))
    return dict(sorted(found.items()))


def find(name: str) -> Experiment:
    """Returns the experiment of that name."""
    known = discover()
    if name not in known:
        raise ScenarioError(
            "experiment.unknown",
            f"there is no experiment {name}",
            cure=nearest(name, known),
        )
    return known[name]
