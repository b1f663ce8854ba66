"""Opens a run of ``airloom run`` to other terminals, which can capture its frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from airloom.errors import RunError
from airloom.lab.capturing import CapturedRun
from airloom.lab.server import LiveServer
from airloom.runs.progress import Passing, Watcher

if TYPE_CHECKING:
    from airloom.lab.server import Program
    from airloom.runs.single import OneRun


class OpenRun(Passing):
    """Opens each run that is up, one after the other, and passes all events on."""

    def __init__(self, then: Watcher) -> None:
        super().__init__(then)
        self._server: LiveServer | None = None

    def up(self, run: OneRun) -> None:
        """Opens the run."""
        name = run.plan.scenario.name
        self._server = LiveServer(name, _Run(run), CapturedRun(run), what="run")
        super().up(run)

    def down(self) -> None:
        """Closes it."""
        if self._server is not None:
            self._server.close()
            self._server = None
        super().down()


class _Run:
    """A run, as the server of other terminals needs it: nobody changes it by hand."""

    def __init__(self, run: OneRun) -> None:
        self._run = run

    def info(self) -> dict[str, Any]:
        plan = self._run.plan
        folder = str(self._run.writer.folder)
        return {"scenario": plan.scenario.name, "nodes": list(plan.nodes), "folder": folder}

    def control(self, node: str, action: str) -> None:
        self._refuse()

    def apply(
        self, source: Path, *, overrides: Sequence[str], seed: int | None, dry_run: bool
    ) -> Sequence[object]:
        self._refuse()

    def described_links(self) -> list[dict[str, Any]]:
        self._refuse()

    def ledger(self) -> Mapping[str, Any]:
        self._refuse()

    def change_link(self, link: str, direction: str, properties: Mapping[str, Any], up: bool | None) -> None:
        self._refuse()

    def admit(
        self, node: str, argv: Sequence[str], env: Mapping[str, str], descriptors: Sequence[int], tty: bool
    ) -> Program:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise RunError(
            "live.run",
            f"{self._run.plan.scenario.name} is a run, which is not changed by hand",
            cure="use it with `airloom up`",
        )
