"""MTU study: a bandwidth guarantee for one flow beside a greedy one, by queues of a switch.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airloom.bench.peers import installed_mininet, mininet_scenario
from airloom.bench.peers.mininet_scenario import Shaping
from airloom.experiments import mtu
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found, Labels, Sample, each
from airloom.experiments.polling import POLLING
from airloom.report.figures import Figure, Line
from airloom.results import Result
from airloom.scenario.model import Scenario
from airloom.stats import mean

HERE, MININET = "airloom", "mininet"
LINKS = (10, 100)
"""Mbit/s."""
GUARANTEED, REST = 0.6, 0.4
"""Parts of the shared link: of the guaranteed flow, and of all others."""
FILLED = 0.95
"""Part of the link that the queues pass on, so that frames wait in them and not in front of the link, also
if that stands still for a while because the machine is late."""
WAITING = 100
"""Frames that may wait in a queue, and in front of a link."""
RECEIVE_BUFFER = 200_000
"""Octets that the kernel of a TCP receiver buffers at most, with what it needs for each packet: less than
WAITING of the smallest frames take, so that a flow alone in its queue loses none. See mtu.RECEIVE_BUFFER."""
UDP, TCP, SILENT = "udp", "tcp", "silent"
"""The flow with the guarantee: at OFFERED of it, as fast as it can, and absent."""
OFFERED = 0.95
BEGIN, LEAD = 2.0, 0.5
"""Seconds from time zero to the guaranteed flow, and by which the greedy one surrounds it."""
WARM_UP = 1_000_000_000
"""ns of the guaranteed flow that no figure includes: slow start, and queues that fill."""
MOST = 5
"""Most runs of a cell."""
MININET_SECONDS = 5.0
"""What a run on Mininet takes beside its flows."""
SENDER, SHARED = "10.0.0.1", "h3"
"""The address of h1, by which the switch knows the flow, and the host at the end of the shared link."""
BURST, LARGE = 0.01, 16_000
"""Seconds for which a queue may make up, and octets that may always pass at once: two large frames."""
NOT_CHECKED = 4
"""Octets of a frame that a queue of the kernel does not count: its check sequence."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One frame size, link and flow; with queues or one drop-tail queue for both flows."""

    network: str
    frame: int
    link: int
    flow: str
    queues: bool

    @property
    def passed(self) -> float:
        """What the queues pass on: bit/s of octets that they count, frames without check sequence."""
        whole = self.link * 1e6 * (self.frame - NOT_CHECKED) / (self.frame + mtu.GAP)
        return FILLED * whole

    @property
    def guarantee(self) -> float:
        """bit/s of octets that the queues count."""
        return GUARANTEED * self.passed

    @property
    def due(self) -> float:
        """What the flow has if the guarantee holds: bit/s of octets that the queues count."""
        return self.guarantee * (OFFERED if self.flow == UDP else 1.0)

    @property
    def counted(self) -> float:
        """Octets of a frame in the queues for each octet that the flow's receiver counts."""
        if self.flow == TCP:
            return (self.frame - NOT_CHECKED) / (mtu.mtu_of(self.frame) - mtu.TCP_HEADERS)
        return (self.frame - NOT_CHECKED) / self.frame

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its figures."""
        return {
            "network": self.network,
            "link": str(self.link),
            "frame": str(self.frame),
            "flow": self.flow,
            "queues": "guarantee" if self.queues else "none",
        }

    @property
    def name(self) -> str:
        """The folder of its runs."""
        return f"{self.network}-{self.flow}-{self.labels['queues']}-{self.link}-{self.frame}"

    def scenario(self, seconds: float) -> Scenario:
        """Two senders, a switch, a receiver; the greedy flow begins before the other and ends after it."""
        greedy = {
            "from": "h2", "to": "h3", "at": f"{BEGIN - LEAD} s", "duration": f"{seconds + 2 * LEAD} s",
            "frame": f"{self.frame} B", "rate": f"{self.link} Mbit/s", "rate_of": "wire",
            # Two flows of constant rate would keep their phase, and one of them lose all that does not fit.
            "pattern": "poisson",
        }  # fmt: skip
        measurements: list[dict[str, Any]] = [
            # After the queues are there: what passes while the kernel changes them is lost.
            {
                "name": "before",
                "ping": {"from": "h1", "to": "h3", "count": 2, "interval": "0.2 s", "at": "0.8 s"},
            },
            {"name": "greedy", "traffic": greedy},
        ]
        if self.flow != SILENT:
            own: dict[str, Any] = {"from": "h1", "to": "h3", "at": f"{BEGIN} s", "duration": f"{seconds} s"}
            if self.flow == TCP:
                own |= {"protocol": "tcp", "size": "128 KiB"}
            else:
                rate = round(self.due / self.counted)
                own |= {"frame": f"{self.frame} B", "rate": f"{rate} bit/s", "rate_of": "frame"}
            measurements.append({"name": "own", "traffic": own})
        if self.network == MININET:
            return mtu.FORK.scenario(
                f"mtu-{self.name}", self.link, mtu.mtu_of(self.frame), measurements, host=self._host()
            )
        return self._routed(measurements)

    def _routed(self, measurements: list[dict[str, Any]]) -> Scenario:
        """A router takes the place of the switch: a node, whose kernel has the queues."""
        wire = {
            "rate": f"{self.link} Mbit/s",
            "mtu": mtu.mtu_of(self.frame),
            # What the queues let through at once waits in front of the link, all else in the queues.
            "queue": {"packets": mtu.PACKETS if self.queues else WAITING},
            # Frames reach the router's queues one by one: a queue drops more of a flow that comes in bursts.
            "coalesce": "0 s",
        }
        hosts = [f"h{number}" for number in (1, 2, 3)]
        nets = [f"10.0.{number}" for number in range(3)]
        links = [
            {"ends": [host, f"r1:{host}"], "addresses": [[f"{net}.1/24"], [f"{net}.254/24"]], **wire}
            for host, net in zip(hosts, nets, strict=True)
        ]
        programs = []
        if self.queues:
            # In Mininet the class of the whole link is there already.
            commands = [
                f"tc qdisc add dev {SHARED} root handle 5: htb",
                f"tc class add dev {SHARED} parent 5: classid 5:1 htb {_rates(self.passed, self.passed)}",
            ]
            commands += [command.replace("{eth}", SHARED) for command in self._classes()]
            programs = [{"node": "r1", "name": "queues", "run": ["sh", "-c", " && ".join(commands)]}]
        return Scenario.model_validate(
            {
                "name": f"mtu-{self.name}",
                "nodes": {**{one: self._host() for one in hosts}, "r1": {}},
                "links": links,
                "programs": programs,
                "measurements": measurements,
                "engine": POLLING,
            }
        )

    def _host(self) -> dict[str, Any]:
        return mtu.receiving(RECEIVE_BUFFER) if self.flow == TCP else {}

    def _classes(self) -> list[str]:
        """Below the class of the link, 5:1, one for all and one for the flow, by its sender's address."""
        commands = []
        for number, share in ((10, REST), (20, GUARANTEED)):
            rates = _rates(share * self.passed, self.passed)
            commands += [
                f"tc class add dev {{eth}} parent 5:1 classid 5:{number} htb {rates}",
                f"tc qdisc add dev {{eth}} parent 5:{number} pfifo limit {WAITING}",
            ]
        chosen = "tc filter add dev {eth} parent 5: protocol ip"
        return [
            *commands,
            f"{chosen} prio 1 u32 match ip src {SENDER} flowid 5:20",
            f"{chosen} prio 2 u32 match u32 0 0 flowid 5:10",
        ]

    def shaping(self) -> list[Shaping]:
        """On Mininet: the classes below the one that its TCLink makes of the link's rate."""
        queue = f"tc qdisc add dev {{eth}} parent 5:1 pfifo limit {WAITING}"
        whole = f"tc class change dev {{eth}} parent 5: classid 5:1 htb {_rates(self.passed, self.passed)}"
        commands = [whole, *self._classes()] if self.queues else [queue]
        return [Shaping("s1", SHARED, command) for command in commands]

    def figures(self, folder: Path) -> Figures:
        """Rates in the time of the guaranteed flow, in octets that the queues count."""
        greedy = mininet_scenario.flow(folder, "greedy")
        begin, end = int(greedy.departures.min()), int(greedy.departures.max())
        if self.flow != SILENT:
            own = mininet_scenario.flow(folder, "own")
            begin, end = int(own.departures.min()), int(own.departures.max())
        begin += WARM_UP
        octets = self.frame - NOT_CHECKED
        competing = mtu.rate_between(greedy.arrivals, mtu.counted_octets(greedy, octets), begin, end)
        found = {"greedy": (competing, "bit/s")}
        if self.flow == SILENT:
            return found | {"of_passed": (competing / self.passed, "1")}
        received = mtu.counted_octets(own, None if self.flow == TCP else self.frame)
        rate = self.counted * mtu.rate_between(own.arrivals, received, begin, end)
        found |= {
            "rate": (rate, "bit/s"),
            "of_due": (rate / self.due, "1"),
            "of_passed": ((rate + competing) / self.passed, "1"),
        }
        if self.flow == UDP:
            late = own.arrived_at >= begin
            found["delay.p50"] = (float(np.median(own.delays[late])), "ns")
            found["loss"] = (own.lost / own.sent, "1")
        return found


