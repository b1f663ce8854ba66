"""Reads the record files of ``airloom-traffic`` into arrays.

The format is described in the generator's crate documentation (``traffic/src/record.rs``): a header
of 64 octets and records of 32, little-endian, times in ns of CLOCK_MONOTONIC. The file of a killed
program is read up to its last whole record; any other deviation from the format is an error that
names the position.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airloom.host import files
from airloom.measure.tool import MeasureError

LARGEST = 4 << 30
"""Octets of a record file that is read: all of it is in memory."""

NOT_SENT = 1
"""Flag: the socket refused the packet."""
CUT = 1 << 1
"""Flag: a TCP write that was truncated."""
USER_STAMP = 1 << 2
"""Flag: this arrival has a user-space timestamp although the file's timestamps are the kernel's."""
_STAGES = ("", "queued", "driver", "read")
"""The boundaries by their number in bits 3 and 4 of the flags."""
LAST = 1 << 31

_HEADER = struct.Struct("<8sHHHBBHBBIQQqIIQ")
_RECORD = np.dtype(
    [("sequence", "<u8"), ("first", "<u8"), ("second", "<u8"), ("octets", "<u4"), ("flags", "<u4")]
)
_ENDS: tuple[Literal["sender", "receiver"], ...] = ("sender", "receiver")
_PROTOCOLS: tuple[Literal["udp", "tcp", "rtp"], ...] = ("udp", "tcp", "rtp")
_LARGEST = 1 << 62
_NOBODY_SAID = (1 << 64) - 1

Integers = npt.NDArray[np.int64]
Passed = tuple[Integers, Integers]
"""Numbers of packets, and ns of the node's CLOCK_MONOTONIC."""


@dataclass(frozen=True, slots=True, eq=False)
class FlowRecord:
    """Events recorded at one end of a flow. Arrays are parallel, in event order; times in ns."""

    end: Literal["sender", "receiver"]
    protocol: Literal["udp", "tcp", "rtp"]
    flow: int
    kernel_stamps: bool
    rtp_clock: int
    """Units of the RTP timestamp per second; 0 without RTP."""
    seed: int
    begun: int
    """Time at which the file was created."""
    realtime: int
    """CLOCK_REALTIME minus CLOCK_MONOTONIC at that time."""
    realtime_error: int
    """Largest error of that difference."""
    start: int
    """Sender: time zero of the schedule."""
    sequence: Integers
    """Number of the packet; TCP: offset in the stream."""
    scheduled: Integers
    """Sender only; empty at a receiver."""
    sent: Integers
    """At a receiver: the sending time in the packet; empty with TCP."""
    received: Integers
    """Receiver only; empty at a sender."""
    octets: Integers
    flags: npt.NDArray[np.uint32]
    passed: dict[str, Passed]
    """Kernel boundary (``queued``, ``driver``, ``read``): packet numbers and their times there."""
    complete: bool
    """Whether the program ended normally; otherwise the last records may be missing."""
    announced: int | None
    """Number of packets (TCP: octets) that the sender reports as sent."""
    overflowed: int
    """Packets lost to a full receiving socket buffer: by the host, not by the network."""

    def moved(
        self, own: Callable[[Integers], Integers], senders: Callable[[Integers], Integers]
    ) -> FlowRecord:
        """The same record with its times on another clock; sending times in packets are on the
        sender's clock.
        """
        ours = own if self.end == "sender" else senders
        return replace(
            self,
            start=int(own(np.array([self.start]))[0]) if self.start else 0,
            scheduled=own(self.scheduled),
            sent=ours(self.sent),
            received=own(self.received),
            passed={name: (numbers, own(times)) for name, (numbers, times) in self.passed.items()},
        )

    def table(self) -> pa.Table:
        """The records as an Arrow table with the columns that this end has."""
        columns = {"sequence": self.sequence, "octets": self.octets, "flags": self.flags}
        for name in ("scheduled", "sent", "received"):
            column = getattr(self, name)
            if column.size == self.sequence.size:
                columns[name] = column
        return pa.table(columns)


