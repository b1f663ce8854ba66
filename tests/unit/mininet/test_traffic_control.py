"""What Mininet's commands of tc mean for a link."""

from __future__ import annotations

import pytest

from airloom.mininet.errors import Misused
from airloom.mininet.traffic_control import direction, idle_words, red_weight, shapes
from airloom.planning.links.link_settings import LinkSettings, QueueSettings


@pytest.mark.parametrize(
    ("least", "burst", "packet", "weight"),
    [
        # Mininet's: 20 + 1 - 20 = 1 packet beyond the threshold, and (1 - 2^-20) * 2 is above 1.
        (30_000, 20, 1_500, 2**-1),
        # 60 + 1 - 20 = 41: (1 - (31/32)^60) * 32 = 27.2 is below it, (1 - (63/64)^60) * 64 = 39.1 too,
        # (1 - (127/128)^60) * 128 = 48.05 is above.
        (30_000, 60, 1_500, 2**-7),
        # The example of tc-red(8): min 30 kB, avpkt 1000, burst 55.
        (30_000, 55, 1_000, 2**-5),
    ],
)
def test_the_weight_of_red_is_that_of_tc(least, burst, packet, weight):
    assert red_weight(least, burst, packet) == weight


def test_red_marks_or_drops_above_its_upper_threshold():
    law = {
        "min_octets": 30_000,
        "max_octets": 35_000,
        "probability": 1.0,
        "packet_octets": 1_500,
        "weight": 0.5,
    }
    marking = direction(bw=10, enable_ecn=True).queue
    assert marking is not None
    assert marking.discipline is not None
    assert marking.discipline.parameters == {**law, "marks_above": True}
    assert (marking.ecn, marking.packets, marking.octets) == (True, None, 1_000_000)
    dropping = direction(bw=10, enable_red=True, max_queue_size=50).queue
    assert dropping is not None
    assert dropping.discipline is not None
    assert dropping.discipline.parameters == {**law, "marks_above": False}
    assert (dropping.ecn, dropping.packets, dropping.octets) == (False, 50, None)


def test_a_token_bucket_holds_its_latency():
    # 10 Mbit/s for 50 ms are 62,500 octets, beside the bucket of 15,000.
    assert direction(bw=10, use_tbf=True, latency_ms=50).queue == QueueSettings(None, 77_500)
    # By default 120/bw ms, which are 15,000 octets at any rate.
    assert direction(bw=4, use_tbf=True).queue == QueueSettings(None, 30_000)
    # netem takes the place of the queue.
    assert direction(bw=10, use_tbf=True, latency_ms=50, delay="1ms").queue is None
    assert direction(bw=10, use_tbf=True, use_hfsc=True).queue is None
    with pytest.raises(Misused):
        direction(bw=10, use_tbf=True, latency_ms="long")


def test_a_faster_rate_takes_the_place_of_bw():
    assert direction(bw=10, speedup=100).rate == 100_000_000
    assert direction(bw=10, speedup=0).rate == 10_000_000


def test_what_changes_nothing():
    for given in ({}, {"bw": None}, {"loss": 0}, {"delay": 0}, {"jitter": "1ms"}, {"enable_ecn": True}):
        assert not shapes(given), given
    for given in ({"bw": 1}, {"delay": "0ms"}, {"loss": 1}, {"max_queue_size": 10}):
        assert shapes(given), given
    assert idle_words({"enable_ecn": True, "delay": "1ms"}) == ["enable_ecn"]
    assert idle_words({"loss": 0}) == ["loss"]
    assert idle_words({"bw": 1, "use_tbf": True, "loss": 0}) == []
    assert direction() == LinkSettings()
