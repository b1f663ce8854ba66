"""What ``tc qdisc show`` says of an interface whose queue is in the engine.

Mininet shapes a link by queueing disciplines at the sending interface, and scripts read their backlog and
drops with tc. Here the engine has the queue, so its figures are shown in tc's words. The backlog is what
waits for the wire; in Mininet that of netem also has the frames that the delay holds back.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from airloom.planning.links.link_settings import LinkSettings
from airloom.runs.link_loads import LinkLoad

_SHOW = ("show", "list", "ls", "lst")
_DEFAULT_FRAMES = 1000


@dataclass(frozen=True, slots=True)
class Request:
    """A ``tc qdisc show``."""

    device: str | None
    """None: all interfaces."""
    statistics: bool
    as_json: bool


def request_of(words: Sequence[str]) -> Request | None:
    """Returns what the words of a command ask of tc; None if they are something else."""
    if not words or words[0].rpartition("/")[2] != "tc":
        return None
    rest = list(words[1:])
    options = set()
    while rest and rest[0].startswith("-"):
        option = rest.pop(0).lstrip("-")
        known = [
            word for word in ("statistics", "details", "json", "pretty", "raw") if word.startswith(option)
        ]
        if not known or not option:
            return None
        options.add(known[0])
    if not rest or not "qdisc".startswith(rest[0]) or len(rest[0]) < 1:
        return None
    rest.pop(0)
    if rest and rest[0] in _SHOW:
        rest.pop(0)
    device = None
    if rest[:1] == ["dev"] and len(rest) > 1:
        device, rest = rest[1], rest[2:]
    if rest:
        return None
    return Request(device, "statistics" in options, "json" in options)


def words_of(command: str) -> list[str]:
    """Returns the words of a command of a shell; empty if it is more than one simple command."""
    if re.search(r"[|&;<>()$`\\\n*?\[\]{}~#=]", command):
        return []
    try:
        return shlex.split(command)
    except ValueError:
        return []


def is_shaped(intf: Any) -> bool:
    """True if the engine holds frames back for an interface's link, as tc would."""
    return intf.link is not None and intf.shaped != LinkSettings()


def answer(request: Request, intfs: Sequence[Any]) -> str:
    """Returns what tc prints of some interfaces."""
    found = [row for intf in intfs for row in _rows(intf)]
    if request.as_json:
        return json.dumps([_as_json(row, request.statistics) for row in found]) + "\n"
    return "".join(_as_text(row, request.statistics) for row in found)


@dataclass(frozen=True, slots=True)
class _Row:
    """A queueing discipline."""

    device: str
    kind: str
    handle: str
    parent: str
    """Empty: the root."""
    options: str
    load: LinkLoad
    marks: bool = False


def _rows(intf: Any) -> list[_Row]:
    load = intf.load()
    settings: LinkSettings = intf.shaped
    if not is_shaped(intf):
        return [_Row(intf.name, "noqueue", "0:", "", "", load)]
    rows = []
    above = ""
    if settings.rate is not None:
        word = "tbf" if intf.params.get("use_tbf") else "hfsc" if intf.params.get("use_hfsc") else "htb"
        options = {
            "htb": " r2q 10 default 0x1 direct_packets_stat 0 direct_qlen 1000",
            "hfsc": " default 1",
            "tbf": f" rate {_rate(settings.rate)} burst 15000b lat {_time(_latency(settings))}",
        }[word]
        rows.append(_Row(intf.name, word, "5:", above, options, load))
        above = "5:1" if word != "tbf" else "5:"
    queue = settings.queue
    law = None if queue is None else queue.discipline
    if law is not None and law.word == "red":
        ecn = " ecn" if queue is not None and queue.ecn else ""
        least, most = law.parameters["min_octets"], law.parameters["max_octets"]
        options = f" limit 1000000b min {least}b max {most}b{ecn}"
        rows.append(_Row(intf.name, "red", "6:", above, options, load, marks=True))
        above = "6:"
    delayed = (
        settings.delay or settings.jitter or settings.loss or intf.params.get("max_queue_size") is not None
    )
    if delayed:
        limit = _DEFAULT_FRAMES if queue is None or queue.packets is None else queue.packets
        options = f" limit {limit}"
        if settings.delay:
            options += f" delay {_time(settings.delay)}"
        if settings.jitter is not None:
            options += f"  {_time(int(next(iter(settings.jitter.parameters.values()))))}"
        if isinstance(settings.loss, float) and settings.loss:
            options += f" loss {100 * settings.loss:g}%"
        rows.append(_Row(intf.name, "netem", "10:", above, options, load))
    return rows


def _latency(settings: LinkSettings) -> int:
    octets = None if settings.queue is None else settings.queue.octets
    rate = settings.constant_rate or 1
    return 0 if octets is None else max(0, octets - 15_000) * 8_000_000_000 // rate


def _rate(rate: Any) -> str:
    return f"{int(rate) / 1e6:g}Mbit"


def _time(ns: int) -> str:
    if ns >= 1_000_000_000:
        return f"{ns / 1e9:g}s"
    return f"{ns / 1e6:g}ms" if ns >= 1_000_000 else f"{ns / 1e3:g}us"


def _as_text(row: _Row, statistics: bool) -> str:
    place = f"parent {row.parent}" if row.parent else "root refcnt 2"
    text = f"qdisc {row.kind} {row.handle} {place}{row.options}\n"
    if not statistics:
        return text
    load = row.load
    text += (
        f" Sent {load.sent_octets} bytes {load.sent} pkt (dropped {load.dropped}, overlimits 0 requeues 0)\n"
    )
    text += f" backlog {load.queue_octets}b {load.queue}p requeues 0\n"
    if row.marks:
        text += f"  marked {load.marked} early {load.dropped} pdrop 0 other 0\n"
    return text


def _as_json(row: _Row, statistics: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": row.kind, "handle": row.handle, "dev": row.device}
    found |= {"parent": row.parent} if row.parent else {"root": True, "refcnt": 2}
    found["options"] = {}
    if statistics:
        load = row.load
        found |= {"bytes": load.sent_octets, "packets": load.sent, "drops": load.dropped}
        found |= {"overlimits": 0, "requeues": 0, "backlog": load.queue_octets, "qlen": load.queue}
        found |= {"marked": load.marked} if row.marks else {}
    return found
