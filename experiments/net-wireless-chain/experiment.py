"""NET's wireless chain: ring search, round-trip time and TCP over ad hoc routing, against the ideal.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from airloom.experiments import capacity_search
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found, each
from airloom.experiments.net_chain import ideal, stepped
from airloom.experiments.net_chain import kinds as chains
from airloom.experiments.net_chain.kinds import BACKWARD, FORWARD, SLOWER, TOLERANCE, Series, line
from airloom.experiments.net_chain.wireless import Chain
from airloom.planning.plan import LinkPlan
from airloom.report.figures import Figure
from airloom.results import Result, RunReader
from airloom.scenario.model import Measurement as Wanted

STAIRS, SMOKE_STAIRS = 13, 4
"""Nodes in the chain whose first echoes show the ring search."""
LADDER = (2, 3, 4, 5, 7, 10, 14, 20, 28, 36)
"""As far as AODV looks: 35 hops (NET_DIAMETER, RFC 3561, 10)."""
QUICK_LADDER, SMOKE_LADDER = (2, 5, 9), (2,)
AIR, QUICK_AIR, SMOKE_AIR = (2, 3, 4, 5, 7, 10), (2, 4), (2,)
"""Chains that share one channel."""
FIRST, AFTER, SHARE = "rtt.rtt_max", "after.rtt_max", "shared.share"
"""Figures: RTT of the first echo; the largest of later ones; flow 1 as a share of the channel's bound."""
HOP, SPENT = "after.rtt_per_hop", "between.cpu"
"""Mean RTT of the later echoes by hop; the mean share of a processor that a node between used."""
MEMORY = "engine in memory"
"""Label of the ideal that was measured by :mod:`airloom.experiments.net_chain.stepped`."""
ROUTING = {"aodv": "AODV", "aodv-kernel": "AODV, kernel forwards", "babel": "Babel"}
"""Names of the ways of routing in figures."""
STEP = "search.above"
"""How far the first RTT to a node is above the ideal."""


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """Measures the staircase, then chains of growing length; finished ones are kept when it is run again."""
    seconds = extent.choose(full=5, quick=3, smoke=2)
    ladder = extent.choose(full=LADDER, quick=QUICK_LADDER, smoke=SMOKE_LADDER)
    air = extent.choose(full=AIR, quick=QUICK_AIR, smoke=SMOKE_AIR)
    stairs = _staircase(extent.choose(full=STAIRS, quick=STAIRS, smoke=SMOKE_STAIRS))
    rule = chains.repetitions(extent)
    # Frames collide on the shared channel, so that its flows differ much more from run to run.
    rough = extent.repetitions(FORWARD, within=0.1, most=chains.MOST)
    steps = extent.repetitions("search.slowest", within=0.05, most=chains.MOST)
    babeld = shutil.which("babeld") is not None
    with Campaign.of(__file__, folder, progress=progress, kinds=("netns",)) as campaign:

        def chain(radio: Any, routing: Any, nodes: int) -> Case:
            return _case(Chain(radio, routing, nodes), seconds)

        routed = [("ideal", "aodv"), ("ideal", "aodv-kernel"), *([("ideal", "babel")] if babeld else [])]
        whole = [chain(*how, nodes) for how in routed for nodes in ladder]
        whole += [chain("802.11b", "aodv", nodes) for nodes in air]
        campaign.announce([stairs, *whole], rule, search=True)
        campaign.repeat([stairs], _steps, steps)
        aodv = chains.both_ways(
            campaign, _labels("ideal", "aodv"), lambda nodes: chain("ideal", "aodv", nodes), _read, rule,
            ladder, ideal.THROUGHPUT, flows=(SLOWER,), halve=extent is Extent.FULL,
        )  # fmt: skip
        campaign.repeat([chain("802.11b", "aodv", nodes) for nodes in air], _read, rough, optional=True)
        reached = tuple(nodes for nodes in LADDER if nodes <= max(aodv.tried))
        lengths = list(extent.choose(full=reached, quick=QUICK_LADDER[1:], smoke=SMOKE_LADDER))
        found = [aodv, Series(_labels("802.11b", "aodv"), ideal.THROUGHPUT, campaign.found, list(air))]
        for _, routing in routed[1:]:
            campaign.repeat([chain("ideal", routing, nodes) for nodes in lengths], _read, rule, optional=True)
            found.append(Series(_labels("ideal", routing), ideal.THROUGHPUT, campaign.found, lengths))
        hops = range(1, stairs.labels["nodes"])
        limit = None if extent is Extent.FULL else ladder[-1]
        _claims(campaign, hops, found, limit)
        for figure in _drawn(campaign.found, hops, found):
            campaign.draw(figure)
        return campaign.finish()


def _labels(radio: str, routing: str) -> dict[str, str]:
    return {"radio": radio, "routing": routing}


