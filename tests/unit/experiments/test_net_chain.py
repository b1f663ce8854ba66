"""NET's ideals: the closed forms against the same frames through the engine in memory."""

from __future__ import annotations

import pytest

pytest.importorskip("airloom._engine")

from airloom.experiments.net_chain import ideal, stepped, virtual, wired
from airloom.experiments.net_chain.wireless import Chain

NODES = (2, 3, 5, 11)
ROUNDING = 1
"""The engine rounds each frame's time on a link to whole ns."""


@pytest.mark.parametrize("nodes", NODES)
def test_the_wired_chain_is_as_computed(nodes: int) -> None:
    chain = stepped.links(wired.case(nodes, "netns", 1).scenario)
    assert len(chain) == nodes - 1
    assert stepped.rtt(chain) == pytest.approx(wired.ideal_rtt(nodes, 0), abs=2 * len(chain) * ROUNDING)
    assert stepped.throughput(chain) == pytest.approx(wired.IDEAL_THROUGHPUT, rel=1e-5)
    delayed = stepped.links(wired.delayed(nodes, "netns").scenario)
    expected = wired.ideal_rtt(nodes, wired.DELAY)
    assert stepped.rtt(delayed) == pytest.approx(expected, abs=2 * len(chain) * ROUNDING)


@pytest.mark.parametrize("nodes", NODES)
def test_the_wireless_chain_is_as_computed(nodes: int) -> None:
    chain = stepped.links(Chain("ideal", "aodv", nodes).scenario([]))
    hops = nodes - 1
    assert len(chain) == hops
    assert stepped.first_rtt(chain) == pytest.approx(ideal.first_rtt(hops), abs=6 * hops * ROUNDING)
    assert stepped.throughput(chain) == pytest.approx(ideal.THROUGHPUT, rel=1e-5)


@pytest.mark.parametrize("nodes", NODES)
@pytest.mark.parametrize("chain", [virtual.WIRED, virtual.AODV, virtual.BABEL])
def test_the_chain_in_virtual_time_is_as_computed(chain: str, nodes: int) -> None:
    links = stepped.links(virtual.case(chain, nodes).scenario)
    assert len(links) == nodes - 1
    assert stepped.rtt(links) == pytest.approx(virtual.ideal_rtt(chain, nodes), abs=2 * len(links) * ROUNDING)
    assert stepped.throughput(links) == pytest.approx(virtual.IDEAL[chain], rel=1e-5)


def test_a_wrong_overhead_would_be_seen() -> None:
    """The tolerance is smaller than one octet of one frame."""
    octet = 8e9 / ideal.RATE
    assert octet > 6 * (NODES[-1] - 1) * ROUNDING
    assert 1 / stepped.SEGMENT_FRAME > 10 * 1e-5
