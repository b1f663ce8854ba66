"""Encodes media, radios and motions for the engine (``medium/laws.rs`` and ``settings.rs``)."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import Any, Protocol

from airloom.planning import tables
from airloom.planning.network import Network
from airloom.planning.radio.channels import default_number, mhz_of, number_of
from airloom.planning.radio.movement import Track, movements
from airloom.planning.radio.radios import RadioEnd
from airloom.scenario.model import (
    Card,
    Errors,
    Fading,
    Medium,
    Mobility,
    Noise,
    Propagation,
    Radio,
    Slots,
    Tuning,
)
from airloom.scenario.model.media import SCHEME
from airloom.scenario.model.motion import TRACES
from airloom.units.given import given
from airloom.units.quantities import Angle, Length, Power, Ratio, Speed

DEFAULT_POWER = Power("16 dBm")
"""Default transmit power, as in the engine."""
_NOISE_FIGURE = Ratio("7 dB")
_DSSS_BAND, _OFDM_BAND = 22e6, 20e6
_BOLTZMANN, _KELVIN = 1.380649e-23, 290.0


def place(position: tuple[Length, ...]) -> dict[str, float]:
    """Returns a position or a velocity along three axes."""
    return {axis: float(value) for axis, value in zip("xyz", position, strict=False)}


def rate(value: Any) -> Any:
    """Returns a fixed rate or a rate control algorithm."""
    if isinstance(value, str) and value.startswith(SCHEME):
        return {"mcs": int(value.removeprefix(SCHEME))}
    return value if isinstance(value, str) else {"constant": int(value)}


def medium(settings: Medium, names: list[str]) -> dict[str, Any]:
    """Returns a medium's settings; ``names``: nodes of its radios, in the order they are added."""
    if settings.access.model == "none":
        points = [[float(point.distance), float(point.rate)] for point in settings.access.loss or ()]
        return {"access": {"none": {"loss": points, "overhead_octets": int(settings.access.overhead or 0)}}}
    found: dict[str, Any] = {
        "loss": _loss(settings.propagation, names, settings.radio),
        "walls": [
            {
                "from": [float(value) for value in wall.source[:2]],
                "to": [float(value) for value in wall.to[:2]],
                "loss_db": float(wall.loss),
            }
            for wall in settings.walls
        ],
        "floor_dbm": float(settings.floor),
        "fading": _fading(settings.fading),
        "errors": _errors(settings.errors),
    }
    if settings.leakage is not None:
        found["leakage"] = {
            "adjacent_db": float(settings.leakage.adjacent),
            "alternate_db": float(settings.leakage.alternate),
        }
    if settings.antenna_isolation is not None:
        found["antenna_isolation_db"] = float(settings.antenna_isolation)
    if settings.shadowing is not None:
        found["shadowing"] = {
            "sigma_db": float(settings.shadowing.sigma),
            "decorrelation_m": float(settings.shadowing.decorrelation),
        }
    return found


def _loss(law: Propagation, names: list[str], radio: Radio) -> Any:
    match law.model:
        case "friis":
            return "free-space"
        case "log-distance":
            return {
                "log-distance": {
                    "exponent": given(law.exponent, 3.0),
                    "reference_m": float(given(law.reference, Length(1))),
                    "reference_db": None if law.loss is None else float(law.loss),
                }
            }
        case "two-ray":
            return {"two-ray": {"lowest_m": float(given(law.lowest, Length(1.5)))}}
        case "itu-indoor":
            storey = float(given(law.storey, Length(3)))
            return {"itu-indoor": {"building": given(law.building, "office"), "storey_m": storey}}
        case "cost231":
            return {"cost231": {"city": given(law.city, "medium")}}
        case "disk":
            loss, reach = given(law.loss, Ratio("60 dB")), given(law.range, Length(0))
            return {"disk": {"range_m": float(reach), "loss_db": float(loss)}}
        case _:
            kind: Any = "loss"
            if law.numbers == "snr":
                power = given(law.power, given(radio.power, DEFAULT_POWER))
                noise = receiver_noise(radio) if law.noise is None else float(law.noise)
                kind = {"ratio": {"power_dbm": float(power), "noise_dbm": noise}}
            text = tables.text(law.file or "")
            return {"matrix": {"text": text, "kind": kind, "radios": names}}


