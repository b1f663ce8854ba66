"""What the study says as statements, and the claims about them.

The study has one run for each cell and no intervals. A cell is therefore judged by the interval over our
runs, against its published mean, and in shape against the range from its minimum to its maximum.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from airloom.experiments import mtu
from airloom.experiments.campaign import Campaign
from airloom.experiments.found import Largest, Sample, each
from airloom.experiments.paper import Paper, Statement
from airloom.experiments.repetitions import LEAST

cases: Any = sys.modules["airloom_mtu_study_cases"]
tunnelled: Any = sys.modules["airloom_mtu_study_tunnelled"]

WIRE, AIRLOOM, TUNNEL = "airloom, on the wire", "airloom, at the receiver", "airloom, over GRE"
MININET = "mininet here"
"""Where a series was seen: by the engine's capture, by the receiving kernel, by that of a second laboratory
beyond a tunnel, on Mininet."""
TUNNELLED = cases.NINE[6]
"""The case whose throughput in a tunnel is claimed."""
GAP = 20
"""Octets of preamble and gap of each frame."""
MEAN_WITHIN = 0.5
"""% of the ideal."""
CELL_WITHIN = 1
"""% of a published mean."""
SOURCE = "E-MTU-1 to E-MTU-9, P-30"


def paper() -> Paper:
    """The study's statements: one for each cell of its tables, and those about all cells."""
    said = [
        Statement(
            "start", "the first packets come at up to 20.8, 31.5 and 23 Mbit/s on 10", "E-MTU-1 to E-MTU-3"
        ),
        Statement("wire", "real links carry no more than their rate less preamble and gap", SOURCE),
        Statement("tunnel", "the tunnel takes 38 octets of each frame", "E-MTU-1 to E-MTU-9"),
        Statement("sizes", "frame size matters little for bandwidth", SOURCE),
    ]
    for (case, network), cell in cases.published().items():
        for name, values, unit in (("bandwidth", cell.bandwidth, "Mbit/s"), ("jitter", cell.jitter, "ms")):
            words = ("mean", "most", "least")
            known = [f"{word} {one:g}" for word, one in zip(words, values, strict=True) if one is not None]
            flag, reason, needs = _doubt(case, network, name, values[0])
            said.append(
                Statement(
                    f"{name}-{network}-{case.lower()}",
                    f"{network} network: {', '.join(known)} {unit}",
                    case,
                    value=values[0],
                    unit=unit,
                    flag=flag,
                    reason=reason,
                    needs=needs,
                )
            )
    return Paper({one.id: one for one in said})


def _doubt(case: str, network: str, name: str, mean: float | None) -> tuple[str, str, str]:
    """Returns flag and reason of a remark, and the arithmetic that excludes the mean, each empty if none."""
    one = cases.BY_ID[case]
    if name == "bandwidth" and network == "real" and one.link == 10:
        return "P-32", "9.5 Mbit/s for all three sizes is independent of the frame, as no link's rate is", ""
    if name == "bandwidth" and network == "mininet" and one.load == one.link:
        needs = f"{mean:g} <= {one.link} * {one.frame} / ({one.frame} + {GAP})"
        too_much = mean is not None and mean > one.link * one.frame / (one.frame + GAP)
        reason = "a link has 8 octets of preamble and a gap of 12 beside each frame"
        return "P-30", reason, needs if too_much else ""
    return "", "", ""


def claim(campaign: Campaign) -> None:
    """Adds all claims; those about Mininet if it ran."""
    measured = [case for case in cases.NINE if campaign.found.all("bandwidth.mean", **_at(case, AIRLOOM))]
    nine = measured or list(cases.NINE)
    others = [
        case
        for case in (*cases.sizes(), *cases.STARTS)
        if campaign.found.all("bandwidth.mean", **_at(case, AIRLOOM))
    ]
    _never_faster(campaign, [*nine, *others])
    _means(campaign, nine, others or list(cases.sizes()))
    _tunnel(campaign)
    here = [case for case in cases.STARTS if campaign.found.all("of_link.peak", **_at(case, MININET))]
    if here:
        values = _samples(campaign, "of_link.peak", MININET, here)
        campaign.claim(
            "mininet", "Mininet lets packets follow each other faster than its link.",
            each(values, ">= 2.08"), says="start", shape=each(values, "> 1.000"), **values,
        )  # fmt: skip
    for case in nine:
        _cell(campaign, case, AIRLOOM, "real")
        if campaign.found.all("bandwidth.mean", **_at(case, MININET)):
            _cell(campaign, case, MININET, "mininet")


def _at(case: Any, network: str) -> dict[str, str]:
    return {"case": case.id, "network": network}


def _samples(campaign: Campaign, name: str, network: str, some: Iterable[Any]) -> dict[str, Sample | None]:
    return {case.id.lower(): campaign.found.sample(name, **_at(case, network)) for case in some}


