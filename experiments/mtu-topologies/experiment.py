"""MTU study on larger topologies: one switch, two, and a tree, here and on the installed Mininet.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airloom.bench.peers import installed_mininet, mininet_scenario
from airloom.experiments import mtu
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found, Labels, Sample, each
from airloom.experiments.mtu import SHAPES, Shape
from airloom.measure.flow import FlowReading
from airloom.report.figures import Figure, Line
from airloom.results import Result
from airloom.scenario.model import Scenario
from airloom.stats import mean

HERE, MININET = "airloom", "mininet"
PAIRS = ((10, 10), (100, 10), (100, 100))
"""The study's links and loads: Mbit/s."""
LINKS = (10, 100)
MOST = 5
"""Most runs of a cell."""
UDP_SECONDS, TCP_SECONDS, QUICK_SECONDS = 2.5, 5.0, 1.5
"""Duration of flows: UDP is even from its first frame, TCP has to settle."""
MININET_SECONDS = 5.0
"""What a run on Mininet takes beside its flows."""
UDP_WITHIN, TCP_WITHIN = 0.5, 2
"""% of the ideal."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One shape with one frame size and load; rates in Mbit/s, without a load TCP sends what it can."""

    shape: Shape
    frame: int
    link: int
    load: int | None

    @property
    def traffic(self) -> str:
        """Protocol, link and load, as a label."""
        return f"TCP, {self.link}" if self.load is None else f"UDP, {self.link}/{self.load}"

    @property
    def ideal(self) -> float:
        """Rate of all flows together: frames of UDP, octets of TCP."""
        if self.load is None:
            return mtu.ideal_tcp(self.frame, self.link)
        return mtu.ideal_frames(self.frame, self.link, self.load)

    @property
    def delay(self) -> float:
        """What the path takes if no frame waits, each switch taking in a frame before it sends it: ns."""
        return self.shape.hops() * mtu.on_wire(self.frame, self.link)

    @property
    def is_below(self) -> bool:
        """Whether the load is below the link."""
        return self.load is not None and self.load < self.link

    def seconds(self, extent: Extent) -> float:
        """Returns how long its flows last."""
        full = TCP_SECONDS if self.load is None else UDP_SECONDS
        return extent.choose(full=full, quick=QUICK_SECONDS, smoke=QUICK_SECONDS)

    def labels(self, network: str) -> dict[str, str]:
        """The labels of its figures on a network."""
        return {
            "topology": self.shape.name,
            "traffic": self.traffic,
            "frame": str(self.frame),
            "network": network,
        }

    def scenario(self, seconds: float) -> Scenario:
        """The network, and a flow for each of the shape's; they share the load and begin together."""
        measurements = []
        for number, (sender, receiver) in enumerate(self.shape.flows):
            flow: dict[str, Any] = {"from": sender, "to": receiver, "at": "1 s", "duration": f"{seconds} s"}
            if self.load is None:
                flow |= {"protocol": "tcp", "size": "128 KiB"}
            else:
                rate = self.load * 10**6 // len(self.shape.flows)
                flow |= {"frame": f"{self.frame} B", "rate": f"{rate} bit/s", "rate_of": "frame"}
            # The addresses are known before the first packet.
            ping = {"from": sender, "to": receiver, "count": 2, "interval": "0.2 s"}
            measurements += [
                {"name": f"before-{number}", "ping": ping},
                {"name": f"flow-{number}", "traffic": flow},
            ]
        return self.shape.scenario(
            f"mtu-{self.name}",
            self.link,
            mtu.mtu_of(self.frame),
            measurements,
            host=mtu.receiving(mtu.RECEIVE_BUFFER) if self.load is None else None,
        )

    @property
    def name(self) -> str:
        """The folder of its runs."""
        load = "tcp" if self.load is None else f"udp-{self.load}"
        return f"{self.shape.name}-{load}-{self.link}-{self.frame}"

    def figures(self, folder: Path) -> Figures:
        """The figures of a finished run, which both networks record in the same files."""
        readings = [
            mininet_scenario.flow(folder, f"flow-{number}") for number in range(len(self.shape.flows))
        ]
        rate = mtu.together(readings, self.frame if self.load is not None else None)
        found = {"rate": (rate, "bit/s"), "of_ideal": (rate / 1e6 / self.ideal, "1")}
        if self.load is not None:
            found |= _times(readings, self.delay if self.is_below else None)
        return found


