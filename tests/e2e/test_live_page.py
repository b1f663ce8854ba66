"""The live page of one laboratory in a real browser, and of a run by its events."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airloom.errors import HostError
from airloom.live import require

try:
    require()
except HostError as error:
    pytest.skip(str(error), allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")

from helpers.live_page import Laboratory  # noqa: E402

pytestmark = [pytest.mark.timeout(300), pytest.mark.world]
PHONE = {"width": 390, "height": 800}
sync_api.expect.set_options(timeout=60_000)
SCENARIO = """\
name: watched
description: <img src=x onerror="document.title='markup'"> is text
media: {air: {radio: {phy: 802.11a, channel: 36, rate: 24 Mbit/s}}}
nodes:
  h1:
  h2:
  base: {position: [0 m, 0 m], radios: {wlan0: }}
  walker:
    radios: {wlan0: }
    mobility:
      model: path
      points: [{at: 0 s, position: [5 m, 5 m]}, {at: 600 s, position: [305 m, 5 m]}]
slices: {one: {grant: {nodes: [base, walker], channels: [36]}, police: watch}}
switches: {s1: }
links:
  - {ends: [h1, s1], rate: 10 Mbit/s}
  - {ends: [h2, s1], rate: 10 Mbit/s}
"""
LOAD = """\
programs:
  - {node: walker-one, run: "ping -q -i 0.05 base-one", until_end: true}
"""
MEASURED = """\
measurements:
  - {name: echo, ping: {from: h1, to: h2, count: 50, interval: 100 ms, at: 1 s}}
events:
  - {at: 2 s, link: h1-s1, set: {delay: 3 ms}}
claims:
  - {id: lossless, statement: Nothing is lost., check: echo.loss == 0}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    folder = tmp_path_factory.mktemp("live")
    (folder / "watched.yaml").write_text(SCENARIO + LOAD)
    lab = Laboratory("up", folder / "watched.yaml", "--out", folder / "out")
    yield lab
    lab.kill()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def opened(browser: Any, url: str, **more: Any) -> Any:
    """The page while the laboratory is up; errors of scripts and of the policy fail the test at its end."""
    page = browser.new_page(**more)
    page.set_default_timeout(60_000)
    page.wrong = []
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("console", lambda said: page.wrong.append(said.text) if said.type == "error" else None)
    page.goto(url)
    assert "token" not in page.url
    page.locator("#phase").get_by_text("running").wait_for()
    return page


def shows(page: Any, script: str) -> None:
    """Waits until an expression is true in the page, whose policy lets it evaluate none by itself."""
    end = time.monotonic() + 60
    while not page.evaluate(script):
        assert time.monotonic() < end, script
        page.wait_for_timeout(100)


def test_the_map_shows_nodes_their_movement_and_links(browser: Any, lab: Laboratory, tmp_path: Path) -> None:
    page = opened(browser, lab.operator, color_scheme="light", viewport={"width": 1280, "height": 1000})
    for name in ("base-one", "walker-one"):
        page.locator("#radio-map").get_by_role("button", name=f"Node {name}", exact=True).wait_for()
    for name in ("h1", "h2", "s1"):
        page.locator("#wired-map").get_by_role("button", name=f"Node {name}", exact=True).wait_for()
    walker = page.locator("#radio-map .node[data-name=walker-one]")
    shows(page, "document.querySelector('[data-name=walker-one]').dataset.east > 0")
    before = float(walker.get_attribute("data-east"))
    shows(page, f"document.querySelector('[data-name=walker-one]').dataset.east > {before + 0.5}")
    page.get_by_text("Channel 36 (5180 MHz) of air").wait_for()
    shows(
        page,
        "[...document.querySelectorAll('.radios .share')].some((one) => parseFloat(one.textContent) > 0)",
    )
    row = page.locator("#links tr").filter(has_text="h1 → s1")
    lab.type("link h1 s1 down")
    row.get_by_text("down", exact=True).wait_for()
    page.locator("#wired-map .wire.down").wait_for(state="attached")
    lab.type("link h1 s1 up")
    row.get_by_text("up", exact=True).wait_for()
    lab.type("link h1 s1 set rate=3Mbit/s")
    row.get_by_text("3 Mbit/s").wait_for()
    page.get_by_label("Link", exact=True).select_option("h1-s1")
    chart = page.locator("#link-charts figure").filter(has_text="Rate")
    chart.get_by_text("0 to 3.00 Mbit/s").wait_for()
    for name in ("Utilization", "Queue", "Drops"):
        chart = page.locator("#link-charts figure").filter(has_text=name)
        chart.locator(".curve.first").wait_for(state="attached")
    page.get_by_text("walker-one:wlan0, one").wait_for()
    assert page.get_by_role("heading", name="Violations of grants").count() == 0
    lab.type('py lab._one.world.set_radio("walker-one:wlan0", {"channel": 40})')
    # One row or more: frames of a slow host are further apart than those of one violation may be.
    violations = page.locator("#violations tr").filter(has_text="walker-one:wlan0")
    violations.get_by_text("20 MHz").first.wait_for()
    assert page.locator("img").count() == 0
    sync_api.expect(page.get_by_text("<img src=x")).to_have_count(1)
    page.locator("#verdict").get_by_text(re.compile("valid|degraded|invalid")).wait_for()
    page.screenshot(path=tmp_path / "light.png", full_page=True)
    assert page.wrong == []
    page.close()


