"""Runs in a reservation: ``airloom.grid.run``, and ``airloom grid run``."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airloom import _engine, rpc
from airloom.errors import HostError, LabError
from airloom.grid import holding
from airloom.grid.client import Client, Login, remembered
from airloom.grid.laboratory import joining
from airloom.grid.window import within_window
from airloom.nodes import doctor
from airloom.runs import batch, notebook
from airloom.runs.batch import RunResult
from airloom.runs.progress import Watcher

if TYPE_CHECKING:
    from airloom.grid.answers import Lent
    from airloom.planning.gate import Experiment
    from airloom.scenario.model import Scenario

Live = Callable[[Callable[[str], None]], AbstractContextManager[Watcher | None]]
"""Serves a live page during a ``with`` block, and tells its URL; yields the page's watcher."""


@dataclass(frozen=True, slots=True)
class HeldRun:
    """An experiment that fits its reservation."""

    experiment: Experiment
    lent: Lent
    """What the reservation may use."""
    login: Login
    laboratory: Path | None
    """Socket of the shared laboratory that it joins."""


def run(
    source: str | Path | Scenario,
    *,
    reservation: str,
    laboratory: str | Path | None = None,
    overrides: Iterable[str] | Mapping[str, Any] = (),
    seed: int | None = None,
    out: str | Path | None = None,
    watcher: Watcher | None = None,
) -> RunResult:
    """Runs a scenario within a reservation of a grid manager, as ``airloom grid run`` does.

    ``reservation`` is its ID, or how it begins. The manager and the token are those of ``airloom grid
    login``, or of ``AIRLOOM_GRID_URL`` and ``AIRLOOM_GRID_TOKEN``. ``laboratory`` is the socket of a
    shared laboratory to join; by default the run has one of its own. Other parameters are those of
    :func:`airloom.run`. The run's radios must fit the grant, its violations of the grant are reported to
    the manager, and it is stopped when the window ends or the reservation is released
    (:class:`RunError`, ``grid.window``). Raises :class:`ScenarioError` for what does not fit and for a
    reservation that is not active, and :class:`HostError` if the manager does not answer; nothing is
    started then.
    """
    held = hold(source, reservation=reservation, laboratory=laboratory, overrides=overrides, seed=seed)
    folder = Path(out) if out is not None else batch.default_folder(held.experiment.scenario.name)
    helped = rpc.is_needed(namespaces=not held.experiment.virtual)
    begin = functools.partial(rpc.call_until_stopped, executed) if helped else executed
    begin(held, folder, watcher or notebook.watcher())
    return RunResult(folder)


def hold(
    source: str | Path | Scenario,
    *,
    reservation: str,
    laboratory: str | Path | None = None,
    overrides: Iterable[str] | Mapping[str, Any] = (),
    seed: int | None = None,
) -> HeldRun:
    """Checks a scenario and its reservation against each other; starts nothing. See :func:`run`."""
    experiment = batch.prepare(source, overrides=overrides, seed=seed)
    login = remembered()
    with Client(login) as client:
        lent = client.grant(client.full_identity(reservation))
        experiment = holding.held(experiment, lent, client.inventory().slots)
    path = None if laboratory is None else Path(laboratory)
    if path is not None:
        joining.check_owner(path)
    return HeldRun(experiment, lent, login, path)


def executed(held: HeldRun, folder: Path, watcher: Watcher) -> None:
    """Executes a run after a test of this machine."""
    doctor.require_for(held.experiment)
    execute(held, folder, watcher)


def execute(held: HeldRun, folder: Path, watcher: Watcher, *, live: Live | None = None) -> None:
    """Executes a run, and reports its violations to the manager. See :func:`run`."""
    experiment, identity = held.experiment, held.lent.id
    engine: Callable[[int], _engine.Engine] = _engine.Engine
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(Client(held.login))
        if held.laboratory is not None:
            seat = stack.enter_context(joining.join(held.laboratory, client.login.token, identity))
            experiment, engine = seat.fitted(experiment), seat.engine
            if not seat.held_apart:
                watcher.problem("no control group holds the runs' processor time apart here")
        if live is not None:
            watcher = stack.enter_context(_told(client, identity, live)) or watcher
        remaining_s = client.grant(identity).remaining_s
        stack.enter_context(_reporting(held, client, folder))
        ended = stack.enter_context(within_window(remaining_s, lambda: _stands(client, identity), watcher))
        # One run at a time, since the window ends the one that is under way.
        batch.execute(experiment, folder, capture=False, resume=False, jobs=1, watcher=ended, engine=engine)


def was_refused(error: LabError) -> bool:
    """Whether a run was refused before it began: what its folder has is of another one."""
    return error.exit_code in (2, 3) or error.code == "results.unwritable"


def _stands(client: Client, identity: str) -> bool:
    """Whether a reservation still stands, as far as the manager says."""
    try:
        client.grant(identity)
    except HostError:
        return True  # the manager is away: the window ends the run
    except LabError as error:
        return error.exit_code == 1
    return True


@contextlib.contextmanager
def _told(client: Client, identity: str, live: Live) -> Iterator[Watcher | None]:
    """Context manager: the live page, whose URL the manager has during the block."""

    def tell(url: str) -> None:
        client.set_live(identity, url)

    try:
        with live(tell) as page:
            yield page
    finally:
        with contextlib.suppress(LabError):
            client.set_live(identity, None)


@contextlib.contextmanager
def _reporting(held: HeldRun, client: Client, folder: Path) -> Iterator[None]:
    """Context manager: reports the violations of a run that ended during the block, in whatever way."""
    refused = False
    try:
        yield
    except LabError as error:
        refused = was_refused(error)
        raise
    finally:
        found = (
            []
            if refused
            else holding.violations(held.experiment, folder, refused=held.laboratory is not None)
        )
        if found:
            with contextlib.suppress(LabError):
                client.record_violations(held.lent.id, found)
