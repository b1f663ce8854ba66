"""The OML measurement stream protocol as text."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloom.oml.stream import EXPERIMENT, TYPES, Header, Parser, Schema, StreamError, Tuple, name_of

HEADER = (
    "protocol: 4\ndomain: exp\nstart-time: 1281591603\nsender-id: n1\napp-name: generator\n"
    "schema: 0 _experiment_metadata subject:string key:string value:string\n"
    "schema: 1 generator_lin label:string seq_no:uint32\ncontent: text\n\n"
)
OLD = (
    "protocol: 3\nexperiment-id: exp\nstart_time: 1281591603\nsender-id: n1\napp-name: generator\n"
    "schema: 1 generator_sin label:string phase:double value:double\ncontent: text\n\n"
)


def read(text: str) -> tuple[Parser, list[Tuple]]:
    parser = Parser()
    return parser, list(parser.feed(text.encode()))


def test_tuples_follow_their_schemas() -> None:
    parser, tuples = read(HEADER + "0.25\t1\t7\tone\\tline\\\\n\t4294967295\n")
    header = parser.header
    assert (header.domain, header.start, header.sender) == ("exp", 1281591603.0, "n1")
    (one,) = tuples
    assert (one.schema.name, one.sequence, one.time) == ("generator_lin", 7, 0.25)
    assert one.values == ("one\tline\\n", 4294967295)


def test_older_versions_have_other_headers_and_no_metadata() -> None:
    parser, tuples = read(OLD + "1\t1\t0\tx\t0.5\t-1e3\n")
    assert parser.header.domain == "exp"
    assert parser.header.start == 1281591603.0
    assert 0 not in parser.header.schemas
    assert tuples[0].values == ("x", 0.5, -1000.0)


def test_metadata_defines_further_schemas() -> None:
    _, tuples = read(HEADER + "0.1\t0\t1\t.\tschema\t2 generator_sin phase:double\n0.2\t2\t0\t0.5\n")
    assert [one.schema.name for one in tuples] == ["_experiment_metadata", "generator_sin"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("GET / HTTP/1.1\n", "not a header"),
        ("protocol: 9\n", "version 9"),
        ("domain: ../../etc\n", "not a name"),
        ("domain: .hidden\n", "not a name"),
        ("content: binary\n", "--oml-text"),
        ("encapsulation: gzip\n", "not a header"),
        ("protocol: 4\n\n", "line 2: the header 'domain' is missing"),
        ("schema: 1 a x:[int32]\n", "not a field"),
        ("schema: 1 a x:int32 X:int32\n", "two fields of one name"),
        ("schema: 1 a oml_seq:int32\n", "not a field"),
        ("schema: 1 sqlite_master x:int32\n", "not the name"),
        ("schema: 256 a x:int32\n", "a number from 0 to 255"),
        ("schema: ² a x:int32\n", "a number from 0 to 255"),
        ("schema: 0 own x:int32\n", "that of metadata"),
        ("schema: 1 a " + "x:int32 " * 300 + "\n", "more than 200 fields"),
        ("x" * 70_000, "longer than"),
        (HEADER + "0.1\t1\n", "a tuple has"),
        (HEADER + "0.1\t5\t0\tx\n", "no schema 5"),
        (HEADER + "0.1\t1\t0\tx\n", "has 2 fields"),
        (HEADER + "0.1\t1\t0\tx\t-1\n", "type uint32"),
        (HEADER + "0.1\t1\t0\tx\t" + "9" * 5000 + "\n", "type uint32"),
        (HEADER + "soon\t1\t0\tx\t1\n", "line 10: 'soon' is not a number"),
    ],
)
def test_a_broken_line_is_named(text: str, why: str) -> None:
    with pytest.raises(StreamError) as error:
        read(text)
    assert why in str(error.value)


VALUES = {
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    "double": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "blob": st.binary(max_size=30),
}


@st.composite
def tuples(draw: st.DrawFn) -> list[Tuple]:
    kinds = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=6))
    schema = Schema(1, "app_point", tuple((f"f{number}", kind) for number, kind in enumerate(kinds)))
    row = st.tuples(*(VALUES.get(kind, st.integers(0, 2**31 - 1)) for kind in kinds))
    rows = draw(st.lists(row, min_size=1, max_size=5))
    return [Tuple(schema, number, number / 4, values) for number, values in enumerate(rows)]


@given(tuples(), st.integers(1, 50))
def test_what_is_written_is_read_again_in_any_pieces(sent: list[Tuple], size: int) -> None:
    schemas = {0: EXPERIMENT, 1: sent[0].schema}
    header = Header(4, "exp", 7.0, "n1", "app", schemas=schemas)
    octets = (header.written() + "".join(one.written() for one in sent)).encode()
    parser = Parser()
    received = [one for at in range(0, len(octets), size) for one in parser.feed(octets[at : at + size])]
    assert received == sent


@given(st.binary(max_size=300), st.booleans())
def test_any_octets_are_a_stream_or_a_broken_line(octets: bytes, begun: bool) -> None:
    parser = Parser()
    try:
        for one in parser.feed((HEADER.encode() if begun else b"") + octets):
            assert one.schema.number in parser.header.schemas
            assert not math.isnan(one.sequence)
    except StreamError:
        pass


def test_names_are_words_of_the_protocol() -> None:
    assert name_of("airloom", "my-ping", "rtt") == "airloom_my_ping_rtt"
    assert name_of("1st") == "_1st"
    assert len(name_of("x" * 100)) == 63
