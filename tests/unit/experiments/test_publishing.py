"""Publishing results of an experiment: what the page says, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from airloom.errors import LabError
from airloom.experiments import conclusion, outside, published_index, publishing, record
from airloom.experiments import paper as published
from airloom.experiments.campaign import Campaign
from airloom.experiments.extent import Extent
from airloom.experiments.publishing import publish
from airloom.experiments.registry import Experiment
from airloom.host import engine_identity
from airloom.report.figures import Figure, Line
from airloom.results import Details, Ledger, RunWriter, Verdict

PAPER = """\
id,says,figure,line,x,value,unit,source,flag,reason,needs
ten,ten | times,ratio,paper,1,10,1,E-1,,,
"""


HERE = engine_identity.identity()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """An invented experiment, of which publishing reads the summary alone."""
    path = tmp_path_factory.mktemp("made") / "experiment.py"
    path.write_text('"""An invented experiment."""\n')
    return Experiment("made", path)


def results(
    tmp_path: Path, *, extent: Extent | None = Extent.FULL, status: str = "valid", engine: str = HERE
) -> Path:
    """An invented experiment with one run, one claim and one figure."""
    (tmp_path / "paper.csv").write_text(PAPER)
    paper = published.read(tmp_path / "paper.csv")
    folder = tmp_path / "out"
    with Campaign("made", folder, paper=paper, progress=lambda _: None, kinds=("netns",)) as campaign:
        place = folder / "points" / "one-r00"
        with RunWriter(place, scenario="one", seed=1, kinds=["netns"], scenario_text="") as writer:
            reasons = ["it broke", "it broke again"] if status != "valid" else []
            verdict = Verdict.model_validate(
                {"status": status, "reasons": reasons, "codes": ["engine.busy"] * len(reasons)}
            )
            versions = {"iperf3": "3.12"} | ({"engine": engine} if engine else {})
            details = Details(versions=versions, machine={"processors": 2, "name": "secret"})
            writer.finish(verdict, Ledger(), details=details)
        for value in (9.0, 9.2):
            campaign.found.add({"load": 1}, {"ratio": (value, "1")})
        sample = campaign.found.sample("ratio", load=1)
        campaign.claim("factor", "It is <b>ten</b> times.", "ratio >= 7", says="ten", ratio=sample)
        line = Line(label="here", role="measured", x=(1.0,), y=(9.1,))
        campaign.draw(Figure(name="ratio", title="Ratio", x_label="x", y_label="y", lines=(line,)))
        campaign.finish()
    if extent is not None:
        record.write(folder, "made", extent, ("netns", "uml"))
    return folder


def test_the_page_has_claims_with_intervals_figures_machine_versions_and_the_command(
    tmp_path: Path, made: Experiment
) -> None:
    page = publish(made, results(tmp_path), tmp_path / "page")
    text = page.read_text()
    assert "    airloom experiment run made --kind netns --kind uml\n" in text
    assert "Not a full" not in text
    (row,) = (line for line in text.splitlines() if line.startswith("| factor |"))
    cells = [cell.strip() for cell in row.replace("\\|", "!").split("|")[1:-1]]
    assert cells[1] == "**holds**"
    assert cells[2] == "It is &lt;b>ten&lt;/b> times."
    assert cells[3] == "ratio = 9.1 (7.829 to 10.37)"
    assert cells[5] == "ten ! times (E-1)"
    assert "| machine | processors 2 |" in text
    assert "secret" not in text, "the name of the machine is nobody's business"
    assert f"| versions | iperf3 3.12, engine {HERE} |" in text
    assert "](figure-ratio.svg)" in text
    assert "<svg" in (page.parent / "figure-ratio.svg").read_text()
    with (page.parent / publishing.VALUES).open() as file:
        (value,) = csv.DictReader(file)
    assert (value["metric"], value["load"], value["mean"], value["n"]) == ("ratio", "1", "9.1", "2")
    assert float(value["ci95"]) == pytest.approx(12.706 * 0.1, rel=1e-3)


def test_the_page_of_a_full_result_begins_with_the_conclusion(tmp_path: Path) -> None:
    made = Experiment("made", tmp_path / "made" / "experiment.py")
    made.path.parent.mkdir()
    made.path.write_text('"""An invented experiment."""\n')
    concluded = "- **Shown:** <b>9.1</b> | times.\n- **Not shown:** Ten.\n"
    made.path.with_name(conclusion.FILE).write_text(concluded)
    folder = results(tmp_path)
    text = publish(made, folder, tmp_path / "page").read_text()
    assert f"\n\nAn invented experiment.\n\n{concluded}\n    airloom experiment run made" in text
    record.write(folder, "made", Extent.QUICK, ())
    partial = publish(made, folder, tmp_path / "partial", anyway=True).read_text()
    assert "Not a full" in partial
    assert "- **Shown:**" not in partial
    made.path.with_name(conclusion.FILE).write_text("All is well.\n")
    record.write(folder, "made", Extent.FULL, ())
    with pytest.raises(LabError, match="nothing but its items") as refused:
        publish(made, folder, tmp_path / "other", anyway=True)
    assert refused.value.exit_code == 2
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"extent": Extent.QUICK}, "they are of the quick form, whose claims about means are undecided"),
        ({"extent": None}, "they do not say in which form the experiment was run"),
        ({"status": "invalid"}, "their verdict is invalid"),
        ({"engine": "0123"}, f"their runs were made by the engine 0123, and this one is {HERE}"),
        ({"engine": ""}, "their runs do not say which engine made them"),
    ],
)
def test_what_is_quick_or_invalid_is_refused_unless_told(
    made: Experiment, tmp_path: Path, changed: dict[str, Any], why: str
) -> None:
    folder = results(tmp_path, **changed)
    with pytest.raises(LabError, match=why) as refused:
        publish(made, folder, tmp_path / "page")
    assert refused.value.exit_code == 2
    assert not (tmp_path / "page").exists()
    text = publish(made, folder, tmp_path / "page", anyway=True).read_text()
    assert f"**Not a full and valid result:** {why}" in " ".join(text.split())


def test_the_verdict_has_each_code_once_with_its_number_of_runs(made: Experiment, tmp_path: Path) -> None:
    folder = results(tmp_path, status="degraded")
    text = publish(made, folder, tmp_path / "page").read_text()
    assert "**degraded**; runs: 1 degraded\n" in text
    assert [line for line in text.splitlines() if "engine.busy" in line] == [
        "| engine.busy | 1 | one-r00: it broke |"
    ]


def test_an_index_beside_the_page_is_kept_current(made: Experiment, tmp_path: Path) -> None:
    below = tmp_path / "all"
    below.mkdir()
    (below / published_index.PAGE).write_text(published_index.text(below))
    publish(made, results(tmp_path), below / "made")
    assert "| [made](made/README.md) | An invented experiment. | valid | 1 |" in (
        (below / published_index.PAGE).read_text()
    )


def test_an_index_that_cannot_be_written_is_an_error_of_one_line(made: Experiment, tmp_path: Path) -> None:
    below = tmp_path / "all"
    (below / published_index.PAGE).mkdir(parents=True)
    with pytest.raises(LabError, match="cannot be written: Is a directory") as caught:
        publish(made, results(tmp_path), below / "made")
    assert (caught.value.code, caught.value.where) == ("results.unwritable", str(below))


def test_incomplete_results_are_refused(made: Experiment, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with RunWriter(folder, scenario="made", seed=1, kinds=["netns"]):
        pass
    with pytest.raises(LabError, match="these results are incomplete"):
        publish(made, folder, tmp_path / "page")


def test_results_of_another_experiment_are_refused_in_any_case(tmp_path: Path) -> None:
    other = Experiment("other", Path("other/experiment.py"))
    with pytest.raises(LabError, match="these are results of made, not of other"):
        publish(other, results(tmp_path), tmp_path / "page", anyway=True)


def test_a_published_page_is_replaced_and_nothing_else(made: Experiment, tmp_path: Path) -> None:
    folder, target = results(tmp_path), tmp_path / "page"
    publish(made, folder, target)
    (target / "old.svg").touch()
    publish(made, folder, target)
    assert not (target / "old.svg").exists()
    (target / published_index.PAGE).write_text("my notes")
    with pytest.raises(LabError, match="something else than a published result"):
        publish(made, folder, target)
    assert (target / published_index.PAGE).read_text() == "my notes"


def test_a_file_that_is_too_large_is_named(
    made: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "LARGEST", 5_000)
    with pytest.raises(LabError, match=r"figure-ratio\.svg has [0-9,]+ octets"):
        publish(made, results(tmp_path), tmp_path / "page")


def test_the_duration_is_that_of_all_runs(made: Experiment, tmp_path: Path) -> None:
    """Stored runs, those on other networks too; a resumed experiment says only what its last part took."""
    folder = results(tmp_path)
    for name, started, seconds in (
        ("one-r00", "2026-01-02T00:00:00.000Z", 50.0),
        ("one-r01", "2026-01-01", 40),
    ):
        path = folder / "points" / name / "result.json"
        path.parent.mkdir(exist_ok=True)
        raw = json.loads((folder / "points" / "one-r00" / "result.json").read_text())
        path.write_text(json.dumps(raw | {"started": started, "wall_seconds": seconds}))
    for name, stored in (("mininet-r00", {"wall_seconds": 5.0}), ("older-r00", {})):
        path = folder / "points" / name / outside.FILE
        path.parent.mkdir()
        path.write_text(json.dumps({"scenario": "", "figures": {}, "valid": True, **stored}))
    publish(made, folder, tmp_path / "page")
    page = (tmp_path / "page" / "README.md").read_text()
    assert "| started | 2026-01-01 |" in page
    assert "| took | 95 s |" in page
    whole = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps(whole | {"wall_seconds": 100}))
    publish(made, folder, tmp_path / "longer")
    assert "| took | 100 s |" in (tmp_path / "longer" / "README.md").read_text()
