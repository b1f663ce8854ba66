"""What the links of a run were told: their settings and whether they are up, now and on schedule."""

from __future__ import annotations

from airloom.planning.links.link_settings import LinkSettings
from airloom.planning.plan import LinkPlan


class LinkStates:
    """Settings and states of links, set or scheduled, each from an engine time in ns on."""

    def __init__(self) -> None:
        self._raised: list[tuple[int, str, bool]] = []
        self._settings: list[tuple[int, str, str, LinkSettings]] = []

    def raised(self, at: int, name: str, up: bool) -> None:
        """Notes that a link comes up or goes down."""
        self._raised.append((at, name, up))

    def changed(self, at: int, name: str, direction: str, settings: LinkSettings) -> None:
        """Notes new settings. ``direction``: forward, backward or both."""
        self._settings.append((at, name, direction, settings))

    def forget(self, name: str) -> None:
        """Forgets a link that is taken out."""
        self._raised = [one for one in self._raised if one[1] != name]
        self._settings = [one for one in self._settings if one[1] != name]

    def withdraw(self, since: int) -> None:
        """Forgets what was scheduled for later than ``since``."""
        self._raised = [one for one in self._raised if one[0] <= since]
        self._settings = [one for one in self._settings if one[0] <= since]

    def is_up(self, name: str, now: int) -> bool:
        """True if a link was not set down. Of several words for one instant the last one holds."""
        wishes = [(at, up) for at, which, up in self._raised if which == name and at <= now]
        return sorted([(0, True), *wishes], key=lambda wish: wish[0])[-1][1]

    def settings(self, plan: LinkPlan, now: int) -> dict[str, LinkSettings]:
        """The settings of a link, by direction (``forward``, ``backward``)."""
        found = {"forward": plan.forward, "backward": plan.backward}
        for at, which, direction, settings in sorted(self._settings, key=lambda change: change[0]):
            if which == plan.name and at <= now:
                found |= dict.fromkeys(found if direction == "both" else (direction,), settings)
        return found
