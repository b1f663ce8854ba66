"""A radio of a live laboratory: ``lab.radio("n1")``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airloom.errors import RunError
from airloom.planning.plan import RadioPlan
from airloom.planning.radio import media
from airloom.rpc import Stays
from airloom.runs import radio_control, radio_requests
from airloom.runs.emulation import World
from airloom.scenario.model import Node

if TYPE_CHECKING:
    from airloom._engine import RadioState


class LiveRadio(Stays):
    """A radio of a node."""

    def __init__(self, plan: RadioPlan, world: World) -> None:
        self._plan = plan
        self._world = world

    def __repr__(self) -> str:
        now = self._now()
        state = "up" if now["on"] else "down"
        return f"<radio {self.name}: {now['settings']['phy']}, channel {now['settings']['channel']}, {state}>"

    @property
    def name(self) -> str:
        """``node:interface``."""
        return self._plan.port

    @property
    def is_up(self) -> bool:
        """True if the radio is on."""
        return bool(self._now()["on"])

    def info(self) -> dict[str, Any]:
        """Settings, counters and airtime, as in ``airloom radio info --json``."""
        answer: list[dict[str, Any]] = self._ask("info")
        return answer[0]

    def link(self) -> dict[str, Any]:
        """Access point of a station, as in ``airloom radio link --json``."""
        answer: list[dict[str, Any]] = self._ask("link")
        return answer[0]

    def stations(self) -> list[dict[str, Any]]:
        """Known stations, as in ``airloom radio station --json``."""
        answer: list[dict[str, Any]] = self._ask("station")
        return answer

    def scan(self, *channels: int, passive: bool = False) -> list[dict[str, Any]]:
        """Scans these channels, or all; returns what ``airloom radio scan --json`` prints.

        Waits until the scan ends: 30 ms for each channel, 120 ms if passive.
        """
        request = radio_requests.search(self.name.partition(":")[2], channels, passive)
        scans = radio_control.begin_scans(self._world, self._plan.node, request)
        for scan in scans:
            scan.wait()
        return radio_control.answer_of(self._world, scans) or []

    def set(self, **values: Any) -> None:
        """Changes settings now: ``set(channel=40, power="10 dBm", rate="12 Mbit/s")``.

        Settings outside the grant of a sliver, and those of a wireless device that the node's own
        802.11 stack decides, are refused.
        """
        for key, value in values.items():
            now = self._now()
            radio_control.must_be_free(now, key)
            changes = radio_control.changes_of(key, value, self._plan.settings.get("phy"))
            for change in radio_control.permitted(self._world, now, changes):
                self._world.set_radio(self.name, change)

    def up(self) -> None:
        """Switches the radio on; refused while the slice of the sliver does not have it."""
        for change in radio_control.permitted(self._world, self._now(), [{"on": True}]):
            self._world.set_radio(self.name, change)

    def down(self) -> None:
        """Switches the radio off: waiting frames are dropped as ``radio-off``."""
        self._world.set_radio(self.name, {"on": False})

    def _ask(self, what: Literal["info", "link", "station"]) -> Any:
        request = radio_requests.Show(do=what, radio=self.name.partition(":")[2])
        return radio_control.answer(self._world, self._plan.node, request)

    def _now(self) -> RadioState:
        return next(radio for radio in self._world.radios() if radio["port"] == self.name)


def radios_of(world: World) -> dict[str, LiveRadio]:
    """Returns all radios by ``node:interface``."""
    plans = (radio for medium in world.plan.media.values() for radio in medium.radios)
    return {plan.port: LiveRadio(plan, world) for plan in plans}


def move(world: World, node: str, position: tuple[str, ...]) -> None:
    """Moves a node's radios to a fixed position."""
    ports = [radio.port for one in world.plan.media.values() for radio in one.radios if radio.node == node]
    if not ports:
        raise RunError("position.useless", f"{node} has no radio, so its position has no effect")
    place = Node(position=list(position)).position
    assert place is not None
    for port in ports:
        world.set_radio(port, {"position": media.place(place)})


def positions(world: World) -> dict[str, tuple[float, float, float]]:
    """Returns the position in metres of each node with radios."""
    return {radio["port"].partition(":")[0]: radio["position"] for radio in world.radios()}