def _staircase(nodes: int) -> Case:
    """First echoes to nodes at growing distance, which nobody has looked for yet.

    One chain for all: what earlier searches left in the tables is routes to other nodes, and they shorten
    no search but for their own destination.
    """
    wanted = [
        Wanted(name=f"h{far}", ping={"from": "n1", "to": f"n{far + 1}", "count": 2, "interval": "50 ms"})
        for far in range(1, nodes)
    ]
    one = Chain("ideal", "aodv", nodes)
    seconds = one.ready_after + sum(ideal.first_rtt(far) / 1e9 + 0.5 for far in range(1, nodes))
    return Case(f"{one.name}-search", {"nodes": nodes}, one.scenario(wanted, tag="-search"), seconds)


def _steps(of: Case, reader: RunReader) -> Figures:
    found: dict[str, tuple[float, str]] = {}
    for hops in range(1, of.labels["nodes"]):
        rtt = capacity_search.value(reader, f"h{hops}", "rtt_first")
        found[f"search.h{hops}"] = (rtt, "ns")
        found[f"{STEP}-h{hops}"] = (rtt - ideal.first_rtt(hops), "ns")
    found["search.slowest"] = (max(value for name, (value, _) in found.items() if "above" not in name), "ns")
    return found


def _case(one: Chain, seconds: int) -> Case:
    last = f"n{one.nodes}"
    scenario = one.scenario(
        [
            # So few and so far apart that none is sent while the first still waits for its route.
            Wanted(name="rtt", ping={"from": "n1", "to": last, "count": 1}),
            Wanted(name="after", ping={"from": "n1", "to": last, "count": 30, "interval": "20 ms"}),
            Wanted(name="forward", iperf3=capacity_search.flow("n1", last, seconds)),
            Wanted(name="backward", iperf3=capacity_search.flow(last, "n1", seconds)),
        ]
    )
    labels = {"nodes": one.nodes, **_labels(one.radio, one.routing)}
    return Case(one.name, labels, scenario, one.ready_after + 1 + 2 * seconds)


def _read(of: Case, reader: RunReader) -> Figures:
    flows = chains.tcp_figures(reader)
    hops = of.labels["nodes"] - 1
    found = {
        HOP: (capacity_search.value(reader, "after", "rtt_mean") / hops, "ns"),
        FIRST: (capacity_search.value(reader, "rtt", "rtt_max"), "ns"),
        AFTER: (capacity_search.value(reader, "after", "rtt_max"), "ns"),
        **flows,
    }
    spent = reader.samples("node", "cpu")
    between = spent[~spent.node.isin(("n1", f"n{of.labels['nodes']}"))]
    if len(between):
        found[SPENT] = (float(between.value.mean()), "1")
    if of.labels["radio"] == "802.11b":
        found[SHARE] = (flows[FORWARD][0] / ideal.shared_limit(hops), "1")
    return found


def _links(nodes: int) -> list[LinkPlan]:
    """Returns the links of the ideal radio's chain."""
    return stepped.links(Chain("ideal", "aodv", nodes).scenario([]))


def _drawn(found: Found, hops: Sequence[int], series: Sequence[Series]) -> list[Figure]:
    """The echoes by hop, the staircase and the throughput.

    The first of ``series`` is AODV's, the second the shared channel, the third AODV's with the kernel.
    """
    nodes = hops[-1] + 1
    steps = [found.mean(f"search.h{far}", nodes=nodes) for far in hops]
    searched = [
        capacity_search.line("ideal", "ideal", hops, [ideal.first_rtt(far) for far in hops], 1e6),
        capacity_search.line(
            MEMORY, "ideal", hops, [stepped.first_rtt(_links(far + 1)) for far in hops], 1e6
        ),
        capacity_search.line("Airloom, one chain", "measured", hops, steps, 1e6),
    ]
    carried = []
    for one in series:
        routing = ROUTING[one.labels["routing"]]
        label = f"{one.labels['radio']}, {routing}"
        if one.labels["radio"] == "ideal":
            first = line(f"Airloom, {routing}, a chain each", one, FIRST, 1e6)
            searched.append(first.model_copy(update={"x": tuple(x - 1 for x in first.x)}))
        carried.append(line(f"{label}, flow 1", one, FORWARD, 1e6))
    carried.insert(1, line("ideal, AODV, flow 2", series[0], BACKWARD, 1e6))
    lengths = sorted({nodes for one in series for nodes in one.lengths})
    flat = [ideal.THROUGHPUT for _ in lengths]
    stepwise = [stepped.throughput(_links(nodes)) for nodes in lengths]
    carried.insert(0, capacity_search.line(MEMORY, "ideal", lengths, stepwise, 1e6))
    carried.insert(0, capacity_search.line("ideal radio's limit", "ideal", lengths, flat, 1e6))
    shared = series[1].lengths
    bound = [ideal.shared_limit(nodes - 1) for nodes in shared]
    carried.append(
        capacity_search.line("802.11b, bound of the shared channel", "reference", shared, bound, 1e6)
    )
    ideal_radio = [one for one in series if one.labels["radio"] == "ideal"]
    hopwise = [line(ROUTING[one.labels["routing"]], one, HOP, 1e6) for one in ideal_radio]
    there = sorted({nodes for one in ideal_radio for nodes in one.lengths})
    both = [2 * ideal.ECHO * 8e9 / ideal.RATE for _ in there]
    alone = [stepped.rtt(_links(nodes), ideal.ECHO) / (nodes - 1) for nodes in there]
    hopwise.insert(0, capacity_search.line(MEMORY, "ideal", there, alone, 1e6))
    hopwise.insert(0, capacity_search.line("ideal", "ideal", there, both, 1e6))
    return [
        Figure(
            name="net-hop",
            title="Round-trip time by hop, once the route is known",
            x_label="nodes in the chain",
            y_label="round-trip time by hop",
            unit="ms",
            lines=tuple(hopwise),
            caption="Ideal radio. The difference of AODV's two lines is a crossing to user space and back.",
        ),
        Figure(
            name="net-search",
            title="Largest ICMP round-trip time: the ring search",
            x_label="hops",
            y_label="round-trip time",
            unit="ms",
            lines=tuple(searched),
            caption="Ideal radio. The first echo waits for the search: steps of 320, 480, 640 and 800 ms.",
        ),
        Figure(
            name="net-tcp-wireless",
            title="TCP throughput of one flow over the chain",
            x_label="nodes in the chain",
            y_label="throughput",
            unit="Mbit/s",
            lines=tuple(carried),
            tolerance=TOLERANCE,
            caption="What shares one 802.11b channel is not held against the ideal radio's limit.",
        ),
    ]


