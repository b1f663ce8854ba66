"""Runs on ORBIT's nodes: two radios each, two slices on orthogonal channels, one sliver for each.

The papers' common set-up is a pair of nodes 1 m apart, 802.11a at 36 Mbit/s, 5.18 GHz for the first slice and
5.32 GHz for the second, packets of 1470 octets. **Native** is one flow of one slice on the hosting
system's own network stack; here that is a ``netns`` node, since a node of kind ``native`` has no radio of the
laboratory. **Virtualized** is a flow in each of two slices at once; its figure is the mean of both, and each
slice's own is kept.

With ``turns``, the senders of the two slices share one modelled processor: each runs for that long and then
waits for the other, as two busy guests did on ORBIT's single processors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from airloom.errors import RunError, ScenarioError
from airloom.experiments import capacity_search
from airloom.experiments.campaign import Campaign, Case, Found
from airloom.report.figures import Figure, Line, Role
from airloom.results import RunReader
from airloom.scenario.model import Scenario
from airloom.units.figures import Quantity

SLICES = {"one": "5.18 GHz", "two": "5.32 GHz"}
"""Slice: its channel."""
LOADS = (10, 20, 30, 40, 50)
"""Mbit/s offered."""
PAYLOADS = (64, 128, 256, 512, 768, 1024, 1470)
"""Octets."""
RATES = (6, 9, 12, 18, 24, 36, 48, 54)
"""Mbit/s of 802.11a."""
PAYLOAD = 1470
RATE = 36
WARM_UP = 1
"""Seconds from the start of a run to the flows, in which guests settle."""
SETTLING = 1_000_000_000
"""ns of each flow that no figure counts."""
LONG_QUEUE = 1000
"""Transmit buffers and tail-drop limit of the papers' throughput runs."""
SHORT_QUEUE = (40, 50)
"""The driver's defaults. TCP runs have them: it is not known what the papers' had, and a slow start that
overshoots 1000 frames takes seconds to recover from."""

_SIFS, _DIFS, _SLOTS, _PREAMBLE, _SYMBOL = 16e-6, 34e-6, 7.5 * 9e-6, 20e-6, 4e-6
_ACK_RATES = {6: 6, 9: 6, 12: 12, 18: 12, 24: 24, 36: 24, 48: 24, 54: 24}


def cycle(payload: int = PAYLOAD, rate: int = RATE) -> float:
    """Seconds that a UDP packet takes on the air: DIFS, mean backoff, data, SIFS, acknowledgment.

    IEEE Std 802.11-2020, 17.3: symbols of 4 us with 16 service and 6 tail bits, 20 us of preamble and
    header, CWmin 15; UDP, IP, LLC, MAC header and check sequence are 8 + 20 + 8 + 28 octets.
    """
    return _DIFS + _SLOTS + _frame(payload + 64, rate) + _SIFS + _frame(14, _ACK_RATES[rate])