def _largest(campaign: Campaign, name: str, network: str, some: Iterable[Any]) -> Largest | None:
    """The largest value of every valid run of these cases; None if a case has none."""
    found = [campaign.found.sample(name, **_at(case, network)) for case in some]
    runs = [one.valid for one in found if one is not None and one.valid]
    if not runs:
        return None
    fewest = min(map(len, runs)) if len(runs) == len(found) else 0
    return Largest(max(map(max, runs)), "1", fewest, LEAST)


def _never_faster(campaign: Campaign, some: list[Any]) -> None:
    campaign.claim(
        "wire", "On the wire no window of any length, from the first packet on, is faster than the link.",
        "peak <= 1.000", says="wire", peak=_largest(campaign, "of_link.peak", WIRE, some),
    )  # fmt: skip
    campaign.claim(
        "receiver",
        f"Nor is any of {cases.WINDOW} packets or more, as the receiver's kernel stamps them.",
        "top <= 1.000", says="wire", shape="top <= 1.01",
        top=_largest(campaign, "of_link.top", AIRLOOM, some),
    )  # fmt: skip
    campaign.claim(
        "packets", "Nor are two packets that follow each other, as the receiver's kernel stamps them.",
        "peak <= 1.000", says="wire", shape="peak <= 1.2",
        peak=_largest(campaign, "of_link.peak", AIRLOOM, some),
    )  # fmt: skip


def _means(campaign: Campaign, nine: list[Any], others: list[Any]) -> None:
    for id, statement, metric in (
        ("mean", f"The mean bandwidth is within {MEAN_WITHIN:g} % of the ideal for the frame size, at the "
         "receiver.", "of_ideal.mean"),
        ("running", "So it is less interruptions of more than 1 ms, for which a full link stood still.",
         "of_ideal.mean_uninterrupted"),
    ):  # fmt: skip
        values = _samples(campaign, metric, AIRLOOM, nine)
        campaign.claim(
            id, statement, each(values, f"within {MEAN_WITHIN:g} % of 1"), says="wire",
            shape=each(values, f"within {2 * MEAN_WITHIN:g} % of 1"), **values,
        )  # fmt: skip
    values = _samples(campaign, "of_ideal.mean", AIRLOOM, others)
    campaign.claim(
        "others", "So it is within 1 % for other sizes, for IPv6, and for a sender that begins too fast.",
        each(values, "within 1 % of 1"), says="sizes", **values,
    )  # fmt: skip


def _tunnel(campaign: Campaign) -> None:
    octets = TUNNELLED.frame - tunnelled.OVERHEAD
    packet = mtu.mtu_of(octets)
    some = [case for case in cases.NINE if campaign.found.all("of_inner_ideal.mean", **_at(case, TUNNEL))]
    values = _samples(campaign, "of_inner_ideal.mean", TUNNEL, some or [TUNNELLED])
    campaign.claim(
        "tunnel",
        f"Over GRE each cell carries its ideal less {tunnelled.OVERHEAD} octets of each frame: {packet} of "
        f"each packet of {TUNNELLED.mtu}.",
        each(values, "within 1 % of 1"), says="tunnel", shape=each(values, "within 3 % of 1"), **values,
    )  # fmt: skip


def _cell(campaign: Campaign, case: Any, network: str, against: str) -> None:
    """A cell of the study's tables: our interval against its mean, in shape against its range."""
    known = cases.published()[case.id, against]
    mean, most, least = known.bandwidth
    ends = (("<=", most), (">=", least))
    within = " and ".join(f"ours {sign} {end:g} Mbit/s" for sign, end in ends if end is not None)
    campaign.claim(
        f"bandwidth-{against}-{case.id.lower()}",
        f"{case.id}: mean bandwidth, {network}, within {CELL_WITHIN} % of the study's {against} network.",
        f"ours within {CELL_WITHIN} % of {mean:g} Mbit/s",
        says=f"bandwidth-{against}-{case.id.lower()}",
        shape=within,
        ours=campaign.found.sample("bandwidth.mean", **_at(case, network)),
    )
    mean, most, _ = known.jitter
    if against == "real":
        words, check = "below the mean of the study's real network", f"ours < {mean:g} ms"
    else:
        words = "within a factor of two of the study's"
        # Its table has three decimals, and zero.
        check = f"ours >= {mean / 2:g} ms and ours <= {max(2 * mean, 0.001):g} ms"
    campaign.claim(
        f"jitter-{against}-{case.id.lower()}",
        f"{case.id}: mean jitter, {network}, {words}.",
        check,
        says=f"jitter-{against}-{case.id.lower()}",
        shape=f"ours <= {most:g} ms",
        ours=campaign.found.sample("jitter.mean", **_at(case, network)),
    )
