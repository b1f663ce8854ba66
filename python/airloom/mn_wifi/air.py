"""What calls of Mininet-WiFi mean for a medium of the engine: propagation, fading, motion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from airloom.mininet.errors import Misused, Unsupported
from airloom.mininet.parameters import note
from airloom.mn_wifi.radio import Place

THERMAL = -100.97
"""Thermal noise in dBm at 290 K in 20 MHz."""
_EVERYWHERE = 1e6
"""Metres within which all radios hear each other without interference."""
_MODELS = "friis, logDistance, logNormalShadowing, twoRayGround, ITU"
_WALKS = ("RandomWalk", "RandomWayPoint", "RandomDirection", "GaussMarkov")


def propagation(said: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a medium for ``setPropagationModel(...)``; log-distance 3 by default."""
    model = said.get("model", "logDistance")
    rest = {name: value for name, value in said.items() if name != "model" and value is not None}
    exponent = float(rest.pop("exp", 3.0))
    if not 0.1 <= exponent <= 10:
        raise Misused("propagation", f"exp={exponent:g}: from 0.1 to 10")
    found: dict[str, Any]
    match model:
        case "friis":
            found = {"loss": "free-space"}
        case "logDistance":
            found = {"loss": _distance(exponent)}
        case "logNormalShadowing":
            sigma = float(rest.pop("variance", rest.pop("gRandom", 2.0)))
            shadowing = {"sigma_db": sigma, "decorrelation_m": 20.0}
            found = {"loss": _distance(exponent), "shadowing": shadowing}
        case "twoRayGround":
            found = {"loss": {"two-ray": {"lowest_m": 1.5}}}
        case "ITU":
            found = {"loss": {"itu-indoor": {"building": "office", "storey_m": 3.0}}}
        case _:
            raise Unsupported(f"setPropagationModel(model={model!r})", f"the models are {_MODELS}")
    if model in ("friis", "twoRayGround", "ITU"):
        rest.pop("sL", None)
    for name, value in rest.items():
        note(f"setPropagationModel: {name}={value!r} has no effect: the model {model} does not have it")
    return found


def _distance(exponent: float) -> dict[str, Any]:
    return {"log-distance": {"exponent": exponent, "reference_m": 1.0, "reference_db": None}}


def without_interference() -> dict[str, Any]:
    """Returns the settings of a medium on which every radio hears every other."""
    return {"loss": {"disk": {"range_m": _EVERYWHERE, "loss_db": 60.0}}}


def fading(spread: float) -> Any:
    """Returns the fading whose power has a standard deviation of ``spread`` dB.

    Wmediumd's coefficient is that of a normal law in dB. Rician fading has about
    ``4.34 sqrt(2 K + 1) / (K + 1)`` dB for K above 1; Rayleigh fading has 5.57 dB.
    """
    if spread <= 0:
        return "none"
    if spread >= 3.7:
        return "rayleigh"
    low, high = 1.0, 1e6
    for _ in range(100):
        middle = math.sqrt(low * high)
        if 10 / math.log(10) * math.sqrt(2 * middle + 1) / (middle + 1) > spread:
            low = middle
        else:
            high = middle
    return {"rician": {"k_db": 10 * math.log10(low)}}


def motion(said: Mapping[str, Any], begin: int) -> dict[str, Any]:
    """Returns the engine's motion of a node for a mobility model that draws its ways."""
    model = said.get("model")
    if model not in _WALKS:
        raise Unsupported(
            f"mobility model {model!r}",
            f"the models are {', '.join(_WALKS)}",
            cure="or mobility() with places",
        )
    low = (float(said.get("min_x", 0)), float(said.get("min_y", 0)))
    high = (float(said.get("max_x", 100)), float(said.get("max_y", 100)))
    if high[0] <= low[0] or high[1] <= low[1]:
        raise Misused("mobility", f"the area from {low} to {high} has no size")
    area = {
        "corner": {"x": low[0], "y": low[1], "z": 0.0},
        "width": high[0] - low[0],
        "height": high[1] - low[1],
    }
    slow, fast = float(said.get("min_v", 1)), float(said.get("max_v", 10))
    if not 0 < slow <= fast:
        raise Misused("mobility", f"min_v={slow:g}, max_v={fast:g}: above 0, and the first is the lower")
    match model:
        case "RandomWayPoint":
            rest = [float(said.get("min_wt", 0)), float(said.get("max_wt", 0))]
            return {"random-waypoint": {"area": area, "speed": [slow, fast], "rest_s": rest}}
        case "GaussMarkov":
            speed = [(slow + fast) / 2, (fast - slow) / 4]
            return {
                "gauss-markov": {
                    "area": area,
                    "memory": float(said.get("alpha", 0.99)),
                    "speed": speed,
                    "direction_sigma": math.pi / 6,
                    "interval_s": 1.0,
                }
            }
        case "RandomDirection":
            # Straight on until the border throws it back.
            return {"random-walk": {"area": area, "speed": [slow, fast], "interval_s": 1e6}}
        case _:
            return {"random-walk": {"area": area, "speed": [slow, fast], "interval_s": 1.0}}


def path(points: list[tuple[float, Place]], begin: int, repeats: int, reverse: bool) -> dict[str, Any]:
    """Returns the engine's motion along places at seconds from ``begin`` (ns), ``repeats`` times."""
    ordered = sorted(points, key=lambda point: point[0])
    first, last = ordered[0][0], ordered[-1][0]
    found: list[tuple[int, Place]] = [(0, ordered[0][1])]
    for number in range(max(1, repeats)):
        places = [place for _, place in ordered]
        if reverse and number % 2:
            places.reverse()
        for (at, _), place in zip(ordered, places, strict=True):
            when = begin + round((at + number * (last - first)) * 1e9)
            found.append((max(when, found[-1][0] + 1), place))
    return {"path": [[at, dict(zip("xyz", place, strict=True))] for at, place in found]}
