"""Compares the media of a running laboratory with those of a changed scenario.

What the engine changes in place is a change of a radio, or of a medium's laws. Other settings of a radio make
that radio anew, alone: it loses what it knew of others, such as its association. What can be neither is
refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from airloom.planning.plan import MediumPlan, Plan, RadioPlan
from airloom.planning.radio import media
from airloom.planning.timed_changes import RadiosThen
from airloom.scenario.problems import Problem

Sign = Literal["+", "-", "~", "!"]

_CHANGES = {"power_dbm": "power", "channel": "channel", "rate": "rate", "rts_octets": "rts-octets"}
"""Settings of a radio that change during a run, and the engine's words for the changes."""
_READ_BACK = ("power_dbm", "channel", "rts_octets")
"""Those of them whose value in the engine is compared, as they may have been changed by hand."""
_OF_THE_STACK = ("channel", "rate", "rts_octets")
"""Those that the node's own 802.11 stack decides."""
_NEAR = 1e-6
"""Distance in metres below which two positions are one."""
_CURE = "end the laboratory, and start it with the new file"


@dataclass(slots=True)
class RadioDifference:
    """Changes of media and radios, and what cannot change."""

    steps: list[tuple[Sign, str, str]] = field(default_factory=list)
    """Each change: sign, what, and how in words."""
    problems: list[Problem] = field(default_factory=list)
    media_set: list[str] = field(default_factory=list)
    """Media that are new, or have other laws."""
    noise_set: list[str] = field(default_factory=list)
    """Media with other sources of noise."""
    frame_errors: list[tuple[str, str, float]] = field(default_factory=list)
    """Sending port, receiving port, frame error rate."""
    removed: list[str] = field(default_factory=list)
    """Ports of radios that go; those that are made anew are in ``added`` too."""
    added: list[tuple[str, RadioPlan]] = field(default_factory=list)
    """Medium, and a radio that it gets."""
    moved: list[RadioPlan] = field(default_factory=list)
    """Radios that get another movement."""
    changes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Port and change, in the engine's encoding."""

    def refuse(self, medium: str, what: str, why: str = "") -> None:
        """Notes something that cannot change."""
        text = f"{what} cannot change while the laboratory runs" + (f": {why}" if why else "")
        self.problems.append(Problem("apply.radio", text, ("media", medium), _CURE))


@dataclass(frozen=True, slots=True)
class Air:
    """What the engine has of media and radios now."""

    now: int = 0
    """Engine time in ns."""
    radios: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By port: the state of a radio (``Engine.radios``)."""
    laws: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Of each medium that it has or had: its settings."""
    off: frozenset[str] = frozenset()
    """Nodes that are not up: their radios are off with them."""


def compare(before: Plan, after: Plan, air: Air) -> RadioDifference:
    """Returns the changes from what is there now to the media of ``after`` as of now."""
    found = RadioDifference()
    then = RadiosThen(before, air.now), RadiosThen(after, air.now)
    for name, medium in before.media.items():
        if name not in after.media:
            if medium.cards:
                found.refuse(name, f"the medium {name}", "its radios share a card")
            found.steps.append(("-", f"medium {name}", ""))
            _gone(found, name, medium.radios)
            found.noise_set += [name] * bool(medium.noise)
    _names(found, before, after)
    for name, medium in after.media.items():
        known = air.laws.get(name)
        if known is not None and _contends(known) != _contends(medium.settings):
            found.refuse(name, f"the channel access of the medium {name}", "give a new medium another name")
        if name in before.media:
            _Medium(found, then, (before.media[name], medium), air).compare()
            continue
        found.media_set.append(name)
        found.steps.append(("+", f"medium {name}", ""))
        for radio in medium.radios:
            _come(found, name, radio)
        found.frame_errors += medium.frame_errors
        found.noise_set += [name] * bool(medium.noise)
    return found


def _names(found: RadioDifference, before: Plan, after: Plan) -> None:
    """Refuses names of networks that another slice has had: the medium keeps them for that one."""
    old, new = (
        {
            (name, ssid): radio.grant.slice
            for name, medium in plan.media.items()
            for radio in medium.radios
            if radio.grant is not None
            for ssid in radio.grant.ssids
        }
        for plan in (before, after)
    )
    for (name, ssid), owner in new.items():
        if old.get((name, ssid), owner) != owner:
            found.refuse(name, f"the slice of the ssid {ssid!r}", f"it stays with {old[name, ssid]!r}")


def _gone(found: RadioDifference, medium: str, radios: tuple[RadioPlan, ...]) -> None:
    for radio in radios:
        if _is_wlan(radio):
            found.refuse(medium, f"the radio {radio.port}", "it is a device of its node's kernel")
        found.removed.append(radio.port)
        found.steps.append(("-", f"radio {radio.port}", ""))


