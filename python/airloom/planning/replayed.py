"""Captures as schedules of packets: ``traffic`` with ``pattern: replay``.

A packet leaves ``(t - t0) / speed`` after the start, where t is its time in the capture and t0 that of
the first frame of the whole file, so that two directions of one capture stay in step. It is a datagram
whose Ethernet frame is as long as the one that was captured.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

from airloom.errors import RunError
from airloom.host import captured_packets, pcap
from airloom.planning.tables import LARGEST, TableError
from airloom.scenario.model import Scenario, Traffic
from airloom.units.quantities import Duration

_LONGEST_FRAME = 1 << 20
"""Octets of a frame that an offload joined are fewer, even with jumbograms (RFC 2675)."""
_LATEST = 2**62
"""The generator takes times in ns below it."""
_IP_AND_UDP = {4: 20 + 8, 6: 40 + 8}
_ETHERNET = 14
_TCP_HEADERS = _ETHERNET + 20 + 32
"""Octets that each part of a frame repeats: Ethernet, IPv4 and TCP with time stamps."""
_LONGEST_LINE = 31
"""Octets of a line of the generator's trace at most; the trace has at most ``LARGEST``."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The frames of a capture that are sent: ns after the start and octets without check sequence."""

    frames: tuple[tuple[int, int], ...]
    unordered: int
    """Frames of the file whose time is before that of the one above; they are sent in order of time."""
    split: int
    """Frames that were longer than ``split``."""

    @property
    def length(self) -> int:
        """Time of the last frame in ns."""
        return self.frames[-1][0]

    def trace(self, least: int, headers: int) -> bytes:
        """Returns the generator's trace: a payload makes a frame of ``headers`` octets more."""
        return b"".join(b"%d %d\n" % (at, max(least, octets - headers)) for at, octets in self.frames)


def headers(version: int) -> int:
    """Returns the octets of a frame without check sequence around a UDP payload, by IP version."""
    return _ETHERNET + _IP_AND_UDP[version]


def schedule(tool: Traffic, folder: str | Path = "") -> Schedule:
    """Returns what a measurement sends. Raises :class:`TableError` if its capture cannot be used."""
    path = os.path.join(folder, tool.capture or "")
    try:
        state = os.stat(path)
    except OSError as error:
        raise TableError("file.unreadable", f"{Path(path).name} cannot be read: {error.strerror}") from None
    found = _schedule(path, (state.st_mtime_ns, state.st_size), tool.speed, tool.only_from, int(tool.split))
    if isinstance(found, TableError):
        raise TableError(found.code, found.message, cure=found.cure)
    return found


@lru_cache(maxsize=8)
def _schedule(
    path: str, state: tuple[int, int], speed: float, only_from: str | None, split: int
) -> Schedule | TableError:
    del state
    name = Path(path).name
    try:
        captured = list(pcap.frames(path))
    except RunError as error:
        return TableError("capture.damaged", f"{name}: {error.message}", cure="a pcap or pcapng file")
    strange = next((one for one in captured if not captured_packets.is_known(one)), None)
    if strange is not None:
        what = captured_packets.link_type_name(strange.link_type)
        return TableError(
            "capture.link-type",
            f"{name} has frames of {what}",
            cure=f"these are read: {captured_packets.READ}",
        )
    wanted = captured
    if only_from is not None:
        source = captured_packets.packed(only_from)
        wanted = [one for one in captured if source in captured_packets.sources(one)]
    if not wanted:
        what = "no frame" if only_from is None else f"no frame from {only_from}"
        return TableError("capture.empty", f"{name} has {what}")
    first = min(one.at for one in captured)
    rate = Fraction(str(speed))
    times = [(one.at - first) * rate.denominator // rate.numerator for one in wanted]
    lengths = [captured_packets.ethernet_length(one) for one in wanted]
    if max(lengths) > _LONGEST_FRAME or max(times) >= _LATEST:
        what = (
            f"a frame of {max(lengths):,} octets"
            if max(lengths) > _LONGEST_FRAME
            else "frames centuries apart"
        )
        return TableError("capture.damaged", f"{name} has {what}", cure="capture it again")
    rows = sorted(zip(times, lengths, strict=True), key=lambda row: row[0])
    frames = tuple((at, part) for at, octets in rows for part in _parts(octets, split))
    if len(frames) * _LONGEST_LINE > LARGEST:
        most = LARGEST // _LONGEST_LINE
        return TableError(
            "capture.length",
            f"{name} has {len(frames):,} frames, a measurement sends at most {most:,}",
            cure="cut it, such as by editcap -c",
        )
    return Schedule(
        frames,
        sum(later.at < earlier.at for earlier, later in itertools.pairwise(wanted)),
        sum(octets > split for octets in lengths),
    )


def _parts(octets: int, split: int) -> Sequence[int]:
    """Returns the frames of ``split`` octets at most that one of TCP stands for, which an offload joined."""
    if octets <= split:
        return (octets,)
    payload, each = octets - _TCP_HEADERS, split - _TCP_HEADERS
    full, rest = divmod(payload, each)
    return [split] * full + ([rest + _TCP_HEADERS] if rest else [])


def with_durations(scenario: Scenario) -> Scenario:
    """Returns the scenario with the length of its capture as the duration of each replay without one."""
    found = []
    for measurement in scenario.measurements:
        tool = measurement.traffic
        if tool is not None and tool.pattern == "replay" and "duration" not in tool.model_fields_set:
            try:
                length = schedule(tool).length
            except (TableError, ValueError, ZeroDivisionError):
                # The rules say what is wrong with it.
                length = int(tool.duration)
            duration = Duration(length + 1)
            tool = tool.model_copy(update={"duration": duration})
            measurement = measurement.model_copy(update={"traffic": tool})
        found.append(measurement)
    return scenario.model_copy(update={"measurements": found})


def notes(scenario: Scenario) -> list[str]:
    """Returns notes on frames that are not sent as the capture has them."""
    found = []
    for index, measurement in enumerate(scenario.measurements):
        tool = measurement.traffic
        if tool is None or tool.pattern != "replay":
            continue
        where = f"measurements[{index}].traffic.capture"
        made = schedule(tool)
        if made.unordered:
            found.append(f"{where}: {made.unordered:,} frames are earlier than the one above; sent by time")
        if made.split:
            found.append(
                f"{where}: {made.split:,} frames are longer than {int(tool.split)} octets, as an offload of "
                "the capturing machine joins them; they are sent in parts, at one time"
            )
        if made.length >= tool.duration:
            left = sum(at >= tool.duration for at, _ in made.frames)
            found.append(f"{where}: {left:,} frames are after its duration, {tool.duration.text}")
    return found
