"""Airloom's own fidelity: a point of each experiment in wall time, and the same in virtual time.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from airloom.errors import HostError
from airloom.experiments import both_times
from airloom.experiments.campaign import Asked, Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found
from airloom.experiments.repetitions import Repetitions
from airloom.report.figures import Figure, Line
from airloom.results import Result, RunReader
from airloom.stats import mean


class Compared(NamedTuple):
    """A point of an experiment and its main figure."""

    experiment: str
    case: str
    figure: str
    tolerance: float = 0.02
    """Deviation in wall time up to which the point counts as faithful, as a share."""


POINTS = (
    Compared("mtu-study", "e-mtu-7", "bandwidth.mean"),
    Compared("mtu-topologies", "tree-udp-10-100-1518", "of_ideal"),
    Compared("mtu-video", "airloom-rtp-lossy-1518", "ssim"),
    Compared("net-kinds-wired", "netns-002", "slower.throughput"),
    Compared("net-kinds-wireless", "ideal-aodv-002", "slower.throughput"),
    Compared("net-wired-chain", "netns-002", "forward.throughput"),
    Compared("net-wireless-chain", "80211b-aodv-002", "forward.throughput"),
    Compared("orbit-clients-server", "netns_load-10", "throughput"),
    Compared("orbit-coupling", "netns_load-20_other-10", "together"),
    Compared("orbit-file-transfer", "netns_rate-54_octets-1000000", "time"),
    Compared("orbit-kinds", "netns_task-tcp", "throughput"),
    Compared("orbit-queues", "netns_load-50_queue-40", "throughput"),
    Compared("orbit-rtp-video", "netns_rate-0.5", "ssim"),
    Compared("orbit-tcp-rate", "netns_rate-54", "throughput"),
    Compared("orbit-tcp-time", "netns_rate-36", "throughput"),
    Compared("orbit-udp-load", "netns_load-20_queue-long", "throughput"),
    Compared("orbit-udp-payload", "netns_payload-1470", "throughput"),
    Compared("orbit-udp-rate", "netns_rate-54", "throughput"),
    Compared("slices-isolation", "fdm_2_netns", "together"),
    Compared("vwifi-coalescing", "setting-3-ping", "rtt"),
    Compared("vwifi-latency", "virtual", "rtt"),
    Compared("vwifi-scan", "setting-0", "visits"),
    Compared("vwifi-throughput", "virtual", "udp-up"),
    Compared("vwifi-translation", "setting-0", "throughput"),
    Compared("vwifi-two-networks", "different", "sum"),
)
WITHOUT = {
    "mtu-guarantee": "its queues need a classifier of packets (tc filter), which the kernel of "
    "`airloom kernel build` does not have",
    "orbit-cpu": "it measures shares of this machine's processors; in virtual time work takes no time",
    "orbit-processor": "it is in virtual time alone: the processor that its guests share is modelled",
    "vwifi-cpu": "it measures processor time; in virtual time work takes no time",
    "net-virtual-time": "it is in virtual time, and has chains in wall time beside it",
    "wall-vs-virtual": "it is this one",
}
"""Experiments of which no point is here, and why."""
GROUPS = {"Wired": ("mtu-", "net-"), "Slices": ("orbit-", "slices-"), "Virtual WiFi": ("vwifi-",)}
"""Figures and how the names of their experiments begin."""
QUICK = ("mtu-study", "net-wireless-chain", "orbit-udp-load", "orbit-tcp-rate", "slices-isolation")
SMOKE = ("mtu-study",)
WALL, VIRTUAL = "wall", "virtual"
WALL_RUNS = 3
"""Runs of each point in wall time. In virtual time another run is the same to the octet."""


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """Measures each point in virtual time, then in wall time; finished ones are kept when it is run again."""
    names = extent.choose(full=tuple(one.experiment for one in POINTS), quick=QUICK, smoke=SMOKE)
    points = [one for one in POINTS if one.experiment in names]
    runs = (1, extent.choose(full=WALL_RUNS, quick=1, smoke=1))
    with Campaign.of(__file__, folder, progress=progress, kinds=("netns", "uml")) as campaign:
        asked = _asked(campaign, points)
        reads = {point.experiment: both_times.reading(one, point.figure) for point, one in asked.items()}

        def read(of: Case, reader: RunReader) -> Figures:
            return reads[of.labels["experiment"]](of, reader)

        for time, number in zip((VIRTUAL, WALL), runs, strict=True):
            rule = Repetitions.fixed(number, *dict.fromkeys(one.figure for one in points))
            cases = [_case(point, one, time) for point, one in asked.items()]
            campaign.announce(cases, rule)
            campaign.repeat(cases, read, rule, optional=True)
        _claims(campaign, points)
        for figure in _figures(campaign.found, points):
            campaign.draw(figure)
        for name, why in WITHOUT.items():
            campaign.note(f"without {name}: {why}")
        return campaign.finish()


def _asked(campaign: Campaign, points: Sequence[Compared]) -> dict[Compared, Asked]:
    """Returns the points that this machine can run; of the others it notes what is missing."""
    found = {}
    for one in points:
        try:
            found[one] = both_times.point(one.experiment, one.case)
        except HostError as error:
            campaign.note(f"without {one.experiment}: {error}")
    return found


def _case(point: Compared, asked: Asked, time: str) -> Case:
    labels = {"experiment": point.experiment, "time": time}
    case = replace(asked.case, name=f"{point.experiment}-{time}", labels=labels)
    return case if time == WALL else both_times.in_virtual_time(case)


def _claims(campaign: Campaign, points: Sequence[Compared]) -> None:
    for point in points:
        truth = campaign.found.sample(point.figure, experiment=point.experiment, time=VIRTUAL)
        campaign.claim(
            point.experiment,
            f"{point.experiment}, {point.case}: in wall time {point.figure} is what it is in virtual time.",
            f"wall within {100 * point.tolerance:g} % of virtual", says="same",
            shape=f"wall within {500 * point.tolerance:g} % of virtual",
            wall=campaign.found.sample(point.figure, experiment=point.experiment, time=WALL),
            virtual=truth and truth.judged()[0],
        )  # fmt: skip


def _figures(found: Found, points: Sequence[Compared]) -> list[Figure]:
    names = tuple(one.experiment for one in points)
    valid = Figure(
        name="valid",
        title="Runs whose verdict is valid",
        x_label="experiment",
        categories=names,
        y_label="share of the runs",
        unit="%",
        lines=tuple(_valid(found, names, time) for time in (VIRTUAL, WALL)),
    )
    groups = {title: [one for one in points if one.experiment.startswith(of)] for title, of in GROUPS.items()}
    return [*(_deviation(found, title, group) for title, group in groups.items() if group), valid]


def _deviation(found: Found, title: str, points: Sequence[Compared]) -> Figure:
    places = tuple(map(float, range(len(points))))
    deviations, halves = [], []
    for point in points:
        wall = found.all(point.figure, experiment=point.experiment, time=WALL)
        true = found.mean(point.figure, experiment=point.experiment, time=VIRTUAL)
        over = mean(wall) if wall and true else None
        deviations.append(None if over is None or not true else 100 * (over.value / true - 1))
        halves.append(None if over is None or not true or over.n < 2 else 100 * over.half_width / true)
    return Figure(
        name=f"deviation-{title.lower().replace(' ', '-')}",
        title=f"{title}: main figure in wall time against virtual time",
        x_label="experiment",
        categories=tuple(one.experiment for one in points),
        y_label="deviation",
        unit="%",
        lines=(
            Line(label="virtual time", role="ideal", x=places, y=(0.0,) * len(places)),
            Line(label="wall time", role="measured", x=places, y=tuple(deviations), ci95=tuple(halves)),
        ),
    )


def _valid(found: Found, names: Sequence[str], time: str) -> Line:
    shares = [found.mean(both_times.VALID, experiment=name, time=time) for name in names]
    y = tuple(None if one is None else 100 * one for one in shares)
    return Line(label=f"{time} time", role="measured", x=tuple(map(float, range(len(y)))), y=y)
