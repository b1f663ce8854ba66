"""Slices: coupling of several experiments under each scheme that divides the spectrum between them.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airloom.experiments import capacity_search, orbit, slice_coupling
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found, Sample
from airloom.experiments.repetitions import LEAST, Repetitions
from airloom.planning.gate import check
from airloom.report.figures import Figure
from airloom.results import RunReader
from airloom.results.result import Result
from airloom.scenario.model import Scenario

LOAD = 20
"""Mbit/s of each slice; one channel carries 23.08 Mbit/s."""
CHANNELS = (36, 40, 44, 48, 52, 56, 60, 64)
APART = 2_000
"""Metres between slices in space division: interference far below the noise."""
CODED = 20
"""Metres between slices in code division: what remains of another code is neither near the ratio that
a frame needs nor detected as energy."""
GAP = 1.5
"""Seconds between the two flows of the first slice, in which its queue of 200 frames empties."""
WINDOW = 100_000_000
"""ns of the windows of the instantaneous coupling."""
ORTHOGONAL = 0.005
"""Largest coupling of slices that do not share a channel."""
ALL = "radio-coupling"
"""Coupling of the first slice with all others, by radio alone."""
SECOND = 1_000_000_000
STEPPED = "stepped"
"""Label ``kind`` of the coupling by radio, which is computed in stepped time."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """A division of the spectrum between slices."""

    label: str
    grant: Callable[[int, int], Mapping[str, Any]]
    """What the grant of slice NUMBER of COUNT has beside its nodes."""
    apart: float = 2.0
    """Metres between the nodes of two slices."""
    card: bool = False
    """All slices have the same two nodes, of which each has one radio for all."""


SCHEMES = {
    "shared": Scheme("one channel, no division", lambda number, count: {"channels": [CHANNELS[0]]}),
    "fdm": Scheme("a channel each", lambda number, count: {"channels": [CHANNELS[number]]}),
    "one-radio": Scheme(
        "a channel each, one radio for all",
        lambda number, count: {"channels": [CHANNELS[number]]},
        card=True,
    ),
    "sdm": Scheme("one channel, apart", lambda number, count: {"channels": [CHANNELS[0]]}, apart=APART),
    "tdm": Scheme(
        "one channel, in turn", lambda number, count: {"channels": [CHANNELS[0]], "slots": [number]}
    ),
    "fh": Scheme(
        "a hopping sequence each",
        lambda number, count: {"channels": list(CHANNELS), "hops": {"set": "A", "sequence": number}},
    ),
    "cdm": Scheme(
        "one channel, a code each",
        lambda number, count: {"channels": [CHANNELS[0]], "code": number},
        apart=CODED,
    ),
    "airtime": Scheme(
        "one channel, by weights 1 to n",
        lambda number, count: {"channels": [CHANNELS[0]], "airtime_weight": number + 1},
    ),
}
"""A further scheme is a row here."""
APART_BY_RADIO = ("fdm", "sdm", "tdm", "fh", "cdm")
"""Schemes under which the radios of two slices cannot couple."""


def run(
    folder: Path, *, extent: Extent, progress: Callable[[str], None], kinds: Sequence[str] = ("netns",)
) -> Result:
    """Measures the first slice alone and beside the others, under each scheme."""
    seconds = extent.choose(full=10.0, quick=4.0, smoke=1.0)
    counts = extent.choose(full=(2, 4, 8), quick=(2,), smoke=(2,))
    orbit.check_kinds(kinds)
    with Campaign.of(__file__, folder, progress=progress, kinds=kinds) as campaign:
        cases = [
            _case(scheme, count, kind, seconds) for count in counts for scheme in SCHEMES for kind in kinds
        ]
        found = campaign.measure(cases, _figures, extent.repetitions("together"))
        span = extent.choose(full=slice_coupling.SPAN, quick=SECOND, smoke=SECOND // 2)
        radio = [_stepped(scheme, count, seconds, span) for count in counts for scheme in SCHEMES]
        campaign.measure(radio, _figures, Repetitions.fixed(extent.choose(full=LEAST, quick=1, smoke=1), ALL))
        campaign.judge(lambda: _claims(campaign, found, kinds, counts))
        campaign.draw(_figure(found, STEPPED, counts, ALL, "Coupling by radio, in stepped time", "1", 1.0))
        for kind in kinds:
            for metric, title, unit, scale in (
                ("coupling", "Coupling coefficient C = (R - R') / R", "1", 1.0),
                ("efficiency", "Sum of all slices against one channel", "1", 1.0),
                ("delay-added", "Delay added by the other slices", "ms", 1e6),
            ):
                campaign.draw(_figure(found, kind, counts, metric, title, unit, scale))
        return campaign.finish()


def _case(scheme: str, count: int, kind: str, seconds: float) -> Case:
    rule = SCHEMES[scheme]
    nodes: dict[str, Any] = {}
    slices, flows = {}, []
    begin = orbit.WARM_UP + seconds + GAP
    for number in range(count):
        name, place = f"s{number + 1}", 0 if rule.card else number * rule.apart
        first = 1 if rule.card else 2 * number + 1
        pair = [f"n{first}", f"n{first + 1}"]
        for node, depth in zip(pair, ("0 m", "1 m"), strict=True):
            radios = nodes.setdefault(node, {"position": [f"{place:g} m", depth], "radios": {}})["radios"]
            radios[f"wlan{len(radios)}"] = {"card": f"card-{node}"} if rule.card else {}
        slices[name] = {"grant": {"nodes": pair, **rule.grant(number, count)}, "police": "enforce"}
        said = {"from": f"{pair[0]}-{name}", "to": f"{pair[1]}-{name}", "rate": f"{LOAD} Mbit/s"}
        said |= {"size": f"{orbit.PAYLOAD} B", "duration": f"{seconds:g} s"}
        if number == 0:
            flows.append({"name": "alone", "traffic": said | {"at": f"{orbit.WARM_UP:g} s"}})
        name = "together" if number == 0 else f"other-{number}"
        flows.append({"name": name, "traffic": said | {"at": f"{begin:g} s"}})
    labels = {"scheme": scheme, "slices": count, "kind": kind}
    radio = {"rate": f"{orbit.RATE} Mbit/s", "buffers": 200, "queue": 200}
    medium = {"propagation": {"model": "log-distance"}, "radio": radio}
    medium |= {"slots": {"frame": count, "length": "20 ms"}}
    medium |= {"hops": {"dwell": "20 ms", "sets": {"A": {"channels": list(CHANNELS), "step": 3}}}}
    medium |= {"codes": {"spreading": 8}}
    if rule.card:
        shared = {"virtual_macs": count, "dwell": "20 ms", "switch": "1 ms"}
        medium |= {"cards": {f"card-{node}": shared for node in nodes}}
    scenario = Scenario.model_validate(
        {
            "name": f"slices-isolation-{scheme}-{count}-{kind}",
            "kind": kind,
            "media": {"air": medium},
            "nodes": nodes,
            "slices": slices,
            "measurements": flows,
        }
    )
    return Case(f"{scheme}_{count}_{kind}", labels, scenario, begin + seconds)


def _stepped(scheme: str, count: int, seconds: float, span: int) -> Case:
    """Returns the coupling by radio of each pair of slices, and of the first one with all others."""

    def measure(_: Path, scenario: Scenario) -> tuple[Figures, bool]:
        figures: dict[str, tuple[float, str]] = {}
        for one in slice_coupling.pairs(check(scenario).plans[0], runs=1, span=span):
            beside = f"beside-{one.others[0]}" if len(one.others) == 1 else "beside-all"
            if one.slice == "s1" and len(one.others) == count - 1:
                figures[ALL] = (one.coupling[0], "1")
            for name, values, unit in (
                ("coupling", one.coupling, "1"),
                ("coupling-most", one.most, "1"),
                ("delay-added", one.delay_ns, "ns"),
                ("jitter-added", one.jitter_ns, "ns"),
                ("loss-added", one.loss, "1"),
            ):
                if values:
                    figures[f"{one.slice}.{name}-{beside}"] = (values[0], unit)
        return figures, True

    case = _case(scheme, count, "netns", seconds)
    labels = {**case.labels, "kind": STEPPED}
    # About a tenth of the stepped time for each flow of a pair.
    effort = (span + 2 * slice_coupling.SETTLING) / 1e9 * count**2 / 10
    return Case(f"{scheme}_{count}_{STEPPED}", labels, case.scenario, effort, outside=measure)


def _figures(case: Case, reader: RunReader) -> Figures:
    def of(flow: str, metric: str) -> float:
        return capacity_search.value(reader, flow, metric)

    others = [f"other-{number}" for number in range(1, case.labels["slices"])]
    alone, together = of("alone", "throughput"), of("together", "throughput")
    times = reader.samples("together", "delay").t_ns.sort_values().to_numpy()
    windows = orbit.windows(times, orbit.PAYLOAD, WINDOW)
    total = together + sum(of(other, "throughput") for other in others)
    airtime = sum(one.sent_ns for one in reader.details.slices if one.slice == "s1")
    found = {
        "alone": (alone, "bit/s"),
        "together": (together, "bit/s"),
        "coupling": ((alone - together) / alone, "1"),
        "coupling-most": ((alone - float(windows.min())) / alone if windows.size else float("nan"), "1"),
        "delay-added": (of("together", "delay_mean") - of("alone", "delay_mean"), "ns"),
        "jitter-added": (of("together", "jitter_mean") - of("alone", "jitter_mean"), "ns"),
        "loss-added": (of("together", "loss") - of("alone", "loss"), "1"),
        "efficiency": (total / orbit.saturation(), "1"),
        "airtime": (airtime / reader.details.length_ns, "1"),
        "violations": (float(len(reader.result.violations)), "1"),
    }
    return {name: one for name, one in found.items() if one[0] == one[0]}


def _claims(campaign: Campaign, found: Found, kinds: Sequence[str], counts: Sequence[int]) -> None:
    _radio_claims(campaign, found, counts)
    for kind in kinds:
        _claims_of(campaign, found, kind, counts)


def _radio_claims(campaign: Campaign, found: Found, counts: Sequence[int]) -> None:
    """Without a host, slices that share no channel do not couple at all."""
    for count in counts:
        for scheme in APART_BY_RADIO:
            campaign.claim(
                f"{scheme}-{count}-radio",
                f"{count} slices, {SCHEMES[scheme].label}: no coupling in stepped time.",
                f"abs(c) <= {ORTHOGONAL}",
                says=scheme,
                c=found.sample(ALL, scheme=scheme, slices=count, kind=STEPPED),
            )
        _one_radio(
            campaign, found.sample(ALL, scheme="one-radio", slices=count, kind=STEPPED), count, "radio"
        )


def _one_radio(campaign: Campaign, c: Sample | None, count: int, name: str) -> None:
    """Two radios that serve several channels in turn are not always on the same one."""
    campaign.claim(
        f"one-radio-{count}-{name}",
        f"{count} slices on one radio: each keeps 60 % of its throughput alone.",
        "c <= 0.4",
        says="one-radio",
        c=c,
    )


def _claims_of(campaign: Campaign, found: Found, kind: str, counts: Sequence[int]) -> None:
    for count in counts:
        c = {scheme: found.sample("coupling", scheme=scheme, slices=count, kind=kind) for scheme in SCHEMES}
        # Equal slices share what one channel carries.
        share = 1 - orbit.saturation() / count / (LOAD * 1e6)
        campaign.claim(
            f"shared-{count}-{kind}",
            f"{count} slices on one channel: each gets its equal share of it, C = {share:.2f}.",
            f"abs(c - {share:.4f}) <= 0.05",
            says="shared",
            shape="c >= 0.2",
            c=c["shared"],
        )
        weighted = 1 - orbit.saturation() / (count * (count + 1) / 2) / (LOAD * 1e6)
        campaign.claim(
            f"airtime-{count}-{kind}",
            f"{count} slices on one channel with weights of 1 to {count}: the first one gets the share of "
            f"its weight, C = {weighted:.2f}.",
            f"abs(c - {weighted:.4f}) <= 0.05",
            says="airtime",
            shape="c >= 0.2",
            c=c["airtime"],
        )
        for scheme in APART_BY_RADIO:
            campaign.claim(
                f"{scheme}-{count}-{kind}",
                f"{count} slices, {SCHEMES[scheme].label}: no coupling by radio.",
                f"abs(c) <= {ORTHOGONAL}",
                says=scheme,
                c=c[scheme],
            )
        _one_radio(campaign, c["one-radio"], count, kind)


def _figure(
    found: Found, kind: str, counts: Sequence[int], metric: str, title: str, unit: str, scale: float
) -> Figure:
    lines = [
        found.line(rule.label, "measured", metric, "slices", counts, scale, scheme=scheme, kind=kind)
        for scheme, rule in SCHEMES.items()
    ]
    return Figure(
        name=f"{metric}-{kind}",
        title=title,
        x_label="slices",
        y_label=metric,
        unit=unit,
        lines=tuple(lines),
    )