def receiver_noise(radio: Radio) -> float:
    """Returns the noise of a receiver in dBm: thermal noise at 290 K in the band of its physical layer,
    and the noise figure.
    """
    figure = float(given(radio.noise_figure, _NOISE_FIGURE))
    return 10 * log10(_BOLTZMANN * _KELVIN * band_hz(radio) * 1e3) + figure


def band_hz(radio: Radio) -> float:
    """Returns the width of a receiver's band in Hz, as in the engine (``medium/phy``)."""
    if radio.width is not None:
        return float(radio.width)
    return _DSSS_BAND if radio.phy == "802.11b" else _OFDM_BAND


def _fading(fading: Fading | None) -> Any:
    if fading is None:
        return "none"
    match fading.model:
        case "rician":
            return {"rician": {"k_db": float(given(fading.k, Ratio("6 dB")))}}
        case "nakagami":
            return {"nakagami": {"m": given(fading.m, 1.5)}}
        case _:
            return "rayleigh"


def _errors(errors: Errors) -> Any:
    match errors.model:
        case "fixed":
            return {"fixed": {"bit_error": given(errors.bit_error, 0.0)}}
        case "table":
            return {"table": tables.frame_errors(errors.file or "")}
        case _:
            return "standard"


def card(settings: Card) -> dict[str, Any]:
    """Returns the settings of a card."""
    return {
        "virtual_macs": settings.virtual_macs,
        "dwell_ns": int(settings.dwell),
        "switch_ns": int(settings.switch),
        "power_save": settings.power_save,
        "scan_age_ns": int(settings.scan_age),
        "merge_scans": settings.merge_scans,
    }


def cards(name: str, settings: Medium, ends: list[RadioEnd]) -> dict[str, list[RadioEnd]]:
    """Returns the radios of each card of the medium ``name``."""
    found: dict[str, list[RadioEnd]] = {card: [] for card in settings.cards}
    for end in ends:
        if end.medium == name and end.said.get("card") in found:
            found[end.said["card"]].append(end)
    return found


def noise(settings: Noise) -> dict[str, Any]:
    """Returns the settings of a noise source."""
    if settings.channel is not None:
        middle = mhz_of(settings.channel) * 1_000_000
        band = [middle - 10_000_000, middle + 10_000_000]
    else:
        assert settings.band is not None
        band = [int(settings.band[0]), int(settings.band[1])]
    found: dict[str, Any] = {
        "power_dbm": float(settings.power),
        "band_hz": [float(edge) for edge in band],
        "from_ns": int(settings.at),
        "until_ns": None if settings.until is None else int(settings.until),
        "burst_ns": None,
    }
    if settings.on is not None and settings.off is not None:
        found["burst_ns"] = [int(settings.on), int(settings.off)]
    return found


def phy_of(said: dict[str, Any]) -> str:
    """Returns the engine's name of the physical layer."""
    phy: str = said.get("phy", "802.11a")
    return "802.11b-short" if phy == "802.11b" and said.get("preamble") == "short" else phy


def slots(frame: Slots, own: Sequence[int], *, hold: bool = True) -> dict[str, Any]:
    """Returns the slots of a radio: the frame, which of its slots are the radio's own, and whether it
    waits for them.
    """
    return {
        "frame": frame.frame,
        "length_ns": int(frame.length),
        "guard_ns": int(frame.guard),
        "own": sorted(set(own)),
        "hold": hold,
    }


