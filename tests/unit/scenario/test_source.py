"""The reader of scenario text: places, YAML 1.2's words, and no trust in what it reads."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airloom.errors import ScenarioError
from airloom.planning.gate import check
from airloom.scenario import read
from airloom.scenario.source import MOST_VALUES, Source, write
from helpers import REPOSITORY

CHAIN = (REPOSITORY / "examples" / "chain.yaml").read_text(encoding="utf-8")

TEXT = """\
name: x
nodes:
  h1:
  1: {cpu: 50 %}
links:
  - &wire {rate: 10 Mbit/s, delay: 1 ms}
  - <<: *wire
    delay: 3 ms
    on: off
"""


def test_words_of_yaml_1_1_stay_text() -> None:
    said = Source.of_text(
        "on: off\nyes: no\na: 10:30\nb: 010\nc: 1_000\nd: 0x1F\ne: 1e3\nf: ~\ng: .5\nh: '1'"
    ).data
    assert said == {
        "on": "off",
        "yes": "no",
        "a": "10:30",
        "b": "010",
        "c": "1_000",
        "d": 31,
        "e": 1000.0,
        "f": None,
        "g": 0.5,
        "h": "1",
    }


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("name",), "net.yaml:1:7 name"),
        (("nodes",), "net.yaml:2:1 nodes"),
        (("nodes", "h1"), "net.yaml:3:6 nodes.h1"),
        (("nodes", "1", "cpu"), "net.yaml:4:12 nodes.1.cpu"),
        (("links", 0, "rate"), "net.yaml:6:18 links[0].rate"),
        (("links", 1, "rate"), "net.yaml:6:18 links[1].rate"),
        (("links", 1, "delay"), "net.yaml:8:12 links[1].delay"),
        (("links", 1, "loss"), "net.yaml:7:5 links[1].loss"),
        (("nowhere",), "net.yaml:1:1 nowhere"),
    ],
)
def test_every_value_has_its_place(path: tuple[Any, ...], place: str) -> None:
    assert Source.of_text(TEXT, "net.yaml").where(path) == place


def test_a_merged_key_gives_way_to_its_own() -> None:
    assert Source.of_text(TEXT).data["links"][1] == {"rate": "10 Mbit/s", "delay": "3 ms", "on": "off"}


def test_an_alias_counts_each_time_it_is_used() -> None:
    wide = (
        "a: &a [" + ", ".join(["x"] * 1000) + "]\nb: &b [" + ", ".join(["*a"] * 1000) + "]\nc: [*b, *b, *b]"
    )
    with pytest.raises(ScenarioError, match=f"more than {MOST_VALUES} values"):
        Source.of_text(wide)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(plain)
@example({"<<": 1, "on": "off", "": "", "a\nb": "1e5", "x": "\x85", "k": "\u2028"})
def test_what_is_written_reads_back(data: Any) -> None:
    assert Source.of_text(write(data)).data == data


def refused_or_read(text: str | bytes) -> None:
    with suppress(ScenarioError):
        Source.of_text(text)


@given(st.binary(max_size=300))
@settings(max_examples=300)
def test_any_octets_are_read_or_refused(octets: bytes) -> None:
    refused_or_read(octets)


@given(st.text(alphabet="{}[]:,-&*!|>'\"%@`#?~ \n\tab01<.", max_size=120))
@settings(max_examples=500)
def test_any_punctuation_is_read_or_refused(text: str) -> None:
    refused_or_read(text)


words = st.sampled_from(
    [
        "",
        "5",
        "5 ms",
        "-1",
        "n1",
        "n9",
        "{}",
        "[]",
        "[a, b]",
        "null",
        "true",
        "1e400",
        "x: y",
        "star",
        "ring",
        "0 bit/s",
        "'",
    ]
)


@pytest.mark.slow
@given(changes=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 12), words), min_size=1, max_size=4))
@settings(max_examples=300, deadline=None)
def test_a_damaged_scenario_is_checked_or_refused(
    changes: list[tuple[int, int, str]], tmp_path_factory: Any
) -> None:
    text = CHAIN
    for where, length, word in changes:
        at = where % len(text)
        text = text[:at] + word + text[at + length :]
    path = tmp_path_factory.mktemp("damaged") / "net.yaml"
    path.write_text(text, encoding="utf-8")
    with suppress(ScenarioError):
        check(path)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_scenario_with_any_value_anywhere_is_checked_or_refused(data: st.DataObject) -> None:
    scenario = yaml.safe_load(CHAIN)
    here: Any = scenario
    while isinstance(here, dict | list) and here:
        key = data.draw(st.sampled_from(sorted(here) if isinstance(here, dict) else range(len(here))))
        if not isinstance(here[key], dict | list) or data.draw(st.booleans()):
            here[key] = data.draw(plain | words)
            break
        here = here[key]
    with suppress(ScenarioError):
        read(write(scenario))
