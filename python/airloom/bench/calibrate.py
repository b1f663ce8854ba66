"""Measurement of a node kind's calibration on this machine (:mod:`airloom.calibration.model`)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from airloom import __version__
from airloom.bench.labs import flood, flow, pair, up
from airloom.calibration.model import PAIRS, Calibration, Figure
from airloom.errors import RunError
from airloom.experiments import capacity_search
from airloom.host.machine import machine
from airloom.lab.lab import Lab
from airloom.lab.measuring import measurement_of
from airloom.results.result import utc_now
from airloom.scenario.model import Link, Node, Scenario
from airloom.stats import mean

FRAME = 64
"""Frame size in octets, including the frame check sequence."""
LOST = 0.01
"""Maximum loss ratio below the ceiling."""
TRIALS = 5
"""Bisection steps of the search for a ceiling: the last one is 1/32 of the flood's throughput."""
FURTHER = 4
"""Further steps if all of these lost more."""
THIN = "5 ms"
"""Packet interval of the flow whose delay is measured."""

Progress = Callable[[str], None]


def calibrate(
    kind: str, progress: Progress, *, rounds: int = 3, trials: int | None = None, seconds: int = 3
) -> Calibration:
    """Measures a kind, alternating with the native reference.

    ``trials`` are the bisection steps of a ceiling, ``seconds`` the length of the thin flow: fewer and
    shorter ones give a coarse calibration with wide intervals.
    """
    found: dict[str, list[float]] = {}
    ceilings: dict[int, list[float]] = {pairs: [] for pairs in PAIRS}
    for number in range(rounds):
        progress(f"{kind}, round {number + 1} of {rounds}: delay and jitter")
        delay, jitter, spread, _ = thin(kind, seconds)
        bare_delay, bare_jitter, _, _ = thin("native", seconds)
        for name, value in (
            ("delay", delay - bare_delay), ("jitter", jitter - bare_jitter), ("spread", spread)
        ):  # fmt: skip
            found.setdefault(name, []).append(value)
        for pairs in PAIRS:
            progress(f"{kind}, round {number + 1} of {rounds}: ceiling of {pairs} pairs")
            ceilings[pairs].append(ceiling(kind, pairs, trials))
        progress(f"{kind}, round {number + 1} of {rounds}: the native ceiling, and the cost of a packet")
        found.setdefault("native", []).append(ceiling("native", 1, trials))
        found.setdefault("cost", []).append(cost(kind, ceilings[1][-1] / 2))
    return Calibration(
        kind=kind,
        made=utc_now(),
        airloom=__version__,
        machine=machine(),
        rounds=rounds,
        ceilings={pairs: _figure(values) for pairs, values in ceilings.items()},
        native_ceiling=_figure(found["native"]),
        delay_ns=_figure(found["delay"]),
        jitter_ns=_figure(found["jitter"]),
        spread_ns=_figure(found["spread"]),
        cost_ns=_figure(found["cost"]),
    )


def _figure(values: list[float]) -> Figure:
    over = mean(values)
    half = over.half_width if over.n > 1 else None
    return Figure(value=over.value, half_width=half, least=min(values))


def pairs_of(kind: str, pairs: int) -> Scenario:
    """Returns a scenario of ``pairs`` pairs of nodes, each on its own wire."""
    if pairs == 1:
        return pair(kind)
    names = [(f"a{number}", f"b{number}") for number in range(1, pairs + 1)]
    return Scenario(
        name=f"calibration-{kind}-{pairs}",
        kind=kind,
        nodes={name: Node() for ends in names for name in ends},
        links=[Link(ends=ends) for ends in names],
    )


def thin(kind: str, seconds: int = 3) -> tuple[float, float, float, int]:
    """Returns a thin flow's delay mean, jitter mean, delay deviation (ns) and received packets."""
    with up(pair(kind)) as lab:
        lab["h1"].run("ping -c 2 -i 0.2 h2", check=True)  # resolves addresses first
        reading = flow(lab, "h1", "h2", size="100 B", interval=THIN, duration=f"{seconds} s")
    delays = reading.delays
    return float(delays.mean()), float(reading.jitter.mean()), float(delays.std(ddof=1)), delays.size


def duration(rounds: int, trials: int, seconds: int) -> int:
    """Returns about how many seconds :func:`calibrate` takes with nodes that come up in a second."""
    bring_up = 1
    thin_flows = 2 * (bring_up + 1 + seconds)
    ceilings = (len(PAIRS) + 1) * (bring_up + 3 + 2 * trials)
    return rounds * (thin_flows + ceilings + bring_up + 3)


def ceiling(kind: str, pairs: int, trials: int | None = None) -> float:
    """Returns packets/s of each pair with at most 1 % loss, all pairs sending at once.

    Raises :class:`RunError` if even the slowest rate of the search is lost.
    """
    with up(pairs_of(kind, pairs)) as lab:
        ends = [("h1", "h2")] if pairs == 1 else [(f"a{n}", f"b{n}") for n in range(1, pairs + 1)]
        for source, to in ends:
            lab[source].run(f"ping -c 2 -i 0.2 {to}", check=True)
        # A simultaneous flood shows about the maximum throughput.
        top = 1.2 * flood(lab, *ends[0], FRAME, 1) / pairs
        good, low, high = 0.0, 0.0, top
        steps = TRIALS if trials is None else trials
        for number in range(steps + FURTHER):
            if number >= steps and good:
                break
            rate = (low + high) / 2
            got = _trial(lab, ends, rate)
            if got is not None:
                good, low = got, rate
            else:
                high = rate
        if not good:
            raise RunError(
                "calibration.loss",
                f"{kind} loses more than {LOST:.0%} even at {high:,.0f} packets/s",
                cure="calibrate while nothing else runs, with `airloom calibrate`",
            )
        return good


def _trial(lab: Lab, ends: list[tuple[str, str]], rate: float) -> float | None:
    """Returns the received rate of the worst pair if every pair lost at most 1 %, else None."""
    interval = f"{max(1, round(1e9 / rate))} ns"

    def one(pair: tuple[str, str]) -> int:
        return flow(lab, *pair, frame=f"{FRAME} B", interval=interval, duration="1 s").received

    with ThreadPoolExecutor(len(ends)) as pool:
        worst = min(pool.map(one, ends))
    return float(worst) if worst >= (1 - LOST) * rate else None


def cost(kind: str, rate: float, seconds: int = 2) -> float:
    """Returns processor time in ns of kernels and engine for each packet at this rate."""
    interval = max(1, round(1e9 / rate))
    ask = {
        "from": "h1",
        "to": "h2",
        "frame": f"{FRAME} B",
        "interval": f"{interval} ns",
        "duration": f"{seconds} s",
    }
    scenario = pair(kind).model_copy(update={"measurements": [measurement_of("flow", {"traffic": ask})]})
    with tempfile.TemporaryDirectory(prefix="airloom-calibration-") as place:
        run = capacity_search.point(Path(place), "cost", scenario)
        processors = run.details.processors
        used = sum(value for name, value in processors.items() if name != "guest_user")
        received = next(one.mean for one in run.result.measurements if one.metric == "received")
        return used * run.details.length_ns / received if received else 0.0
