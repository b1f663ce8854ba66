"""The MTU study: bandwidth and jitter of three frame sizes, beside its real network and Mininet.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from airloom.bench.peers import installed_mininet, mininet_scenario
from airloom.experiments import capacity_search
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found
from airloom.measure import captures
from airloom.measure.flow import FlowReading
from airloom.planning.capture import Capture
from airloom.report import figures
from airloom.report.figures import Figure, Line
from airloom.results import Result, RunReader
from airloom.scenario.model import Scenario
from airloom.stats import mean


def _beside(name: str) -> Any:
    """A module of this folder, which is no package."""
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"airloom_mtu_study_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


cases = _beside("cases")
equipment = _beside("equipment")
tunnelled = _beside("tunnelled")
judged = _beside("judged")

WIRE, AIRLOOM, TUNNEL, MININET = judged.WIRE, judged.AIRLOOM, judged.TUNNEL, judged.MININET
MODEL = "equipment model"
REAL, PUBLISHED = "real, published", "mininet, published"
SETTLED = "slip"
"""What links do here with time that the host lost."""
MOST = 5
"""Most runs of a cell."""
TUNNEL_SECONDS, MININET_SECONDS = 8.0, 5.0
"""What such a run takes beside its flow."""


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """All cases; finished runs are kept when it is run again."""
    seconds = extent.choose(full=8.0, quick=1.5, smoke=0.5)
    packets = extent.choose(full=6000, quick=1000, smoke=200)
    nine = extent.choose(full=cases.NINE, quick=cases.NINE, smoke=(judged.TUNNELLED,))
    in_tunnel = extent.choose(
        full=cases.NINE, quick=(cases.NINE[0], judged.TUNNELLED), smoke=(judged.TUNNELLED,)
    )
    others = extent.choose(full=cases.sizes(), quick=cases.sizes()[-2:-1], smoke=cases.sizes()[-2:-1])
    starts = extent.choose(full=cases.STARTS, quick=cases.STARTS[:1], smoke=())
    rule = extent.repetitions("bandwidth.mean", most=MOST)
    lengths = dict.fromkeys((*nine, *others), seconds) | dict.fromkeys(starts, cases.START_SECONDS)
    with Campaign("mtu-study", folder, paper=judged.paper(), progress=progress, kinds=("netns",)) as campaign:
        here = [_here(case, length) for case, length in lengths.items()]
        over = [_over_gre(case, seconds) for case in in_tunnel]
        peers = []
        absent = installed_mininet.lacks()
        if absent:
            campaign.note(f"without Mininet: {absent}")
        else:
            peers = [_on_mininet(case, lengths[case]) for case in (*nine, *starts)]
        campaign.announce([*here, *over, *peers], rule)
        campaign.repeat(here, functools.partial(_read, campaign), rule)
        campaign.repeat([*over, *peers], _nothing, rule)
        fits = _fitted(packets, progress)
        _tell(campaign.found, fits)
        seen = _first(folder, lengths, in_tunnel)
        best = {fit.link: fit.model for fit in reversed(fits)}
        for case in cases.NINE:
            series = cases.Series.of(equipment.simulate(case, best[case.link], packets), case.frame)
            seen[case.id, MODEL] = series
            campaign.found.add({"case": case.id, "network": MODEL}, series.figures(case))
        campaign.judge(lambda: judged.claim(campaign))
        for figure in (*_curves(seen), *_overview(campaign.found), *_differences(campaign.found)):
            campaign.draw(figure)
        return campaign.finish()


def _labels(case: Any, network: str) -> dict[str, str]:
    return {"case": case.id, "network": network}


def _here(case: Any, seconds: float) -> Case:
    scenario = case.scenario(seconds, late=SETTLED)
    captured = Capture(merged=True)
    return Case(case.id.lower(), _labels(case, AIRLOOM), scenario, 1 + seconds, capture=captured)


def _over_gre(case: Any, seconds: float) -> Case:
    def measure(place: Path, _: Scenario) -> tuple[Figures, bool]:
        reading, inner = tunnelled.measure(case, seconds, place, late=SETTLED)
        valid = capacity_search.believable(map(RunReader, tunnelled.sides(place)))
        return _inner(cases.Series.of(reading, inner), case, inner), valid

    name = f"{case.id.lower()}-gre"
    scenario = case.scenario(seconds, late=SETTLED)
    return Case(name, _labels(case, TUNNEL), scenario, seconds + TUNNEL_SECONDS, outside=measure)


def _inner(series: Any, case: Any, octets: int) -> Figures:
    """The figures of inner frames of so many octets; their ideal is smaller by what the tunnel adds."""
    share = series.mean / (case.ideal * octets / case.frame)
    return {**series.figures(case), "of_inner_ideal.mean": (share, "1")}


def _on_mininet(case: Any, seconds: float) -> Case:
    def measure(place: Path, scenario: Scenario) -> tuple[Figures, bool]:
        mininet_scenario.run(scenario, place)
        return cases.Series.of(_recorded(place), case.frame).figures(case), True

    name = f"{case.id.lower()}-mininet"
    return Case(
        name, _labels(case, MININET), case.scenario(seconds), seconds + MININET_SECONDS, outside=measure
    )


def _recorded(place: Path) -> FlowReading:
    return mininet_scenario.flow(place, "flow")


def _read(campaign: Campaign, of: Case, reader: RunReader) -> Figures:
    """The figures at the receiver; those on the wire, which the same run gave, are added beside them."""
    case = cases.BY_ID[of.labels["case"]]
    wire, receiver = _both(reader.folder, case)
    valid = capacity_search.believable([reader])
    campaign.found.add(_labels(case, WIRE), wire.figures(case), valid=valid)
    return receiver.figures(case)


def _nothing(of: Case, reader: RunReader) -> Figures:
    """No figures: these cases are no runs."""
    return {}


def _both(folder: Path, case: Any) -> tuple[Any, Any]:
    """The case as the wire had it, and as the receiving kernel saw it."""
    capture = folder / "capture.pcapng"
    wire = captures.flow(capture, capture, sender_port="h1:eth0", receiver_port="h2:eth0")
    receiver = cases.Series.of(_recorded(folder), case.frame, case.full)
    return cases.Series.of(wire, case.frame), receiver


def _first(folder: Path, lengths: Iterable[Any], in_tunnel: Iterable[Any]) -> dict[tuple[str, str], Any]:
    """Packet by packet, the first run of each cell."""
    found: dict[tuple[str, str], Any] = {}
    place = folder / capacity_search.POINTS
    for case in lengths:
        first = place / f"{case.id.lower()}-r00"
        if (first / "capture.pcapng").exists():
            found[case.id, WIRE], found[case.id, AIRLOOM] = _both(first, case)
        first = place / f"{case.id.lower()}-mininet-r00"
        if (first / mininet_scenario.MEASUREMENTS / "flow" / "receiver.out").exists():
            found[case.id, MININET] = cases.Series.of(_recorded(first), case.frame)
    for case in in_tunnel:
        first = place / f"{case.id.lower()}-gre-r00"
        if all((side / "result.json").exists() for side in tunnelled.sides(first)):
            reading = tunnelled.reading(first)
            found[case.id, TUNNEL] = cases.Series.of(reading, case.frame - tunnelled.OVERHEAD)
    return found


def _fitted(packets: int, progress: Callable[[str], None]) -> list[Any]:
    published = cases.published()
    jitters = {case.id: published[case.id, "real"].jitter[0] for case in cases.NINE}
    bandwidths = {case.id: published[case.id, "real"].bandwidth[0] for case in cases.NINE}
    return equipment.fit(cases.NINE, jitters, bandwidths, packets, progress)


def _tell(found: Found, fits: Sequence[Any]) -> None:
    """Adds the published figures and the fits to those of the runs."""
    for (case, network), cell in cases.published().items():
        labels = {"case": case, "network": REAL if network == "real" else PUBLISHED}
        for name, values, unit, scale in (
            ("bandwidth", cell.bandwidth, "bit/s", 1e6),
            ("jitter", cell.jitter, "ns", 1e6),
        ):
            known = zip(("mean", "max", "min"), values, strict=True)
            found.add(labels, {f"{name}.{of}": (v * scale, unit) for of, v in known if v is not None})
    for fit in fits:
        figures_of = {
            "fit.parameter": (fit.model.value * 1000, "ns"),
            "fit.gap": (fit.model.gap * 1000, "ns"),
            "fit.misses_by_factor": (fit.factor, "1"),
        }
        found.add({"link": f"{fit.link} Mbit/s", "model": fit.model.word}, figures_of)


_ROLES: dict[str, figures.Role] = {
    WIRE: "measured",
    AIRLOOM: "measured",
    TUNNEL: "measured",
    MININET: "reference",
    MODEL: "reference",
}


def _curves(seen: dict[tuple[str, str], Any]) -> Iterable[Figure]:
    for case in (*cases.NINE, *(case for case in cases.STARTS if (case.id, WIRE) in seen)):
        shown = {network: seen[case.id, network] for network in _ROLES if (case.id, network) in seen}
        what = f"{case.id}: {case.load} Mbit/s of {case.frame} B over {case.link} Mbit/s"
        for name, unit in (("bandwidth", "Mbit/s"), ("jitter", "ms")):
            lines = [
                Line(
                    label=network,
                    role=_ROLES[network],
                    x=series.packets,
                    y=series.bandwidths if name == "bandwidth" else series.jitters,
                )
                for network, series in shown.items()
            ]
            if name == "bandwidth":
                ends = (float(cases.WINDOW), max(line.x[-1] for line in lines))
                lines.insert(0, Line(label="ideal", role="ideal", x=ends, y=(case.ideal, case.ideal)))
            yield Figure(
                name=f"{name}-{case.id.lower()}",
                title=f"{name.capitalize()}, {what}",
                x_label="packet number",
                y_label=f"{name} of the last {cases.WINDOW} packets",
                unit=unit,
                lines=tuple(lines),
                log_x=True,
                log_y=name == "jitter" and all(value for line in lines for value in line.y),
            )


def _overview(found: Found) -> Iterable[Figure]:
    """Means of all nine cases with their intervals, beside published means, maxima and minima."""
    numbers = tuple(float(number) for number, _ in enumerate(cases.NINE, 1))

    def line(label: str, role: figures.Role, name: str, network: str) -> Line:
        """A figure of the nine cases: bandwidth as a part of the load, jitter in ms."""
        y: list[float | None] = []
        half: list[float | None] = []
        for case in cases.NINE:
            values = found.all(name, **_labels(case, network))
            scale = case.load * 1e6 if name.startswith("bandwidth") else 1e6
            over = mean(values) if values else None
            # Zero has no place on the logarithmic axis of jitter.
            y.append(over.value / scale if over and over.value else None)
            half.append(over.half_width / scale if over and over.n > 1 else None)
        return Line(label=label, role=role, x=numbers, y=tuple(y), ci95=tuple(half))

    for name in ("bandwidth", "jitter"):
        lines = [
            line(f"{network}: {word}", "published", f"{name}.{metric}", network)
            for network in (REAL, PUBLISHED)
            for metric, word in (("mean", "mean"), ("max", "most"), ("min", "least"))
        ]
        lines += [line(network, _ROLES[network], f"{name}.mean", network) for network in _ROLES]
        yield Figure(
            name=f"{name}-means",
            title=f"Mean {name} of the nine cases",
            x_label="case E-MTU-n",
            y_label="part of the offered load" if name == "bandwidth" else "mean jitter",
            unit="" if name == "bandwidth" else "ms",
            lines=tuple(one for one in lines if any(y is not None for y in one.y)),
            log_y=name == "jitter",
            caption="The equipment's parameters were fitted to the published means of the real network.",
        )


def _differences(found: Found) -> Iterable[Figure]:
    """Each cell beside its published one: our interval less the published mean, with its extremes.

    A difference is significant if its interval excludes zero. The published maxima of jitter are up to 70
    times the means and would hide them; the figure of the means has them.
    """
    numbers = tuple(float(number) for number, _ in enumerate(cases.NINE, 1))
    for against, networks in (("real", (AIRLOOM, TUNNEL)), ("mininet", (MININET, AIRLOOM))):
        known = [cases.published()[case.id, against] for case in cases.NINE]
        for name, unit, words in (
            ("bandwidth", "%", ("mean", "most", "least")),
            ("jitter", "ms", ("mean", "", "least")),
        ):
            cells = [getattr(cell, name) for cell in known]
            means = [cell[0] or 0.0 for cell in cells]
            scales = [one / 100 if name == "bandwidth" else 1.0 for one in means]
            lines = [
                Line(
                    label=f"published: {word}",
                    role="ideal" if word == "mean" else "published",
                    x=numbers,
                    y=tuple(
                        None if cell[at] is None else (cell[at] - one) / scale
                        for cell, one, scale in zip(cells, means, scales, strict=True)
                    ),
                )
                for at, word in enumerate(words)
                if word
            ]
            for network in networks:
                y: list[float | None] = []
                half: list[float | None] = []
                for case, scale in zip(cases.NINE, scales, strict=True):
                    values = found.all(f"difference.{name}_{against}", **_labels(case, network))
                    over = mean(values) if values else None
                    y.append(over.value / 1e6 / scale if over else None)
                    half.append(over.half_width / 1e6 / scale if over and over.n > 1 else None)
                lines.append(
                    Line(label=network, role=_ROLES[network], x=numbers, y=tuple(y), ci95=tuple(half))
                )
            yield Figure(
                name=f"{name}-differences-{against}",
                title=f"Mean {name} less that of the study's {against} network",
                x_label="case E-MTU-n",
                y_label="difference of the means",
                unit=unit,
                lines=tuple(one for one in lines if any(y is not None for y in one.y)),
                caption="A difference is significant if its interval excludes zero, the published mean.",
            )
