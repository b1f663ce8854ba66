"""A path as a link: captures of a link with known settings, made by the engine itself."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airloom import _engine
from airloom.calibration.paired import paired
from airloom.calibration.path_clocks import aligned
from airloom.calibration.path_model import PathModel, fitted, waiting
from airloom.calibration.path_scenario import fragment
from airloom.errors import ScenarioError
from helpers.pcap_files import ethernet, udp_packet, write

ZERO = 1_700_000_000_000_000_000
A, B = b"\xc0\0\2\1", b"\xc0\0\2\2"
Row = tuple[int, bytes]


def load(dice: random.Random, count: int, gap: float, source: bytes = A, to: bytes = B) -> list[Row]:
    """Bursts of Poisson packets of several sizes, all different, with a mean gap in ns."""
    at, rows = 0.0, []
    for number in range(count):
        # Busy and quiet times of 400 packets each.
        at += dice.expovariate(1 / gap) * (0.55 if number // 400 % 2 else 1.45)
        size = dice.choice((100, 400, 800, 1400))
        payload = number.to_bytes(4, "big") + dice.randbytes(8) + bytes(size - 12)
        rows.append((round(at), ethernet(udp_packet(payload, source, to, number))))
    return rows


def sent_over(rows: Iterable[Row], settings: dict[str, Any], seed: int = 3) -> list[Row]:
    engine = _engine.Engine(seed)
    for port in "ab":
        engine.add_memory_port(port)
    engine.connect("wire", "a", "b", settings, {})
    for at, frame in rows:
        engine.offer("a", at, frame)
    return [(at, octets) for _, at, octets in engine.step(10**12)]


def captured(
    folder: Path, *ways: tuple[list[Row], list[Row]], ahead: int = 0, drift: float = 0.0
) -> list[Path]:
    """Writes captures of both ends from what each direction sends and gets; B's clock may be another."""
    here, there = [], []
    for number, (sent, came) in enumerate(ways):
        (here if number == 0 else there).extend(sent)
        (there if number == 0 else here).extend(came)
    here = [(ZERO + at, frame) for at, frame in sorted(here, key=lambda row: row[0])]
    there = [
        (ZERO + at + ahead + round(drift * at), frame) for at, frame in sorted(there, key=lambda row: row[0])
    ]
    return [write(folder / "a.pcap", here), write(folder / "b.pcap", there)]


def model(folder: Path, settings: dict[str, Any], gap: float, count: int = 8000) -> PathModel:
    sent = load(random.Random(1), count, gap)
    a, b = captured(folder, (sent, sent_over(sent, settings)))
    return fitted(paired(a, b).forward)


# 699 octets on the wire on average: 560 us at 10 Mbit/s.
MEAN = 700e3


def test_waiting_is_lindleys_recursion() -> None:
    dice = np.random.default_rng(1)
    sent, service = np.cumsum(dice.exponential(100, 500)), dice.exponential(90, 500)
    expected = [0.0]
    for number in range(499):
        expected.append(max(0.0, expected[-1] + service[number] - (sent[number + 1] - sent[number])))
    assert np.allclose(waiting(sent, service), expected)


def test_rate_and_delay_of_a_plain_link(tmp_path: Path) -> None:
    found = model(tmp_path, {"rate": {"bits-per-second": 10_000_000}, "delay_ns": 20_000_000}, MEAN)
    assert found.rate == pytest.approx(10e6, rel=1e-3)
    assert found.delay == pytest.approx(20e6, abs=20e3)
    assert (found.jitter, found.loss, found.bursts, found.queue) == ((), 0.0, None, None)
    assert not found.reorders


def test_jitter_has_its_quantiles_and_order(tmp_path: Path) -> None:
    jitter = {"jitter": {"uniform": {"spread_ns": 4_000_000}}, "jitter_reorders": True}
    found = model(tmp_path, {"rate": {"bits-per-second": 10_000_000}, "delay_ns": 20_000_000} | jitter, MEAN)
    assert found.rate == pytest.approx(10e6, rel=0.02)
    assert found.reorders
    for share in (10, 50, 100, 150, 190):
        assert found.delay + found.jitter[share] == pytest.approx(16e6 + 8e6 * share / 200, abs=0.4e6)


def test_random_loss_and_the_limit_of_the_queue_are_told_apart(tmp_path: Path) -> None:
    loss = {"loss": {"bernoulli": {"probability": 0.02}}, "queue": {"octets": 40_000}}
    found = model(tmp_path, {"rate": {"bits-per-second": 8_000_000}, "delay_ns": 5_000_000} | loss, MEAN)
    assert found.rate == pytest.approx(8e6, rel=5e-3)
    assert found.queue == pytest.approx(40_000, abs=2_500)
    assert found.loss == pytest.approx(0.02, abs=0.006)


