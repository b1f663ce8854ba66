"""Claims of published pages, judged anew from the pages' values."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloom.errors import ScenarioError
from airloom.experiments import conclusion, orbit, record, registry
from airloom.experiments.extent import Extent
from airloom.experiments.published_index import PARTIAL
from airloom.experiments.publishing import publish
from airloom.experiments.registry import Experiment
from airloom.experiments.rejudging import NOTE, found, rejudge
from airloom.stats import mean
from helpers import REPOSITORY

pytest.importorskip("airloom._engine")

PAPER = """\
id,says,figure,line,x,value,unit,source,flag,reason,needs
ten,ten times,,,,10,1,E-1,,,
doubt,twenty times,,,,20,1,E-2,P-1,eleven elsewhere,
never,40 of 30,,,,40,1,E-3,P-2,a slip,40 <= 30
"""
CODE = '''\
"""An invented experiment."""

from airloom.experiments.campaign import Campaign
from airloom.experiments.repetitions import Repetitions
from airloom.report.figures import Figure


def run(folder, *, extent, progress):
    with Campaign.of(__file__, folder, progress=progress, kinds=("netns",)) as campaign:
        if campaign._stored is None:
            for value in (9.0, 9.2, 9.1):
                campaign.found.add({"group": 0}, {"ratio": (value, "1"), "slip": (50.0 + value, "1")})
        found = campaign.measure([], None, Repetitions.fixed(3, "ratio"))
        ratio, slip = (found.sample(name, group=0) for name in ("ratio", "slip"))
        CLAIMS
        line = found.line("here", "measured", "ratio", "group", (0,), 1.0)
        figure = {"name": "ratio", "title": "Ratio", "x_label": "GROUPS", "y_label": "y", "unit": "1"}
        campaign.draw(Figure(**figure, lines=(line,)))
        return campaign.finish()
'''
FIRST = """
        campaign.claim("kept", "It is about nine.", "ratio within 10 % of 9", says="ten", ratio=ratio)
        campaign.claim("one-sided", "It is ten.", "ratio >= 8", says="ten", ratio=ratio)
        campaign.claim("loose", "It is ten.", "ratio >= 10", says="ten", shape="ratio >= 1", ratio=ratio)
        campaign.claim("gone", "It is large.", "ratio >= 1", says="doubt", ratio=ratio)
        campaign.claim("never", "It is 40.", "slip <= 40", says="never", slip=slip)
"""
THEN = """
        campaign.claim("kept", "It is about nine.", "ratio within 10 % of 9", says="doubt", ratio=ratio)
        campaign.claim("one-sided", "It is ten.", "ratio within 5 % of 10", says="ten", ratio=ratio)
        campaign.claim("loose", "It is ten.", "ratio >= 10", says="ten", ratio=ratio)
        campaign.claim("never", "It is 40.", "slip <= 40", says="doubt", slip=slip)
        campaign.claim("open", "It is 9.15.", "ratio >= 9.15", says="ten", ratio=ratio)
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    """An invented experiment whose results are published in ``page``."""
    made = Experiment("made", tmp_path / "made" / "experiment.py")
    made.path.parent.mkdir()
    made.path.with_name("paper.csv").write_text(PAPER)
    made.path.write_text(CODE.replace("CLAIMS", FIRST).replace("GROUPS", "0: native"))
    out = tmp_path / "out"
    made.load()(out, extent=Extent.FULL, progress=lambda _: None)
    record.write(out, "made", Extent.FULL, ())
    publish(made, out, tmp_path / "page", anyway=True)
    return made


def rows(page: Path) -> dict[str, list[str]]:
    lines = [line for line in page.read_text().splitlines() if line.startswith("| ") and "**" in line]
    return {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]] for line in lines}


def test_what_changed_is_judged_anew_and_the_rest_is_kept(experiment: Experiment, tmp_path: Path) -> None:
    page = tmp_path / "page" / "README.md"
    before = rows(page)
    assert [row[0] for row in before.values()] == [
        "**holds**", "**holds**", "**holds in shape**", "**holds**", "**implausible in source**",
    ]  # fmt: skip
    experiment.path.write_text(CODE.replace("CLAIMS", THEN).replace("GROUPS", "0: native"))
    changed = ["kept", "one-sided", "loose", "never", "open", "published-never", "gone"]
    assert rejudge(experiment, tmp_path / "page") == changed
    after = rows(page)
    assert {id: row[0] for id, row in after.items()} == {
        "kept": "**holds**", "one-sided": "**fails**", "loose": "**fails**", "never": "**fails**",
        "open": "**undecided**", "published-never": "**implausible in source**",
    }  # fmt: skip
    assert after["kept"][2] == before["kept"][2] == "ratio = 9.1 (8.852 to 9.348)"
    assert after["kept"][4] == "twenty times (P-1: eleven elsewhere) (E-2)"
    assert after["loose"][1] == "It is ten."
    assert "but" not in after["loose"][5]
    assert after["never"][5] == "59.1 is 19.1 above 40"
    assert NOTE in " ".join(page.read_text().split())
    assert rejudge(experiment, tmp_path / "page") == []
    assert NOTE in " ".join(page.read_text().split()), "it stays when it is asked for again"