def _claims(campaign: Campaign, hops: Sequence[int], series: Sequence[Series], limit: int | None) -> None:
    _search_claims(campaign, hops)
    aodv, air = series[0], series[1]
    largest = aodv.longest(SLOWER)
    if limit:
        campaign.claim(
            "capacity", f"Virtual routing carries TCP faithfully over {limit} nodes, all that was tried.",
            f"largest >= {limit}", says="net", shape=f"largest > {limit // 2}", largest=largest,
        )  # fmt: skip
    else:
        said = campaign.paper["net"]
        campaign.claim(
            "capacity", "Virtual routing carries longer chains faithfully than NET's did.",
            f"largest >= {said.x:g}", says="net", largest=largest,
        )  # fmt: skip
    low, high = (bound / 1e6 for bound in ideal.pair_limits())
    campaign.claim(
        "real-pair", "A real 802.11b pair gives about half of its 11 Mbit/s.",
        f"two >= {0.97 * low:.3f} Mbit/s", says="air", shape="two >= 4 Mbit/s", two=air.sample(FORWARD, 2),
    )  # fmt: skip
    campaign.claim(
        "real-pair-limit", "... and never more than its frames' time on the air allows.",
        f"two <= {1.01 * high:.3f} Mbit/s", says="air", two=air.sample(FORWARD, 2),
    )  # fmt: skip
    shares = air.by_length(SHARE) or {"n2": None}
    campaign.claim(
        "real-chain", "Hops that hear each other share the channel.",
        each(shares, "<= 1.01"), says="air", **shares,
    )  # fmt: skip
    by_kernel = series[2]
    far = max((nodes for nodes in by_kernel.lengths if nodes > 2), default=None)
    for name, statement, figure in (
        ("crossing", "A daemon that forwards each packet delays it on each hop.", HOP),
        ("daemons", "... and takes processor time of each node between, while TCP flows.", SPENT),
    ):
        if far:  # Over a single hop nothing is forwarded.
            campaign.claim(
                name, statement, "user > kernel", says="queue",
                user=aodv.sample(figure, far), kernel=by_kernel.sample(figure, far),
            )  # fmt: skip
    for babel in series[3:]:
        firsts = babel.by_length(FIRST) or {"n2": None}
        campaign.claim(
            "babel", "A protocol that keeps routes to all has no search.",
            each(firsts, "<= 100 ms"), says="proactive", **firsts,
        )  # fmt: skip


def _search_claims(campaign: Campaign, hops: Sequence[int]) -> None:
    nodes = hops[-1] + 1
    above = {f"h{far}": campaign.found.sample(f"{STEP}-h{far}", nodes=nodes) for far in hops}
    campaign.claim(
        "staircase", "The first echo waits for the rings of the search: 0, 320, 800, 1440 and 2240 ms.",
        each(above, "<= 100 ms"), says="search", shape=each(above, "<= 150 ms"), **above,
    )  # fmt: skip
    campaign.claim(
        "not-before", "No search ends before its last ring was sent.",
        each(above, ">= -1 ms"), says="search", **above,
    )  # fmt: skip
    far = {f"h{one}": campaign.found.sample(f"search.h{one}", nodes=nodes) for one in hops if one >= 10} or {
        "h10": None
    }
    apart = [f"{one} - {other}" for one, other in itertools.permutations(far, 2)] or ["h10"]
    campaign.claim(
        "linear", "From 10 hops on it is linear: the last ring reaches every node.",
        each(apart, "<= 60 ms"), says="linear", **far,
    )  # fmt: skip
