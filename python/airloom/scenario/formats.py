"""Which format of the field a file has, by its content, and what to do with one that is not read there.

Every key that takes a file of another tool asks here, so that a file in the wrong place is named and
has a cure: the key that reads it, or the program that converts it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass

GRAPH = "topology: {generator: graph, file: ...}"
NS2 = "mobility: {model: ns-2, file: ...}"
SUMO = "mobility: {model: sumo, file: ...}"
IMPORT = "airloom import FILE"
RATE = "links: [{trace: ...}]"
SERIES = "links: [{series: ...}]"
_PLAYED = (
    "a measurement sends frames as long, 'traffic: {pattern: replay, capture: FILE}', or a program plays it: "
    "programs: [{node: a, run: airloom replay FILE eth0}]"
)

_HEAD = 64 * 1024
"""Octets at the start of a file by which it is recognised."""
LARGEST_UNPACKED = 256 * 2**20
"""Largest content of a compressed file, in octets."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name, the key that reads it if there is one, else how to convert it."""

    name: str
    matches: Callable[[str], bool]
    reads: str | None = None
    convert: str = ""

    @property
    def cure(self) -> str:
        """What to do with the file."""
        return self.convert if self.reads is None else f"it is read by '{self.reads}'"


def _has(*patterns: str) -> Callable[[str], bool]:
    found = [re.compile(pattern, re.M) for pattern in patterns]
    return lambda head: all(one.search(head) for one in found)


def _begins(pattern: str) -> Callable[[str], bool]:
    start = re.compile(pattern, re.S)
    return lambda head: start.match(head) is not None


# Possessive: what cannot match ends at once, and a hostile file takes no more time than another.
_XML = r"\s*+(?:<\?(?:(?!\?>).)*+\?>\s*+|<!--(?:(?!-->).)*+-->\s*+|<!DOCTYPE[^>]*+>\s*+)*+"
_COMMENTS = r"(?:[ \t]*+(?:#[^\n]*+)?\r?\n)*+[ \t]*+"
_PYTHON_GRAPH = (
    "read it with networkx in Python, and write GraphML: networkx.write_graphml(graph, 'x.graphml')"
)

FORMATS = (
    # First: it may contain a graph.
    Format("Shadow", _has(r"^hosts:", r"^(?:general|network):"), IMPORT),
    Format("GraphML", _begins(_XML + r"<(?:\w+:)?graphml\b"), GRAPH),
    Format("GML", _has(r"^[ \t]*+graph\s*+\["), GRAPH),
    Format("SNDlib XML", _begins(_XML + r"<network\b.*?(?:sndlib|<networkStructure)"), GRAPH),
    Format("SNDlib native", _begins(r"\s*\?SNDlib native format"), GRAPH),
    Format("GEXF", _begins(_XML + r"<gexf\b"), convert=_PYTHON_GRAPH + " after networkx.read_gexf"),
    Format(
        "Graphviz DOT",
        _has(r"^[ \t]*+(?:strict\s++)?(?:di)?graph\b[^\[\]{]{0,500}+\{"),
        convert="gv2gml of Graphviz writes GML: gv2gml x.dot > x.gml",
    ),
    Format("Pajek", _begins(r"\s*\*[Vv]ertices\b"), convert=_PYTHON_GRAPH + " after networkx.read_pajek"),
    Format("a SUMO floating-car trace", _begins(_XML + r"<fcd-export\b"), SUMO),
    Format(
        "a SUMO configuration",
        _begins(_XML + r"<(?:sumoC|c)onfiguration\b"),
        convert="let SUMO write the movement: sumo -c x.sumocfg --fcd-output fcd.xml",
    ),
    Format(
        "a SUMO road network or routes",
        _begins(_XML + r"<(?:net|routes|additional)\b"),
        convert="let SUMO write the movement: sumo -n x.net.xml -r x.rou.xml --fcd-output fcd.xml",
    ),
    Format("GPX", _begins(_XML + r"<gpx\b"), convert="project its points to metres, as 'points' of a 'path'"),
    Format("KML", _begins(_XML + r"<kml\b"), convert="project its points to metres, as 'points' of a 'path'"),
    Format("a CORE scenario", _begins(_XML + r"<scenario\b"), IMPORT),
    Format(
        "a CORE scenario of before version 7 (imn)",
        _has(r"^node n\d+ \{", r"^[ \t]*+(?:type|network-config|canvas)\b"),
        convert="open it in CORE 7 or newer and save it as XML",
    ),
    Format(
        "a MiniEdit network",
        _has(r"\A\s*\{", r'"(?:hosts|switches)"\s*:', r'"(?:application|controllers)"'),
        IMPORT,
    ),
    Format(
        "a GNS3 project",
        _has(r'"(?:project_id|topology)"\s*:', r'"(?:gns3_|version|revision|compute)'),
        convert="its nodes are images of machines: write a scenario with nodes of kind qemu or container",
    ),
    Format(
        "an EVE-NG or UNetLab laboratory",
        _begins(_XML + r"<lab\b"),
        convert="its nodes are images of machines: write a scenario with nodes of kind qemu or container",
    ),
    Format(
        "containerlab",
        _has(
            r"^topology:",
            r"^[ \t]+nodes:[ \t]*(?:\{.*)?(?:#.*)?$",
            r"[\s{,](?:kind|image|kinds|defaults):",
        ),
        IMPORT,
    ),
    Format(
        "a Kathara lab.conf",
        _begins(_COMMENTS + r"(?:LAB_\w+|[\w.-]+\[[ \w-]+\])[ \t]*="),
        IMPORT,
    ),
    Format(
        "a netlab topology",
        _has(r"^provider:|^defaults\.|^module:", r"^nodes:"),
        convert="'netlab create' writes clab.yml, which 'airloom import' reads",
    ),
    Format(
        "a Docker Compose file",
        _has(r"^services:"),
        convert="write its services as nodes of kind container",
    ),
    Format("an ns-2 movement", _has(r"\$(?:node_\(|ns_? at |\{?node)"), NS2),
    Format("a table over time", _begins(_COMMENTS + r"[^\n]*\b[Tt]ime\b"), SERIES),
    Format("a mahimahi trace", _begins(_COMMENTS + r"\d+[ \t]*\r?\n[ \t]*\d+[ \t]*(?:\r?\n|$)"), RATE),
    Format(
        "BonnMotion's parameters",
        _has(r"^model=", r"^(?:nn|duration)="),
        convert="name the file of movements beside it, x.movements or x.movements.gz",
    ),
    Format(
        "a scenario of Airloom",
        _has(r"^(?:nodes|topology|links|media):"),
        convert="'airloom run FILE' runs it",
    ),
)

