"""Damaged files of other programs: an error of Airloom or a result, soon and in bounded memory."""

from __future__ import annotations

import contextlib
import gzip
import resource
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airloom.calibration import model as calibration
from airloom.errors import LabError
from airloom.fleet import launchers
from airloom.grid.rspec import document as rspec
from airloom.host import pcap
from airloom.measure import iperf3, openflow, pcap_sender, ping, records, sampling, web
from airloom.oml.collector import store_file
from airloom.planning.gate import check
from airloom.results import result
from airloom.scenario import imports
from helpers import REPOSITORY, calibrations, record_files
from helpers.mutation import mutations

DATA = REPOSITORY / "tests/data"
ROUNDS = 60
"""Damaged forms of each format in a run of the suite."""
GROWTH = 600 << 10
"""KiB by which the process may grow."""

MOST_SAID = 3000
"""Characters of an error: it names what is wrong, and does not repeat a file."""

Use = Callable[[Path], Any]


@dataclass(frozen=True, slots=True)
class Reader:
    """A format: its good files, and what reads one."""

    seeds: tuple[bytes, ...]
    use: Use
    name: str = "file"


def data(*names: str) -> tuple[bytes, ...]:
    return tuple((DATA / name).read_bytes() for name in names)


def scenario(text: str) -> Use:
    """Checks a scenario that names the file."""

    def use(path: Path) -> None:
        place = path.with_name("scenario.yaml")
        place.write_text("name: test\n" + text.replace("FILE", path.name))
        check(place)

    return use


def moving(model: str, more: str = "") -> Use:
    radio = "radios: {wlan0: {}}"
    return scenario(
        f"media: {{air: {{}}}}\nnodes: {{a: {{mobility: {{model: {model}, file: FILE{more}}}, {radio}}}}}\n"
    )


def link(key: str) -> Use:
    return scenario(f"nodes: {{a: , b: }}\nlinks: [{{ends: [a, b], delay: 1 s, {key}}}]\n")


def medium(said: str) -> Use:
    node = "{position: [0 m, 0 m], radios: {wlan0: {}}}"
    return scenario(f"media: {{air: {{{said}}}}}\nnodes: {{a: {node}, b: {node}}}\n")


def flow(said: str) -> Use:
    one = f"{{name: m, traffic: {{from: a, to: b, {said}}}}}"
    return scenario(f"nodes: {{a: , b: }}\nlinks: [{{ends: [a, b]}}]\nmeasurements: [{one}]\n")


def whole(path: Path) -> None:
    draft = imports.convert(path)
    assert draft.data is not None


def kathara(name: str) -> Use:
    def use(path: Path) -> None:
        lab = path.with_name("lab")
        shutil.rmtree(lab, ignore_errors=True)
        shutil.copytree(DATA / "imports/kathara", lab)
        (lab / name).write_bytes(path.read_bytes())
        imports.convert(lab)

    return use


def text(parse: Callable[[str], Any]) -> Use:
    return lambda path: used(parse(path.read_bytes().decode("utf-8", "replace")))


def used(reading: Any) -> None:
    """Uses what was read as a run does."""
    reading.metrics()
    reading.samples()


def capture() -> bytes:
    frame = bytes(range(60))
    packet = struct.pack("<IIII", 1, 2, len(frame), len(frame)) + frame
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + packet * 3


def blocks() -> bytes:
    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    head = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    interface = block(1, struct.pack("<HHI", 1, 0, 65535) + struct.pack("<HHBxxxHH", 9, 1, 9, 0, 0))
    packet = block(6, struct.pack("<IIIII", 0, 0, 7, 60, 60) + bytes(range(60)))
    return head + interface + packet * 3


def stream() -> bytes:
    head = "protocol: 5\ndomain: test\nstart-time: 1\nsender-id: a\napp-name: x\n"
    schema = "schema: 0 _experiment_metadata subject:string key:string value:string\n"
    schema += "schema: 1 lin n:int32 s:string\n"
    return f"{head}content: text\n{schema}\n0.5\t1\t1\t7\tword\n0.6\t1\t2\t8\tother\n".encode()


def pdml() -> bytes:
    """What tshark writes of a message."""

    def proto(name: str, *fields: str) -> str:
        return f'<proto name="{name}">' + "".join(f"<field {one}/>" for one in fields) + "</proto>"

    return (
        "<pdml><packet>"
        + proto("geninfo", 'name="timestamp" value="1.5"')
        + proto("tcp", 'name="tcp.srcport" show="6653"', 'name="tcp.dstport" show="9"')
        + proto(
            "openflow_v4",
            'name="openflow_v4.version" showname="Version: 1.3 (0x04)"',
            'name="openflow_v4.type" show="10" showname="Type: OFPT_PACKET_IN (10)"',
            'name="openflow_v4.length" show="60"',
            'name="openflow_v4.xid" show="7"',
            'name="eth.dst" value="ffffffffffff"',
        )
        + "</packet></pdml>"
    ).encode()


