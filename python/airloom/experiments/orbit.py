"""ORBIT scenarios: nodes with two radios, two slices on orthogonal channels, a sliver per slice.

The papers' common set-up is a pair of nodes 1 m apart, 802.11a at 36 Mbit/s, 5.18 GHz for the first
slice and 5.32 GHz for the second, packets of 1470 octets. **Native** is one flow of one slice on
the host's own network stack; here it uses a ``netns`` node, since ``native`` nodes have no emulated
radio. **Virtualized** is one flow in each of two slices at once; its figure is the mean of both,
and the figure of each slice is stored too.

With ``one_processor``, every node has one processor of this machine, like the papers' nodes: the two
guests of the sending node share one, and those of the receiving node share another with the engine.

With ``turns``, the slivers of a node share one modelled processor: each runs for a turn and waits for the
next, like two busy guests on ORBIT's single processors (:mod:`airloom.experiments.sliver_turns`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from airloom.errors import RunError, ScenarioError
from airloom.experiments import capacity_search, sliver_turns
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Found, Sample
from airloom.nodes.kinds.uml import UmlKind
from airloom.planning.machine import cpus
from airloom.report.figures import Figure, Line, Role
from airloom.results import RunReader
from airloom.scenario.model import Scenario

SLICES = {"one": "5.18 GHz", "two": "5.32 GHz"}
"""Slice: its channel."""
LOADS = (10, 20, 30, 40, 50)
"""Offered load in Mbit/s."""
PAYLOADS = (64, 128, 256, 512, 768, 1024, 1470)
"""UDP payload in octets."""
RATES = (6, 9, 12, 18, 24, 36, 48, 54)
"""Data rates of 802.11a in Mbit/s."""
PAYLOAD = 1470
RATE = 36
WARM_UP = 1
"""Seconds from the start of a run to the flows, in which guests settle."""
SETTLING = 1_000_000_000
"""First ns of each flow, which no figure includes."""
LONG_QUEUE = 1000
"""Transmit buffers and tail-drop limit in the papers' throughput runs, in frames."""
SHORT_QUEUE = (40, 50)
"""The driver's defaults, used for TCP runs. The papers do not state their limits, and a slow start
that overshoots 1000 frames takes seconds to recover."""

_SIFS, _DIFS, _SLOTS, _PREAMBLE, _SYMBOL = 16e-6, 34e-6, 7.5 * 9e-6, 20e-6, 4e-6
_SLOT, _BACKOFFS = 9e-6, 16
_ACK_RATES = {6: 6, 9: 6, 12: 12, 18: 12, 24: 24, 36: 24, 48: 24, 54: 24}


def cycle(payload: int = PAYLOAD, rate: int = RATE) -> float:
    """Returns a UDP packet's airtime in s: DIFS, mean backoff, data, SIFS, acknowledgment.

    IEEE Std 802.11-2020, 17.3: symbols of 4 us with 16 service and 6 tail bits, 20 us of preamble and
    header, CWmin 15; UDP, IP, LLC, MAC header and check sequence are 8 + 20 + 8 + 28 octets.
    """
    return _DIFS + _SLOTS + _frame(payload + 64, rate) + _SIFS + _frame(14, _ACK_RATES[rate])