def radio(end: RadioEnd, mac: str, *, bridged: bool = False) -> dict[str, Any]:
    """Returns a radio's settings; the engine's defaults apply to omitted ones.

    ``bridged``: its node bridges it to a wire.
    """
    said = end.said
    address = [int(octet, 16) for octet in mac.split(":")]
    if end.access == "none":
        queue = {"tail_drop": said["queue"]} if "queue" in said else {}
        return {"mac": address, "rate": {"unmodulated": int(said.get("rate", 0))}, **queue}
    phy = phy_of(said)
    found: dict[str, Any] = {
        "mac": address,
        "phy": phy,
        "channel": number_of(said.get("channel", default_number(phy)), phy),
        "rate": rate(said.get("rate", "minstrel")),
        "membership": _membership(said, phy),
        **({"bridged": True} if bridged else {}),
    }
    for key, name in _DECIBELS.items():
        if key in said:
            found[name] = None if said[key] == "none" else float(said[key])
    for key, name in _PLAIN.items():
        if key in said:
            found[name] = said[key]
    for key, name in (("rts", "rts_octets"), ("fragment", "fragment_octets")):
        if key in said:
            found[name] = None if said[key] == "never" else int(said[key])
    for key in ("slots", "hops", "code"):
        if key in said:
            found[key] = said[key]
    if "width" in said:
        found["width_mhz"] = int(said["width"]) // 1_000_000
    if "guard_interval" in said:
        found["guard_interval_ns"] = int(said["guard_interval"])
    if "capture_window" in said:
        window = said["capture_window"]
        found["capture_ns"] = None if window == "none" else int(window)
    if "basic_rates" in said:
        found["basic_rates"] = [int(each) for each in said["basic_rates"]]
    if "control_rate" in said:
        found["control_rate"] = int(said["control_rate"])
    return found


_DECIBELS = {
    "power": "power_dbm",
    "gain": "gain_dbi",
    "noise_figure": "noise_figure_db",
    "carrier_sense": "carrier_sense_dbm",
    "receive": "receive_dbm",
    "detect": "preamble_db",
    "capture": "capture_db",
}
_PLAIN = {
    "short_retries": "short_retries",
    "long_retries": "long_retries",
    "buffers": "transmit_buffers",
    "queue": "tail_drop",
    "qos": "qos",
    "aggregation": "aggregation",
    "streams": "streams",
    "coverage_class": "coverage_class",
    "monitor": "monitor",
}
SETTINGS = {
    "phy": "phy",
    "width_mhz": "width",
    "guard_interval_ns": "guard_interval",
    **{name: key for key, name in (*_DECIBELS.items(), *_PLAIN.items())},
    "rts_octets": "rts",
    "fragment_octets": "fragment",
    "capture_ns": "capture_window",
    "leave_dbm": "leave",
    "rate": "rate",
    "ssid length": "ssid",
}
"""The engine's name of a setting: the scenario's key."""

WITHOUT_ACCESS = ("medium", "rate", "queue", "up")
"""Keys of a radio that have a meaning on a medium without channel access."""

OF_THE_STACK = (
    "mode",
    "rate",
    "rts",
    "fragment",
    "aggregation",
    "streams",
    "control_rate",
    "basic_rates",
    "short_retries",
    "long_retries",
    "scan",
    "probe",
    "leave",
    "bridge",
)
"""Keys that a node's own 802.11 stack decides, if the radio is a wireless device. ``ssid`` is not
among them: it says with which radios a radio forms a subnet."""

TUNED_BY_THE_STACK = tuple(key for key in Tuning.KEYS if key != "power")
"""Settings that can change during the run, but not from outside of such a node."""

BEACON = 102_400_000
"""Beacon interval in nanoseconds: 100 TU of 1024 us."""
ACTIVE = 30_000_000
"""Active scan: nanoseconds on each channel after a probe request."""
PASSIVE = 120_000_000
"""Passive scan: nanoseconds on each channel."""


def _membership(said: dict[str, Any], phy: str) -> Any:
    if said.get("device") == "wlan":
        return "wlan"
    match said.get("mode", "ad-hoc"):
        case "ap":
            return {"access-point": {"ssid": said.get("ssid", ""), "beacon_ns": BEACON}}
        case "station":
            station: dict[str, Any] = {"ssid": said.get("ssid", "")}
            if "scan" in said:
                station["channels"] = [number_of(channel, phy) for channel in said["scan"]]
            if said.get("probe"):
                station |= {"active": True, "dwell_ns": ACTIVE}
            if "leave" in said:
                station["leave_dbm"] = float(said["leave"])
            return {"station": station}
        case _:
            return {"ad-hoc": {"ssid": said.get("ssid", ""), "beacon_ns": BEACON}}