_BINARY = (
    (b"\xd4\xc3\xb2\xa1", "pcap"),
    (b"\xa1\xb2\xc3\xd4", "pcap"),
    (b"\x4d\x3c\xb2\xa1", "pcap"),
    (b"\xa1\xb2\x3c\x4d", "pcap"),
    (b"\x0a\x0d\x0d\x0a", "pcapng"),
)
_NOT_TEXT = (
    (b"PK\x03\x04", "a zip archive", "unpack it, and name a file of it"),
    (b"BZh", "a bzip2 file", "unpack it: bunzip2"),
    (b"\xfd7zXZ\x00", "an xz file", "unpack it: unxz"),
    (b"\x28\xb5\x2f\xfd", "a zstd file", "unpack it: unzstd"),
)


def recognise(octets: bytes) -> Format | None:
    """Returns the format of a file's content, which may be compressed by gzip; None if it is unknown."""
    for magic, name in _BINARY:
        if octets.startswith(magic):
            return Format(f"a capture ({name})", lambda _: False, convert=_PLAYED)
    for magic, name, cure in _NOT_TEXT:
        if octets.startswith(magic):
            return Format(name, lambda _: False, convert=cure)
    head = unpacked(octets, most=_HEAD)[:_HEAD].decode("utf-8", "replace").removeprefix("\ufeff")
    return next((one for one in FORMATS if one.matches(head)), None)


def refusal(form: Format | None, wanted: str) -> tuple[str, str]:
    """Returns message and cure for a file that the key ``wanted`` does not read."""
    kinds = [one.name for one in FORMATS if one.reads == wanted]
    if form is None:
        known = f"the formats are {', '.join(kinds)}" if kinds else ""
        return "the format of the file is not known", known
    return f"the file is {form.name}, which is not read here", form.cure


def unpacked(octets: bytes, most: int = LARGEST_UNPACKED) -> bytes:
    """Returns the content, unpacked if gzip packed it; at most ``most`` octets of it.

    Raises ``ValueError`` if it is no whole gzip file; more than :data:`LARGEST_UNPACKED` octets too.
    """
    if not octets.startswith(b"\x1f\x8b"):
        return octets
    reader = zlib.decompressobj(wbits=31)
    try:
        found = reader.decompress(octets, most + 1)
    except zlib.error as error:
        raise ValueError(f"it is a damaged gzip file: {error}") from None
    if len(found) > most:
        if most == LARGEST_UNPACKED:
            raise ValueError(f"it is larger than {most} octets unpacked")
    elif not reader.eof:
        raise ValueError("it is a gzip file that is cut short")
    return found


def text(octets: bytes) -> str:
    """Returns a file's text: UTF-8, or Latin-1 where it is not, without a byte order mark."""
    octets = unpacked(octets)
    try:
        return octets.decode("utf-8-sig")
    except UnicodeDecodeError:
        return octets.decode("latin-1")