def read(path: Path) -> FlowRecord:
    """Reads a record file. Raises :class:`MeasureError` with the problem and its position."""
    try:
        content = files.content(path, LARGEST)
    except OSError as error:
        raise MeasureError(
            "measure.record.missing", f"cannot read the record file: {error.strerror}", where=str(path)
        ) from error
    return parse(content, str(path))


def parse(content: bytes, where: str = "record") -> FlowRecord:
    """Parses the content of a record file; ``where`` is its name in errors."""

    def refuse(what: str) -> NoReturn:
        raise MeasureError(
            "measure.record.damaged",
            what,
            where=where,
            cure="it is no file of this version's airloom-traffic, or it was changed afterwards",
        )

    if len(content) < _HEADER.size:
        refuse(f"the file has {len(content)} octets, less than its header of {_HEADER.size}")
    (
        magic,
        version,
        header_length,
        record_length,
        end,
        protocol,
        flow,
        stamps,
        _family,
        rtp_clock,
        seed,
        begun,
        realtime,
        realtime_error,
        _size,
        start,
    ) = _HEADER.unpack_from(content)
    if magic != b"AIRLTRAF":
        refuse("the file does not begin with AIRLTRAF")
    if (version, header_length, record_length) != (2, _HEADER.size, _RECORD.itemsize):
        refuse(f"version {version} with lengths {header_length} and {record_length} is not known")
    if end >= len(_ENDS) or protocol >= len(_PROTOCOLS) or stamps > 1:
        refuse("octets 14 to 18 of the header have values that are not known")
    if max(begun, start, abs(realtime)) >= _LARGEST:
        refuse("a time in the header is beyond 2^62 ns")
    whole = (len(content) - _HEADER.size) // _RECORD.itemsize
    records = np.frombuffer(content, _RECORD, whole, _HEADER.size)
    complete, announced, overflowed = False, None, 0
    ends = np.flatnonzero(records["flags"] & LAST)
    if ends.size:
        last = records[ends[0]]
        if ends[0] != whole - 1 or int(last["sequence"]) != whole - 1:
            refuse(f"record {int(ends[0])} says that it is the last, but is not")
        said = int(last["first"])
        complete, announced, overflowed = True, None if said == _NOBODY_SAID else said, int(last["octets"])
        records = records[:-1]
    for name in ("sequence", "first", "second"):
        beyond = np.flatnonzero(records[name] >= _LARGEST)
        if beyond.size:
            refuse(f"field {name!r} of record {int(beyond[0])} is beyond 2^62")
    stage = records["flags"] >> 3 & 3
    passed = {
        name: (part["sequence"].astype(np.int64), part["second"].astype(np.int64))
        for number, name in enumerate(_STAGES)
        if number and (part := records[stage == number]).size
    }
    records = records[stage == 0]
    sends = _ENDS[end] == "sender"
    first = records["first"].astype(np.int64)
    second = records["second"].astype(np.int64)
    none = np.empty(0, np.int64)
    return FlowRecord(
        end=_ENDS[end],
        protocol=_PROTOCOLS[protocol],
        flow=flow,
        kernel_stamps=bool(stamps),
        rtp_clock=rtp_clock,
        seed=seed,
        begun=begun,
        realtime=realtime,
        realtime_error=realtime_error,
        start=start,
        sequence=records["sequence"].astype(np.int64),
        scheduled=first if sends else none,
        sent=second if sends else none if _PROTOCOLS[protocol] == "tcp" else first,
        received=none if sends else second,
        octets=records["octets"].astype(np.int64),
        flags=records["flags"].astype(np.uint32),
        passed=passed,
        complete=complete,
        announced=announced,
        overflowed=overflowed,
    )
