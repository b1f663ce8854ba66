"""Numbers in Mininet's options and calls have bounds, and what is beyond them is an error that says so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloom.errors import LabError
from airloom.mininet import topo
from airloom.mininet.errors import Misused
from airloom.mininet.hosts import CPULimitedHost
from airloom.mininet.options import _CHOICES, parser
from airloom.mininet.switches import Switch
from airloom.mininet.traffic_control import direction
from airloom.mininet.util import buildTopo
from airloom.scenario.topology.graph import MOST_NODES


@pytest.mark.parametrize(
    "words",
    [
        "linear,1000000000",
        "linear,2,1000000000",
        "single,1000000000",
        "reversed,1000000000",
        "tree,1000000000",
        "tree,1000000,1",
        "tree,2,1000000000",
        "tree,40,2",
        "torus,1000000,1000000",
        "torus,3,3,1000000000",
        "linear,k=1000000000",
    ],
)
def test_a_topology_has_a_largest_size(words, monkeypatch):
    monkeypatch.setattr(topo, "MOST_NODES", 1000)
    monkeypatch.setattr(topo, "MOST_LINKS", 2000)
    with pytest.raises(Misused, match=r"more than \d+ (nodes|links)|deeper than 100"):
        buildTopo(_CHOICES["topo"], words)


@pytest.mark.slow
def test_the_largest_size_is_that_of_scenarios():
    with pytest.raises(Misused, match=rf"more than {MOST_NODES} nodes"):
        buildTopo(_CHOICES["topo"], "single,1000000000")


_NUMBERS = (
    st.integers(-(10**30), 10**30) | st.floats() | st.sampled_from(["inf", "nan", "9" * 5000, "x", "1e999ms"])
)


@given(
    word=st.sampled_from(["bw", "delay", "jitter", "loss", "max_queue_size"]),
    value=_NUMBERS,
)
def test_a_links_numbers_are_taken_or_refused(word, value):
    try:
        settings = direction(**{word: value})
    except Misused:
        return
    assert settings.delay <= 3600 * 10**9
    assert settings.queue is None or (settings.queue.packets or 0) <= 10**9


class Params:
    """A host of which only its share is asked for."""

    def __init__(self, **params: object) -> None:
        self.params = params


@given(value=_NUMBERS)
def test_a_share_is_taken_or_refused(value):
    try:
        share = CPULimitedHost._cpu(Params(cpu=value))  # type: ignore[arg-type]
    except LabError:
        return
    assert share is None or share > 0


class Named(Switch):
    """A switch of which only the datapath id is asked for."""

    def __init__(self, name: str) -> None:
        self.name = name


def test_the_datapath_id_of_a_switch_is_made_of_its_name_or_of_what_is_given():
    assert Named("s12").defaultDpid() == "000000000000000c"
    assert Named("s12").defaultDpid("1:2") == "0000000000000012"
    for name, given_ in (("s", None), ("s" + "9" * 30, None), ("s1", "g"), ("s1", "1" * 17)):
        with pytest.raises(Misused):
            Named(name).defaultDpid(given_)


def test_help_begins_as_mininets():
    assert parser().format_help().startswith("Usage: mn [options]")
