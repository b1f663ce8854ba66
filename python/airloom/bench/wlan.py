"""802.11 stacks of guests (``device: wlan``): throughput, association, counters, and many stations."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from functools import partial

from airloom.bench import BenchResult, Progress
from airloom.bench.grid import LOSS
from airloom.bench.labs import flow, up
from airloom.errors import HostError, RunError
from airloom.lab.handles import LiveNode
from airloom.lab.lab import Lab
from airloom.lab.live_program import LiveProgram
from airloom.scenario.model import Scenario

RATES = (6, 9, 12, 18, 24, 36, 48, 54)
"""Rates of 802.11a in Mbit/s."""
MANDATORY = (6, 12, 24)
PAYLOAD = 1470
"""UDP payload in octets."""
ENVELOPE = 8 + 20 + 8 + 26 + 4
"""Octets of a QoS data frame around it: UDP, IPv4, LLC and SNAP, MAC header, check sequence."""
SECONDS = 5
NEAR, LONGEST, MANY = 0.03, 2.0, 60.0
"""Promises: deviation from the closed form, seconds to associate, seconds until all answer."""
FULL = 0.9
"""Share of its time from which a guest's processor limits a flow."""
LIMIT = " (the guest's processor is the limit)"
GUESTS, INSIDE = 20, 50
MEMORY = {1: "64 MiB", INSIDE: "768 MiB"}
"""Memory of a guest by the number of its nodes."""
WAIT = 120.0
"""Seconds after which a wait is given up."""

ACCESS_POINT = """
interface=wlan0
driver=nl80211
ssid=bench
country_code=US
hw_mode=a
channel=36
wmm_enabled=1
max_num_sta=200
basic_rates=60 90 120 180 240 360 480 540
"""
ENCRYPTED = "wpa=2\nwpa_key_mgmt=WPA-PSK\nrsn_pairwise=CCMP\nwpa_passphrase=correct horse\n"
STATION = """
country=US
network={
  ssid="bench"
  scan_freq=5180
  psk="correct horse"
}
"""
OPEN = STATION.replace('psk="correct horse"', "key_mgmt=NONE")


def run(progress: Progress) -> list[BenchResult]:
    """Measures pairs of guests first, then many stations on one access point."""
    for program in ("iw", "hostapd", "wpa_supplicant"):
        if shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin") is None:
            raise HostError(
                "bench.program.missing",
                f"there is no {program}",
                cure="apt install iw hostapd wpasupplicant wireless-regdb",
            )
    return [*_throughput(progress), *_association(progress), *_many(progress)]


def closed_form(rate: int) -> float:
    """Returns the UDP payload in bit/s of a saturated QoS flow of best effort at ``rate`` Mbit/s.

    IEEE 802.11-2020, 10.23.2 and 17.4.3: SIFS and AIFS of three slots, mean backoff of 7.5 slots, data,
    SIFS, acknowledgment at the highest mandatory rate that is not faster. Times in us.
    """
    slot, sifs = 9.0, 16.0
    answer = max(each for each in MANDATORY if each <= rate)
    busy = _airtime(PAYLOAD + ENVELOPE, rate) + sifs + _airtime(14, answer)
    return PAYLOAD * 8 / ((sifs + 3 * slot + 7.5 * slot + busy) * 1e-6)


