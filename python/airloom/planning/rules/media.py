"""Rules of media and radios.

The engine validates the numbers: it checks the same settings that a run would pass, and its error
is reported with the place in the scenario.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from airloom.planning import admission, handover, tables
from airloom.planning import media as words
from airloom.planning.admission import Sliver
from airloom.planning.channels import number_of
from airloom.planning.network import Network
from airloom.planning.radios import RadioEnd
from airloom.planning.rules import access, motion
from airloom.planning.rules.ask import refusal
from airloom.planning.rules.names import interface
from airloom.planning.rules.parameters import takes
from airloom.scenario.model import Event, Medium, Scenario, Tuning
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.scenario.suggest import nearest
from airloom.units.quantities import Frequency, Rate

_PROPAGATION: dict[str, tuple[str, ...]] = {
    "friis": (),
    "log-distance": ("exponent", "reference", "loss"),
    "two-ray": ("lowest",),
    "itu-indoor": ("building", "storey"),
    "cost231": ("city",),
    "matrix": ("file", "numbers", "power", "noise"),
    "disk": ("range", "loss"),
}
_NEEDED: dict[str, tuple[str, ...]] = {"matrix": ("file",), "disk": ("range",)}
_ACCESS: dict[str, tuple[str, ...]] = {"dcf": (), "none": ("loss", "overhead")}
_FADING: dict[str, tuple[str, ...]] = {"rayleigh": (), "rician": ("k",), "nakagami": ("m",)}
_ERRORS: dict[str, tuple[str, ...]] = {"standard": (), "table": ("file",), "fixed": ("bit_error",)}
_MAC = "02:00:00:00:00:01"


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that is wrong with media and radios."""
    sound = True
    for found in motion.problems(scenario, network):
        sound = False
        yield found
    for name, medium in scenario.media.items():
        yield from _medium(name, medium, network)
    said: set[tuple[str, Path_]] = set()
    for end in network.radios:
        for problem in (*interface(end.name, end.path, key=True), *_radio(end, network, scenario.kind)):
            # A setting shared by many radios is reported once.
            if (problem.code, problem.path) not in said:
                said.add((problem.code, problem.path))
                yield problem
    if sound:
        yield from motion.of_traces(network)


def _medium(name: str, medium: Medium, network: Network) -> Iterator[Problem]:
    path: Path_ = ("media", name)
    ends = [end for end in network.radios if end.medium == name]
    wrong = list(takes(medium.access, _ACCESS, {"none": ("loss",)}, (*path, "access")))
    wrong += access.of_medium(medium, path)
    wrong += takes(medium.propagation, _PROPAGATION, _NEEDED, (*path, "propagation"))
    if medium.fading is not None:
        wrong += takes(medium.fading, _FADING, {}, (*path, "fading"))
    wrong += takes(medium.errors, _ERRORS, {"table": ("file",)}, (*path, "errors"))
    if not wrong and medium.errors.file is not None:
        try:
            tables.frame_errors(medium.errors.file)
        except tables.TableError as error:
            wrong.append(Problem(error.code, error.message, (*path, "errors", "file"), error.cure))
    matrix = medium.propagation.file
    unreadable = None if wrong or matrix is None else refusal(lambda _: tables.text(matrix))
    if unreadable is not None:
        wrong.append(Problem(*unreadable, (*path, "propagation", "file")))
    yield from wrong
    if not wrong:
        settings = words.medium(medium, [end.node for end in ends])
        found = refusal(lambda engine: engine.check_medium(name, settings))
        if found is not None:
            yield Problem(found[0], found[1], _law_path(path, *found), _law_cure(found[0], ends))
    known = {end.node for end in ends} | {end.port for end in ends}
    for index, pair in enumerate(medium.frame_errors):
        for key, end in (("from", pair.source), ("to", pair.to)):
            if end not in known:
                yield Problem(
                    "radio.unknown",
                    f"{end!r} has no radio on the medium {name!r}",
                    (*path, "frame_errors", index, key),
                    nearest(end, sorted(known)),
                )
    for index, noise in enumerate(medium.noise):
        where = (*path, "noise", index)
        if (noise.channel is None) == (noise.band is None):
            yield Problem(
                "noise.band",
                "the noise has no band" if noise.band is None else "a channel or a band, not both",
                where,
                "exactly one of channel, band",
            )
            continue
        if (noise.on is None) != (noise.off is None):
            yield Problem("noise.turns", "'on' and 'off' go together", where, "such as on: 5 ms, off: 5 ms")
        if noise.until is not None and noise.until <= noise.at:
            yield Problem(
                "noise.until", "it would end before it begins", (*where, "until"), "a time after 'at'"
            )
        if noise.position is None and (noise.mobility is None or noise.mobility.model == "velocity"):
            yield Problem(
                "position.missing",
                "the noise has no position",
                where,
                "give it a position: [0 m, 0 m], or a mobility",
            )
            continue
        moving = list(motion.of_noise(noise, where))
        yield from moving
        if moving:
            continue
        settings, moves = words.noise(noise), words.motion(noise)

        def check(module: Any, settings: dict[str, Any] = settings, moves: dict[str, Any] = moves) -> None:
            engine = module.Engine(1)
            engine.add_medium("air", {})
            engine.add_noise("air", settings, moves, "noise")

        found = refusal(check)
        if found is not None:
            yield Problem(found[0], found[1], where)