def _frame(octets: int, rate: int) -> float:
    bits = 16 + 8 * octets + 6
    return _PREAMBLE + -(-bits // (4 * rate)) * _SYMBOL


def saturation(payload: int = PAYLOAD, rate: int = RATE) -> float:
    """Returns the UDP payload rate of one saturated sender in bit/s."""
    return 8 * payload / cycle(payload, rate)


def full_queue_jitter(load: float, payload: int = PAYLOAD, rate: int = RATE) -> float:
    """Returns the mean difference of transit times of successive packets in s, for a source of constant
    ``load`` in Mbit/s above saturation, one contender, and a queue that drops at its tail.

    The full queue takes the first packet after a place is free, so that packets that follow each other in
    it were sent k intervals a of the source apart: floor(S' / a), or one more with probability
    S' / a - floor(S' / a), where S' is the cycle that freed the place. They leave one cycle S apart. S and
    S' have independent backoffs, uniform over CWmin + 1 slots, so the mean is that of ``|S - k a|`` over
    both. It does not depend on the length of the queue. Below saturation k a is a, and frames that do not
    wait differ by their backoffs alone: 47.8 us.
    """
    apart = 8 * payload / (load * 1e6)
    cycles = [cycle(payload, rate) - _SLOTS + slots * _SLOT for slots in range(_BACKOFFS)]
    total = 0.0
    for freed in cycles:
        least, more = divmod(freed, apart)
        for left in cycles:
            total += (1 - more / apart) * abs(left - least * apart)
            total += more / apart * abs(left - (least + 1) * apart)
    return total / len(cycles) ** 2


def tcp_estimate(rate: int = RATE) -> float:
    """Returns TCP goodput in bit/s: two segments of 1448 octets and an ACK per cycle, no collisions.

    An estimate: the three backoffs partly overlap, and some frames collide.
    """
    return 2 * 8 * 1448 / (2 * cycle(1500 - 28, rate) + cycle(52 - 28, rate))


def shared_queue(queue: int, turn: float, rate: int = RATE) -> float:
    """Returns bit/s of a slice whose sender runs every other ``turn`` s; ``queue`` in frames.

    While the sender waits, the radio empties the queue: S * min(1, (q + N T) / (2 q)).
    """
    return saturation(rate=rate) * min(1.0, (turn + queue * cycle(rate=rate)) / (2 * turn))


@dataclass(frozen=True, slots=True)
class Platform:
    """A platform on which an experiment is repeated."""

    kind: str
    slices: int
    """1: native, one flow; 2: virtualized, a flow in each slice."""
    turns: int = 0
    """Duration of a turn in ms on a modelled shared processor; 0: scheduling by the host."""
    phase: int = 0
    """Time in ms by which turns of the receiving node are later than those of the sending ones."""
    one_processor: bool = False
    """Whether the slivers of a node share one processor of this machine."""
    client_nodes: int = 0
    """Number of nodes on which the clients are slivers, several of a slice on each; 0: a node for each."""

    @property
    def name(self) -> str:
        """Returns a name such as ``native``, ``netns``, ``uml-turns-100`` or ``uml-one-processor``."""
        if self.slices == 1:
            return "native"
        if self.one_processor:
            return f"{self.kind}-one-processor"
        if self.client_nodes:
            return f"{self.kind}-on-{self.client_nodes}-nodes"
        phase = f"-phase-{self.phase}" if self.phase else ""
        return f"{self.kind}-turns-{self.turns}{phase}" if self.turns else self.kind

    @property
    def label(self) -> str:
        """Returns the name for figures and tables."""
        if self.slices == 1:
            return "native: one flow"
        who = "guests " if sliver_turns.of_guests(self.kind) else ""
        turns = f", {who}in turns of {self.turns} ms" if self.turns else ""
        turns += f", {self.phase} ms later at the receiver" if self.phase else ""
        where = " on one processor" if self.one_processor else ""
        where += f", clients on {self.client_nodes} nodes" if self.client_nodes else ""
        return f"two slices of {self.kind}{where}{turns}"

    @property
    def flows(self) -> tuple[str, ...]:
        """Returns the slices with a flow."""
        return tuple(SLICES)[: self.slices]


NATIVE = Platform("netns", 1)
THEIRS = Platform("uml", 2, one_processor=True)
"""The papers' platform: two guests of User Mode Linux on one processor."""


def platforms(
    kinds: Sequence[str], *, turns: Sequence[int] = (), theirs: Extent | None = None
) -> list[Platform]:
    """Returns the native reference, two slices of each kind, and of ``netns`` with ``turns``.

    With ``theirs``, the papers' own platform follows if this machine has it, except in the smallest
    extent: guests in ``turns``, and last two guests that the machine's own scheduler lets share a processor.
    Only the full sweep has senders in turns beside whole guests.
    """
    found = [NATIVE, *(Platform(kind, 2) for kind in kinds)]
    senders = [Platform("netns", 2, turn) for turn in turns]
    if theirs in (None, Extent.SMOKE) or not has_theirs():
        return [*found, *senders]
    found += senders if theirs is Extent.FULL else []
    return [*found, *(Platform(THEIRS.kind, 2, turn) for turn in turns), THEIRS]


def kinds_of(platforms: Sequence[Platform]) -> list[str]:
    """Returns the kinds of these platforms, each once."""
    return list(dict.fromkeys(one.kind for one in platforms))


def has_theirs() -> bool:
    """Whether this machine runs guests of User Mode Linux, and has a processor for each node."""
    return len(cpus.available()) >= 2 and not UmlKind.lacks()


@dataclass(frozen=True, slots=True)
class Grid:
    """Nodes of the grid and the programs of their slices."""

    platform: Platform
    rate: int = RATE
    """Data rate of the channels in Mbit/s."""
    buffers: int = LONG_QUEUE
    queue: int = LONG_QUEUE
    clients: int = 1
    """Number of senders of a slice, on nodes n1, n2, ...; the last node receives."""
    channels: Mapping[str, str] = field(default_factory=lambda: SLICES)
    """The channel of each slice."""
    medium: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of the medium."""
    together: Sequence[tuple[float, float]] | None = None
    """From when to when the slivers of a node are busy together, in s; None: always."""
    virtual: bool = False
    """Whether it is in virtual time, which needs the kernel of `airloom kernel build`."""

    @property
    def server(self) -> str:
        """Returns the receiving node."""
        return f"n{self.client_nodes + 1}"

    @property
    def client_nodes(self) -> int:
        """Returns the number of nodes with clients."""
        return self.platform.client_nodes or self.clients

    @property
    def per_node(self) -> int:
        """Returns the number of clients of a slice on a node."""
        return -(-self.clients // self.client_nodes)

    def sliver(self, client: int, slice: str) -> str:
        """Returns the sliver of a client, counted from 1."""
        node, number = divmod(client - 1, self.per_node)
        name = f"n{node + 1}-{slice}"
        return name if number == 0 else f"{name}-{number + 1}"

    def scenario(
        self,
        name: str,
        measurements: Sequence[Mapping[str, Any]],
        programs: Sequence[Mapping[str, Any]] = (),
        files: Mapping[str, str] | None = None,
    ) -> Scenario:
        """Returns the scenario; programs and measurements name slivers, such as ``n1-one``."""
        radios: dict[str, Any] = {f"wlan{number}": {} for number in range(2 * self.per_node)}
        turns = self._turns()
        files = {**(files or {}), **turns.files}
        nodes: dict[str, dict[str, Any]] = {
            f"n{number}": {
                "position": [f"{number % 2} m", f"{number // 2} m"],
                "radios": radios,
                "files": files,
            }
            for number in range(1, self.client_nodes + 2)
        }
        engine: dict[str, Any] = {}
        if self.platform.one_processor:
            beside = "server" if len(cpus.available()) > 1 else "client"
            for node_name, node in nodes.items():
                node["cpus"] = {"shared": beside if node_name == self.server else "client"}
            engine = {"cpus": {"shared": beside}}
        radio = {"rate": f"{self.rate} Mbit/s", "buffers": self.buffers, "queue": self.queue}
        holders = [f"n{client}" for client in range(1, self.client_nodes + 1) for _ in range(self.per_node)]
        grants = {
            name: {"nodes": [*holders, self.server], "channels": [self.channels[name]]}
            for name in self.platform.flows
        }
        return Scenario.model_validate(
            {
                "name": name,
                "kind": self.platform.kind,
                "engine": engine,
                "media": {"air": {"radio": radio, **self.medium}},
                "nodes": nodes,
                "slices": {name: {"grant": grant} for name, grant in grants.items()},
                "programs": [*programs, *turns.programs],
                "measurements": list(measurements),
                **turns.more,
                **({"time": "virtual", "guest": {"kernel": "built"}} if self.virtual else {}),
            }
        )

    def _turns(self) -> sliver_turns.Parts:
        senders: dict[str, list[str]] = {}
        for client in range(1, self.clients + 1):
            for name in self.platform.flows:
                sliver = self.sliver(client, name)
                senders.setdefault(sliver.partition("-")[0], []).append(sliver)
        receiver = (self.server, [f"{self.server}-{name}" for name in self.platform.flows])
        one = self.platform
        return sliver_turns.parts(one.kind, one.turns, one.phase, senders, receiver, self.together)

    def flow(
        self, slice: str, load: float, seconds: float, *, payload: int = PAYLOAD, client: int = 1, **more: Any
    ) -> dict[str, Any]:
        """Returns a UDP flow of the traffic generator, client to server; ``load`` in Mbit/s."""
        said = {
            "from": self.sliver(client, slice),
            "to": f"{self.server}-{slice}",
            "rate": f"{load:g} Mbit/s",
            "size": f"{payload} B",
            "duration": f"{seconds:g} s",
            "at": f"{WARM_UP} s",
        }
        name = slice if self.clients == 1 else f"{slice}-{client}"
        return {"name": name, "traffic": said | more}

    def tcp(self, slice: str, seconds: float, *, client: int = 1) -> dict[str, Any]:
        """Returns a TCP flow of iperf3."""
        said = {
            "from": self.sliver(client, slice),
            "to": f"{self.server}-{slice}",
            "duration": f"{seconds:g} s",
            "at": f"{WARM_UP} s",
        }
        return {"name": slice, "iperf3": said}


def campaign(
    experiment: str, folder: Path, *, progress: Callable[[str], None], kinds: Sequence[str]
) -> Campaign:
    """Returns the campaign of an ``experiment.py`` (its ``__file__``): ``kinds`` against native."""
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
    """Returns a run; ``seconds`` is the length of its flows, every sliver contains ``files``."""
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
    """Returns a figure of one metric, a line for each platform; ``ideal`` is in ``unit``."""
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
    """Returns lines of ``value`` over the channel rate, for each platform except native."""
    x = tuple(float(rate) for rate in rates)
    return tuple(
        Line(label=one.label, role="measured", x=x, y=tuple(value(one, rate) for rate in rates))
        for one in platforms[1:]
    )


def loss_figure(found: Found, platforms: Sequence[Platform], rates: Sequence[int]) -> Figure:
    """Returns the throughput deficit of the slices to native, over the channel rate."""

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
    """Returns the excess of a time over native, over the load; a line for each variant."""

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


def arrivals(reader: RunReader, flow: str) -> npt.NDArray[np.int64]:
    """Returns the arrival times of a flow's packets after its first second, in ns of the run."""
    rows = reader.samples(flow, "delay")
    times = np.sort(rows.t_ns.to_numpy(dtype=np.int64))
    if not times.size:
        raise RunError("experiment.unmeasured", f"nothing of {flow} arrived", where=str(reader.folder))
    return np.asarray(times[times >= times[0] + SETTLING], np.int64)


def windows(times: npt.NDArray[np.int64], payload: int, length: int) -> npt.NDArray[np.float64]:
    """Returns throughput in bit/s of each whole window of ``length`` ns from the first packet."""
    count = int((times[-1] - times[0]) // length) if times.size else 0
    if not count:
        return np.empty(0)
    index = (times - times[0]) // length
    packets = np.bincount(index[index < count], minlength=count)
    return np.asarray(packets * (payload * 8e9 / length), np.float64)


def value(reader: RunReader, flows: Sequence[str], metric: str) -> float:
    """Returns the mean of a figure over the slices' flows, in its own unit."""
    return float(np.mean([capacity_search.value(reader, flow, metric) for flow in flows]))


def steady(reader: RunReader, flows: Sequence[str]) -> dict[str, tuple[float, str]]:
    """Returns throughput, delay and jitter of UDP flows after their start-up: means over them."""
    return {
        "throughput": (value(reader, flows, "throughput_steady"), "bit/s"),
        "delay": (value(reader, flows, "delay_steady_mean"), "ns"),
        "jitter": (value(reader, flows, "jitter_steady_mean"), "ns"),
    }


def dropped(reader: RunReader, reason: str) -> int:
    """Returns the frames that the emulated network dropped for a reason."""
    return reader.result.ledger.dropped.get(reason, 0)


def sides(found: Found, name: str, platform: Platform, **labels: Any) -> dict[str, Sample | None]:
    """Returns a figure of the native reference and a platform, as ``native`` and ``sliver``."""
    return {
        "native": found.sample(name, platform=NATIVE.name, **labels),
        "sliver": found.sample(name, platform=platform.name, **labels),
    }


def flows_of(reader: RunReader) -> list[str]:
    """Returns the slices whose flows a run measured."""
    measured = {one.name for one in reader.result.measurements}
    return [name for name in SLICES if name in measured]


def check_kinds(kinds: Sequence[str]) -> None:
    """Raises an error for kinds whose nodes cannot have radios."""
    if "native" in kinds:
        raise ScenarioError(
            "experiment.kind",
            "a native node has no radio of the laboratory",
            where="--kind native",
            cure="the native reference is one flow between netns nodes, and always measured",
        )
