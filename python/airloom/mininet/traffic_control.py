"""What the commands of tc that Mininet makes from a link's parameters mean for a link of the engine.

Mininet sets, in this order: a rate (``htb``, ``hfsc`` or ``tbf``), RED below it, and ``netem`` with delay,
jitter, loss and a limit of frames below that. Here the rate is exact, and the queue is before the wire
alone: frames under way are not in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airloom.mininet.errors import Misused
from airloom.planning.links.link_settings import Law, LinkSettings, QueueSettings

_UNITS = {"": 1e3, "us": 1e3, "usec": 1e3, "usecs": 1e3, "ms": 1e6, "msec": 1e6, "msecs": 1e6}
_UNITS |= {"s": 1e9, "sec": 1e9, "secs": 1e9, "ns": 1.0}
_LONGEST = 3600e9
"""Maximum delay in nanoseconds."""
_FRAMES = 1000
"""Limit in frames of netem, and of the queue that the kernel gives an interface."""
_MOST_FRAMES = 10**9
"""Maximum queue length in frames."""
_RED = {"min_octets": 30_000, "max_octets": 35_000, "probability": 1.0, "packet_octets": 1_500}
_RED_LIMIT = 1_000_000
"""Octets of the queue with RED and without netem."""
_RED_BURST = 20
"""Packets in the burst that Mininet lets tc compute RED's weight from."""
_BUCKET = 15_000
"""Octets of the token bucket with ``use_tbf``, which its limit adds to ``latency_ms``."""

RATE = ("speedup", "use_hfsc", "use_tbf", "latency_ms", "enable_ecn", "enable_red")
"""Parameters that shape a link with ``bw`` only."""
SHAPES = frozenset(("bw", "delay", "jitter", "loss", "max_queue_size", *RATE))
"""Parameters that shape a link."""


def nanoseconds(value: Any) -> int:
    """Returns a time in tc's notation, in nanoseconds."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", str(value))
    if match is None or match.group(2) not in _UNITS:
        raise Misused("time", f"{value!r} is no time", cure="write it as '5ms', '10us' or '1s'")
    found = float(match.group(1)) * _UNITS[match.group(2)]
    if found > _LONGEST:
        raise Misused("time", f"{str(value)[:40]!r} is longer than an hour")
    return round(found)


def red_weight(least: int, burst: int, packet: int) -> float:
    """Returns the weight of the newest sample in RED's mean that tc computes from ``burst``.

    It is ``2^-n`` with the least n from 1 to 31 for which a burst that fills an empty queue still does not
    reach the lower threshold: ``burst + 1 - least/packet <= (1 - (1 - 2^-n)^burst) 2^n`` (Floyd and
    Jacobson 1993, section 11, as in ``tc_red_eval_ewma`` of iproute2's tc/tc_red.c). ``least`` and
    ``packet`` are octets, ``burst`` is packets. Mininet's 30,000, 20 and 1500 give 1/2.
    """
    beyond = burst + 1 - least / packet
    for exponent in range(1, 32):
        weight = 2.0**-exponent
        if beyond <= (1 - (1 - weight) ** burst) / weight:
            return weight
    raise ValueError(f"no weight for a burst of {burst} packets")


def shapes(given: Mapping[str, Any]) -> bool:
    """True if these parameters change a link, as Mininet decides it: otherwise it stays as it is."""
    return (
        given.get("bw") is not None
        or bool(given.get("delay"))
        or bool(given.get("loss"))
        or given.get("max_queue_size") is not None
    )


def idle_words(given: Mapping[str, Any]) -> list[str]:
    """Returns the parameters that are given and have no effect beside the others."""
    idle = [word for word in RATE if given.get(word) and given.get("bw") is None]
    if not shapes(given):
        idle += [word for word in ("jitter", "loss", "delay") if given.get(word) is not None]
    return idle


def _number(word: str, value: Any, example: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise Misused("number", f"{word}={value!r} is no number", cure=f"write it as {example}") from None


def direction(
    bw: float | None = None,
    delay: Any = None,
    jitter: Any = None,
    loss: float | None = None,
    max_queue_size: int | None = None,
    speedup: float = 0,
    use_hfsc: bool = False,
    use_tbf: bool = False,
    latency_ms: float | None = None,
    enable_ecn: bool = False,
    enable_red: bool = False,
) -> LinkSettings:
    """Returns the settings of one direction of a link. ``speedup``: the rate of a switch's interface."""
    settings: dict[str, Any] = {}
    rate = None
    if bw is not None:
        if speedup and (faster := _number("speedup", speedup, "100, in Mbit/s")) > 0:
            bw = faster
        rate = _number("bw", bw, "10, in Mbit/s")
        if not 0 < rate <= 1e6:
            raise Misused("bw", f"bw={bw}: a link has more than 0 and at most 1,000,000 Mbit/s")
        settings["rate"] = round(rate * 1e6)
    if delay is not None:
        settings["delay"] = nanoseconds(delay)
    if jitter is not None and nanoseconds(jitter):
        settings["jitter"] = Law("uniform", {"spread_ns": nanoseconds(jitter)})
    if loss is not None and (share := _number("loss", loss, "1, in percent")):
        if not 0 <= share <= 100:
            raise Misused("loss", f"loss={loss}: percent, from 0 to 100")
        settings["loss"] = share / 100
    limit = _FRAMES if max_queue_size is None else max_queue_size
    frames = _number("max_queue_size", limit, "100, in frames")
    if not 1 <= frames <= _MOST_FRAMES:
        raise Misused("queue", f"max_queue_size={max_queue_size}: at least 1 frame, at most {_MOST_FRAMES}")
    red = rate is not None and bool(enable_ecn or enable_red)
    # netem has a limit in frames, and takes the place of a queue with another limit.
    octets = None
    if max_queue_size is None and delay is None and "loss" not in settings:
        if red:
            octets = _RED_LIMIT
        elif rate is not None and use_tbf and not use_hfsc:
            latency = 15.0 * 8 / rate if latency_ms is None else _number("latency_ms", latency_ms, "50")
            if not 0 <= latency <= _LONGEST / 1e6:
                raise Misused("queue", f"latency_ms={latency_ms}: from 0 to an hour")
            octets = round(rate * 1e6 / 8 * latency / 1e3) + _BUCKET
    law = None
    if red:
        weight = red_weight(int(_RED["min_octets"]), _RED_BURST, int(_RED["packet_octets"]))
        law = Law("red", {**_RED, "weight": weight, "marks_above": bool(enable_ecn)})
    if max_queue_size is not None or octets is not None or law is not None:
        packets = int(frames) if octets is None else None
        settings["queue"] = QueueSettings(packets, octets, discipline=law, ecn=red and bool(enable_ecn))
    return LinkSettings(**settings)