_LAWS = {
    "access": ("access",),
    "shadowing": ("shadowing",),
    "walls": ("walls",),
    "fading": ("fading",),
    "errors": ("errors",),
    "floor_dbm": ("floor",),
    "leakage": ("leakage",),
    "antenna_isolation_db": ("antenna_isolation",),
}


def _law_path(path: Path_, code: str, message: str) -> Path_:
    if code == "medium.matrix":
        return (*path, "propagation", "file")
    setting = message.split(" ", 1)[0].split(".", 1)[0]
    return (*path, *_LAWS.get(setting, ("propagation",)))


def _law_cure(code: str, ends: list[RadioEnd]) -> str | None:
    return (
        f"a row and a column for each of: {', '.join(end.node for end in ends[:12])}"
        if code == "medium.matrix"
        else None
    )


def _radio(end: RadioEnd, network: Network, kind: str) -> Iterator[Problem]:
    node = network.nodes[end.node]
    said = end.said
    if (node.kind or kind) == "native":
        yield Problem(
            "radio.native", "a native node has no radio of the laboratory", end.path, "make it of kind netns"
        )
    if node.position is None and (node.mobility is None or node.mobility.model == "velocity"):
        yield Problem(
            "position.missing",
            f"the radio {end.port} has no position",
            end.path,
            "give the node a position: [0 m, 0 m], or a mobility; or the topology a spacing",
        )
    if end.access == "none":
        wrong = list(access.of_radio(end, network))
        yield from wrong
        return (yield from () if wrong else _accepted(end))
    if said.get("device") == "wlan":
        yield from _wireless_device(end)
    if said.get("preamble") is not None and said.get("phy", "802.11a") != "802.11b":
        yield Problem(
            "radio.preamble", "only 802.11b has two preambles", end.said_at("preamble"), "leave it out"
        )
    for key in ("scan", "probe", "leave"):
        if key in said and said.get("mode") != "station":
            yield Problem("radio.mode", f"{key!r} is for mode: station", end.said_at(key), key=True)
    own = said.get("device") != "wlan"
    if own and said.get("monitor"):
        yield Problem(
            "radio.monitor",
            "an Ethernet interface has no monitor mode",
            end.said_at("monitor"),
            "add device: wlan; or leave it out, and capture the channel with --capture",
            key=True,
        )
    if own and said.get("mode") in ("ap", "station") and not said.get("ssid"):
        yield Problem(
            "radio.ssid", f"mode: {said['mode']} needs an ssid", end.said_at("mode"), "such as ssid: lab"
        )
        return
    if "rts" in said and said["rts"] != "never" and said["rts"] > 65535:
        yield Problem("radio.range", "no frame is that long", end.said_at("rts"), "never, or up to 2346 B")
    yield from _channel(said.get("channel"), words.phy_of(said), end.said_at("channel"))
    yield from _accepted(end)


def _accepted(end: RadioEnd) -> Iterator[Problem]:
    """Asks the engine about the settings of a radio."""
    settings = words.radio(end, _MAC)
    found = refusal(lambda engine: engine.check_radio(end.port, settings))
    if found is not None:
        yield _objection(end, *found)


def _wireless_device(end: RadioEnd) -> Iterator[Problem]:
    """Checks a radio that is a wireless device of its node's kernel."""
    layer = end.said_at("device")[:-1]
    for key in words.OF_THE_STACK:
        # A medium's radio may set them for the other radios.
        if key in end.said and end.said_at(key)[:-1] == layer:
            yield _of_the_stack(key, end.said_at(key))


def _of_the_stack(key: str, path: Path_) -> Problem:
    """Returns the problem with a setting of a wireless device that the programs of the node decide."""
    return Problem(
        "radio.device",
        f"the node's own 802.11 stack decides {key!r}",
        path,
        "leave it out, and use iw, hostapd or wpa_supplicant in the node",
        key=True,
    )


def _objection(end: RadioEnd, code: str, message: str) -> Problem:
    """Returns the engine's error on a radio's settings, at the place of the setting."""
    key = _key(end.said, code, message)
    return Problem(code, _told(message), end.said_at(key), _radio_cure(key, code, message))


def _channel(channel: Any, phy: str, path: Path_) -> Iterator[Problem]:
    if isinstance(channel, Frequency) and number_of(channel, phy) == 0:
        yield Problem(
            "radio.channel",
            f"{phy} has no channel at {channel.text}",
            path,
            "such as channel: 36, or 5.18 GHz",
        )