def test_loss_in_bursts(tmp_path: Path) -> None:
    bursts = {"good_to_bad": 0.01, "bad_to_good": 0.25, "loss_good": 0.0, "loss_bad": 1.0}
    found = model(tmp_path, {"delay_ns": 5_000_000, "loss": {"gilbert-elliott": bursts}}, MEAN)
    assert found.rate is None
    assert found.bursts is not None
    assert found.bursts == pytest.approx((0.01, 0.25), rel=0.25)


def test_clocks_that_stand_apart_and_drift(tmp_path: Path) -> None:
    there = load(random.Random(1), 3000, 1e6)
    back = load(random.Random(2), 3000, 1e6, B, A)
    plain = {"rate": {"bits-per-second": 20_000_000}, "delay_ns": 30_000_000}
    ways = (there, sent_over(there, plain)), (back, sent_over(back, plain))
    pair = paired(*captured(tmp_path, *ways, ahead=-7_000_000_000, drift=50e-6))
    by_one_clock, clocks = aligned(pair, synchronized=False, least=None)
    assert clocks.drift == pytest.approx(50e-6, rel=0.05)
    assert clocks.offset == pytest.approx(-7e9, abs=50e3)
    for way in (by_one_clock.forward, by_one_clock.backward):
        assert way.sent.size == 3000
        assert fitted(way).delay == pytest.approx(30e6, abs=100e3)
        assert fitted(way).rate == pytest.approx(20e6, rel=0.01)


def test_one_direction_needs_a_clock_or_a_delay(tmp_path: Path) -> None:
    sent = load(random.Random(1), 1000, 1e6)
    came = sent_over(sent, {"delay_ns": 30_000_000})
    pair = paired(*captured(tmp_path, (sent, came), ahead=5_000_000))
    with pytest.raises(ScenarioError, match=r"one direction only.*\[capture.one-way\]"):
        aligned(pair, synchronized=False, least=None)
    moved, _ = aligned(pair, synchronized=False, least=30_000_000)
    assert set(moved.forward.delays) == {30_000_000}
    assert set(aligned(pair, synchronized=True, least=None)[0].forward.delays) == {35_000_000}


def test_packets_are_found_again_behind_routers_and_among_others(tmp_path: Path) -> None:
    rows = [(at, bytearray(frame)) for at, frame in load(random.Random(1), 300, 1e6)]
    came = []
    for at, frame in rows:
        routed = bytearray(frame)
        # Another link header, time to live, DSCP, header checksum, and a frame that was padded.
        routed[:12], routed[22], routed[15], routed[24:26] = bytes(12), 57, 0xB8, b"\x12\x34"
        came.append((at + 1000, bytes(routed) + bytes(6)))
    other = load(random.Random(2), 300, 1e6, b"\x0a\0\0\1", b"\x0a\0\0\2")
    a = write(tmp_path / "a.pcap", [(ZERO + at, bytes(frame)) for at, frame in [*rows, *other]])
    del came[100:110]
    b = write(tmp_path / "b.pcap", [(ZERO + at, frame) for at, frame in [*came, came[50]]])
    pair = paired(a, b)
    assert pair.forward.sent.size == 299
    assert int(pair.forward.came.sum()) == 289
    assert pair.forward.duplicates == 1
    assert pair.backward.sent.size == 0


def test_what_cannot_be_used_is_refused(tmp_path: Path) -> None:
    sent = load(random.Random(1), 300, 1e6)
    other = load(random.Random(9), 300, 1e6)
    a, b = captured(tmp_path, (sent, other))
    with pytest.raises(ScenarioError, match=r"no packet of a.pcap is in b.pcap.*\[capture.unpaired\]"):
        paired(a, b)
    with pytest.raises(ScenarioError, match=r"no IP packet, and frames of link type 127.*\[capture.empty\]"):
        paired(write(tmp_path / "radio", [(ZERO, bytes(60))], 127), b)
    few = sent[:100]
    with pytest.raises(ScenarioError, match=r"packets of a direction came, 200 are needed.*\[capture.few\]"):
        fragment(paired(*captured(tmp_path, (few, few))), "path")


def test_the_held_out_half_fares_as_it_did(tmp_path: Path) -> None:
    settings = {
        "rate": {"bits-per-second": 9_000_000},
        "delay_ns": 15_000_000,
        "jitter": {"exponential": {"mean_ns": 500_000}},
        "loss": {"bernoulli": {"probability": 0.01}},
        "queue": {"octets": 50_000},
    }
    sent = load(random.Random(1), 16_000, MEAN)
    made = fragment(paired(*captured(tmp_path, (sent, sent_over(sent, settings)))), "path")
    tested = made.ways["forward"]
    figures = {one.name: one for one in tested.figures}
    for name in ("delay mean", "delay p5", "delay p50", "delay p95"):
        error = figures[name].error
        assert error is not None
        assert abs(error) < 0.1, name
    assert figures["loss"].model == pytest.approx(figures["loss"].measured, abs=0.015)
    assert tested.distance < 0.2
    assert tested.packets + tested.held_out == 16_000
    assert "backward" not in made.ways
    assert list(made.files) == ["path.forward.jitter"]
