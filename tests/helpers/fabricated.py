"""Fabricated results of every shipped experiment: one in which each claim holds, one in which it fails.

A world maps the labels of a point to its figures, in the units of the experiment. ``published`` is
what the publication says as far as it does not contradict itself; the others contradict it. Nothing
here was measured.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from airloom.experiments import orbit, vwifi
from airloom.experiments.net_chain import ideal, kinds, virtual, wired
from airloom.experiments.registry import find

World = Callable[[Mapping[str, Any]], dict[str, tuple[float, str]]]
MS, US, MBIT = 1e6, 1e3, 1e6


def _native(labels: Mapping[str, Any]) -> bool:
    return labels["platform"] == "native"


def _variances(value: float) -> dict[str, tuple[float, str]]:
    return {f"variance-{name}": (value, "1") for name in ("10-ms", "100-ms", "1-s")}


def _load_published(of: Mapping[str, Any]) -> dict[str, tuple[float, str]]:
    rate = min(of["load"], 23.08) - (0.0 if _native(of) or of["load"] < 50 else 0.2)
    added = 0.0 if _native(of) else 4.7 if of["load"] == 10 else 10.2
    delay = {10: 2.0, 20: 4.0}.get(of["load"], 10.0) + added
    jitter = (77.5 if of["load"] == 50 else 47.8) + (0.0 if _native(of) else 180.0)
    return {
        "throughput": (rate * MBIT, "bit/s"),
        "delay": (delay * MS, "ns"),
        "jitter": (jitter * US, "ns"),
    } | _variances(1.0 if _native(of) else 10.0)


def _load_star(of: Mapping[str, Any]) -> dict[str, tuple[float, str]]:
    """The loss that the section on stars states, which contradicts the other one."""
    share = 1.0 if _native(of) else 0.966
    return _load_published(of) | {"throughput": (min(of["load"], 23.08) * share * MBIT, "bit/s")}


def _load_round_robin(of: Mapping[str, Any]) -> dict[str, tuple[float, str]]:
    """The delay of whole guests in turns at saturation, by the phase of both nodes."""
    delays = {"uml-turns-100": 33.6, "-phase-50": 29.0, "-phase-100": 60.2, "-phase-150": 56.3}
    delay = next((ms for end, ms in delays.items() if of["platform"].endswith(end)), 20.4)
    return _load_published(of) | {"delay": (delay * MS, "ns")}


def _load_contrary(of: Mapping[str, Any]) -> dict[str, tuple[float, str]]:
    rate = {"throughput": ((30 if _native(of) else 15) * MBIT, "bit/s")}
    return rate | {"delay": (5 * MS, "ns"), "jitter": (1 * MS, "ns")} | _variances(1.0)


def _payload(of: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    if "payload" not in of:
        each, total = {1: (1e5, 1e5), 2: (9e4, 4e4) if contrary else (4e4, 8e4)}[of["flows"]]
        return {"ceiling": (each, "packets/s"), "ceiling-total": (total, "packets/s")}
    shares = {64: 1.0, 1470: 0.9} if contrary else {64: 0.66}
    share = 1.0 if _native(of) else shares.get(of["payload"], 1.0)
    rate = orbit.saturation(of["payload"]) * share * (0.5 if contrary else 1.0)
    packets = 5e3 if contrary else 8e4 if _native(of) else 3.2e4
    return {"throughput": (rate, "bit/s"), "packets": (packets, "packets/s")}


def _rate(of: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    fast = of["rate"] == 54
    share = 1.0 if _native(of) or fast == contrary else 0.9
    return {"throughput": (orbit.saturation(rate=of["rate"]) * share * (0.5 if contrary else 1), "bit/s")}


def _tcp_rate(of: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    part = (0.5 if _native(of) else 0.25) if contrary else 1.0
    return {"throughput": (orbit.tcp_estimate(of["rate"]) * part, "bit/s")}


def _tcp_time(of: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    share = 1.0 if _native(of) else 0.5 if contrary else {6: 1.0, 36: 0.98}[of["rate"]]
    varies = 0.2 if contrary and not _native(of) else 0.02
    return {"throughput": (20 * MBIT * share, "bit/s"), "variation": (varies, "1")}


def _file(of: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    native = of["octets"] / 1e6 * {6: 1.75, 54: 0.25}.get(of["rate"], 0.5)
    extra = {6: 0.0, 54: native / 2}.get(of["rate"], 0.0) if contrary else 5e-9 * of["octets"]
    name = "time-whole" if of["octets"] == 10**9 else "time"
    return {name: ((native if _native(of) else native + extra) * 1e9, "ns")}


def _video_concluded(of: Mapping[str, Any]) -> dict[str, tuple[float, str]]:
    """The jitter of the conclusions, which contradicts that of the results."""
    jitter = 0.29 if _native(of) else {0.5: 4.2, 3: 5.9}[of["rate"]]
    return _video(of, contrary=False) | {"jitter-mean": (jitter * MS, "ns")}


def _video(of: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    jitter = {0.5: 1.0, 3: 2.0}[of["rate"]] if contrary else {0.5: 2.8, 3: 4.0}[of["rate"]]
    native = 2.0 if contrary else 0.29
    worse = contrary and not _native(of)
    return {
        "received": (of["rate"] * MBIT * (0.5 if worse else 1.0), "bit/s"),
        "jitter": ((60 if contrary else 5) * MS, "ns"),
        "jitter-mean": ((native if _native(of) else jitter) * MS, "ns"),
        "lost": (0.0, "packets"),
        "psnr": (26.0 if worse else 36.0, "1"),
        "ssim": (0.9, "1"),
    }


def _coupling(of: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    strange = {5: 0.05, 40: 0.04 if of["other"] == 10 else 0.1}
    strange |= dict.fromkeys((10, 25), 0.003 * of["other"])
    coupling = (strange if contrary else {5: 0.0, 40: 0.0065}).get(of["load"], 0.003)
    if "radio" in of and contrary is not (of["radio"] == "adjacent-leakage"):
        coupling = 0.5
    return {
        "alone": (of["load"] * MBIT, "bit/s"),
        "together": (of["load"] * MBIT * (1 - coupling), "bit/s"),
        "coupling": (coupling, "1"),
        "dip": (0.9 if contrary else 0.05, "1"),
        "calm": (0.9, "1"),
        "variance-alone": (1.0, "1"),
        "variance-together": (0.5 if contrary else 3.0, "1"),
    }


def _cpu(of: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    if of["guests"] == 1:
        share = 0.5 if contrary else 1.0
        return {"first": (share, "1"), "ready-first": (share, "1")}
    first, second = (1.2, 0.1) if contrary else (0.5, 0.5)
    return {"first": (first, "1"), "second": (second, "1"), "ready-first": (1.0, "1")}


def _star(of: Mapping[str, Any], *, contrary: bool, less: float = 1.0) -> dict[str, tuple[float, str]]:
    rate = {10: 10.0, 50: 22.3}[of["load"]] * ((0.5 if _native(of) else 0.25) if contrary else 1.0)
    rate *= 1.0 if _native(of) else less
    delay = {10: 3.0, 50: 0.5} if contrary else {10: 30.0, 50: 201.0}
    jitter = {10: 2.0, 50: 0.5} if contrary else {10: 1.6, 50: 1.6}
    return {
        "throughput": (rate * MBIT, "bit/s"),
        "delay": ((1.0 if _native(of) else delay[of["load"]]) * MS, "ns"),
        "jitter": ((1.0 if _native(of) else jitter[of["load"]]) * MS, "ns"),
    }


def queues(of: Mapping[str, Any], share: float, *, contrary: bool) -> dict[str, tuple[float, str]]:
    native = rate = min(of["load"], 23.08)
    if not _native(of) and contrary is not (of["queue"] == 40):
        rate = native / 2 if contrary else min(0.9 * native, 13.88)
    # As many packets as make each share of them a whole number.
    lost = 10_000.0 if of["load"] > native else 0.0
    lost += 0.0 if _native(of) else 10_000.0
    return {
        "throughput": (rate * MBIT, "bit/s"),
        "lost": (lost, "packets"),
        "lost-in-queue": (lost * share, "frames"),
    }


def _kinds(of: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    share = 1.0
    if not _native(of):
        share = (1.0 if contrary else 0.92) if of["task"] == "small" else 0.5 if contrary else 1.0
    jitter = {"uml": 3.0, "qemu": 2.0} if contrary else {"uml": 0.1, "qemu": 0.3}
    jitters = jitter.get(of["platform"], 1.0 if contrary else 0.05)
    return {
        "throughput": (20 * MBIT * share, "bit/s"),
        "delay": (1 * MS, "ns"),
        "jitter": (jitters * MS, "ns"),
    }


def _both(world: Callable[..., dict[str, tuple[float, str]]]) -> list[World]:
    return [lambda of: world(of, contrary=False), lambda of: world(of, contrary=True)]


CAMPAIGNS: dict[str, list[World]] = {
    "orbit-udp-load": [_load_published, _load_contrary, _load_star, _load_round_robin],
    "orbit-udp-payload": _both(_payload),
    "orbit-udp-rate": _both(_rate),
    "orbit-tcp-rate": _both(_tcp_rate),
    "orbit-tcp-time": _both(_tcp_time),
    "orbit-file-transfer": _both(_file),
    "orbit-rtp-video": [*_both(_video), _video_concluded],
    "orbit-coupling": _both(_coupling),
    "orbit-cpu": _both(_cpu),
    "orbit-clients-server": [*_both(_star), functools.partial(_star, contrary=False, less=0.961)],
    "orbit-queues": [
        lambda of: queues(of, 0.9999, contrary=False),
        lambda of: queues(of, 0.5, contrary=True),
    ],
    "orbit-kinds": _both(_kinds),
}


# Chains: the longest good chain of each direction by kind. What was published, the same with the last
# node beside the published number, the same for all kinds, and flow 2 worse in the opposite order.
WIRED = {"uml": (2, 3), "qemu": (4, 8), "netns": (12, 49)}
WIRELESS = {"uml": (1, 1), "qemu": (6, 6), "netns": (29, 29)}
EQUAL = dict.fromkeys(WIRED, (1, 1))
CONTRARY = {"uml": (60, 50), "qemu": (20, 10), "netns": (8, 5)}


def _flows(limits: tuple[int, int], nodes: int, full: float, busy: float) -> dict[str, tuple[float, str]]:
    """Flows that have the ideal's rate up to a length, and half of it beyond."""
    forward, backward = (full if nodes <= limit else full / 2 for limit in limits)
    return {
        kinds.FORWARD: (forward, "bit/s"),
        kinds.BACKWARD: (backward, "bit/s"),
        kinds.SLOWER: (min(forward, backward), "bit/s"),
        kinds.BUSY: (busy, "1"),
    }


