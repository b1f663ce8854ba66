"""A report at the width of a telephone: no value is cut at the side."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from airloom import report
from helpers import fake_results


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report.write(
        [fake_results.run(tmp_path_factory.mktemp("narrow") / "run", only=("rtt", "goodput"))]
    )


def test_each_cell_of_a_wide_table_names_its_column(page: Path) -> None:
    tables = re.findall(r"<table[^>]*>.*?</table>", page.read_text(), re.DOTALL)
    wide = [one for one in tables if one.count('scope="col"') > 3]
    assert wide
    for table in wide:
        assert 'class="blocks"' in table
        columns = re.findall(r'scope="col"[^>]*>([^<]*)<', table)
        for row in re.findall(r"<tr>(<td.*?)</tr>", table):
            assert re.findall(r'data-l="([^"]*)"', row) == columns


def test_chromium_scrolls_no_table_at_390_pixels(page: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="make test installs playwright")
    chromium = Path("/usr/bin/chromium")
    if not chromium.exists():
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=str(chromium), args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 390, "height": 900})
        view.goto(page.as_uri())
        cut = view.evaluate(
            "() => [...document.querySelectorAll('.scroll')]"
            ".filter(one => one.scrollWidth > one.clientWidth).map(one => one.ariaLabel)"
        )
        across = view.evaluate("() => document.documentElement.scrollWidth")
        browser.close()
    assert cut == []
    assert across == 390
