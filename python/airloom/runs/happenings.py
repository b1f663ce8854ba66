"""What happened in a run, for ``details.json``."""

from __future__ import annotations

from airloom.results.details import Happening
from airloom.runs.radio_monitor import RadioWatch
from airloom.runs.runner import Runner


def of_run(runner: Runner, radios: RadioWatch | None) -> tuple[Happening, ...]:
    """Returns in order of time what the runner did and saw, and which stations changed access points."""
    found = [Happening(t_ns=at, what=what, kind=kind) for at, what, kind in runner.happenings]
    roams = radios.changes() if radios is not None else ()
    found += [Happening(t_ns=at, what=what, kind="radio") for at, what in roams]
    return tuple(sorted(found, key=lambda one: one.t_ns))