def decoded(path: Path) -> None:
    with path.open("rb") as file:
        openflow.answers(openflow.read(file, (6653,)))


CAR = b"""<fcd-export><timestep time="0"><vehicle id="v" x="1" y="2" speed="3"/></timestep></fcd-export>"""
NS2 = b'$node_(0) set X_ 1.0\n$node_(0) set Y_ 1.0\n$ns_ at 1.0 "$node_(0) setdest 5.0 5.0 1.0"\n'
BONN = b"0.0 0 0 10.0 100 0\n0 5 5 4 5 9\n"
GRAPH = "topology: {generator: graph, file: FILE}\n"
REQUEST = b"""<rspec xmlns="http://www.geni.net/resources/rspec/3" type="request">
<node client_id="a"><sliver_type name="raw-pc"/><interface client_id="a:0"><ip address="10.0.0.1"
netmask="255.255.255.0"/></interface></node><link client_id="l">
<interface_ref client_id="a:0"/><interface_ref client_id="b:0"/></link>
<node client_id="b"><interface client_id="b:0"/></node></rspec>"""
MANIFEST = b"""<rspec xmlns="http://www.geni.net/resources/rspec/3" type="manifest"><node client_id="a">
<services><login authentication="ssh-keys" hostname="pc1.example.net" port="22"
username="me"/></services></node>
</rspec>"""
RESULT = b"""{"schema": 1, "scenario": "a", "seed": 1, "kinds": ["netns"], "started": "2026-01-01T00:00:00Z",
"wall_seconds": 1.5, "verdict": {"status": "valid", "reasons": []},
"ledger": {"delivered": 3, "dropped": {"x": 1},
"host_lost": 0, "lateness_us": {"p50": 1, "p99": 2, "p999": 3, "max": 4}}, "measurements": [{"name": "m",
"metric": "rtt", "unit": "ns", "mean": 1, "ci95": null, "n": 1, "labels": {}}], "claims": []}"""

READERS: dict[str, Reader] = {
    "graphml": Reader(data("graphs/zoo.graphml", "graphs/loops.graphml"), scenario(GRAPH), "g.graphml"),
    "gml": Reader(
        data("graphs/zoo.gml", "graphs/shadow.gml", "graphs/numeric.gml"), scenario(GRAPH), "g.gml"
    ),
    "sndlib": Reader(data("graphs/sndlib.xml", "graphs/sndlib.txt"), scenario(GRAPH), "g.xml"),
    "ns-2": Reader((NS2, *data("movements/city.mob")), moving("ns-2", ", node: 0"), "m.tcl"),
    "bonnmotion": Reader((BONN,), moving("bonnmotion"), "m.movements"),
    "bonnmotion packed": Reader((gzip.compress(BONN, mtime=0),), moving("bonnmotion"), "m.movements.gz"),
    "sumo": Reader((CAR, *data("movements/fcd.xml", "movements/fcd-geo.xml")), moving("sumo"), "m.xml"),
    "mahimahi": Reader((b"1\n1\n2\n5\n9\n",), link("trace: FILE")),
    "series": Reader(
        (b"time [s], rate [Mbit/s], delay [ms], loss [%]\n0, 12.5, 20, 0\n1, 8, 31, 0.1\n",),
        link("series: FILE"),
    ),
    "visibility": Reader((b"0 s, 9 s\n12 s, 1 min\n",), link("visibility: FILE")),
    "jitter": Reader((b"0.2 ms\n-0.1 ms\n",), link("jitter: {table: FILE}")),
    "matrix": Reader((b"a,b\n0,70\n70,0\n",), medium("propagation: {model: matrix, file: FILE}")),
    "errors": Reader(
        (b"802.11a, 6, 1500, 2.5, 0.1\n802.11a, 6, 1500, 3.5, 0.01\n",),
        medium("errors: {model: table, file: FILE}"),
    ),
    "packets": Reader((b"0 100\n1000000 1200\n",), flow("pattern: trace, trace: FILE")),
    "containerlab": Reader(data("imports/clab/campus.clab.yml"), whole, "x.clab.yml"),
    "core": Reader(data("imports/core.xml"), whole, "core.xml"),
    "miniedit": Reader(data("imports/net.mn"), whole, "net.mn"),
    "shadow": Reader(data("imports/shadow.yaml"), whole, "shadow.yaml"),
    "kathara": Reader(data("imports/kathara/lab.conf"), kathara("lab.conf")),
    "kathara startup": Reader(
        data("imports/kathara/r1.startup", "imports/kathara/shared.startup"), kathara("r1.startup")
    ),
    "scenario": Reader(
        tuple(path.read_bytes() for path in sorted((REPOSITORY / "examples").glob("*.yaml"))[:8]),
        check,
        "s.yaml",
    ),
    "pcap": Reader((capture(), blocks()), lambda path: list(pcap.frames(path))),
    "pcap to send": Reader((capture(), blocks()), pcap_sender.load),
    "pcap to replay": Reader((capture(), blocks()), flow("pattern: replay, capture: FILE")),
    "oml": Reader((stream(),), lambda path: store_file(path, path.with_name("stored"))),
    "iperf3": Reader(
        data("measure/tcp.client.json", "measure/udp.client.json", "measure/tcprev.client.json"),
        text(iperf3.parse),
    ),
    "ping": Reader(data("measure/ping.txt", "measure/ping6.txt"), text(ping.parse)),
    "sampling": Reader(data("measure/sampler.txt"), text(lambda said: sampling.parse(said, (5201,), 0))),
    "web": Reader((b"100 200 0\n300 500 1\n",), text(lambda said: web.parse(said, 50000))),
    "records": Reader(
        (record_files.file((0, 5, 9, 100, 0), (1, 6, 10, 100, 0)),),
        lambda path: records.parse(path.read_bytes()),
    ),
    "openflow": Reader((pdml(),), decoded),
    "result": Reader((RESULT,), lambda path: result.read(path)),
    "calibration": Reader((calibrations.made().model_dump_json(by_alias=True).encode(),), calibration.read),
    "manifest": Reader((MANIFEST,), lambda path: launchers.launches(f"rspec:{path}")),
    "rspec": Reader((REQUEST,), lambda path: rspec.read(path.read_bytes(), str(path))),
}
"""Each format of other programs that Airloom reads, and what reads it."""