def _wired_kinds(of: Mapping[str, Any], limits: Mapping[str, tuple[int, int]], good: bool) -> Any:
    """Kernel nodes faster than the arithmetic and guests slower, or the opposite."""
    kernel = 0.9 if good else 20.0
    share = kernel if of["kind"] == "netns" else 5.0 if good else 0.5
    rtt = {wired.LARGEST: (wired.ideal_rtt(of["nodes"], 0) * share, "ns")}
    busy = 0.95 if good else 0.1
    return rtt | _flows(limits[of["kind"]], of["nodes"], wired.IDEAL_THROUGHPUT, busy)


def _wireless_kinds(of: Mapping[str, Any], limits: Mapping[str, tuple[int, int]], good: bool) -> Any:
    """The ring search alone, or a second more and ten times as long."""
    expected = ideal.first_rtt(of["nodes"] - 1)
    first = expected if good else 10 * expected + 1e9
    rtt = {
        "rtt.rtt_max": (first, "ns"),
        "rtt.above": (first - expected, "ns"),
        "rtt.share": (first / expected, "1"),
    }
    return rtt | _flows(limits[of["kind"]], of["nodes"], ideal.THROUGHPUT, 0.95 if good else 0.1)


def wired_chain(of: Mapping[str, Any], limit: int, rtt: float, rate: float) -> Any:
    """A chain good up to a length: ``rtt`` with 1 ms links, and ``rate``, as shares of the ideals."""
    full = wired.IDEAL_THROUGHPUT * rate
    return {
        wired.LARGEST: (wired.ideal_rtt(of["nodes"], 0), "ns"),
        wired.DELAYED: (wired.ideal_rtt(of["nodes"], wired.DELAY) * rtt, "ns"),
        wired.SHARE: (rtt, "1"),
    } | _flows((limit, limit), of["nodes"], full, 0.5)


