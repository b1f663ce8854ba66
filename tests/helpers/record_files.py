"""Record files of airloom-traffic for tests of their reader."""

import struct

from airloom.measure.records import LAST

RECORD = struct.Struct("<QQQII")


def header(end=0, protocol=0, magic=b"AIRLTRAF", version=2, start=100, lengths=(64, 32)):
    return struct.pack(
        "<8sHHHBBHBBIQQqIIQ",
        magic,
        version,
        *lengths,
        end,
        protocol,
        7,
        1,
        4,
        90_000,
        3,
        90,
        -5,
        2,
        1470,
        start,
    )


def file(*records, announced=None, overflowed=0, end=0, protocol=0, last=True):
    content = header(end, protocol) + b"".join(RECORD.pack(*record) for record in records)
    if last:
        said = (1 << 64) - 1 if announced is None else announced
        content += RECORD.pack(len(records), said, 999, overflowed, LAST)
    return content