def _rates(rate: float, ceiling: float) -> str:
    """Of an HTB class."""
    bursts = [max(LARGE, round(BURST * one / 8)) for one in (rate, ceiling)]
    return f"rate {round(rate)}bit ceil {round(ceiling)}bit burst {bursts[0]}b cburst {bursts[1]}b"


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """All cells on both networks; finished runs are kept when it is run again."""
    seconds = extent.choose(full=3.5, quick=2.5, smoke=1.5)
    absent = installed_mininet.lacks()
    cells = list(_cells(extent, (HERE,) if absent else (HERE, MININET)))
    rule = extent.repetitions("of_due", "of_passed", most=MOST)
    with Campaign.of(__file__, folder, progress=progress, kinds=("netns",)) as campaign:
        if absent:
            campaign.note(f"without Mininet: {absent}")
        known = {_key(cell.labels): cell for cell in cells}
        cases = [_case(cell, seconds) for cell in cells]
        campaign.measure(cases, lambda case, reader: known[_key(case.labels)].figures(reader.folder), rule)
        campaign.judge(lambda: _claims(campaign, cells))
        for figure in _figures(campaign.found, cells):
            campaign.draw(figure)
        return campaign.finish()


def _key(labels: Labels) -> tuple[str, ...]:
    return tuple(labels[name] for name in ("network", "link", "frame", "flow", "queues"))