def wireless_chain(of: Mapping[str, Any], number: int) -> Any:
    """Three worlds: as published; too slow and never flat; faster than its rings and than the channel."""
    if "radio" not in of:
        added = (lambda hops: 10 * MS, lambda hops: hops * 100 * MS, lambda hops: -10 * MS)[number]
        steps = {hops: ideal.first_rtt(hops) + added(hops) for hops in range(1, of["nodes"])}
        found = {f"search.h{hops}": (rtt, "ns") for hops, rtt in steps.items()}
        found |= {f"search.above-h{hops}": (added(hops), "ns") for hops in steps}
        return found | {"search.slowest": (max(steps.values()), "ns")}
    low, high = ideal.pair_limits()
    first, limit, full = (10 * MS, 1e9, 10 * MS)[number], (36, 1, 36)[number], ideal.THROUGHPUT
    if of["radio"] == "802.11b":
        pair = ((low + high) / 2, MBIT, 9 * MBIT)[number]
        full = pair if of["nodes"] == 2 else (0.5, 0.5, 2.0)[number] * ideal.shared_limit(of["nodes"] - 1)
        limit, first = 100, 10 * MS
    share = {"shared.share": (full / ideal.shared_limit(of["nodes"] - 1), "1")}
    crossing = (1.5, 1.0, 0.5)[number] if of["routing"] == "aodv" else 1.0
    times = {"rtt.rtt_max": (first, "ns"), "after.rtt_max": (1 * MS, "ns")}
    times |= {"after.rtt_per_hop": (crossing * MS, "ns"), "between.cpu": (0.1 * crossing, "1")}
    return times | share | _flows((limit, limit), of["nodes"], full, 0.5)


