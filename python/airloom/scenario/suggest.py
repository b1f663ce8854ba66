"""Suggests the nearest valid word for the cure of an error."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

_ELSEWHERE = {
    "bandwidth": ("rate",),
    "bw": ("rate",),
    "speed": ("rate",),
    "latency": ("delay",),
    "plr": ("loss",),
    "command": ("run",),
    "cmd": ("run",),
    "hosts": ("nodes",),
    "ip": ("addresses", "address", "interfaces"),
    "address": ("addresses", "interfaces"),
    "type": ("generator", "kind"),
    "model": ("propagation",),
    "off": ("down", "stop"),
    "on": ("up", "start"),
    "docker": ("container",),
    "kvm": ("qemu",),
    "time": ("duration",),
    "start": ("at",),
    "src": ("from",),
    "dst": ("to",),
    "channels": ("channel",),
    "fq": ("fq-codel",),
    "sfq": ("fq-codel",),
    "l4s": ("dualpi2",),
    "pi2": ("dualpi2",),
    "prio": ("priority",),
    "pfifo": ("drop-tail",),
    "bfifo": ("drop-tail",),
    "fifo": ("drop-tail",),
}
"""Terms of other tools: the equivalent words here; the first allowed one is suggested."""


def nearest(word: str, known: Any) -> str:
    """Returns a suggestion (an equivalent or the nearest valid word) and the allowed words."""
    words = [str(each) for each in known]
    near = [here for here in _ELSEWHERE.get(word.lower(), ()) if here in words]
    near = near or get_close_matches(word, words, n=1, cutoff=0.6)
    guess = f"did you mean {near[0]!r}? " if near else ""
    return f"{guess}allowed: {listing(words)}" if words else "there is none"


def listing(words: Any, most: int = 24) -> str:
    """Joins the first ``most`` words by commas."""
    words = [str(word) for word in words]
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more