def _cells(extent: Extent, networks: Sequence[str]) -> Iterable[Cell]:
    frames = extent.choose(full=mtu.FRAMES, quick=mtu.FRAMES[:1], smoke=mtu.FRAMES[:1])
    links = extent.choose(full=LINKS, quick=LINKS[1:], smoke=LINKS[:1])
    for network in networks:
        brief = extent is Extent.SMOKE and network == MININET
        for link in links:
            for frame in frames:
                for kind in (UDP,) if brief else (UDP, TCP):
                    yield from (Cell(network, frame, link, kind, queues) for queues in (False, True))
                if not brief:
                    yield Cell(network, frame, link, SILENT, True)


def _case(cell: Cell, seconds: float) -> Case:
    lasts = BEGIN + seconds + LEAD
    if cell.network == HERE:
        return Case(cell.name, cell.labels, cell.scenario(seconds), lasts)

    def measure(place: Path, scenario: Scenario) -> tuple[Figures, bool]:
        mininet_scenario.run(scenario, place, cell.shaping())
        return cell.figures(place), True

    return Case(
        cell.name, cell.labels, cell.scenario(seconds), lasts + MININET_SECONDS, outside=measure
    )  # fmt: skip


def _samples(campaign: Campaign, name: str, cells: Iterable[Cell]) -> dict[str, Sample | None]:
    return {
        f"{cell.flow}-{cell.labels['queues']}-{cell.link}-{cell.frame}": campaign.found.sample(
            name, **cell.labels
        )
        for cell in cells
    }