def _times(readings: Sequence[FlowReading], path: float | None) -> Figures:
    delays = np.concatenate([one.delays for one in readings])
    jitter = np.concatenate([one.jitter for one in readings])
    found: dict[str, tuple[float, str]] = {
        "delay.p50": (float(np.median(delays)), "ns"),
        "jitter.mean": (float(jitter.mean()), "ns"),
    }
    if path is not None:
        found["delay.of_path"] = (float(np.median(delays)) / path, "1")
    return found


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """All cells on both networks; finished runs are kept when it is run again."""
    shapes = extent.choose(full=SHAPES, quick=SHAPES, smoke=SHAPES[-1:])
    cells = list(_cells(extent, shapes))
    rule = extent.repetitions("of_ideal", most=MOST)
    with Campaign.of(__file__, folder, progress=progress, kinds=("netns",)) as campaign:
        cases = [_here(cell, cell.seconds(extent)) for cell in cells]
        absent = installed_mininet.lacks()
        if absent:
            campaign.note(f"without Mininet: {absent}")
        else:
            cases += [_on_mininet(cell, cell.seconds(extent)) for cell in cells]
        known = {_key(cell.labels(HERE)): cell for cell in cells}
        campaign.measure(cases, lambda case, reader: known[_key(case.labels)].figures(reader.folder), rule)
        campaign.judge(lambda: _claims(campaign, cells, shapes))
        for figure in _figures(campaign.found, cells, shapes):
            campaign.draw(figure)
        return campaign.finish()


def _cells(extent: Extent, shapes: Sequence[Shape]) -> Iterable[Cell]:
    frames = extent.choose(full=mtu.FRAMES, quick=mtu.FRAMES[::2], smoke=mtu.FRAMES[:1])
    for shape in shapes:
        for frame in frames:
            for link, load in extent.choose(full=PAIRS, quick=PAIRS[1:], smoke=PAIRS[1:]):
                if extent is not Extent.QUICK or frame == frames[0] or load == link:
                    yield Cell(shape, frame, link, load)
            for link in extent.choose(full=LINKS, quick=LINKS[1:], smoke=LINKS[1:]):
                if extent is not Extent.QUICK or frame == frames[0]:
                    yield Cell(shape, frame, link, None)


def _here(cell: Cell, seconds: float) -> Case:
    return Case(cell.name, cell.labels(HERE), cell.scenario(seconds), 1 + seconds)


def _key(labels: Labels) -> tuple[str, ...]:
    return labels["topology"], labels["traffic"], labels["frame"]


def _on_mininet(cell: Cell, seconds: float) -> Case:
    def measure(place: Path, scenario: Scenario) -> tuple[Figures, bool]:
        mininet_scenario.run(scenario, place)
        return cell.figures(place), True

    name, lasts = f"{cell.name}-mininet", seconds + MININET_SECONDS
    return Case(name, cell.labels(MININET), cell.scenario(seconds), lasts, outside=measure)


def _samples(campaign: Campaign, name: str, network: str, cells: Iterable[Cell]) -> dict[str, Sample | None]:
    """By words that a claim can name: protocol, link, load and frame."""
    found = campaign.found
    return {_word(cell, network): found.sample(name, **cell.labels(network)) for cell in cells}


def _word(cell: Cell, network: str) -> str:
    load = "tcp" if cell.load is None else f"udp{cell.load}"
    return f"{network}-{load}-{cell.link}-{cell.frame}"


def _claims(campaign: Campaign, cells: Sequence[Cell], shapes: Sequence[Shape]) -> None:
    for shape in shapes:
        _claims_of(campaign, [cell for cell in cells if cell.shape is shape])
    _alike(campaign, cells, shapes)


def _claims_of(campaign: Campaign, cells: list[Cell]) -> None:
    shape = cells[0].shape
    udp = [cell for cell in cells if cell.load is not None]
    tcp = [cell for cell in cells if cell.load is None]
    below = [cell for cell in udp if cell.is_below]
    full = [cell for cell in udp if not cell.is_below]
    values = _samples(campaign, "of_ideal", HERE, udp)
    campaign.claim(
        f"udp-{shape.name}", f"UDP over {shape.label}: within {UDP_WITHIN} % of the frame size's ideal.",
        each(values, f"within {UDP_WITHIN} % of 1"), says="more",
        shape=each(values, f"within {2 * UDP_WITHIN:g} % of 1"), **values,
    )  # fmt: skip
    values = _samples(campaign, "of_ideal", HERE, tcp)
    campaign.claim(
        f"tcp-{shape.name}", f"TCP over {shape.label}: within {TCP_WITHIN} % of the frame size's ideal.",
        each(values, f"within {TCP_WITHIN} % of 1"), says="more",
        shape=each(values, f"within {2.5 * TCP_WITHIN:g} % of 1"), **values,
    )  # fmt: skip
    values = _samples(campaign, "delay.of_path", HERE, below)
    campaign.claim(
        f"delay-{shape.name}",
        f"Below capacity the median delay over {shape.label} is that of {shape.hops()} links, each of which "
        "takes a whole frame before the next begins.",
        " and ".join(f"{one} >= 1 and {one} <= 1.5" for one in values), says="shaper",
        shape=each(values, ">= 1"), **values,
    )  # fmt: skip
    if not campaign.found.all("of_ideal", **cells[0].labels(MININET)):
        return
    here = _samples(campaign, "of_ideal", HERE, below)
    there = _samples(campaign, "of_ideal", MININET, below)
    pairs = list(zip(here, there, strict=True))
    campaign.claim(
        f"below-{shape.name}", f"Below capacity both networks agree within 1 % over {shape.label}.",
        " and ".join(f"{ours} within 1 % of {theirs}" for ours, theirs in pairs), says="below",
        shape=" and ".join(f"{ours} within 3 % of {theirs}" for ours, theirs in pairs), **here, **there,
    )  # fmt: skip
    there = _samples(campaign, "of_ideal", MININET, full)
    campaign.claim(
        f"full-{shape.name}",
        f"At capacity Mininet's links carry more over {shape.label} than a wire can: by the preamble and gap "
        "that its shaper does not count.",
        each(there, "> 1"), says="above", shape=each(there, "> 0.99"), **there,
    )  # fmt: skip
    there = _samples(campaign, "delay.of_path", MININET, below)
    campaign.claim(
        f"shaper-{shape.name}",
        f"Below capacity a frame crosses Mininet's {shape.hops()} links in less time than they would take: a "
        "token bucket does not hold it back.",
        each(there, "< 1"), says="shaper", **there,
    )  # fmt: skip


