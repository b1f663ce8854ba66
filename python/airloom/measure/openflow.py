"""The OpenFlow messages of a control channel, decoded by tshark from a capture.

tshark's dissectors know OpenFlow 1.0, 1.3, 1.4 and 1.5. An answer to a PACKET_IN has no reference to
it in the protocol, except the number of a buffer in the switch, which Open vSwitch does not use. An
answer is therefore found, in this order, by

* ``buffer``: both name the same buffer;
* ``frame``: a PACKET_OUT contains the same frame as the PACKET_IN;
* ``addresses``: every MAC address in the match of a FLOW_MOD is one of the frame's. This belongs to
  the latest such PACKET_IN, so that with several at a time the latency is a lower bound.
"""

from __future__ import annotations

import contextlib
import hashlib
import struct
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from airloom.host import programs
from airloom.measure.tool import MeasureError

PROGRAM = "tshark"
VERSIONS = ("openflow_v1", "openflow_v4", "openflow_v5", "openflow_v6")
"""tshark's dissectors: OpenFlow 1.0, 1.3, 1.4 and 1.5."""
ERROR, PACKET_IN, PACKET_OUT, FLOW_MOD = 1, 10, 13, 14
"""Types of messages with the same number in all versions (OpenFlow 1.0, 5.1; 1.5, 7.1)."""
NO_BUFFER = 0xFFFFFFFF
_ERRORS = (
    "OFPET_HELLO_FAILED",
    "OFPET_BAD_REQUEST",
    "OFPET_BAD_ACTION",
    "OFPET_FLOW_MOD_FAILED",
    "OFPET_PORT_MOD_FAILED",
    "OFPET_QUEUE_OP_FAILED",
)
"""Types of errors by number (OpenFlow 1.0, 5.4.4)."""
OPEN = 4096
"""PACKET_INs that may wait for their answers at the same time."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message; ``at`` is in ns since 1970, ``port`` the channel's port at the switch."""

    at: int
    port: int
    from_switch: bool
    type: int
    name: str
    """Such as ``PACKET_IN``."""
    version: str
    octets: int
    buffer: int | None = None
    frame: str = ""
    """Digest of the frame that it carries."""
    addresses: tuple[str, ...] = ()
    """MAC addresses of the frame that it carries, or those in its match."""
    error: str = ""
    """Type and code of an ERROR, such as ``OFPET_BAD_MATCH, OFPBMC_BAD_FIELD``."""


@dataclass(slots=True)
class Answers:
    """Time from PACKET_IN to one type of answer on one channel, in ns."""

    latencies: list[int] = field(default_factory=list)
    found_by: Counter[str] = field(default_factory=Counter)


def require() -> None:
    """Raises :class:`MeasureError` if tshark is not installed."""
    if programs.find(PROGRAM) is None:
        raise MeasureError(
            "measure.openflow.tshark", "tshark is not installed", cure=programs.cure([PROGRAM])
        )


def messages(path: Path, ports: Collection[int]) -> Iterator[Message]:
    """The messages in a capture, in its order. ``ports``: TCP ports of the channels."""
    require()
    command = [str(programs.find(PROGRAM)), "-n", "-r", str(path), "-T", "pdml", "-Y", " or ".join(VERSIONS)]
    for port in ports:
        command += ["-d", f"tcp.port=={port},openflow"]
    with (
        tempfile.TemporaryFile() as complaints,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints
        ) as running,
    ):
        assert running.stdout is not None
        try:
            yield from read(running.stdout, ports)
            failed = running.wait() != 0
        except MeasureError:
            failed = True
        finally:
            with contextlib.suppress(ProcessLookupError):
                running.kill()
        if failed:
            complaints.seek(0)
            said = complaints.read().decode(errors="replace").strip().splitlines()
            raise MeasureError(
                "measure.openflow.undecoded",
                f"tshark did not decode the capture: {said[-1] if said else 'it ended early'}",
                where=str(path),
            )


def read(pdml: IO[bytes], ports: Collection[int]) -> Iterator[Message]:
    """The messages in what tshark writes. Raises :class:`MeasureError` for another form."""
    try:
        yield from _packets(ET.iterparse(pdml), ports)
    except (ET.ParseError, KeyError, ValueError, OverflowError, struct.error) as error:
        raise MeasureError(
            "measure.openflow.undecoded", f"tshark's output does not have the expected form: {error}"
        ) from error


def answers(found: Iterable[Message]) -> dict[tuple[int, int], Answers]:
    """Answers to PACKET_INs by channel's port and type, from the messages of one switch."""
    made: dict[tuple[int, int], Answers] = {}
    waiting: dict[tuple[int, int], OrderedDict[int, Message]] = {}
    for number, one in enumerate(found):
        if one.type == PACKET_IN:
            for kind in (PACKET_OUT, FLOW_MOD):
                line = waiting.setdefault((one.port, kind), OrderedDict())
                line[number] = one
                if len(line) > OPEN:
                    line.popitem(last=False)
        elif one.type in (PACKET_OUT, FLOW_MOD) and not one.from_switch:
            line = waiting.get((one.port, one.type), OrderedDict())
            asked = _asked(one, line)
            if asked is not None:
                key, how = asked
                answer = made.setdefault((one.port, one.type), Answers())
                answer.latencies.append(one.at - line.pop(key).at)
                answer.found_by[how] += 1
    return made


