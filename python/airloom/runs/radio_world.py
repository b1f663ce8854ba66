"""What the control of radios needs of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from airloom._engine import RadioState, ScanState
    from airloom.nodes.kind import NodeHandle
    from airloom.planning.plan import Plan
    from airloom.runs.refusals import Refusals


class RadioWorld(Protocol):
    """The radios of a run, and the nodes in which they are; :class:`~airloom.runs.emulation.World`."""

    plan: Plan
    nodes: Mapping[str, NodeHandle]
    refusals: Refusals
    """Refused attempts to change radios are recorded there."""

    def now(self) -> int:
        """Engine time in nanoseconds."""

    def pass_time(self, span: int) -> None:
        """Waits for ``span`` ns of the run."""

    def radios(self) -> list[RadioState]:
        """The current state of all radios."""

    def scanned(self, port: str) -> ScanState:
        """Results of a radio's last scan."""

    def set_radio(self, port: str, change: dict[str, Any]) -> None:
        """Changes a radio now; ``change`` uses the engine's keys."""