def _key(said: dict[str, Any], code: str, message: str) -> str:
    """Returns the scenario's key for a setting in an engine's error."""
    if code == "radio.rate":
        wrong = re.search(r"no rate of (\d+)", message)
        rate = int(wrong[1]) if wrong else 0
        if rate != said.get("rate"):
            return "basic_rates" if rate in said.get("basic_rates", ()) else "control_rate"
    if code == "radio.channel" and (wrong := re.search(r"no channel (\d+)", message)):
        phy, number = words.phy_of(said), int(wrong[1])
        if number in [number_of(channel, phy) for channel in said.get("scan", ())]:
            return "scan"
    if code == "radio.range":
        found = re.search(r": ([a-z0-9_ ]+) = ", message)
        return words.SETTINGS.get(found[1], found[1]) if found else ""
    return {"radio.phy": "phy", "radio.channel": "channel", "radio.rate": "rate"}.get(code, "")


def _told(message: str) -> str:
    """Returns the engine's message without the radio's name, and with units."""
    text = message.split(": ", 1)[-1].split(";")[0]
    text = re.sub(r"^[a-z0-9_ ]+ = ", "", text)
    return re.sub(r"(\d+) bit/s", lambda found: Rate(int(found[1])).text, text)


def _radio_cure(key: str, code: str, message: str) -> str | None:
    rest = message.partition("; ")[2]
    if code == "radio.rate":
        rates = ", ".join(Rate(int(each)).text for each in re.findall(r"\d{6,}", rest))
        return f"{rates}; or arf, aarf, minstrel" if key == "rate" else rates
    return rest or None


def radio_named(name: str, network: Network) -> RadioEnd | None:
    """Returns the radio ``node:radio``, or the only one of a node; None if there is none."""
    found = [end for end in network.radios if name in (end.port, end.node)]
    return found[0] if len(found) == 1 else None


def of_event(event: Event, path: Path_, scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields what is wrong with an event that changes a radio or a position."""
    moved = event.node if event.position is not None else None
    if moved is not None and not any(end.node == moved for end in network.radios):
        yield Problem(
            "position.useless",
            f"{moved!r} has no radio, so its position has no effect",
            (*path, "position"),
            key=True,
        )
    if event.radio is None:
        return
    end = radio_named(event.radio, network)
    if end is None:
        names = [each.port for each in network.radios]
        several = any(each.node == event.radio for each in network.radios)
        yield Problem(
            "radio.unknown",
            f"{event.radio!r} has several radios" if several else f"there is no radio {event.radio!r}",
            (*path, "radio"),
            nearest(event.radio, names),
        )
    elif event.tune is not None:
        sliver = network.slivers.get(end.node)
        if sliver is not None:
            sliver = handover.sliver_at(scenario, sliver, event.at, words.phy_of(end.said))
        yield from tuning(event.tune, end, (*path, "tune"), sliver)
        if sliver is not None and event.tune.ssid is not None:
            yield from _taken(event.tune.ssid, sliver, network, (*path, "tune"))


def _taken(ssid: str, sliver: Sliver, network: Network, path: Path_) -> Iterator[Problem]:
    """Yields a problem if another slice has this SSID."""
    for other in network.radios:
        whose = network.slivers.get(other.node)
        if whose is not None and whose.slice != sliver.slice and other.said.get("ssid") == ssid:
            renamed = RadioEnd(sliver.name, sliver.radio, other.medium, path, {"ssid": ssid})
            renamed.origin["ssid"] = (*path, "ssid")
            yield from admission.taken(renamed, whose.slice, sliver.slice, set())
            return


def tuning(change: Tuning, end: RadioEnd, path: Path_, sliver: Sliver | None) -> Iterator[Problem]:
    """Yields what is wrong with a change of a radio, which may be a sliver's."""
    if not any(getattr(change, key) is not None for key in change.model_fields_set):
        yield Problem("event.action", "'tune' names no property", path, "such as tune: {channel: 40}")
    if end.said.get("device") == "wlan":
        for key in words.TUNED_BY_THE_STACK:
            if getattr(change, key) is not None:
                yield _of_the_stack(key, (*path, key))
    elif change.ssid is not None and end.said.get("mode") == "ap":
        yield Problem("radio.mode", "an access point keeps its ssid", (*path, "ssid"), "leave it out")
    after = RadioEnd(end.node, end.name, end.medium, path, dict(end.said), access=end.access)
    if end.access == "none":
        wrong = list(access.of_change(change, path))
        if wrong:
            return (yield from wrong)
    else:
        yield from _channel(change.channel, words.phy_of(end.said), (*path, "channel"))
    for key in change.model_fields_set:
        if getattr(change, key) is not None:
            after.said[key] = getattr(change, key)
            after.origin[key] = (*path, key)
    settings = words.radio(after, _MAC)
    found = refusal(lambda engine: engine.check_radio(end.port, settings))
    if found is not None:
        yield _objection(after, *found)
    elif sliver is not None:
        yield from admission.outside(after, sliver, set())