def _asked(answer: Message, line: OrderedDict[int, Message]) -> tuple[int, str] | None:
    """The PACKET_IN that a message answers, and how it was found."""
    if answer.buffer is not None:
        # A number is used again once its buffer is free, so the latest one is meant.
        for key in reversed(line):
            if line[key].buffer == answer.buffer:
                return key, "buffer"
        return None
    for key in line if answer.type == PACKET_OUT else reversed(line):
        if answer.type == PACKET_OUT:
            if answer.frame and line[key].frame == answer.frame:
                return key, "frame"
        elif answer.addresses and set(answer.addresses) <= set(line[key].addresses):
            return key, "addresses"
    return None


def _packets(parsed: Iterable[tuple[str, ET.Element]], ports: Collection[int]) -> Iterator[Message]:
    at = source = target = 0
    payload: ET.Element | None = None
    for _, element in parsed:
        if element.tag != "packet":
            continue
        for proto in element.iterfind("proto"):
            name = proto.get("name", "")
            if name == "geninfo":
                at = _nanoseconds(_shown(proto, "timestamp", "value"))
            elif name == "tcp":
                payload = next((one for one in proto.iterfind("field[@name='tcp.payload']")), None)
                if element.find("proto[@name='fake-field-wrapper']") is not None:
                    payload = None  # a message of several segments lies elsewhere
                source, target = (int(_shown(proto, f"tcp.{end}port")) for end in ("src", "dst"))
            elif name in VERSIONS:
                from_switch = target in ports
                yield _message(proto, payload, at, target if from_switch else source, from_switch)
        element.clear()


def _message(proto: ET.Element, payload: ET.Element | None, at: int, port: int, from_switch: bool) -> Message:
    whole: dict[str, ET.Element] = {}
    for child in proto.iterfind("field"):
        whole.setdefault(child.get("name", "").rpartition(".")[2], child)
    kind = int(whole["type"].get("show", "0"), 0)
    buffer = int(whole["buffer_id"].get("show", "0"), 0) if "buffer_id" in whole else None
    version = _said(whole["version"])
    inner = [one for one in proto.iter("field") if _is_frame(one)]
    frame = hashlib.md5("".join(one.get("value", "") for one in inner).encode()).hexdigest() if inner else ""
    if kind == FLOW_MOD:
        addresses = tuple(
            one.get("value", "")
            for one in proto.iter("field")
            if one.get("name", "").rpartition(".")[2] in ("value_etheraddr", "eth_src", "eth_dst")
            and int(one.get("value") or "0", 16)
        )
    else:
        addresses = tuple(one.get("value", "") for one in inner if one.get("name") in ("eth.dst", "eth.src"))[
            :2
        ]
    return Message(
        at,
        port,
        from_switch,
        kind,
        _said(whole["type"]).removeprefix("OFPT_"),
        version,
        int(whole["length"].get("show", "0")),
        None if buffer == NO_BUFFER else buffer,
        frame,
        addresses,
        _error(proto, payload) if kind == ERROR else "",
    )


def _is_frame(one: ET.Element) -> bool:
    """Whether a field is of the carried frame, and not of OpenFlow."""
    return bool(one.get("name")) and not one.get("name", "").startswith(("openflow", "_ws"))


def _error(proto: ET.Element, payload: ET.Element | None) -> str:
    """Type and code of an ERROR: the first two fields after the header.

    tshark's dissector of OpenFlow 1.0 leaves them out; ``payload`` is the segment with the message.
    """
    fields = [one for one in proto.iterfind("field") if one.get("name", "").startswith("openflow")]
    if len(fields) > 5:
        return ", ".join(_said(one) for one in fields[4:6])
    octets = bytes.fromhex(payload.get("value", "")) if payload is not None else b""
    at = int(proto.get("pos", "0")) - int(payload.get("pos", "0")) if payload is not None else 0
    if at < 0 or len(octets) < at + 12:
        return "type and code not decoded"
    kind, code = struct.unpack_from("!HH", octets, at + 8)
    return f"{_ERRORS[kind] if kind < len(_ERRORS) else f'type {kind}'}, code {code}"


def _said(one: ET.Element) -> str:
    """The value of a field in words: ``OFPT_HELLO`` of ``Type: OFPT_HELLO (0)``."""
    words = one.get("showname", "").rpartition(": ")[2]
    return words.rpartition(" (")[0] or words


def _shown(proto: ET.Element, name: str, attribute: str = "show") -> str:
    for one in proto.iterfind("field"):
        if one.get("name") == name:
            return one.get(attribute, "")
    return "0"


def _nanoseconds(seconds: str) -> int:
    whole, _, part = seconds.partition(".")
    return int(whole) * 1_000_000_000 + int(part[:9].ljust(9, "0"))
