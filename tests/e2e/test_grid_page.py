"""The grid manager's web page in a real browser: by keyboard, on a phone, light and dark."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airloom.errors import HostError
from airloom.grid import require

try:
    require()
except HostError as error:
    pytest.skip(str(error), allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")

from helpers import REPOSITORY  # noqa: E402
from helpers.grid import SMALL  # noqa: E402
from helpers.grid_server import Server  # noqa: E402
from helpers.openapi import alternatives, answer_of, missing  # noqa: E402

pytestmark = pytest.mark.timeout(300)
PHONE = {"width": 390, "height": 800}
sync_api.expect.set_options(timeout=30_000)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(SMALL, str(tmp_path_factory.mktemp("grid") / "grid.db"))
    server.must("POST", "/v1/projects", {"name": "p"})
    yield server
    server.kill()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


READING = """
const seen = (route, ok, path, value) => {
  if (value === null || typeof value !== "object") return value;
  return new Proxy(value, { get(target, key) {
    const found = target[key];
    if (Array.isArray(target)) return typeof key === "string" ? seen(route, ok, path, found) : found;
    if (typeof key !== "string" || key === "then" || key in Object.prototype) return found;
    window.reads(route, ok, [...path, key]);
    return seen(route, ok, [...path, key], found);
  } });
};
const ask = window.fetch;
window.fetch = async (url, options) => {
  const answer = await ask(url, options), read = answer.json.bind(answer);
  const route = `${(options || {}).method || "GET"} ${url.split("?")[0]}`;
  answer.json = async () => seen(route, answer.ok, [], await read());
  return answer;
};
"""
"""Tells of every key that the page reads from an answer."""


def opened(browser: Any, server: Server, **more: Any) -> Any:
    """A logged-in page; every error of a script or of the policy, and every key that it reads and the
    description of the API lacks, fails the test at the end.
    """
    page = browser.new_page(**more)
    page.set_default_timeout(30_000)
    page.wrong, page.read = [], set()
    description = server.must("GET", "/openapi.json")

    def reads(route: str, ok: bool, path: list[str]) -> None:
        schema = answer_of(description, *route.split(), good=ok)
        schemas = description["components"]["schemas"]
        kinds = alternatives(schemas, schema.get("items", schema))
        page.read.add((route.split()[1], path[0]))
        if all(missing(schemas, kind, path) for kind in kinds):
            page.wrong.append(f"{route} does not describe {'.'.join(path)}")

    page.expose_function("reads", reads)
    page.add_init_script(READING)
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("console", lambda said: page.wrong.append(said.text) if "Policy" in said.text else None)
    page.goto(server.url)
    page.get_by_label("Token").fill(server.token)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Calendar").wait_for()
    return page


def test_reserving_by_keyboard_shows_in_calendar_and_list(
    browser: Any, server: Server, tmp_path: Path
) -> None:
    page = opened(browser, server, color_scheme="light", viewport={"width": 1200, "height": 1000})
    page.get_by_label("Slice").focus()
    page.keyboard.type("keyed")
    page.get_by_label("Certain nodes").focus()
    page.keyboard.type("a1 a3")
    page.keyboard.press("Enter")
    page.get_by_text("keyed has a1 a3 on channel 36").wait_for()
    row = page.get_by_role("row").filter(has_text="keyed")
    # The list and the calendar are drawn by answers of their own.
    sync_api.expect(row).to_contain_text("a1:wlan0 a3:wlan0")
    bars = page.locator("#rows rect.mine")
    sync_api.expect(bars).to_have_count(2)
    sync_api.expect(bars.first.locator("title")).to_contain_text("keyed of p")
    extend = page.get_by_role("button", name="Extend keyed by an hour")
    extend.press("Enter")
    page.get_by_text("keyed ends an hour later").wait_for()
    sync_api.expect(extend, "the new list keeps the focus").to_be_focused()
    page.get_by_role("button", name="Release keyed").press("Enter")
    page.get_by_text("keyed is released").wait_for()
    row.wait_for(state="detached")
    sync_api.expect(bars).to_have_count(0)
    page.screenshot(path=tmp_path / "light.png", full_page=True)
    assert page.wrong == []
    assert page.read >= {
        ("/v1/me", "user"), ("/v1/inventory", "slots"), ("/v1/projects", "name"), ("/v1/calendar", "mine"),
        ("/v1/reservations", "grant"),
    }  # fmt: skip
    page.close()


def test_a_refusal_is_shown_and_proposes_the_nearest_start(browser: Any, server: Server) -> None:
    page = opened(browser, server)
    for name in ("first", "second"):
        page.get_by_label("Slice").fill(name)
        page.get_by_label("Certain nodes").fill("b1 b2")
        page.get_by_label("Radios on each").fill("2")
        before = page.get_by_label("Start").input_value()
        page.get_by_role("button", name="Reserve", exact=True).click()
        page.get_by_text("first has b1 b2" if name == "first" else "free radios then").wait_for()
    sync_api.expect(page.get_by_label("Start")).not_to_have_value(before)
    assert page.get_by_label("Start").input_value() > before
    assert page.wrong == []
    assert ("/v1/reservations", "nearest") in page.read
    page.close()


def test_on_a_phone_in_the_dark_nothing_is_cut_off(browser: Any, server: Server, tmp_path: Path) -> None:
    page = opened(browser, server, color_scheme="dark", viewport=PHONE)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= PHONE["width"]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    page.get_by_label("Slice").fill('<img src=x onerror="x()">')
    page.get_by_role("button", name="Reserve", exact=True).click()
    assert page.locator("img").count() == 0
    page.screenshot(path=tmp_path / "dark.png", full_page=True)
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("heading", name="Log in").wait_for()
    assert page.evaluate("sessionStorage.length") == 0
    page.reload()
    page.get_by_role("heading", name="Log in").wait_for()
    assert page.wrong == []
    page.close()


def test_the_list_of_calls_needs_no_token(browser: Any, server: Server) -> None:
    page = browser.new_page()
    page.goto(f"{server.url}/docs")
    page.get_by_text("POST /v1/reservations/check").wait_for()
    page.close()


def test_violations_of_grants_are_shown_as_text(browser: Any, server: Server) -> None:
    end = (datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)).isoformat()
    asked = {"project": "p", "slice": "loud", "nodes": ["b3"], "end": end}
    one = server.must("POST", "/v1/reservations", asked)
    try:
        page = opened(browser, server)
        section = page.get_by_role("region", name="Violations of grants")
        section.get_by_text("None was reported.").wait_for()
        (radio,) = one["grant"]["radios"]["b3"]
        found = {
            "at": datetime.now(UTC).isoformat(), "until": datetime.now(UTC).isoformat(), "amount": 3.25,
            "unit": "dB", "radio": f"b3:{radio}", "what": "power", "frames": 12, "channel": 36,
        }  # fmt: skip
        server.must("POST", f"/v1/reservations/{one['id']}/violations", {"found": [found]})
        page.reload()
        row = section.get_by_role("row").filter(has_text="loud")
        row.wait_for()
        assert row.get_by_role("cell").all_inner_texts()[1:] == [
            "loud", "p", f"b3:{radio}", "power", "3.25 dB", "12",
        ]  # fmt: skip
        assert page.wrong == []
    finally:
        server.must("POST", f"/v1/reservations/{one['id']}/release")


RUN = """\
name: watched
duration: 60 s
media: {air: {radio: {channel: 36, rate: 24 Mbit/s, power: 10 dBm}}}
nodes: {a1: {position: [0 m, 0 m], radios: {wlan0: }}}
"""


def test_the_run_of_a_reservation_is_watched_through_a_link_until_it_ends(
    browser: Any, server: Server, tmp_path: Path
) -> None:
    (tmp_path / "run.yaml").write_text(RUN)
    end = (datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)).isoformat()
    asked = {"project": "p", "slice": "watched", "nodes": ["a1"], "channels": [36], "end": end}
    identity = server.must("POST", "/v1/reservations", asked)["id"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY / "python"),
        "AIRLOOM_GRID_URL": server.url,
        "AIRLOOM_GRID_TOKEN": server.token,
    }
    words = ("grid", "run", "run.yaml", "--reservation", identity, "--web", "--out", "out")
    run = subprocess.Popen(
        [sys.executable, "-m", "airloom", *words], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL
    )
    try:
        page = opened(browser, server)
        link = page.get_by_role("link", name="Watch the run of watched")
        until = time.monotonic() + 60
        while not link.count() and time.monotonic() < until and run.poll() is None:
            page.wait_for_timeout(500)
            page.reload()
            page.get_by_role("row").filter(has_text="watched").wait_for()
        with page.expect_popup() as popup:
            link.click()
        popup.value.locator("#phase").get_by_text("running").wait_for()
        assert popup.value.evaluate("window.opener") is None
        run.send_signal(signal.SIGINT)
        popup.value.locator("#phase").get_by_text("ended").wait_for()
        run.wait(60)
        assert server.must("GET", f"/v1/reservations/{identity}")["live"] is None
        assert page.wrong == []
    finally:
        run.kill()
        run.wait()
        server.must("POST", f"/v1/reservations/{identity}/release")