for _name, _world, _published in (
    ("net-kinds-wired", _wired_kinds, WIRED),
    ("net-kinds-wireless", _wireless_kinds, WIRELESS),
):
    CAMPAIGNS[_name] = [
        functools.partial(_world, limits=limits, good=good)
        for limits, good in (
            (_published, True),
            ({kind: (forth + 1, back + 1) for kind, (forth, back) in _published.items()}, True),
            (EQUAL, True),
            (CONTRARY, False),
        )
    ]
CAMPAIGNS["net-wired-chain"] = [
    functools.partial(wired_chain, limit=limit, rtt=rtt, rate=rate)
    for limit, rtt, rate in ((20, 1.01, 1.0), (49, 1.01, 1.0), (0, 1.0, 0.5), (20, 1.5, 1.0))
]


def virtual_chain(of: Mapping[str, Any], *, contrary: bool) -> Any:
    """A chain on its ideals whose runs take longer; or one off them, in runs that do not."""
    return {
        virtual.SHARE: (0.5 if contrary else 1.0, "1"),
        virtual.ABOVE: (0.2 * MS if contrary else 0.5 * US, "ns"),
        virtual.SEARCHED: (200 * MS if contrary else 2 * US, "ns"),
        virtual.PRICE: (1.0 if contrary else float(of["nodes"]), "1"),
    }


