"""Rules of media and radios.

The engine validates the numbers: it checks the same settings that a run would pass, and its error
is reported with the place in the scenario.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from airloom.planning import tables
from airloom.planning.network import Network, Sliver
from airloom.planning.radio import media as words
from airloom.planning.radio.channels import BOTH, HT, number_of
from airloom.planning.radio.radios import RadioEnd
from airloom.planning.rules import access, motion
from airloom.planning.rules.ask import refusal
from airloom.planning.rules.names import interface
from airloom.planning.rules.parameters import takes
from airloom.planning.slices import admission, handover
from airloom.scenario.model import Event, Medium, Noise, Scenario, Tuning
from airloom.scenario.model.media import NARROW
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
    yield from _mixed(network)
    if sound:
        yield from motion.of_traces(network)


def _mixed(network: Network) -> Iterator[Problem]:
    """Yields radios of 802.11n in one network with others that cannot receive their frames.

    A sender of 802.11n uses one rate for all receivers, and none of another layer or half the width
    has it.
    """
    first: dict[tuple[str, str], RadioEnd] = {}
    for end in network.radios:
        if end.access == "none" or end.said.get("device") == "wlan":
            continue
        other = first.setdefault((end.medium, end.said.get("ssid", "")), end)
        phys = [words.phy_of(each.said) for each in (end, other)]
        widths = [each.said.get("width", NARROW) for each in (end, other)]
        if HT in phys and (phys[0] != phys[1] or widths[0] != widths[1]):
            key = "phy" if phys[0] != phys[1] else "width"
            yield Problem(
                "radio.mixed",
                f"{end.port} and {other.port} are in one network, and 802.11n needs the same {key} there",
                end.said_at(key) if key in end.said else other.said_at(key),
                f"give both the same {key}, or each its own ssid",
            )
            return


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
        yield from of_noise(noise, (*path, "noise", index))


def of_noise(noise: Noise, where: Path_) -> Iterator[Problem]:
    """Yields what is wrong with a source of noise."""
    if (noise.channel is None) == (noise.band is None):
        yield Problem(
            "noise.band",
            "the noise has no band" if noise.band is None else "a channel or a band, not both",
            where,
            "exactly one of channel, band",
        )
        return
    if (noise.on is None) != (noise.off is None):
        yield Problem("noise.turns", "'on' and 'off' go together", where, "such as on: 5 ms, off: 5 ms")
    if noise.until is not None and noise.until <= noise.at:
        yield Problem("noise.until", "it would end before it begins", (*where, "until"), "a time after 'at'")
    if noise.position is None and (noise.mobility is None or noise.mobility.model == "velocity"):
        yield Problem(
            "position.missing",
            "the noise has no position",
            where,
            "give it a position: [0 m, 0 m], or a mobility",
        )
        return
    moving = list(motion.of_noise(noise, where))
    yield from moving
    if moving:
        return

    def check(module: Any) -> None:
        engine = module.Engine(1)
        engine.add_medium("air", {})
        engine.add_noise("air", words.noise(noise), words.motion(noise), "noise")

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
_OF_PROPAGATION = {
    "exponent": "exponent",
    "reference_m": "reference",
    "reference_db": "loss",
    "lowest_m": "lowest",
    "storey_m": "storey",
    "range_m": "range",
    "loss_db": "loss",
}
"""The engine's name of a parameter: the scenario's key."""


def _law_path(path: Path_, code: str, message: str) -> Path_:
    if code == "medium.matrix":
        return (*path, "propagation", "file")
    setting, _, parameter = message.split(" ", 1)[0].partition(".")
    if setting in _LAWS:
        return (*path, *_LAWS[setting])
    key = _OF_PROPAGATION.get(parameter)
    return (*path, "propagation") if key is None else (*path, "propagation", key)


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
    if end.node in network.slivers and said.get("width", NARROW) != NARROW:
        yield Problem(
            "radio.width",
            "a grant of a slice names channels of 20 MHz",
            end.said_at("width"),
            "width: 20 MHz",
        )
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
    if own and words.phy_of(said) == BOTH and said.get("channel") is None:
        yield Problem(
            "radio.channel",
            f"the radio {end.port} has both bands, and no channel that decides between them",
            end.said_at("phy"),
            "such as channel: 1, or channel: 36; or device: wlan, whose programs choose the channel",
        )
        return
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
    # A radio that says no rate has one that its physical layer may not have.
    place = "phy" if key == "rate" and key not in end.said else key
    return Problem(code, _told(message), end.said_at(place), _radio_cure(key, code, message))


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
        others = "MCS 0 to MCS 31" if f"{HT} has no rate" in message else "arf, aarf, minstrel"
        return f"{rates}; or {others}" if key == "rate" else rates
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
