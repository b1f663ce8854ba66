"""Virtual WiFi: two guests on one radio, each in a network of its own.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from airloom.experiments import capacity_search, orbit, vwifi
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found
from airloom.report.figures import Figure
from airloom.results import Result, RunReader

PAIRS = {"work": "office", "personal": "flat"}
"""Guest: its network."""
CHANNELS = {"same": (36, 36), "different": (36, 48)}
LOAD = 20
"""Mbit/s of each guest; one channel at 24 Mbit/s carries less."""
DWELL, SWITCH = 40, 1
"""Milliseconds of the card on a channel, and of a change."""
ECHOES = 0.05
"""Seconds between echo requests; 41 of them see every part of a turn of 82 ms."""


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """Measures throughput and delay of both guests on one channel and on two."""
    seconds = extent.choose(full=10.0, quick=5.0, smoke=1.2)
    vwifi.need_programs()
    with Campaign.of(__file__, folder, progress=progress, kinds=("uml", "netns")) as campaign:
        cases = [_case(channels, seconds) for channels in CHANNELS]
        found = campaign.measure(cases, _figures, extent.repetitions("sum"))
        campaign.judge(lambda: _claims(campaign, found))
        for metric, title, unit, scale in (
            ("throughput", "Throughput of each guest on one radio", "Mbit/s", 1e6),
            ("rtt", "Mean round trip of each guest on one radio", "ms", 1e6),
        ):
            lines = [
                found.line(guest, "measured", f"{metric}-{guest}", "networks", (1, 2), scale)
                for guest in PAIRS
            ]
            campaign.draw(
                Figure(
                    name=metric,
                    title=title,
                    x_label="channels of the two networks",
                    y_label=metric,
                    unit=unit,
                    lines=tuple(lines),
                )
            )
        return campaign.finish()


def _case(channels: str, seconds: float) -> Case:
    nodes, programs, measurements = {}, [], []
    echoes = int(seconds / ECHOES)
    begin = vwifi.WARM_UP + seconds + 1
    for (guest, network), channel in zip(PAIRS.items(), CHANNELS[channels], strict=True):
        place = "0 m" if network == "office" else "2 m"
        nodes[network] = vwifi.access_point(network, channel, place=place)
        nodes[guest] = vwifi.guest(network, channel, card=True)
        programs += vwifi.joins(guest)
        ping = {"from": guest, "to": network, "count": echoes, "interval": f"{ECHOES * 1e3:g} ms"}
        measurements.append({"name": f"ping-{guest}", "ping": ping | {"at": f"{vwifi.WARM_UP} s"}})
        flow = {"from": guest, "to": network, "rate": f"{LOAD} Mbit/s", "size": f"{orbit.PAYLOAD} B"}
        flow |= {"duration": f"{seconds:g} s", "at": f"{begin:g} s"}
        measurements.append({"name": guest, "traffic": flow})
    card = {"virtual_macs": 4, "dwell": f"{DWELL} ms", "switch": f"{SWITCH} ms"}
    name = f"vwifi-two-networks-{channels}"
    scenario = vwifi.scenario(name, nodes, measurements, programs, card=card)
    return Case(channels, {"networks": _count(channels)}, scenario, begin + seconds)


def _count(channels: str) -> int:
    return len(set(CHANNELS[channels]))


def _figures(case: Case, reader: RunReader) -> Figures:
    rates = {guest: capacity_search.value(reader, guest, "throughput") for guest in PAIRS}
    trips = {guest: capacity_search.value(reader, f"ping-{guest}", "rtt_mean") for guest in PAIRS}
    lost = [capacity_search.value(reader, f"ping-{guest}", "loss") for guest in PAIRS]
    [card] = reader.details.cards
    found = {f"throughput-{guest}": (rate, "bit/s") for guest, rate in rates.items()}
    found |= {f"rtt-{guest}": (trip, "ns") for guest, trip in trips.items()}
    return found | {
        "sum": (sum(rates.values()), "bit/s"),
        "uneven": (abs(rates["work"] - rates["personal"]) / sum(rates.values()), "1"),
        "rtt": (sum(trips.values()) / len(trips), "ns"),
        "echoes-lost": (max(lost), "1"),
        "switching": (card.switching_ns / reader.details.length_ns, "1"),
    }


def _claims(campaign: Campaign, found: Found) -> None:
    one = orbit.saturation(rate=vwifi.RATE) / 1e6
    for channels in CHANNELS:
        count = _count(channels)
        campaign.claim(
            f"independent-{channels}",
            f"Two guests on one radio, {channels} channels: each is in its own network, and no echo is lost.",
            "lost <= 2 %",
            says="two-networks",
            lost=found.sample("echoes-lost", networks=count),
        )
        campaign.claim(
            f"equal-{channels}",
            f"Two busy guests on one radio, {channels} channels: each gets half.",
            "uneven <= 10 %",
            says="shares",
            floods=True,
            uneven=found.sample("uneven", networks=count),
        )
    campaign.claim(
        "sum-same",
        f"Both guests together get what one station gets on the channel, {one:.1f} Mbit/s.",
        f"abs(sum / {one * 1e6:.0f} bit/s - 1) <= 5 %",
        says="shares",
        shape=f"sum >= {0.8 * one * 1e6:.0f} bit/s",
        floods=True,
        sum=found.sample("sum", networks=1),
    )
    share = DWELL / (DWELL + SWITCH)
    campaign.claim(
        "sum-different",
        f"On two channels the changes cost {1 - share:.1%}, and the announcements of the absence little.",
        f"sum / {share * one * 1e6:.0f} bit/s >= 90 % and sum / {share * one * 1e6:.0f} bit/s <= 105 %",
        says="multinet",
        shape=f"sum >= {0.7 * one * 1e6:.0f} bit/s",
        floods=True,
        sum=found.sample("sum", networks=2),
    )
    away = DWELL + 2 * SWITCH
    wait = away * away / 2 / (2 * (DWELL + SWITCH))
    campaign.claim(
        "delay-different",
        f"On two channels an echo waits {wait:.1f} ms on average for the radio to come back.",
        f"abs(two - one - {wait:.2f} ms) <= 3 ms",
        says="multinet",
        shape="two - one >= 3 ms",
        one=found.sample("rtt", networks=1),
        two=found.sample("rtt", networks=2),
    )