def _airtime(octets: int, rate: int) -> float:
    """Returns the time on the air in us: preamble, and symbols with service field and tail bits."""
    return 20.0 + 4.0 * -(-(16 + 8 * octets + 6) // (4 * rate))


def _scenario(name: str, guests: dict[str, list[str]], files: tuple[str, str]) -> Scenario:
    """Returns nodes by guest; the first node of all is the access point, the others surround it."""
    nodes = [(node, guest) for guest, inside in guests.items() for node in inside]
    conf = {"/etc/hostapd.conf": files[0]}, {"/etc/wpa.conf": files[1]}
    shared = {guest: inside for guest, inside in guests.items() if len(inside) > 1}
    return Scenario.model_validate(
        {
            "name": f"bench-wlan-{name}",
            "kind": "uml",
            "guests": {
                guest: {"kind": "uml", "memory": MEMORY[len(inside)]} for guest, inside in shared.items()
            },
            "media": {"air": {"propagation": LOSS, "radio": {"device": "wlan"}}},
            "nodes": {
                node: {
                    "position": [f"{place % 8} m", f"{place // 8} m"],
                    "radios": {"wlan0": {}},
                    "files": conf[place > 0],
                    **({"inside": guest} if guest in shared else {}),
                }
                for place, (node, guest) in enumerate(nodes)
            },
        }
    )


def _pair(name: str, files: tuple[str, str]) -> Scenario:
    return _scenario(name, {"one": ["ap"], "two": ["station"]}, files)


def _throughput(progress: Progress) -> list[BenchResult]:
    results = []
    with up(_pair("rates", (ACCESS_POINT, OPEN))) as lab:
        _join(lab)
        for rate in RATES:
            progress(f"a saturated flow at {rate} Mbit/s")
            _done(lab["station"], f"iw dev wlan0 set bitrates legacy-5 {rate}")
            expected = closed_form(rate)
            before = [_processor(lab[name]) for name in lab.nodes]
            reading = flow(
                lab, "station", "ap",
                rate=f"{1.2 * expected / 1e6:.3f} Mbit/s", size=f"{PAYLOAD} B", duration=f"{SECONDS} s",
            )  # fmt: skip
            after = [_processor(lab[name]) for name in lab.nodes]
            found = next(float(one.value) for one in reading.metrics() if one.name == "throughput_steady")
            holds = abs(found / expected - 1) <= NEAR
            busy = max(end - begin for begin, end in zip(before, after, strict=True))
            full = not holds and busy > FULL * SECONDS
            results.append(
                BenchResult(
                    f"UDP from guest to guest at {rate} Mbit/s{LIMIT * full}", "bit/s", found,
                    "closed form", expected, found / expected,
                    "within 3 %, if the guest's processor allows", holds or full,
                )
            )  # fmt: skip
        results.append(_counters(lab))
    return results


def _processor(node: LiveNode) -> float:
    """Returns the busy time of a guest's processor in seconds (/proc/stat)."""
    user, nice, system, _idle, _wait, irq, softirq, *_ = map(
        int, _done(node, "head -n 1 /proc/stat").split()[1:]
    )
    return (user + nice + system + irq + softirq) / 100


def _counters(lab: Lab) -> BenchResult:
    """Compares the retries that the guest counts with those of the medium."""
    dump = _done(lab["station"], "iw dev wlan0 station dump")
    retries = next(int(line.split()[-1]) for line in dump.splitlines() if "tx retries" in line)
    account = sum(int(one["unanswered"]) for one in lab.radio("station").stations())
    return BenchResult(
        "the same: retries of `iw station dump`", "1", retries, "the medium's account", account,
        promise="equal", holds=retries == account,
    )  # fmt: skip


def _association(progress: Progress) -> list[BenchResult]:
    progress("association with WPA2")
    with up(_pair("wpa2", (ACCESS_POINT + ENCRYPTED, STATION))) as lab:
        took = _join(lab)
    return [
        BenchResult(
            "WPA2: start of wpa_supplicant until it is connected", "s", took,
            promise="less than 2 s", holds=took < LONGEST,
        )
    ]  # fmt: skip


def _many(progress: Progress) -> list[BenchResult]:
    apart = {f"g{number}": [f"n{number}"] for number in range(GUESTS)}
    together = {"box": [f"n{number}" for number in range(INSIDE)]}
    results = []
    for what, guests in ((f"{GUESTS} guests", apart), (f"{INSIDE} nodes in one guest", together)):
        progress(f"{what} on one medium")
        begun = time.monotonic()
        with up(_scenario("many", guests, (ACCESS_POINT + ENCRYPTED, STATION))) as lab:
            _join(lab)
            access_point = lab.addresses[lab.nodes[0]]
            for name in lab.nodes[1:]:
                _until(partial(_ok, lab[name], f"ping -c 1 -W 1 {access_point}"), name)
            took = time.monotonic() - begun
        results.append(
            BenchResult(
                f"{what}: boot, associate with one access point, ping it", "s", took,
                promise="at most 60 s", holds=took <= MANY,
            )
        )  # fmt: skip
    return results


def _join(lab: Lab) -> float:
    """Starts the access point, then its stations; returns the seconds until all are connected."""
    access_point, *stations = [lab[name] for name in lab.nodes]
    daemon = access_point.start("hostapd /etc/hostapd.conf", name="hostapd")
    _until(partial(_says, daemon, "AP-ENABLED"), "hostapd")
    begun = time.monotonic()
    joining = [each.start("wpa_supplicant -i wlan0 -c /etc/wpa.conf", name="supplicant") for each in stations]
    for supplicant in joining:
        _until(partial(_says, supplicant, "CTRL-EVENT-CONNECTED"), str(supplicant))
    return time.monotonic() - begun


def _until(done: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + WAIT
    while not done():
        if time.monotonic() > end:
            raise RunError("bench.failed", f"{what} is not ready after {WAIT:g} s")
        time.sleep(0.02)


def _says(program: LiveProgram, text: str) -> bool:
    return text in program.output


def _ok(node: LiveNode, command: str) -> bool:
    return node.run(command, timeout=WAIT).ok


def _done(node: LiveNode, command: str) -> str:
    return node.run(command, timeout=WAIT, check=True).stdout
