"""Every experiment's data parses, its scenarios pass the gate, its claims are claims; none is run."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from airloom.errors import RunError
from airloom.experiments import capacity_search, outside, registry
from airloom.experiments import paper as published
from airloom.experiments.extent import Extent
from airloom.experiments.net_chain import kinds
from airloom.planning.gate import check
from airloom.report import figures
from airloom.results import RunReader
from airloom.scenario.model import Scenario

pytest.importorskip("airloom._engine")

PAPERS = [
    name
    for name, one in registry.discover().items()
    if one.path.with_name("paper.csv").read_text().startswith(",".join(published.COLUMNS))
]


@pytest.mark.parametrize("name", PAPERS)
@pytest.mark.parametrize(
    "extent",
    [Extent.SMOKE, *(pytest.param(extent, marks=pytest.mark.slow) for extent in (Extent.QUICK, Extent.FULL))],
    ids=lambda extent: extent.name,
)
def test_an_experiment_without_a_world_checks_every_scenario_and_believes_nothing(
    name: str, extent: Extent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []

    def made(folder: Path, name: str, scenario: Scenario, **_: Any) -> RunReader:
        # A repetition differs by its seed alone, and a search for the first deviation would never end.
        if not name.endswith(("-r00", "-r")) and "-r" in name:
            raise RunError("test.repeated", "not run")
        # The full sweep has the quick one's scenarios with other numbers: a sample is enough.
        if extent is not Extent.FULL or len(checked) % 5 == 0:
            assert check(scenario).plans
        checked.append(name)
        raise RunError("test.not-run", "not run")

    def measured(place: Path, scenario: Scenario, measure: Any) -> Any:
        made(place.parent, place.name, scenario)

    monkeypatch.setattr(capacity_search, "made", made)
    monkeypatch.setattr(outside, "measured", measured)
    found = registry.find(name)
    run = found.load()
    choice = {"kinds": ("netns",)} if "kinds" in inspect.signature(run).parameters else {}
    result = run(tmp_path / "out", extent=extent, progress=lambda _: None, **choice)
    assert checked
    assert len(checked) == len(set(checked)), "two cases have one folder"
    assert {one.id for one in result.claims}, "it claims nothing"
    assert len({one.id for one in result.claims}) == len(result.claims)
    for claim in result.claims:
        assert claim.outcome in ("undecided", "implausible-in-source"), f"{claim.id} is decided of nothing"
        assert "was not measured" in claim.why or claim.id.startswith("published-"), claim.why
        assert claim.published
        assert claim.source
    assert result.verdict.status == "invalid"
    drawn = {figure.name for figure in figures.load(tmp_path / "out")}
    assert drawn
    paper = published.read(found.path.parent / "paper.csv")
    undrawn = {one.figure for one in paper.statements.values() if one.figure} - drawn
    assert not undrawn, "published points that no figure draws"


def test_every_paper_is_read() -> None:
    assert set(registry.discover()) - set(PAPERS) == {"mtu-study"}


@pytest.mark.parametrize("name", PAPERS)
def test_the_papers_numbers_are_data(name: str) -> None:
    folder = registry.find(name).path.parent
    paper = published.read(folder / "paper.csv")
    assert paper.statements
    text = (folder / "experiment.py").read_text() + Path(kinds.__file__).read_text()
    for one in paper.statements.values():
        # What is implausible or drawn is shown by itself; the rest is there to be held against something.
        assert one.flag or one.figure or f'"{one.id}"' in text, f"nothing speaks of {one.id}"
    assert (folder / "README.md").is_file()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,says\n", "these are not a paper's columns"),
        ("x,y,,,,,,s,P-1,,\n", "a flag needs a reason"),
        ("x,,,,,,,s,,,\n", "a row needs an id"),
        ("x,y,,,one,,,s,,,\n", "could not convert string to float"),
        ("x,y,,,,,,s,,,\nx,y,,,,,,s,,,\n", "a row needs an id"),
        ("x,y,s\n", "the row has not 11 fields"),
        ("x,y,,,,,,s,,,2 <= 1\n", "arithmetic needs a flag"),
        ("x,y,,,,,,s,P-1,why,1 <= 2\n", "'1 <= 2' is true, so it excludes nothing"),
        ("x,y,,,,,,s,P-1,why,80000 packets\n", "no condition"),
        ("x,y,,,,,,s,P-1,why,f(1) <= 0\n", "is no number"),
        ("x,y,,,,,,s,P-1,why,1 <= 1 / 0\n", "divides by zero"),
    ],
)
def test_a_bad_paper_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "paper.csv"
    header = "" if text.startswith("id") else ",".join(published.COLUMNS) + "\n"
    path.write_text(header + text)
    with pytest.raises(Exception, match=message) as caught:
        published.read(path)
    assert f"{path}:" in str(caught.value)


def test_an_experiment_without_a_choice_of_kinds_says_so() -> None:
    one = registry.find("net-wired-chain")
    with pytest.raises(Exception, match=r"has no choice of kinds .*\[experiment.kinds\]"):
        one.choices(one.load(), ["netns"])


def test_kinds_without_radios_are_refused(tmp_path: Path) -> None:
    run: Any = registry.find("orbit-udp-load").load()
    with pytest.raises(Exception, match=r"\[experiment.kind\]"):
        run(tmp_path, extent=Extent.QUICK, progress=lambda _: None, kinds=("native",))
