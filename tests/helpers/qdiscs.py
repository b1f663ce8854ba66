"""A router's queue in two worlds of virtual time: the link's own, and the kernel's in a guest.

h1 sends over the router r to h2 at 10 Mbit/s, counted with preamble, gap and check sequence. In the
engine's world the link has that rate and the queue. In the kernel's world the link is fast, and the router
shapes to the same rate by HTB, whose class holds the discipline; CAKE and TBF shape themselves. HTB and CAKE
hand a frame over when the former one is paid for, so the fast link is longer by what a frame of 1514 octets
takes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import airloom
from airloom.results import RunReader
from helpers.kernels import BUILT
from helpers.virtual import scenario

RATE = "10 Mbit/s"
SHAPED = (
    "qdisc add dev eth1 root handle 1: htb default 1",
    "class add dev eth1 parent 1: classid 1:1 htb rate 10mbit ceil 10mbit burst 1514 cburst 1514"
    " quantum 1514 overhead 24 mpu 84",
)
# 1538 octets at 10 Mbit/s less those at 1 Gbit/s.
PAID_LATER = {"rate": "1 Gbit/s", "delay": f"{1_000_000 + 1_230_400 - 12_304} ns"}
AT_ONCE = {"delay": "1 ms"}
ENDS_AT = "20 s"


@dataclass(frozen=True)
class Pair:
    """One discipline in the words of a scenario and in those of `tc`."""

    queue: dict[str, Any]
    kernel: str
    option: str = ""
    """Option of the kernel that has it, for a guest kernel that was built without."""
    shapes: bool = False
    """The discipline shapes itself, so it is the root and not in a class of HTB."""
    further: tuple[str, ...] = ()
    """Words of `tc` for its classes and filters."""
    link: dict[str, Any] = field(default_factory=dict)
    """What the link has beside its rate, delay and queue."""
    far: dict[str, Any] = field(default_factory=lambda: PAID_LATER)
    """The link behind the router whose kernel shapes."""


@dataclass(frozen=True)
class Seen:
    """Figures of one world."""

    figures: dict[str, float]
    """Means of the measurements, as `measurement.metric`."""
    dropped: float
    marked: float

    @property
    def signals(self) -> float:
        return self.dropped + self.marked

    @classmethod
    def mean(cls, seen: list[Seen]) -> Seen:
        """The mean of each figure."""
        figures = {name: fmean(one.figures[name] for one in seen) for name in seen[0].figures}
        return cls(figures, fmean(one.dropped for one in seen), fmean(one.marked for one in seen))


def by_engine(out: Path, pair: Pair, **parts: Any) -> Seen:
    """Runs the world whose link has the queue."""
    done = _run(out, {"rate": RATE, "delay": "1 ms", "queue": pair.queue, **pair.link}, [], **parts)
    seen = RunReader(out).details.engine["links"]["r-h2"]["forward"]
    return Seen(done, sum((seen.get("dropped") or {}).values()), seen.get("marked", 0))


def by_kernel(out: Path, pair: Pair, **parts: Any) -> Seen:
    """Runs the world whose router has the qdisc; skips if its kernel lacks it, and names the option."""
    place = "root" if pair.shapes else "parent 1:1"
    words = [*([] if pair.shapes else SHAPED), f"qdisc add dev eth1 {place} handle 10: {pair.kernel}"]
    script = " && ".join(f"tc {one}" for one in (*words, *pair.further))
    programs = [
        {"node": "r", "name": "set", "run": ["sh", "-c", f"{{ {script}; }} 2>&1 || true"]},
        {"node": "r", "name": "left", "at": ENDS_AT, "run": "tc -s qdisc show dev eth1"},
    ]
    done = _run(out, pair.far, programs, **parts)
    said = (out / "nodes/r/set.log").read_text()
    if pair.option and re.search("unknown|not found|No such file", said):
        pytest.skip(f"{BUILT} lacks {pair.option}: make kernel")
    assert not said, said
    left = (out / "nodes/r/left.log").read_text()
    inner = left[left.index(" 10: ") :]
    # CAKE has a column of marks for each tin, the others have one word.
    tins = re.search(r"^\s+marks +(\d.*)$", inner, re.M)
    marked = re.search(r"\b(?:ecn_mark|marked) (\d+)", inner)
    marks = tins[1].split() if tins else [marked[1]] if marked else []
    dropped = re.search(r"dropped (\d+)", inner)
    assert dropped
    return Seen(done, int(dropped[1]), sum(map(int, marks)))


def _run(
    out: Path,
    far: dict[str, Any],
    programs: list[Any],
    *,
    load: list[Any],
    ecn: bool,
    congestion: str = "cubic",
    seed: int = 1,
) -> dict[str, float]:
    sysctl = {"net.ipv4.tcp_ecn": int(ecn), "net.ipv4.tcp_congestion_control": congestion}
    node: dict[str, Any] = {"offloads": False, "sysctl": sysctl}
    done = airloom.run(
        scenario(
            nodes={"h1": node, "r": {"offloads": False}, "h2": node},
            links=[
                {"ends": ["h1", "r"], "rate": "100 Mbit/s", "delay": "9 ms"},
                {"ends": ["r", "h2"], "forward": far, "backward": {"rate": "1 Gbit/s", "delay": "1 ms"}},
            ],
            programs=programs,
            measurements=load,
            duration="21 s",
            seed=seed,
        ),
        out=out,
    )
    assert done.verdict.status == "valid", done.verdict
    return {f"{one.name}.{one.metric}": one.mean or 0.0 for one in done.result.measurements}
