"""The arithmetic of a flow, against series computed by hand and against plain loops."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloom.measure import MeasureError
from airloom.measure.flow import (
    intervals,
    jitter_rfc3550,
    jitter_rfc4689,
    join,
    rate,
    reordering,
    ticks,
)
from airloom.measure.records import parse
from helpers.record_files import file

MS = 1_000_000


def array(*values):
    return np.array(values, dtype=np.int64)


def flow(sent, received, *, protocol=0, **more):
    """A flow from (number, scheduled, sent, octets, flags) and (number, sent, received, octets, flags)."""
    sender = parse(file(*sent, announced=len(sent), protocol=protocol))
    return join(sender, parse(file(*received, end=1, protocol=protocol, **more)))


def metrics(reading):
    return {metric.name: metric.value for metric in reading.metrics()}


def packets(*arrivals, count=None, gap=1000):
    """Sender and receiver records for arrivals (number, time of arrival), all of 100 octets."""
    count = count if count is not None else max(number for number, _ in arrivals) + 1
    sent = [(number, number * gap, number * gap + 1, 100, 0) for number in range(count)]
    received = [(number, number * gap + 1, time, 100, 0) for number, time in arrivals]
    return sent, received


def test_delay_and_rfc4689_jitter_by_hand():
    # Sent at 1, 1001, 2001, 3001; received at 11, 1031, 2016, 3011: delays 10, 30, 15, 10.
    reading = flow(*packets((0, 11), (1, 1031), (2, 2016), (3, 3011)))
    assert reading.delays.tolist() == [10, 30, 15, 10]
    assert reading.jitter.tolist() == [20, 15, 5]
    found = metrics(reading)
    assert (found["jitter_min"], found["jitter_mean"], found["jitter_max"]) == (5, 40 / 3, 20)
    assert (found["delay_min"], found["delay_mean"], found["delay_max"]) == (10, 16.25, 30)
    assert found["pacing_error_mean"] == 1


def test_completion_is_from_the_first_departure_to_the_last_arrival():
    delays = np.arange(1, 101) * MS
    sent = [(number, number * MS, number * MS, 100, 0) for number in range(100)]
    received = [
        (number, at, at + delay, 100, 0) for (number, _, at, *_), delay in zip(sent, delays, strict=True)
    ]
    found = metrics(flow(sent, received))
    assert found["completion_time"] == 199 * MS
    # Between the 95th and the 96th of 100 ordered delays.
    assert found["delay_p95"] == pytest.approx(95.05 * MS)


def test_rfc3550_jitter_by_hand():
    # J = 0; |D| = 20: J = 20/16 = 1.25; |D| = 15: J = 1.25 + 13.75/16; |D| = 5: J += (5 - J)/16
    expected = [1.25, 2.109375, 2.109375 + (5 - 2.109375) / 16]
    assert jitter_rfc3550(array(10, 30, 15, 10)).tolist() == pytest.approx(expected, rel=1e-15)


@given(st.lists(st.integers(0, 10**12), max_size=50))
def test_rfc3550_jitter_is_the_recursion(transits):
    jitter, expected = 0.0, []
    for before, after in pairwise(transits):
        jitter += (abs(after - before) - jitter) / 16
        expected.append(jitter)
    assert jitter_rfc3550(array(*transits)).tolist() == pytest.approx(expected, rel=1e-9, abs=1e-3)


def test_rtp_jitter_is_in_ticks_of_the_schedule():
    # Scheduled every 20 ms, i.e. 1800 ticks of 90 kHz; the second comes 1 ms late (90 ticks).
    sent = [(n, 100 + 20 * MS * n, 100 + 20 * MS * n + 7, 100, 0) for n in range(3)]
    late = [5 * MS, 6 * MS, 5 * MS]
    received = [(n, s[2], s[1] + late[n], 100, 0) for n, s in enumerate(sent)]
    reading = flow(sent, received, protocol=2)
    tick = 1e9 / 90_000
    first = 90 / 16 * tick
    assert reading.jitter_rtp.tolist() == pytest.approx([first, first + (90 * tick - first) / 16])


def test_ticks_do_not_overflow_after_a_month():
    month = 30 * 86_400 * 10**9 + 11_111
    assert ticks(array(month, 11_112), 90_000).tolist() == [30 * 86_400 * 90_000, 1]


def test_loss_and_duplication():
    reading = flow(*packets((0, 50), (2, 2050), (2, 2060), (4, 4050), (4, 4051), (4, 4052), count=6))
    found = metrics(reading)
    assert (found["sent"], found["received"], found["lost"], found["duplicates"]) == (6, 3, 3, 3)
    assert found["loss"] == 0.5
    assert found["duplication"] == 1.0
    assert found["octets"] == 300, "duplicates are no throughput"


def test_what_the_socket_refused_is_not_lost():
    sent, received = packets((0, 50), (2, 2050), count=3)
    sent[1] = (*sent[1][:4], 1)
    found = metrics(flow(sent, received))
    assert (found["sent"], found["not_sent"], found["lost"], found["loss"]) == (2, 1, 0, 0)


def test_a_receiver_without_room_is_told():
    assert metrics(flow(*packets((0, 50), count=3), overflowed=2))["host_lost"] == 2


def test_reordering_examples_of_rfc_4737():
    # Section 7: packet 4 arrives behind 8; then packets 5 and 6 behind 7.
    late, extents = reordering(array(1, 2, 3, 5, 6, 7, 8, 4, 9, 10))
    assert np.flatnonzero(late).tolist() == [7]
    assert extents.tolist() == [4]
    late, extents = reordering(array(1, 2, 3, 4, 7, 5, 6, 8, 9, 10))
    assert np.flatnonzero(late).tolist() == [5, 6]
    assert extents.tolist() == [1, 2]


@given(st.permutations(range(12)))
def test_reordering_is_the_definition(order):
    late, extents = reordering(array(*order))
    expected, following = {}, 0
    for i, number in enumerate(order):
        if number >= following:
            following = number + 1
        else:
            expected[i] = i - next(j for j in range(i) if order[j] > number)
    assert dict(zip(np.flatnonzero(late).tolist(), extents.tolist(), strict=True)) == expected


def test_jitter_follows_the_order_of_arrival():
    assert jitter_rfc4689(array(10, 40, 20)).tolist() == [30, 20]


def test_rate_counts_gaps_not_packets():
    # Five packets of 1250 octets, 1 ms apart: 10 Mbit/s.
    assert rate(array(*range(0, 5 * MS, MS)), array(*[1250] * 5)) == 10e6
    assert rate(array(5), array(100)) is None
    assert rate(array(5, 5), array(100, 100)) is None
    # Arrival stamps of two processors may be out of order by a little.
    assert rate(array(MS, 0, 2 * MS), array(1000, 9, 1000)) == 8e6


def test_intervals_are_whole():
    ends, rates = intervals(array(0, 10, 60, 100, 150, 220, 250), array(1, 2, 4, 8, 16, 32, 64), 100)
    assert ends.tolist() == [100, 200]
    assert rates.tolist() == [7 * 8e7, 24 * 8e7]
    assert intervals(array(), array(), 100)[0].size == 0
    assert intervals(array(5), array(1), 100)[0].size == 0


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**6)), min_size=1, max_size=60),
    st.integers(1, 10**8),
)
def test_intervals_lose_nothing_before_the_last(rows, length):
    times, octets = array(*(t for t, _ in rows)), array(*(o for _, o in rows))
    if (times.max() - times.min()) // length > 10**6:
        return
    ends, rates = intervals(times, octets, length)
    assert ends.size == (times.max() - times.min()) // length
    inside = octets[times < ends[-1]].sum() if ends.size else 0
    assert rates.sum() * length / 8e9 == pytest.approx(inside, rel=1e-9)


def test_startup_is_told_apart_from_the_steady_state():
    # 1000 packets 1 ms apart: the start-up is the first tenth, in which they come with half the distance.
    arrivals = [(n, n * MS // 2 + 10 * MS if n < 100 else n * MS + 10 * MS) for n in range(1000)]
    sent, received = packets(*arrivals, gap=MS)
    found = metrics(flow(sent, received))
    # 900 packets from the end of the start-up at 99.9 ms to the last arrival at 1009 ms.
    assert found["throughput_steady"] == pytest.approx(900 * 800 / 0.9091)
    # 100 packets until then, from the first departure and the least delay of 10 ms on.
    assert found["throughput_startup"] == pytest.approx(100 * 800 / 0.0999, rel=0.001)
    assert found["delay_startup_mean"] < found["delay_steady_mean"]
    # The first interval that begins after the start-up has 10 ms without arrivals, and both its ends.
    assert found["throughput_min"] == 91 * 8_000
    assert found["throughput_max"] == 800_000


def test_samples():
    reading = flow(*packets((0, 11), (1, 1031), (2, 2016)))
    table = replace(reading, zero=10, sender="a", receiver="b").samples().to_pandas()
    delay = table[table.metric == "delay"]
    assert delay.t_ns.tolist() == [1, 1021, 2006]
    assert delay.value.tolist() == [10, 30, 15]
    assert set(table[table.metric == "jitter"].node) == {"b"}
    assert table[table.metric == "jitter"].t_ns.tolist() == [1021, 2006]
    assert set(table[table.metric == "pacing_error"].node) == {"a"}


def test_nothing_came():
    found = metrics(flow(*packets(count=3)))
    assert (found["loss"], found["received"]) == (1.0, 0)
    assert "delay_mean" not in found
    assert (found["goodput"], found["throughput"]) == (0, 0), "a repetition without arrivals counts"
    assert flow(*packets(count=3)).samples().num_rows == 3, "pacing errors of what was sent"
    assert metrics(flow([], []))["sent"] == 0


def test_goodput_counts_silence():
    # 100 packets of 100 octets in the 100 ms of sending; the first half is lost.
    sent, received = packets(*((n, n * MS + 7) for n in range(50, 100)), count=100, gap=MS)
    found = metrics(replace(flow(sent, received), planned=100 * MS))
    assert found["goodput"] == pytest.approx(50 * 800 / 0.1)
    assert found["offered"] == pytest.approx(100 * 800 / 0.1)
    assert found["goodput"] == pytest.approx(found["offered"] * (1 - found["loss"]))
    assert found["throughput"] == pytest.approx(800_000), "the rate from the first to the last arrival"


def test_a_single_arrival_has_a_goodput():
    sent, received = packets((3, 3 * MS + 5), count=10, gap=MS)
    found = metrics(replace(flow(sent, received), planned=10 * MS))
    assert found["goodput"] == found["throughput"] == pytest.approx(800 / 0.01)


def test_the_series_has_the_silence_at_both_ends():
    sent, received = packets(*((n, n * MS + 7) for n in range(400, 600)), count=1000, gap=MS)
    reading = replace(flow(sent, received), planned=1000 * MS)
    table = reading.samples().to_pandas()
    rates = table[table.metric == "throughput"].sort_values("t_ns").value.tolist()
    assert [rate > 0 for rate in rates] == [4 <= tenth <= 5 for tenth in range(10)]
    assert metrics(reading)["throughput_min"] == 0


def test_goodput_of_tcp_ends_with_the_last_arrival():
    # The sender hands over everything at once; the network takes a second for it.
    sent = [(0, 0, 0, 1000, 0)]
    received = [(0, 0, 500 * MS, 500, 0), (500, 0, 1000 * MS, 500, 0)]
    found = metrics(replace(flow(sent, received, protocol=1), planned=10 * MS))
    assert found["goodput"] == pytest.approx(8000)


def test_tcp_writes_arrive_with_the_chunk_of_their_last_octet():
    sent = [(0, 0, 1, 100, 0), (100, 1000, 1001, 100, 0), (200, 2000, 2001, 100, 0)]
    received = [(0, 0, 51, 60, 0), (60, 0, 61, 40, 0), (100, 0, 2101, 150, 0)]
    reading = flow(sent, received, protocol=1)
    assert reading.delays.tolist() == [60, 1100]
    assert (reading.sent, reading.received) == (3, 2)
    assert metrics(reading)["octets"] == 250
    assert "loss" not in metrics(reading)


def test_records_that_do_not_belong_together():
    sender, receiver = parse(file()), parse(file(end=1, protocol=2))
    with pytest.raises(MeasureError, match="no flow"):
        join(sender, receiver)
    with pytest.raises(MeasureError, match="no flow"):
        join(receiver, sender)
    twice = parse(file((1, 0, 0, 1, 0), (1, 0, 0, 1, 0)))
    with pytest.raises(MeasureError, match="do not increase"):
        join(twice, parse(file(end=1)))


NUMBERS = st.integers(0, 20)
TIMES = st.integers(0, 10**12) | st.integers(0, 2**62 - 1)


@pytest.mark.slow
@given(
    st.lists(st.tuples(TIMES, TIMES, st.integers(0, 2000), st.integers(0, 3)), max_size=12),
    st.lists(st.tuples(NUMBERS, TIMES, TIMES, st.integers(0, 2000), st.integers(0, 7)), max_size=12),
    st.integers(0, 2),
)
def test_any_pair_of_records_makes_a_consistent_flow(sent, received, protocol):
    try:
        reading = flow([(n, *row) for n, row in enumerate(sent)], received, protocol=protocol)
    except MeasureError:
        return
    found = metrics(reading)
    assert reading.received <= reading.sent
    assert all(np.isfinite(value) for value in found.values())
    reading.samples()