def test_a_figure_gets_its_categories(experiment: Experiment, tmp_path: Path) -> None:
    page = tmp_path / "page" / "README.md"
    assert "y against 0: native. here: 9.1 at 0" in page.read_text()
    old = (page.parent / "figure-ratio.svg").read_text()
    new = CODE.replace("CLAIMS", FIRST).replace('"GROUPS"', '"radio", "categories": ("native",)')
    experiment.path.write_text(new)
    assert rejudge(experiment, page.parent) == []
    assert "y against radio. here: 9.1 at native" in page.read_text()
    assert (page.parent / "figure-ratio.svg").read_text() != old


def test_the_conclusion_is_brought_up_to_date(experiment: Experiment, tmp_path: Path) -> None:
    page = tmp_path / "page" / "README.md"
    first, then = (f"- **Shown:** {one}.\n- **Not shown:** Ten.\n" for one in ("Nine", "9.1"))
    path = experiment.path.with_name(conclusion.FILE)
    path.write_text(first)
    rejudge(experiment, page.parent)
    assert "**Shown:**" not in page.read_text(), "this is no full and valid result"
    blocks = page.read_text().split("\n\n")
    page.write_text("\n\n".join(one for one in blocks if PARTIAL not in one))
    for text in (first, then):
        path.write_text(text)
        rejudge(experiment, page.parent)
        assert f"An invented experiment.\n\n{text}\n    airloom" in page.read_text()
    path.write_text("Shown: all.\n")
    before = page.read_text()
    with pytest.raises(ScenarioError, match="nothing but its items"):
        rejudge(experiment, page.parent)
    assert page.read_text() == before


def test_a_page_with_invalid_runs_decides_nothing_new(experiment: Experiment, tmp_path: Path) -> None:
    page = tmp_path / "page" / "README.md"
    text = page.read_text().replace("; runs: 1 valid", "; runs: 1 valid, 1 invalid")
    assert "1 invalid" in text
    page.write_text(text)
    experiment.path.write_text(CODE.replace("CLAIMS", THEN).replace("GROUPS", "0: native"))
    rejudge(experiment, page.parent)
    found = rows(page)
    assert found["kept"][0] == "**holds**"
    assert found["open"][0] == "**undecided**"
    assert "do not tell its valid runs" in found["open"][5]


def test_what_is_no_page_is_refused(experiment: Experiment, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="there is no published page"):
        rejudge(experiment, tmp_path / "elsewhere")
    page = tmp_path / "page" / "README.md"
    page.write_text(page.read_text().replace("Generated by", "Written by"))
    with pytest.raises(ScenarioError, match="this is no published page"):
        rejudge(experiment, page.parent)


@given(st.floats(-1e6, 1e6), st.floats(0, 1e3), st.integers(2, 10))
def test_values_have_the_mean_and_the_interval_of_the_page(average: float, half: float, n: int) -> None:
    text = f"measurement,metric,load,mean,ci95,n,unit\nmade,ratio,5,{average!r},{half!r},{n},1\n"
    values = found("made", text).all("ratio", load=5)
    over = mean(values)
    assert over.n == n
    assert over.value == pytest.approx(average, rel=1e-9, abs=1e-6)
    assert over.half_width == pytest.approx(half, rel=1e-6, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["orbit-tcp-rate", "orbit-queues", "vwifi-latency", "net-wireless-chain"])
def test_published_pages_have_the_claims_of_the_tree(name: str, tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "docs" / "results" / name, tmp_path / name)
    there: Any = mock.patch.multiple(orbit, has_theirs=lambda: True)
    before = (tmp_path / name / "README.md").read_text()
    with there, mock.patch("airloom.experiments.vwifi.need_programs"):
        changed = rejudge(registry.find(name), tmp_path / name)
    # The page may be older than a platform of the tree, about which it then has no claim at all.
    unmeasured = "uml-turns-100" if "uml-turns-100" not in before else None
    assert [one for one in changed if unmeasured is None or unmeasured not in one] == []