def test_a_console_is_used_by_keyboard_alone(browser: Any, lab: Laboratory, tmp_path: Path) -> None:
    page = opened(browser, lab.operator, viewport={"width": 1280, "height": 1000})
    node = page.locator("#wired-map").get_by_role("button", name="Node h1", exact=True)
    node.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        if page.evaluate("document.activeElement.dataset.name") == "h2":
            break
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Node h2").wait_for()
    page.get_by_text("10.0.0.2/24").wait_for()
    page.get_by_role("button", name="Open a console in h2").focus()
    page.keyboard.press("Enter")
    console = page.get_by_role("group", name="Console of h2")
    console.get_by_text("connected").wait_for()
    page.keyboard.type("echo sum $((6 * 7))\n")
    console.locator(".xterm-rows").get_by_text("sum 42").wait_for()
    page.keyboard.type("stty size; ip -4 -o addr show eth0\n")
    console.locator(".xterm-rows").get_by_text("10.0.0.2/24").wait_for()
    assert console.locator(".xterm-rows").get_by_text("24 80").count() == 0
    page.locator("#events").get_by_text("a console was opened in h2").wait_for()
    page.screenshot(path=tmp_path / "console.png", full_page=True)
    page.keyboard.press("Shift+Escape")
    assert page.evaluate("document.activeElement.textContent") == "Close"
    page.keyboard.press("Enter")
    console.wait_for(state="detached")
    page.get_by_label("Console of node").select_option("h1")
    page.get_by_role("button", name="Open", exact=True).press("Enter")
    console = page.get_by_role("group", name="Console of h1")
    console.get_by_text("connected").wait_for()
    page.keyboard.type("exit 3\n")
    console.get_by_text("ended with exit code 3").wait_for()
    refused = page.evaluate(
        "new Promise((done) => {"
        "const socket = new WebSocket(location.href.replace('http', 'ws') + 'console/nobody');"
        "socket.onmessage = (event) => done(event.data); })"
    )
    assert "no node is called nobody" in refused
    assert page.wrong == []
    page.close()


def test_a_viewer_on_a_phone_in_the_dark_sees_all_and_opens_no_console(
    browser: Any, lab: Laboratory, tmp_path: Path
) -> None:
    page = opened(browser, lab.viewer, color_scheme="dark", viewport=PHONE)
    page.locator("#links tr").first.wait_for()
    page.locator("#wired-map").get_by_role("button", name="Node h1", exact=True).click()
    page.get_by_role("heading", name="Node h1").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 18, 21)"
    assert page.get_by_role("button", name="Open a console in h1").count() == 0
    assert page.get_by_role("button", name="Open", exact=True).count() == 0
    page.get_by_text("This page is read only").wait_for()
    refused = page.evaluate(
        "new Promise((done) => {"
        "const socket = new WebSocket(location.href.replace('http', 'ws') + 'console/h1');"
        "socket.onopen = () => done('open'); socket.onerror = () => done('refused'); })"
    )
    assert refused == "refused"
    page.screenshot(path=tmp_path / "dark.png", full_page=True)
    page.close()