def _alike(campaign: Campaign, cells: Sequence[Cell], shapes: Sequence[Shape]) -> None:
    """Larger shapes against one switch: the same frames and loads."""
    one = {(cell.traffic, cell.frame): cell for cell in cells if cell.shape is SHAPES[0]}
    for shape in shapes:
        others = [cell for cell in cells if cell.shape is shape and (cell.traffic, cell.frame) in one]
        if shape is SHAPES[0] or not others:
            continue
        values: dict[str, Sample | None] = {}
        checks = {1: list[str](), 3: list[str]()}
        for cell in others:
            word, alone = _word(cell, HERE), _word(cell, "alone")
            values[word] = campaign.found.sample("of_ideal", **cell.labels(HERE))
            base = one[cell.traffic, cell.frame]
            values[alone] = campaign.found.sample("of_ideal", **base.labels(HERE))
            for within, said in checks.items():
                said.append(f"{word} within {within} % of {alone}")
        campaign.claim(
            f"alike-{shape.name}", f"Each cell over {shape.label} has the rate of one switch within 1 %.",
            " and ".join(checks[1]), says="more", shape=" and ".join(checks[3]), **values,
        )  # fmt: skip


def _figures(found: Found, cells: Sequence[Cell], shapes: Sequence[Shape]) -> Iterable[Figure]:
    kinds = list(dict.fromkeys(cell.traffic for cell in cells))
    frames = sorted({cell.frame for cell in cells})
    for kind in kinds:
        slug = kind.lower().replace(", ", "-").replace("/", "-")
        some = [cell for cell in cells if cell.traffic == kind]
        ideal = Line(label="ideal", role="ideal", x=tuple(map(float, frames)), y=(0.0,) * len(frames))
        lines = [ideal, *_lines(found, some, shapes, "of_ideal", 0.01, 1.0)]
        yield Figure(
            name=f"rate-{slug}", title=f"Rate of all flows together less the ideal, {kind} Mbit/s",
            x_label="frame, octets", y_label="difference from the ideal", unit="%", lines=tuple(lines),
            caption="The ideal is the load, or what a full wire leaves beside preamble, gap and headers.",
        )  # fmt: skip
        for name, title in (("delay.p50", "Median delay"), ("jitter.mean", "Mean jitter")):
            lines = _lines(found, some, shapes, name, 1e6)
            if name.startswith("delay") and some[0].is_below:
                at = {(cell.shape.name, cell.frame): cell.delay / 1e6 for cell in some}
                lines += [
                    Line(
                        label=f"{shape.hops()} links", role="ideal", x=tuple(map(float, frames)),
                        y=tuple(at.get((shape.name, frame)) for frame in frames),
                    )
                    for shape in shapes
                ]  # fmt: skip
            if any(y is not None for line in lines for y in line.y):
                yield Figure(
                    name=f"{name.partition('.')[0]}-{slug}", title=f"{title}, {kind} Mbit/s",
                    x_label="frame, octets", y_label=title.lower(), unit="ms", lines=tuple(lines),
                )  # fmt: skip


def _lines(
    found: Found, cells: Sequence[Cell], shapes: Sequence[Shape], name: str, scale: float, less: float = 0.0
) -> list[Line]:
    lines = []
    for network in (HERE, MININET):
        for shape in shapes:
            own = sorted((cell for cell in cells if cell.shape is shape), key=lambda cell: cell.frame)
            values = [found.all(name, **cell.labels(network)) for cell in own]
            means = [mean(one) if one else None for one in values]
            if any(means):
                lines.append(
                    Line(
                        label=f"{network}, {shape.name}",
                        role="measured" if network == HERE else "reference",
                        x=tuple(float(cell.frame) for cell in own),
                        y=tuple((one.value - less) / scale if one else None for one in means),
                        ci95=tuple(one.half_width / scale if one and one.n > 1 else None for one in means),
                    )
                )
    return lines