def read_damaged(reader: Reader, folder: Path, rounds: int, seed: int) -> None:
    """Reads damaged files, of which nothing comes out but results and errors of Airloom."""
    for number, octets in enumerate(mutations(list(reader.seeds), rounds, seed)):
        # A name of its own: what was read of a path is kept.
        path = folder / f"{number}-{reader.name}"
        path.write_bytes(octets)
        error = refusal(reader, path)
        assert error is None or (error.code and len(str(error)) < MOST_SAID), octets
        path.unlink()


def refusal(reader: Reader, path: Path) -> LabError | None:
    try:
        reader.use(path)
    except LabError as error:
        return error
    return None


@pytest.mark.slow
@pytest.mark.timeout(100)
@pytest.mark.parametrize("name", READERS)
def test_damaged_files_of_others(name: str, tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read_damaged(READERS[name], tmp_path, ROUNDS, seed=37)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH


@pytest.mark.parametrize("name", READERS)
def test_the_good_files_are_read(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    for octets in reader.seeds:
        (tmp_path / reader.name).write_bytes(octets)
        reader.use(tmp_path / reader.name)


REPEATED = (
    *(
        b" ",
        b"\n",
        b"\t\n",
        b"1",
        b"a",
        b"#\n",
        b"(",
        b"[",
        b"<",
        b"<?x?>",
        b"<?",
        b"<!---->",
        b"<a>",
        b"<!DOCTYPE ",
    ),
    *(
        b"graph ",
        b"\ngraph x",
        b"digraph ",
        b"a[ ",
        b"${a",
        b'"',
        b"A (\n",
        b"x ( 1 ",
        b"{",
        b"- ",
        b"$ns_ at 1 ",
    ),
    *(b"time [ ", b"schema: ", b"0.", b"1e", b"\x00", b"\xff"),
)
"""What is repeated to tens of kilobytes: expressions with two ways to match need its square, or more."""


@pytest.mark.slow
@pytest.mark.timeout(100)
@pytest.mark.parametrize("name", READERS)
def test_long_repetitions_do_not_hold_a_reader_up(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    seed = min(reader.seeds, key=len)
    for number, word in enumerate(REPEATED):
        for place, start in enumerate((b"", seed[: len(seed) // 2])):
            path = tmp_path / f"{number}-{place}-{reader.name}"
            path.write_bytes(start + word * (60_000 // len(word)))
            with contextlib.suppress(LabError):
                reader.use(path)