def test_the_page_says_how_the_laboratory_ended(browser: Any, lab: Laboratory, tmp_path: Path) -> None:
    page = opened(browser, lab.operator)
    assert lab.end() == 0
    page.locator("#phase").get_by_text("ended", exact=True).wait_for()
    page.get_by_text("Verdict", exact=True).wait_for()
    page.locator("#verdict").get_by_text(re.compile("valid|degraded|invalid")).wait_for()
    page.screenshot(path=tmp_path / "ended.png", full_page=True)
    assert page.wrong == []
    page.close()


def test_curves_of_measurements_and_the_time_line_grow(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "watched.yaml").write_text(SCENARIO + MEASURED)
    lab = Laboratory("run", tmp_path / "watched.yaml", "--out", tmp_path / "out")
    try:
        page = opened(browser, lab.viewer, color_scheme="dark", viewport=PHONE)
        chart = page.locator("#measurements .chart")
        chart.get_by_text("round trip").wait_for()
        curve = "document.querySelector('#measurements .curve')?.getAttribute('points').split(' ').length"
        shows(page, f"{curve} > 3")
        page.locator("#timeline .bar-of").wait_for(state="attached")
        page.locator("#timeline .mark title").filter(has_text="3 ms").first.wait_for(state="attached")
        page.locator("#phase").get_by_text("ended", exact=True).wait_for()
        sync_api.expect(chart, "the curve stays").to_have_count(1)
        sync_api.expect(page.locator("#timeline .bar-of.done")).to_have_count(1)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        page.screenshot(path=tmp_path / "dark.png", full_page=True)
        assert page.wrong == []
        page.close()
        assert lab.end() == 0
    finally:
        lab.kill()


def test_a_runs_page_has_its_measurements_and_ends_with_the_verdict(tmp_path: Path) -> None:
    (tmp_path / "watched.yaml").write_text(SCENARIO + MEASURED)
    lab = Laboratory("run", tmp_path / "watched.yaml", "--out", tmp_path / "out")
    try:
        found: dict[str, list[Any]] = {}
        for kind, data in lab.events(lab.viewer):
            found.setdefault(kind, []).append(data)
        assert lab.end() == 0
    finally:
        lab.kill()
    assert found["role"] == [{"role": "viewer"}]
    assert {one["name"] for one in found["drawing"][0]["vertices"]} == {
        "h1",
        "h2",
        "base-one",
        "walker-one",
        "s1",
    }
    entries = {(one["kind"], one["text"]): one for some in found["entries"] for one in some}
    assert ["loss", "0 %"] in entries["measured", "echo"]["figures"]
    assert ("measuring", "echo") in entries
    trips = [one["values"]["echo"] for one in found["state"] if "echo" in one["values"]]
    assert {(one["name"], one["unit"]) for one in trips} == {("round trip", "ns")}
    # Over two links there and back, with 3 ms more each way after 2 s.
    assert all(0 < one["value"] < 1e9 for one in trips)
    assert trips[-1]["value"] > 6e6
    moving = [one["radios"]["walker-one:wlan0"]["position"][0] for one in found["state"] if one["running"]]
    assert moving == sorted(moving)
    assert moving[-1] > moving[0]
    times = [one["at"] for one in found["state"]]
    assert times == sorted(times), "the end keeps the time of the run"
    ended = found["ended"][0]
    assert ended["status"] in ("valid", "degraded", "invalid")
    assert [(one["id"], one["outcome"]) for one in ended["claims"]] == [("lossless", "holds")]
    assert list(found)[-1] == "ended"


@pytest.mark.parametrize("command", ["up", "run"])
def test_an_invalid_address_is_refused_before_anything_starts(
    tmp_path: Path, shell: Any, command: str
) -> None:
    (tmp_path / "watched.yaml").write_text(SCENARIO)
    out = tmp_path / "out"
    done = shell.run(command, str(tmp_path / "watched.yaml"), "--web-at", "8080", "--out", str(out))
    assert done.returncode == 2
    assert "'8080' is no address and port to serve the live page at" in done.stderr
    assert not out.exists()