def tuning(change: Tuning, phy: str | None) -> list[dict[str, Any]]:
    """Returns a change of a radio as a list of the engine's changes.

    ``phy``: its physical layer; None if its medium has no channel access.
    """
    found: list[dict[str, Any]] = []
    if change.channel is not None:
        found.append({"channel": number_of(change.channel, phy or "802.11a")})
    if change.power is not None:
        found.append({"power": float(change.power)})
    if change.rate is not None:
        found.append({"rate": {"unmodulated": int(change.rate)} if phy is None else rate(change.rate)})
    if change.rts is not None:
        found.append({"rts-octets": None if change.rts == "never" else int(change.rts)})
    if change.ssid is not None:
        found.append({"ssid": change.ssid})
    return found


def traced(network: Network) -> dict[str, int | str]:
    """Returns the number or name in the trace of each node that has one, counted in scenario order for
    every file."""
    following: dict[str | None, int] = {}
    numbers: dict[str, int | str] = {}
    found: dict[str, int | str] = {}
    for name, node in network.nodes.items():
        motion = node.mobility
        if motion is None or motion.model not in TRACES:
            continue
        mover = network.mover(name)
        if mover not in numbers:
            number = following.get(motion.file, 0) if motion.node is None else motion.node
            numbers[mover] = number
            if isinstance(number, int):
                following[motion.file] = number + 1
        found[name] = numbers[mover]
    return found


class Moving(Protocol):
    """A node or a noise source: has a position and may move."""

    @property
    def position(self) -> tuple[Length, ...] | None:
        """The position, or the start of a motion."""

    @property
    def mobility(self) -> Mobility | None:
        """The motion; None if it does not move."""


def notes_of_traces(network: Network) -> list[str]:
    """Returns what was found out about the files of movements, each once."""
    moving = [network.nodes[name].mobility for name in traced(network)]
    return list(dict.fromkeys(note for one in moving if one is not None for note in movements(one).notes))


def track(moves: Mobility, number: int | str | None) -> Track:
    """Returns the track of a movement that has a trace; ``number``: default place in the trace."""
    key = (0 if moves.node is None else moves.node) if number is None else number
    return movements(moves).get(key) or Track([])


def motion(one: Moving, number: int | str | None = None) -> dict[str, Any]:
    """Returns the encoded motion; ``number``: default index in a trace."""
    moves = one.mobility
    if moves is None or moves.model == "velocity":
        start = place(one.position or ())
        if moves is None:
            return {"static": start}
        return {"velocity": {"start": start, "velocity": place(moves.velocity or ())}}  # type: ignore[arg-type]
    if moves.model in TRACES:
        points = track(moves, number).points
        return {"path": [[at, {"x": x, "y": y, "z": z}] for at, x, y, z in points]}
    return _moves(moves)


def _two(value: Any) -> list[float]:
    return [float(each) for each in value] if isinstance(value, tuple) else [float(value), float(value)]


def _moves(moves: Mobility) -> dict[str, Any]:
    if moves.model == "path":
        return {"path": [[int(point.at), place(point.position)] for point in moves.points or ()]}
    if moves.model == "group":
        assert moves.reference is not None
        return {
            "group": {
                "name": moves.group or "group",
                "reference": _moves(moves.reference),
                "radius_m": float(moves.radius or 0.0),
                "speed": _two(given(moves.speed, Speed("1 m/s")))[1],
            }
        }
    width, depth = given(moves.area, (Length(0), Length(0)))
    area = {"corner": place(moves.corner or ()), "width": float(width), "height": float(depth)}
    interval = (1_000_000_000 if moves.interval is None else int(moves.interval)) / 1e9
    speed = _two(given(moves.speed, Speed(0)))
    match moves.model:
        case "random-waypoint":
            pause = moves.pause if isinstance(moves.pause, tuple) else (moves.pause or 0, moves.pause or 0)
            rest = [int(each) / 1e9 for each in pause]
            return {"random-waypoint": {"area": area, "speed": speed, "rest_s": rest}}
        case "random-walk":
            return {"random-walk": {"area": area, "speed": speed, "interval_s": interval}}
        case _:
            mean, sigma = speed if isinstance(moves.speed, tuple) else [speed[0], 0.0]
            return {
                "gauss-markov": {
                    "area": area,
                    "memory": 0.75 if moves.memory is None else moves.memory,
                    "speed": [mean, sigma],
                    "direction_sigma": float(given(moves.turn, Angle("30 deg"))),
                    "interval_s": interval,
                }
            }