def _frame(octets: int, rate: int) -> float:
    bits = 16 + 8 * octets + 6
    return _PREAMBLE + -(-bits // (4 * rate)) * _SYMBOL


def saturation(payload: int = PAYLOAD, rate: int = RATE) -> float:
    """bit/s of UDP payload that one saturated sender gets."""
    return 8 * payload / cycle(payload, rate)


def tcp_estimate(rate: int = RATE) -> float:
    """bit/s of TCP: two segments of 1448 octets and one acknowledgment by TCP a turn, no collisions.

    An estimate: of the three backoffs some run at the same time, and some frames collide.
    """
    return 2 * 8 * 1448 / (2 * cycle(1500 - 28, rate) + cycle(52 - 28, rate))


def shared_queue(queue: int, turn: float, rate: int = RATE) -> float:
    """bit/s of a slice whose sender runs every other ``turn`` seconds, from a queue of that many frames.

    While its sender waits, the radio lives on what the queue holds: S * min(1, (q + N T) / (2 q)).
    """
    return saturation(rate=rate) * min(1.0, (turn + queue * cycle(rate=rate)) / (2 * turn))


@dataclass(frozen=True, slots=True)
class Platform:
    """What an experiment is repeated on."""

    kind: str
    slices: int
    """1: native, one flow; 2: virtualized, a flow in each slice."""
    turns: int = 0
    """Milliseconds that each of two senders has a modelled processor; 0: as the host gives it to them."""

    @property
    def name(self) -> str:
        """``native``, ``netns``, ``netns-turns-100``."""
        if self.slices == 1:
            return "native"
        return f"{self.kind}-turns-{self.turns}" if self.turns else self.kind

    @property
    def label(self) -> str:
        """The same for people."""
        if self.slices == 1:
            return "native: one flow"
        turns = f", in turns of {self.turns} ms" if self.turns else ""
        return f"two slices of {self.kind}{turns}"

    @property
    def flows(self) -> tuple[str, ...]:
        """Its slices."""
        return tuple(SLICES)[: self.slices]


NATIVE = Platform("netns", 1)


def platforms(kinds: Sequence[str], *, turns: Sequence[int] = ()) -> list[Platform]:
    """The native reference, two slices of each kind, and two of ``netns`` in turns where that is asked for.

    Turns stop a sender as the host's scheduler would; a guest's own kernel is not asked to play it.
    """
    found = [NATIVE, *(Platform(kind, 2) for kind in kinds)]
    return found + [Platform("netns", 2, turn) for turn in turns]


@dataclass(frozen=True, slots=True)
class Grid:
    """Nodes of the grid and what their slices run."""

    platform: Platform
    rate: int = RATE
    """Mbit/s of the channels."""
    buffers: int = LONG_QUEUE
    queue: int = LONG_QUEUE
    clients: int = 1
    """Sending nodes n1, n2, ...; the last node receives."""
    processor: int | None = None
    """Of the host, the only one for the senders' machines, where nodes are machines."""

    @property
    def server(self) -> str:
        """The receiving node."""
        return f"n{self.clients + 1}"

    def scenario(
        self,
        name: str,
        measurements: Sequence[Mapping[str, Any]],
        programs: Sequence[Mapping[str, Any]] = (),
        files: Mapping[str, str] | None = None,
    ) -> Scenario:
        """The scenario; programs and measurements name slivers, such as ``n1-one``."""
        radios: dict[str, Any] = {"wlan0": {}, "wlan1": {}}
        files = dict(files or {}) | ({TURNS: _turns_text()} if self.platform.turns else {})
        nodes: dict[str, dict[str, Any]] = {
            f"n{number}": {
                "position": [f"{number % 2} m", f"{number // 2} m"],
                "radios": radios,
                "files": files,
            }
            for number in range(1, self.clients + 2)
        }
        if self.processor is not None:
            for name in set(nodes) - {self.server}:
                nodes[name]["guest"] = {"processors": [self.processor]}
        radio = {"rate": f"{self.rate} Mbit/s", "buffers": self.buffers, "queue": self.queue}
        grants = {name: {"nodes": list(nodes), "channels": [SLICES[name]]} for name in self.platform.flows}
        return Scenario.model_validate(
            {
                "name": name,
                "kind": self.platform.kind,
                "media": {"air": {"radio": radio}},
                "nodes": nodes,
                "slices": {name: {"grant": grant} for name, grant in grants.items()},
                "programs": [*programs, *self._turns()],
                "measurements": list(measurements),
            }
        )

    def _turns(self) -> list[dict[str, Any]]:
        turns = self.platform.turns
        return [
            {
                "node": f"n{client}-{name}",
                "name": f"turns-{client}-{name}",
                "run": ["python3", TURNS, str(turns), str(number), str(self.platform.slices)],
                "until_end": True,
            }
            for client in range(1, self.clients + 1)
            for number, name in enumerate(self.platform.flows)
            if turns
        ]

    def flow(
        self, slice: str, load: float, seconds: float, *, payload: int = PAYLOAD, client: int = 1, **more: Any
    ) -> dict[str, Any]:
        """A UDP flow of the packet generator from a client to the server; ``load`` in Mbit/s."""
        said = {
            "from": f"n{client}-{slice}",
            "to": f"{self.server}-{slice}",
            "rate": f"{load:g} Mbit/s",
            "size": f"{payload} B",
            "duration": f"{seconds:g} s",
            "at": f"{WARM_UP} s",
        }
        name = slice if self.clients == 1 else f"{slice}-{client}"
        return {"name": name, "traffic": said | more}

    def tcp(self, slice: str, seconds: float, *, client: int = 1) -> dict[str, Any]:
        """A TCP flow of iperf3."""
        said = {
            "from": f"n{client}-{slice}",
            "to": f"{self.server}-{slice}",
            "duration": f"{seconds:g} s",
            "at": f"{WARM_UP} s",
        }
        return {"name": slice, "iperf3": said}


def campaign(
    experiment: str, folder: Path, *, progress: Callable[[str], None], kinds: Sequence[str]
) -> Campaign:
    """The campaign of an ``experiment.py``, given its ``__file__``, that holds ``kinds`` against native."""
    check_kinds(kinds)
    return Campaign.of(experiment, folder, progress=progress, kinds=(NATIVE.kind, *kinds))


def case(
    grid: Grid,
    name: str,
    measurements: Sequence[Mapping[str, Any]],
    seconds: float,
    programs: Sequence[Mapping[str, Any]] = (),
    files: Mapping[str, str] | None = None,
    **labels: Any,
) -> Case:
    """A run of an experiment; ``seconds`` is the length of its flows, ``files`` are in every sliver."""
    words = [grid.platform.name, *(f"{key}-{one}" for key, one in labels.items())]
    return Case(
        "_".join(words),
        {"platform": grid.platform.name, **labels},
        grid.scenario(
            "-".join([name, *words]).replace(".", "-")[:63].strip("-"), measurements, programs, files
        ),
        WARM_UP + seconds,
    )


def figure(
    found: Found,
    platforms: Sequence[Platform],
    name: str,
    title: str,
    metric: str,
    over: str,
    at: Sequence[float],
    *,
    y_label: str,
    unit: str,
    scale: float,
    x_label: str,
    ideal: Mapping[float, float] | None = None,
    caption: str = "",
    **labels: Any,
) -> Figure:
    """A figure of one metric with a line for each platform; ``ideal`` is in ``unit``."""
    lines = []
    if ideal is not None:
        x = tuple(float(one) for one in at)
        lines.append(
            Line(label="DCF by its arithmetic", role="ideal", x=x, y=tuple(ideal[one] for one in at))
        )
    for one in platforms:
        role: Role = "reference" if one.slices == 1 else "measured"
        lines.append(found.line(one.label, role, metric, over, at, scale, platform=one.name, **labels))
    return Figure(
        name=name,
        title=title,
        x_label=x_label,
        y_label=y_label,
        unit=unit,
        lines=tuple(lines),
        caption=caption,
    )


def sliver_lines(
    platforms: Sequence[Platform], rates: Sequence[int], value: Callable[[Platform, int], float | None]
) -> tuple[Line, ...]:
    """A line for each platform beside the native one: what ``value`` says of it at every channel rate."""
    x = tuple(float(rate) for rate in rates)
    return tuple(
        Line(label=one.label, role="measured", x=x, y=tuple(value(one, rate) for rate in rates))
        for one in platforms[1:]
    )


def loss_figure(found: Found, platforms: Sequence[Platform], rates: Sequence[int]) -> Figure:
    """How much less than native the slices get, against the channel rate."""

    def loss(platform: Platform, rate: int) -> float | None:
        native, sliver = (
            found.mean("throughput", platform=name, rate=rate) for name in (NATIVE.name, platform.name)
        )
        return None if native is None or sliver is None else 100 * (1 - sliver / native)

    return Figure(
        name="loss",
        title="Throughput that slices lose against native",
        x_label="channel rate, Mbit/s",
        y_label="loss",
        unit="%",
        lines=sliver_lines(platforms, rates, loss),
    )


def increase_figure(
    found: Found,
    platforms: Sequence[Platform],
    metric: str,
    loads: Sequence[int],
    variants: Mapping[str, Mapping[str, Any]],
) -> Figure:
    """How much more of a time than native the slices have, against the load; a line for each variant."""

    def line(platform: Platform, variant: str, labels: Mapping[str, Any]) -> Line:
        added: list[float | None] = []
        for load in loads:
            native, sliver = (
                found.mean(metric, platform=name, load=load, **labels)
                for name in (NATIVE.name, platform.name)
            )
            added.append(None if native is None or sliver is None else (sliver - native) / 1e6)
        label = f"{platform.label}, {variant}" if variant else platform.label
        return Line(label=label, role="measured", x=tuple(float(load) for load in loads), y=tuple(added))

    return Figure(
        name=f"{metric}-increase",
        title=f"Increase of the {metric} by slices over native",
        x_label="offered load, Mbit/s",
        y_label=f"increase of the {metric}",
        unit="ms",
        lines=tuple(
            line(one, variant, labels) for one in platforms[1:] for variant, labels in variants.items()
        ),
    )


TURNS = "/opt/turns.py"
"""In a sliver: what stops and continues its sender."""


def _turns_text() -> str:
    return Path(__file__).with_name("time_slicer.py").read_text(encoding="utf-8")


def arrivals(reader: RunReader, flow: str) -> npt.NDArray[np.int64]:
    """Times of a flow's packets after its first second, in ns of the run."""
    rows = reader.samples(flow, "delay")
    times = np.sort(rows.t_ns.to_numpy(dtype=np.int64))
    if not times.size:
        raise RunError("experiment.unmeasured", f"nothing of {flow} arrived", where=str(reader.folder))
    return np.asarray(times[times >= times[0] + SETTLING], np.int64)


def windows(times: npt.NDArray[np.int64], payload: int, length: int) -> npt.NDArray[np.float64]:
    """Throughput in bit/s in each whole window of ``length`` ns from the first packet on."""
    count = int((times[-1] - times[0]) // length) if times.size else 0
    if not count:
        return np.empty(0)
    index = (times - times[0]) // length
    packets = np.bincount(index[index < count], minlength=count)
    return np.asarray(packets * (payload * 8e9 / length), np.float64)


def value(reader: RunReader, flows: Sequence[str], metric: str) -> float:
    """Mean of a figure over the slices' flows, in its own unit."""
    return float(np.mean([capacity_search.value(reader, flow, metric) for flow in flows]))


def dropped(reader: RunReader, reason: str) -> int:
    """Frames that the emulated network dropped for a reason."""
    return reader.result.ledger.dropped.get(reason, 0)


def sides(found: Found, name: str, platform: Platform, **labels: Any) -> dict[str, Quantity | None]:
    """A figure of the native reference and of a platform, for a claim: ``native`` and ``sliver``."""
    return {
        "native": found.quantity(name, platform=NATIVE.name, **labels),
        "sliver": found.quantity(name, platform=platform.name, **labels),
    }


def flows_of(reader: RunReader) -> list[str]:
    """The slices whose flows a run measured."""
    measured = {one.name for one in reader.result.measurements}
    return [name for name in SLICES if name in measured]


def check_kinds(kinds: Sequence[str]) -> None:
    """Refuses kinds whose nodes cannot have radios."""
    if "native" in kinds:
        raise ScenarioError(
            "experiment.kind",
            "a native node has no radio of the laboratory",
            where="--kind native",
            cure="the native reference is one flow between netns nodes, and always measured",
        )