def _claims(campaign: Campaign, cells: list[Cell]) -> None:
    for network in dict.fromkeys(cell.network for cell in cells):
        _claims_of(campaign, [cell for cell in cells if cell.network == network])


def _claims_of(campaign: Campaign, cells: list[Cell]) -> None:
    network = cells[0].network

    def some(flow: str, *, queues: bool) -> list[Cell]:
        return [cell for cell in cells if cell.flow == flow and cell.queues == queues]

    for kind, within, words in ((UDP, 0.98, f"UDP at {OFFERED:g} of its guarantee"), (TCP, 0.95, "TCP")):
        if not some(kind, queues=True):
            continue
        values = _samples(campaign, "of_due", some(kind, queues=True))
        campaign.claim(
            f"{kind}-{network}",
            f"With queues of {network} {words} has what is due to it beside a flow that fills the link.",
            each(values, f">= {within}"), says="guarantee", shape=each(values, ">= 0.9"), **values,
        )  # fmt: skip
        values = _samples(campaign, "of_due", some(kind, queues=False))
        campaign.claim(
            f"{kind}-without-{network}", f"Without them ({network}) it has less than 0.9 of that.",
            each(values, "< 0.9"), says="guarantee", **values,
        )  # fmt: skip
    values = _samples(campaign, "of_passed", some(SILENT, queues=True))
    if values:
        campaign.claim(
            f"borrowed-{network}", f"If the flow is silent, the other has all that {network} passes on.",
            each(values, "within 2 % of 1"), says="guarantee", shape=each(values, "within 5 % of 1"),
            **values,
        )  # fmt: skip
    values = _samples(campaign, "of_passed", [cell for cell in cells if cell.queues and cell.flow != SILENT])
    campaign.claim(
        f"whole-{network}", f"A guarantee by {network} leaves no bandwidth unused.",
        each(values, "within 3 % of 1"), says="guarantee", shape=each(values, "within 6 % of 1"), **values,
    )  # fmt: skip


def _figures(found: Found, cells: Sequence[Cell]) -> Iterable[Figure]:
    frames = sorted({cell.frame for cell in cells})
    x = tuple(map(float, frames))
    for link in sorted({cell.link for cell in cells}):
        for kind in (UDP, TCP):
            ideal = Line(label="due", role="ideal", x=x, y=(100.0,) * len(x))
            own = [cell for cell in cells if cell.link == link and cell.flow == kind]
            yield Figure(
                name=f"share-{kind}-{link}",
                title=f"{kind.upper()} with a guarantee beside a greedy flow, link of {link} Mbit/s",
                x_label="frame, octets", y_label="rate, of what is due", unit="%",
                lines=(ideal, *_lines(found, own, "of_due", 0.01)),
                caption=f"The guarantee is {GUARANTEED:g} of what the queues pass on, of which UDP offers "
                f"{OFFERED:g}.",
            )  # fmt: skip
        own = [cell for cell in cells if cell.link == link and cell.flow == UDP]
        yield Figure(
            name=f"delay-{link}", title=f"Median delay of UDP with a guarantee, link of {link} Mbit/s",
            x_label="frame, octets", y_label="median delay", unit="ms",
            lines=_lines(found, own, "delay.p50", 1e6), log_y=True,
        )  # fmt: skip


def _lines(found: Found, cells: Sequence[Cell], name: str, scale: float) -> tuple[Line, ...]:
    lines = []
    for network in dict.fromkeys(cell.network for cell in cells):
        for queues in (True, False):
            own = sorted(
                (cell for cell in cells if (cell.network, cell.queues) == (network, queues)),
                key=lambda cell: cell.frame,
            )
            values = [found.all(name, **cell.labels) for cell in own]
            means = [mean(one) if one else None for one in values]
            lines.append(
                Line(
                    label=f"{network}, {'with' if queues else 'without'} guarantee",
                    role="measured" if network == HERE else "reference",
                    x=tuple(float(cell.frame) for cell in own),
                    y=tuple(one.value / scale if one else None for one in means),
                    ci95=tuple(one.half_width / scale if one and one.n > 1 else None for one in means),
                )
            )
    return tuple(lines)