def both_times(of: Mapping[str, Any], *, contrary: bool) -> Any:
    """Points that measure in wall time what they do in virtual time, or half of it."""
    half = contrary and of["time"] == "wall"
    points = find("wall-vs-virtual").load().__globals__["POINTS"]
    return {one.figure: (0.5 if half else 1.0, "1") for one in points if one.experiment == of["experiment"]}


def processor(of: Mapping[str, Any], *, times: float, by_arithmetic: bool = False) -> Any:
    """Slices in turns so many times as variable as native, or with the delay of a round robin; and a
    processor whose packets have a price, or each guest and size its own rate.
    """
    module = find("orbit-processor").load().__globals__
    if of["platform"] in module["PRICED"]:
        count = module["PRICED"][of["platform"]][1]
        rate = 80_000.0 if count == 1 else 65_000.0 / count
        if times == 1:
            rate = 3_200_000.0 / of["payload"]
        return {"packets": (rate, "packets/s"), "total": (count * rate, "packets/s")}
    native = of["platform"] == module["NATIVE"].name
    more = 1.0 if native else times
    delay = 1e4 * MS * (1.0 if native else times / 5)
    if by_arithmetic:
        ones = [
            module["Platform"](module["KIND"], 2, quantum, phase)
            for quantum in module["QUANTA"]
            for phase in (0, quantum // 2)
        ]
        named = [one for one in ones if one.name == of["platform"]]
        delay = module["_ideal"](named[0], of["load"], 5) * MS if named else delay
    others = native or times > 1
    return {
        "throughput": ((4 if others else 10) * MBIT, "bit/s"),
        "delay": (delay, "ns"),
        "jitter": (MS if native else 0.4 * times * MS, "ns"),
        "variance-10-ms": (more, "1"),
        "variance-100-ms": (more, "1"),
    }


CAMPAIGNS["orbit-processor"] = [
    functools.partial(processor, times=10.0),
    functools.partial(processor, times=1.0),
    functools.partial(processor, times=10.0, by_arithmetic=True),
]
CAMPAIGNS["net-virtual-time"] = [functools.partial(virtual_chain, contrary=one) for one in (False, True)]
CAMPAIGNS["wall-vs-virtual"] = [functools.partial(both_times, contrary=one) for one in (False, True)]
CAMPAIGNS["net-wireless-chain"] = [functools.partial(wireless_chain, number=number) for number in range(3)]


def isolation(of: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    """Slices that share one channel, or that couple where they should not."""
    count = of["slices"]
    # Equal shares, or the first of the weights 1 to n.
    parts = {"shared": count, "airtime": count * (count + 1) / 2}.get(of["scheme"])
    coupling = 0.0 if parts is None else 1 - orbit.saturation() / parts / (20 * MBIT)
    # One radio for all couples them weakly, or strongly.
    coupling, wrong = (0.3, 0.6) if of["scheme"] == "one-radio" else (coupling, 0.1)
    if of["kind"] == "stepped":
        return {"radio-coupling": (wrong if contrary else coupling, "1")}
    return {"coupling": (wrong if contrary else coupling, "1"), "together": (20 * MBIT, "bit/s")}


CAMPAIGNS["slices-isolation"] = [
    functools.partial(isolation, contrary=contrary) for contrary in (False, True)
]


def two_networks(of: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    """Two guests that share a radio as the model says, or unevenly and with losses."""
    one = orbit.saturation(rate=vwifi.RATE)
    share = 1.0 if of["networks"] == 1 else 40 / 41
    rtt = 1 * MS if of["networks"] == 1 or contrary else 11.76 * MS
    return {
        "sum": (one * share * (0.5 if contrary else 1.0), "bit/s"),
        "uneven": (0.5 if contrary else 0.01, "1"),
        "rtt": (rtt, "ns"),
        "echoes-lost": (0.3 if contrary else 0.0, "1"),
    }


def scans(of: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    """Scans that a card consolidates, or that cost more and find less if it does."""
    setting = of["setting"]
    return {
        "visits": ((1.0, 1.5, 1.5)[setting] if contrary else (1.5, 1.5, 0.5)[setting], "1"),
        "found": ((3.0, 3.0, 2.0)[setting] if contrary else 3.0, "1"),
        "oldest": (5e9 if contrary else 1e9, "ns"),
        "gap": ((150 if contrary else 45) * MS, "ns"),
    }


def wlan_groups(of: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    """A virtual radio that does as the others, or has half the throughput at twice the cost."""
    worse = contrary and of["group"] == 2
    rates = [f"{protocol}-{way}" for protocol in ("udp", "tcp") for way in ("up", "down")]
    cost = 2.0 if worse else 1.05 if of["group"] == 2 else 1.0
    return {
        **dict.fromkeys((*rates, "throughput"), ((8 if worse else 16) * MBIT, "bit/s")),
        "rtt": (cost * MS, "ns"),
        "transmit": (cost * MS, "ns"),
        "all": (cost * 0.3, "1"),
    }


def coalesced(of: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    """Notifications that are coalesced at little cost, or more of them at a high one."""
    setting = of["setting"]
    coalesces = setting in (1, 2, 3)
    if of["load"] == 0:
        added = (0.0, 2.0, 2.0, 0.02, 0.0)[setting] * (3 if contrary else 1) + (
            1 if contrary else 0
        ) * coalesces
        return {"rtt": ((1 + added) * MS, "ns")}
    worse, better = (1.5, 2.0), (0.3, 0.95)
    notifications, cost = (worse if contrary else better) if coalesces else (1.0, 1.0)
    packets = 500.0 if contrary and coalesces else 1000.0
    return {
        "notifications": (notifications, "1"),
        "all": (0.3 * cost, "1"),
        "packets": (packets, "packets"),
    }


def translated(of: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    """Translations that cost what they do, or the opposite."""
    setting = of["setting"]
    cost = (0.5, 0.4, 0.3, 0.6, 0.6, 0.6) if contrary else (0.3, 0.32, 0.36, 0.34, 0.31, 0.31)
    hits = {3: 0.9, 4: 0.5, 5: 0.2} if contrary else {3: 0.46, 4: 0.9, 5: 0.88}
    rate = (8 if contrary and setting else 10) * MBIT
    found = {"throughput": (rate, "bit/s"), "all": (cost[setting], "1")}
    return found | ({"hits": (hits[setting], "1")} if setting in hits else {})


CAMPAIGNS["vwifi-coalescing"] = [functools.partial(coalesced, contrary=one) for one in (False, True)]
CAMPAIGNS["vwifi-translation"] = [functools.partial(translated, contrary=one) for one in (False, True)]
CAMPAIGNS["vwifi-two-networks"] = [functools.partial(two_networks, contrary=one) for one in (False, True)]
CAMPAIGNS["vwifi-scan"] = [functools.partial(scans, contrary=one) for one in (False, True)]
for _name in ("vwifi-throughput", "vwifi-latency", "vwifi-cpu"):
    CAMPAIGNS[_name] = [functools.partial(wlan_groups, contrary=one) for one in (False, True)]


def _mtu_module() -> dict[str, Any]:
    return find("mtu-study").load().__globals__


def labels_of(labels: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What a run of these labels gives figures of: in the MTU study the wire too."""
    if labels.get("network") != "airloom, at the receiver":
        return [labels]
    return [labels, {**labels, "network": "airloom, on the wire"}]


def mtu(of: Mapping[str, Any], module: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    """The study's real network and Mininet as published, or links that are slow, bursty and shaky."""
    case, here, mininet = module["cases"].BY_ID[of["case"]], module["AIRLOOM"], module["MININET"]
    share, peak = (0.3, 1.5) if contrary else (1.0, 1.0)
    rate, jitter = case.ideal * share * MBIT, 100 * MS if contrary else 1.0
    known = module["cases"].published()
    if of["network"] == mininet:
        peak = 0.5 if contrary else 3.0
    if (case.id, "real") in known and of["network"] == here and not contrary:
        rate = known[case.id, "real"].bandwidth[0] * MBIT
    if (case.id, "real") in known and of["network"] == mininet:
        cell = known[case.id, "mininet"]
        rate = (100 if contrary else 1) * cell.bandwidth[0] * MBIT
        jitter = jitter if contrary else cell.jitter[0] * MS
    if of["network"] == module["TUNNEL"]:
        rate = case.ideal * (case.frame - module["tunnelled"].OVERHEAD) / case.frame * share * MBIT
    return {
        "bandwidth.mean": (rate, "bit/s"),
        "jitter.mean": (jitter, "ns"),
        "of_link.top": (peak, "1"),
        "of_link.peak": (peak, "1"),
        "of_ideal.mean": (share, "1"),
        "of_ideal.mean_uninterrupted": (share, "1"),
        "of_inner_ideal.mean": (share, "1"),
    }


CAMPAIGNS["mtu-study"] = [
    functools.partial(mtu, module=_mtu_module(), contrary=contrary) for contrary in (False, True)
]


def topologies(of: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    """Exact links and token buckets, or slow links and a Mininet that is slower than they are."""
    mininet, below = of["network"] == "mininet", of["traffic"] == "UDP, 100/10"
    one = of["topology"] == "one-switch"
    share = (0.5 if mininet else 0.9 if one else 0.8) if contrary else 1.013 if mininet and not below else 1.0
    path = (1.2 if mininet else 0.5) if contrary else 0.03 if mininet else 1.02
    found = {"rate": (share * 10 * MBIT, "bit/s"), "of_ideal": (share, "1")}
    return found | ({"delay.of_path": (path, "1")} if below else {})


CAMPAIGNS["mtu-topologies"] = [functools.partial(topologies, contrary=one) for one in (False, True)]


def guarantee(of: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    """Queues that keep a guarantee, or that take what a plain queue would give."""
    found = {"greedy": (40 * MBIT, "bit/s"), "of_passed": (0.7 if contrary else 1.0, "1")}
    kept = (of["queues"] == "guarantee") is not contrary
    return found if of["flow"] == "silent" else found | {"of_due": (1.0 if kept else 0.4, "1")}


CAMPAIGNS["mtu-guarantee"] = [functools.partial(guarantee, contrary=one) for one in (False, True)]


def mtu_video(of: Mapping[str, Any], *, contrary: bool) -> dict[str, tuple[float, str]]:
    """Video that only loss disturbs, at small frames most; or one that is the other way round."""
    lossy, rtp, mininet = of["path"] == "lossy", of["transport"] == "rtp", of["network"] == "mininet"
    stalls = lossy and not rtp and of["frame"] == ("7999" if contrary else "1518")
    stalls |= contrary and of["path"] == "clean"
    damaged = rtp and (lossy is not contrary)
    found = {
        "stalled": ((2e3 if stalls else 0.0) * MS, "ns"),
        "startup": ((800 if contrary and mininet else 200) * MS, "ns"),
        "ssim": (0.5 if contrary and mininet else 0.9 if damaged else 1.0 if lossy else 0.999, "1"),
    }
    if not rtp:
        return found | {"download": (9 * MBIT, "bit/s")}
    delay = 5 if contrary else 0 if of["path"] == "clean" else 22
    share = (1.5 if mininet else 0.5) if contrary else (0.1 if mininet else 5.0)
    return found | {"delay.mean": (delay * MS, "ns"), "delay.of_path": (share, "1")}


CAMPAIGNS["mtu-video"] = [functools.partial(mtu_video, contrary=one) for one in (False, True)]
