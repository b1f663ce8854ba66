"""What the live page shows of links and nodes while they change."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import airloom
from airloom.live.page import Page

pytestmark = pytest.mark.world

SCENARIO = """\
name: changing
nodes: {h1: , h2: }
switches: {s1: }
links: [{ends: [h1, s1], rate: 8 Mbit/s}, {ends: [h2, s1]}]
events:
  - {at: 200 ms, link: h1-s1, set: {rate: 4 Mbit/s}}
  - {at: 200 ms, link: h2-s1, action: down}
  - {at: 400 ms, link: h2-s1, action: up}
"""


@pytest.fixture
def page() -> Page:
    return Page()


@pytest.fixture
def lab(tmp_path: Path, page: Page):
    (tmp_path / "changing.yaml").write_text(SCENARIO)
    lab = airloom.Lab(tmp_path / "changing.yaml", out=tmp_path / "out")
    lab.watch(page)
    assert page.state() is None
    with lab:
        yield lab
    assert page.state() is None


def test_links_change_with_calls_nodes_and_events(lab: airloom.Lab, page: Page) -> None:
    while lab.now() < 500_000_000:
        time.sleep(0.05)
    links = page.state()["links"]
    assert links["h1-s1"]["forward"]["text"] == links["h1-s1"]["backward"]["text"] == "4 Mbit/s"
    assert links["h2-s1"]["up"]
    lab.link("h1-s1").set(rate="2 Mbit/s", direction="backward")
    links = page.state()["links"]
    assert (links["h1-s1"]["forward"]["text"], links["h1-s1"]["backward"]["text"]) == ("4 Mbit/s", "2 Mbit/s")
    lab["h2"].kill()
    state = page.state()
    assert not state["links"]["h2-s1"]["up"]
    assert state["links"]["h1-s1"]["up"]
    assert state["nodes"] == {"h1": "up", "h2": "stopped"}
    lab["h2"].restart()
    assert page.state()["links"]["h2-s1"]["up"]


def test_a_rate_is_the_octets_since_the_reading_before(lab: airloom.Lab, page: Page) -> None:
    before = page.state()
    lab["h1"].run("ping -q -c 20 -i 0.01 -s 1000 h2")
    after = page.state()
    seconds = (after["at"] - before["at"]) / 1e9
    octets = after["links"]["h1-s1"]["forward"]["bit_s"] * seconds / 8
    # 20 echo requests of 1042 octets each; ARP and IPv6 add a few small frames.
    assert 20 * 1042 <= octets <= 20 * 1042 + 1500
    time.sleep(0.1)
    assert page.state()["links"]["h1-s1"]["forward"]["bit_s"] < after["links"]["h1-s1"]["forward"]["bit_s"]


def test_a_node_that_is_added_is_drawn(lab: airloom.Lab, page: Page) -> None:
    page.state()
    before = page.generation
    lab.add("late", links=[{"ends": ["late", "s1"], "delay": "1 ms"}])
    state = page.state()
    assert page.generation > before
    assert "late" in [one["name"] for one in page.drawing["vertices"]]
    assert state["nodes"]["late"] == "up"
    assert state["links"]["late-s1"]["forward"]["text"] == "unlimited, 1 ms"