def _come(found: RadioDifference, medium: str, radio: RadioPlan) -> None:
    if _is_wlan(radio):
        found.refuse(medium, f"the radio {radio.port}", "it is a device of its node's kernel")
    found.added.append((medium, radio))
    found.steps.append(("+", f"radio {radio.port}", f"on {medium}"))


def _is_wlan(radio: RadioPlan) -> bool:
    return radio.settings.get("membership") == "wlan"


def _contends(settings: Mapping[str, Any]) -> bool:
    return bool(settings.get("access", "dcf") == "dcf")


class _Medium:
    """A medium that is in both plans."""

    def __init__(
        self,
        found: RadioDifference,
        then: tuple[RadiosThen, RadiosThen],
        pair: tuple[MediumPlan, MediumPlan],
        air: Air,
    ) -> None:
        self._found = found
        self._then = then
        self._before, self._after = pair
        self._air = air
        self._carded = {port for medium in pair for card in medium.cards for port in card.ports}

    def compare(self) -> None:
        """Adds what changes."""
        before, after, name = self._before, self._after, self._after.name
        old, new = ({radio.port: radio for radio in medium.radios} for medium in (before, after))
        if before.cards != after.cards:
            self._found.refuse(name, f"the cards of the medium {name}")
        gone = [port for port in old if port not in new]
        come = [port for port in new if port not in old]
        anew = {port: why for port in new if port in old and (why := self._why_anew(old[port], new[port]))}
        self._laws([*gone, *come, *anew])
        _gone(self._found, name, tuple(old[port] for port in gone))
        for port in (*gone, *come, *anew):
            if port in self._carded:
                self._found.refuse(name, f"the radio {port}", "it shares a card")
        for port, radio in new.items():
            if port in come:
                _come(self._found, name, radio)
            elif port in anew:
                self._anew(radio, anew[port])
            else:
                self._in_place(old[port], radio)
        self._frame_errors({*gone, *come, *anew})

    def _laws(self, others: list[str]) -> None:
        """Compares laws and noise; ``others``: ports of radios that go, come or are made anew."""
        before, after, name = self._before, self._after, self._after.name
        if others and any("matrix" in one.settings.get("loss", ()) for one in (before, after)):
            what = f"the radios of the medium {name}, such as {others[0]},"
            self._found.refuse(name, what, "its table of losses names them in order")
        elif before.settings != after.settings:
            self._found.media_set.append(name)
            keys = before.settings.keys() | after.settings.keys()
            words = sorted(key for key in keys if before.settings.get(key) != after.settings.get(key))
            said = ", ".join(word.replace("_dbm", "").replace("_db", "").replace("_", " ") for word in words)
            self._found.steps.append(("~", f"medium {name}", said))
        if before.noise != after.noise:
            self._found.noise_set.append(name)
            said = f"noise: {len(before.noise)} -> {len(after.noise)} sources"
            self._found.steps.append(("~", f"medium {name}", said))

    def _frame_errors(self, others: set[str]) -> None:
        old = {(a, b): share for a, b, share in self._before.frame_errors if not others & {a, b}}
        new = {(a, b): share for a, b, share in self._after.frame_errors}
        wanted = {pair: new.get(pair, 0.0) for pair in (*old, *new)}
        changed = [(a, b, share) for (a, b), share in wanted.items() if old.get((a, b)) != share]
        self._found.frame_errors += changed
        told = [f"{a} -> {b}" for a, b, _ in changed if not others & {a, b}]
        if told:
            said = f"frame errors of {', '.join(told[:3])}{', ...' if len(told) > 3 else ''}"
            self._found.steps.append(("~", f"medium {self._after.name}", said))

    def _why_anew(self, before: RadioPlan, after: RadioPlan) -> str:
        """Returns which settings do not change in place."""
        said = [
            media.SETTINGS.get(key, key)
            for key in sorted(before.settings.keys() | after.settings.keys())
            if before.settings.get(key) != after.settings.get(key)
            and key not in (*_CHANGES, "slots")
            and not (key == "membership" and _ssid(before, after) is not None)
        ]
        one, other = before.grant, after.grant
        if one is not None and (other is None or (one.slice, one.ssids) != (other.slice, other.ssids)):
            said.append("slice")
        return ", ".join(said)

    def _anew(self, radio: RadioPlan, why: str) -> None:
        if _is_wlan(radio) or any(_is_wlan(one) for one in self._before.radios if one.port == radio.port):
            what = f"{why} of the radio {radio.port}"
            self._found.refuse(self._after.name, what, "it is a device of its node's kernel")
        self._found.removed.append(radio.port)
        self._found.added.append((self._after.name, radio))
        self._found.steps.append(("!", f"radio {radio.port}", f"made anew alone, as {why} changes"))

    def _in_place(self, before: RadioPlan, after: RadioPlan) -> None:
        """Compares a radio that is now as ``before`` and its events made it, or as it was set by hand."""
        port = after.port
        was, wanted = self._then[0].of(before), self._then[1].of(after)
        there = self._air.radios.get(port)
        steps = list(self._grant(was, wanted))
        steps += self._settings(was, wanted, there)
        if self._is_otherwise_on(there, was, wanted):
            steps.append(({"on": wanted.up}, "up" if wanted.up else "down"))
        for change, said in steps:
            self._found.changes.append((port, change))
            self._found.steps.append(("~", f"radio {port}", said))
        self._motion(was, wanted, there)

    def _grant(self, was: RadioPlan, wanted: RadioPlan) -> Iterator[tuple[dict[str, Any], str]]:
        now = self._air.now
        if wanted.grant is not None:
            new = wanted.grant.engine(now)
            old = {} if was.grant is None else was.grant.engine(now)
            words = sorted(key for key in new if old.get(key) != new[key])
            if words:
                said = ", ".join(f"{key.removesuffix('_dbm').replace('_', ' ')}" for key in words)
                yield {"grant": new}, f"grant of {wanted.grant.slice}: {said}"
        if was.settings.get("slots") != wanted.settings.get("slots"):
            yield {"slots": wanted.settings.get("slots")}, "slots"

    def _settings(
        self, was: RadioPlan, wanted: RadioPlan, there: Mapping[str, Any] | None
    ) -> Iterator[tuple[dict[str, Any], str]]:
        for key, word in _CHANGES.items():
            if _is_wlan(wanted) and key in _OF_THE_STACK:
                continue
            old, new = _setting(was, key), _setting(wanted, key)
            if there is not None and key in _READ_BACK:
                old = there["settings"][key]
            if old != new:
                yield {word: new}, f"{word} {old} -> {new}"
        ssid = _ssid(was, wanted)
        if ssid is not None:
            yield {"ssid": ssid}, f"ssid {ssid}"

    def _is_otherwise_on(self, there: Mapping[str, Any] | None, was: RadioPlan, wanted: RadioPlan) -> bool:
        if there is None or wanted.node in self._air.off:
            if wanted.node in self._air.off and was.up != wanted.up:
                self._found.refuse(
                    self._after.name, f"up and down of the radio {wanted.port}", "its node is off"
                )
            return was.up != wanted.up
        # A radio that was turned off for its violations stays off.
        return bool(there["wanted_on"] != wanted.up) and not there["cut"]

    def _motion(self, was: RadioPlan, wanted: RadioPlan, there: Mapping[str, Any] | None) -> None:
        port = wanted.port
        if "static" in wanted.motion:
            place = wanted.motion["static"]
            goal = tuple(float(place.get(axis, 0.0)) for axis in "xyz")
            here = _place(was) if there is None else there["position"]
            moves = "static" not in was.motion
            if moves or here is None or any(abs(a - b) > _NEAR for a, b in zip(here, goal, strict=True)):
                said = _metres(goal) if here is None or moves else f"{_metres(here)} -> {_metres(goal)}"
                self._found.changes.append((port, {"position": place}))
                self._found.steps.append(("~", f"radio {port}", f"position {said}"))
        elif (was.motion, was.mover) != (wanted.motion, wanted.mover):
            self._found.moved.append(wanted)
            self._found.steps.append(("~", f"radio {port}", "movement"))


def _setting(radio: RadioPlan, key: str) -> Any:
    defaults = {"power_dbm": float(media.DEFAULT_POWER), "rts_octets": None}
    return radio.settings.get(key, defaults.get(key))


def _place(radio: RadioPlan) -> tuple[float, float, float] | None:
    if "static" not in radio.motion:
        return None
    x, y, z = (float(radio.motion["static"].get(axis, 0.0)) for axis in "xyz")
    return x, y, z


def _metres(place: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{value:g} m" for value in place) + ")"


def _ssid(before: RadioPlan, after: RadioPlan) -> str | None:
    """Returns the new name of the network of a station or ad-hoc radio, if nothing else of it changes."""
    old, new = before.settings.get("membership"), after.settings.get("membership")
    for kind in ("station", "ad-hoc"):
        if isinstance(old, dict) and isinstance(new, dict) and kind in old and kind in new:
            was, now = dict(old[kind]), dict(new[kind])
            if was.pop("ssid", None) != (name := now.pop("ssid", None)) and was == now:
                return None if name is None else str(name)
    return None
