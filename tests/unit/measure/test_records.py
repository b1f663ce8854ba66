"""Record files: whole, cut short, and wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloom.measure import MeasureError
from airloom.measure.records import LAST, parse, read
from helpers.record_files import RECORD, file, header


def test_a_senders_file():
    record = parse(file((0, 100, 105, 60, 0), (1, 200, 203, 60, 1), announced=1))
    assert (record.end, record.protocol, record.flow) == ("sender", "udp", 7)
    assert (record.rtp_clock, record.seed, record.begun, record.start) == (90_000, 3, 90, 100)
    assert (record.realtime, record.realtime_error) == (-5, 2)
    assert record.scheduled.tolist() == [100, 200]
    assert record.sent.tolist() == [105, 203]
    assert record.flags.tolist() == [0, 1]
    assert (record.complete, record.announced) == (True, 1)
    assert record.table().column_names == ["sequence", "octets", "flags", "scheduled", "sent"]


def test_a_receivers_file():
    record = parse(file((0, 100, 105, 60, 0), end=1, overflowed=4))
    assert record.sent.tolist() == [100]
    assert record.received.tolist() == [105]
    assert (record.announced, record.overflowed) == (None, 4)


def test_no_packets_at_all():
    record = parse(file())
    assert record.sequence.size == 0
    assert record.complete
    assert record.table().num_rows == 0


@pytest.mark.parametrize("cut", [0, 1, 31])
def test_cut_short_is_read_to_the_last_whole_record(cut):
    content = file((0, 100, 105, 60, 0), (1, 200, 203, 60, 0), last=False) + bytes(cut)
    record = parse(content)
    assert record.sequence.tolist() == [0, 1]
    assert not record.complete


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "0 octets"),
        (header()[:63], "63 octets"),
        (header(magic=b"AIRLTRAX"), "does not begin with"),
        (header(version=1), "version 1"),
        (header(lengths=(64, 40)), "lengths 64 and 40"),
        (header(end=2), "octets 14 to 18"),
        (header(protocol=3), "octets 14 to 18"),
        (header(start=1 << 63), "beyond"),
        (file((0, 1 << 62, 1, 1, 0)), "field 'first' of record 0 is beyond"),
        (file((0, 1, 1, 1, LAST), (1, 1, 1, 1, 0)), "record 0 says that it is the last"),
        (file()[:64] + RECORD.pack(5, 0, 0, 0, LAST), "record 0 says that it is the last"),
    ],
)
def test_what_is_wrong_is_said(content, says):
    with pytest.raises(MeasureError, match=says):
        parse(content, "h1.rec")


def test_a_missing_file(tmp_path):
    with pytest.raises(MeasureError, match="No such file"):
        read(tmp_path / "none")


NUMBER = st.integers(0, (1 << 64) - 1) | st.integers(0, 1000)
WORD = st.integers(0, (1 << 32) - 1)


@given(st.binary(max_size=300), st.booleans())
def test_any_octets_are_read_or_refused(octets, after_header):
    try:
        record = parse(header() + octets if after_header else octets)
    except MeasureError:
        return
    assert record.sequence.size == record.sent.size == record.octets.size
    assert np.all(record.sent >= 0)


@given(
    st.lists(st.tuples(NUMBER, NUMBER, NUMBER, WORD, WORD), max_size=8), st.integers(0, 1), st.integers(0, 2)
)
def test_any_records_are_read_or_refused(records, end, protocol):
    try:
        record = parse(file(*records, end=end, protocol=protocol))
    except MeasureError:
        return
    record.table()
