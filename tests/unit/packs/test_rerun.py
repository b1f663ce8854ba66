"""Packs of results: what they contain, what is refused, and how trends of two machines are told."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from airloom.cli import app
from airloom.compare.machines import differences
from airloom.compare.render_trends import summary
from airloom.compare.trends import Ratio, Trend, ratio, trends
from airloom.errors import ScenarioError
from airloom.experiments import record
from airloom.experiments.extent import Extent
from airloom.packs.archive import Pack
from airloom.packs.contents import pack
from airloom.packs.rerun import require_inputs, rerun, unpack
from airloom.planning import inputs
from airloom.planning.gate import check
from airloom.results import Claim, Details, Ledger, Measurement, RunReader, RunWriter, SweepWriter, Verdict
from airloom.runs.progress import Watcher
from helpers import images

SCENARIO = """\
name: packed
nodes: {a: , b: }
links: [{ends: [a, b], trace: own.trace}]
measurements: [{name: rtt, ping: {from: a, to: b}}]
programs: [{node: b, run: [python3, client.py], folder: .}, {node: a, run: ./serve.sh 1, folder: .}]
sweep: {"links[0].trace": [own.trace, other.trace]}
"""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    folder = tmp_path / "lab"
    folder.mkdir()
    for name in ("own.trace", "other.trace"):
        (folder / name).write_text(f"1\n{len(name)}\n")
    (folder / "client.py").write_text("import module\n")
    (folder / "module.py").write_text("")
    (folder / "serve.sh").write_text("#!/bin/sh\n")
    (folder / "s.yaml").write_text(SCENARIO)
    return folder


def results(folder: Path, lab: Path) -> Path:
    """Returns the folder of a sweep as if it had been run."""
    experiment = check(lab / "s.yaml")
    writer = SweepWriter(
        folder, scenario="packed", seed=1, sweep={"links[0].trace": ["own.trace", "other.trace"]},
        scenario_text=experiment.scenario.to_yaml(),
        inputs=inputs.digests([plan.scenario for plan in experiment.plans]),
    )  # fmt: skip
    for point in writer.unfinished():
        with writer.run(point, kinds=["netns"], seed=1) as one:
            one.finish(Verdict(status="valid"), Ledger())
    writer.finish()
    return folder


def test_a_pack_runs_elsewhere_with_the_same_inputs(tmp_path: Path, lab: Path) -> None:
    done = pack(results(tmp_path / "r", lab), tmp_path / "p.zip", more=[lab / "module.py"])
    assert done.left_out == ()
    named = {Path(name).name for name in done.manifest.members if name.startswith("inputs/")}
    assert named == {"own.trace", "other.trace", "client.py", "module.py", "serve.sh"}
    lab.rename(tmp_path / "gone")
    unpacked = unpack(tmp_path / "p.zip", tmp_path / "new")
    found = check(unpacked.scenario)
    digests = inputs.digests([plan.scenario for plan in found.plans])
    assert {Path(path).name: digest for path, digest in digests.items()} == {
        Path(path).name: one.digest for path, one in done.manifest.inputs.items() if "module" not in path
    }
    assert all(path.startswith(f"{tmp_path}/new/") for path in digests)
    assert Path(found.plans[0].scenario.programs[0].folder or "", "module.py").is_file()


def test_an_input_that_has_changed_is_refused(tmp_path: Path, lab: Path) -> None:
    folder = results(tmp_path / "r", lab)
    (lab / "own.trace").write_text("1\n2\n3\n")
    with pytest.raises(ScenarioError, match=r"own\.trace: this input has changed since the run"):
        pack(folder, tmp_path / "p.zip")
    (lab / "own.trace").unlink()
    with pytest.raises(ScenarioError, match=r"own\.trace: this input is missing"):
        pack(folder, tmp_path / "p.zip")
    assert not (tmp_path / "p.zip").exists()


def test_what_a_pack_cannot_hold_is_refused(tmp_path: Path, lab: Path) -> None:
    folder = results(tmp_path / "r", lab)
    with pytest.raises(ScenarioError, match="would lie in the folder that it packs"):
        pack(folder, folder / "p.zip")
    (folder / "link").symlink_to("/etc/passwd")
    with pytest.raises(ScenarioError, match="regular files only"):
        pack(folder, tmp_path / "p.zip")
    (folder / "link").unlink()
    writer = RunWriter(tmp_path / "open", scenario="s", seed=1, kinds=["netns"])
    with writer, pytest.raises(ScenarioError, match="incomplete"):
        pack(tmp_path / "open", tmp_path / "p.zip")
    assert not (tmp_path / "p.zip").exists()


def test_an_input_that_no_machine_has_is_named_before_the_run(tmp_path: Path, lab: Path) -> None:
    folder = results(tmp_path / "r", lab)
    raw = json.loads((folder / "sweep.json").read_text())
    raw["inputs"]["/usr/nowhere/own"] = "sha256:" + "0" * 64
    (folder / "sweep.json").write_text(json.dumps(raw))
    done = pack(folder, tmp_path / "p.zip")
    with pytest.raises(ScenarioError, match="does not include /usr/nowhere/own"), Pack(done.path) as opened:
        require_inputs(done.path, opened.manifest)


@pytest.mark.parametrize("form", ["box.tar", "box", "box:latest"])
def test_images_are_named_with_digests_and_included_on_request(tmp_path: Path, lab: Path, form: str) -> None:
    layers = [images.layer(images.entry("etc"))]
    place = lab / form.partition(":")[0]
    (images.oci_tar if form.endswith(".tar") else images.oci)(place, layers, {"Cmd": ["/bin/true"]})
    (lab / "s.yaml").write_text(f"name: boxed\nkind: container\nimage: {form}\nnodes: {{a: }}\n")
    experiment = check(lab / "s.yaml")
    scenario = experiment.plans[0].scenario
    text = scenario.to_yaml()
    with RunWriter(
        tmp_path / "r", scenario="boxed", seed=1, kinds=["container"], scenario_text=text
    ) as writer:
        details = Details(inputs=inputs.digests([scenario]))
        writer.finish(Verdict(status="valid"), Ledger(), details=details)
    bare = pack(tmp_path / "r", tmp_path / "bare.zip")
    assert bare.left_out == (f"{lab}/{form}",)
    assert bare.manifest.inputs[f"{lab}/{form}"].digest.startswith(("sha256:", "image:"))
    assert not any(name.startswith("inputs/") for name in bare.manifest.members)
    whole = pack(tmp_path / "r", tmp_path / "whole.zip", images=True)
    with Pack(bare.path) as opened:
        require_inputs(bare.path, opened.manifest)
    lab.rename(tmp_path / "gone")
    with Pack(bare.path) as opened, pytest.raises(ScenarioError, match="--images"):
        require_inputs(bare.path, opened.manifest)
    lab.mkdir()
    (images.oci_tar if form.endswith(".tar") else images.oci)(place, [*layers, images.layer()], {})
    with Pack(bare.path) as opened, pytest.raises(ScenarioError, match="another digest"):
        require_inputs(bare.path, opened.manifest)
    unpacked = unpack(whole.path, tmp_path / "new")
    again = inputs.digests([check(unpacked.scenario).plans[0].scenario])
    assert again == {f"{tmp_path}/new/inputs{lab}/{form}": whole.manifest.inputs[f"{lab}/{form}"].digest}


EXPERIMENT = '''
"""Writes figures without a node."""
from pathlib import Path

from airloom.results import Ledger, Measurement, RunWriter, Verdict

def run(folder, *, extent, progress, kinds=("netns",)):
    progress("one figure")
    with RunWriter(folder, scenario=Path(__file__).parent.name, seed=1, kinds=kinds, replace=True) as writer:
        name = Path(__file__).parent.name
        writer.measured(Measurement(name=name, metric="x", unit="s", mean=1.0))
        return writer.finish(Verdict(status="valid"), Ledger())
'''


def test_an_experiment_runs_from_its_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "experiments" / "tiny"
    source.mkdir(parents=True)
    (source / "experiment.py").write_text(EXPERIMENT)
    with RunWriter(tmp_path / "r", scenario="tiny", seed=1, kinds=["netns"]) as writer:
        writer.measured(Measurement(name="tiny", metric="x", unit="s", mean=1.0))
        writer.finish(Verdict(status="valid"), Ledger())
    record.write(tmp_path / "r", "tiny", Extent.QUICK, ["netns"])
    with monkeypatch.context() as at:
        at.chdir(tmp_path)
        done = pack(tmp_path / "r", tmp_path / "p.zip")
    assert done.manifest.experiment is not None
    source.rename(tmp_path / "gone")
    unpacked = unpack(tmp_path / "p.zip", tmp_path / "new")
    heard: list[str] = []
    rerun(unpacked, tmp_path / "again", watcher=Watcher(), progress=heard.append)
    assert heard == ["one figure"]
    assert record.read(tmp_path / "again") == record.read(tmp_path / "r")
    assert trends(tmp_path / "r", tmp_path / "again").missing == 0
    assert RunReader(tmp_path / "again").result.measurements[0].mean == 1.0


@pytest.mark.parametrize("words", [["a", "--trends"], ["a", "a", "a", "--trends"], ["a", "s", "--trends"]])
def test_trends_are_those_of_two_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "s").write_text("")
    done = CliRunner().invoke(app, ["compare", *words])
    assert isinstance(done.exception, ScenarioError)
    assert done.exception.code in ("compare.trends", "compare.folder")


def figure(mean: float, ci95: float | None, n: int = 5, **labels: str) -> Measurement:
    return Measurement(
        name="tcp", metric="throughput", unit="bit/s", mean=mean, ci95=ci95, n=n, labels=labels
    )


def test_a_ratio_has_the_interval_of_its_logarithm() -> None:
    random = np.random.default_rng(7)
    covered = 0
    for _ in range(400):
        sides = []
        for centre in (10.0, 25.0):
            values = random.normal(centre, 1.0, 6)
            half = 2.5706 * float(values.std(ddof=1)) / math.sqrt(6)
            sides.append(figure(float(values.mean()), half, 6))
        found = ratio(*sides)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 2.5 <= found.high
    assert 0.92 <= covered / 400 <= 0.98
    assert ratio(figure(0.0, 1.0), figure(1.0, 0.1)) is None
    assert ratio(figure(1.0, None, 1), figure(2.0, None, 1)) == Ratio(2.0)


@pytest.mark.parametrize(
    ("first", "second", "outcome", "overlap"),
    [
        ((2.0, 1.8, 2.2), (4.0, 3.5, 4.5), "same", False),
        ((2.0, 1.8, 2.2), (2.1, 1.9, 2.3), "same", True),
        ((2.0, 1.8, 2.2), (0.5, 0.4, 0.6), "opposite", False),
        ((2.0, 1.8, 2.2), (1.1, 0.9, 1.3), "undecided", False),
        ((2.0, None, None), (2.0, 1.9, 2.1), "undecided", None),
    ],
)
def test_directions_decide_and_absolute_values_do_not(
    first: tuple[float, float | None, float | None],
    second: tuple[float, float | None, float | None],
    outcome: str,
    overlap: bool | None,
) -> None:
    found = Trend("tcp", "throughput", "load", ("1", "2"), {}, Ratio(*first), Ratio(*second))
    assert (found.outcome, found.overlap) == (outcome, overlap)


def machine(folder: Path, *values: float, processor: str, outcome: str = "holds") -> Path:
    with RunWriter(folder, scenario="s", seed=1, kinds=["netns"]) as writer:
        for load, value in zip(("10", "20", "50"), values, strict=True):
            writer.measured(figure(value, value / 50, load=load))
        claim = Claim.model_validate(
            {
                "id": "c",
                "statement": "s",
                "source": "",
                "expected": "",
                "measured": "",
                "outcome": outcome,
                "why": "",
            }
        )
        details = Details(machine={"processor": processor, "name": folder.name}, versions={"kernel": "6.1"})
        writer.finish(Verdict(status="valid"), Ledger(), claims=[claim], details=details)
    return folder


def test_another_machine_keeps_the_trends_and_is_named(tmp_path: Path) -> None:
    first = machine(tmp_path / "a", 10e6, 20e6, 22e6, processor="slow")
    second = machine(tmp_path / "b", 30e6, 61e6, 20e6, processor="fast", outcome="fails")
    found = trends(first, second)
    assert [(one.values, one.outcome, one.overlap) for one in found.trends] == [
        (("10", "20"), "same", True),
        (("10", "50"), "opposite", False),
    ]
    assert found.machines == {"processor": ("slow", "fast")}
    assert not found.hold
    assert "1 same, 1 opposite" in summary(found)
    assert "claims that held and now fail: c" in summary(found)
    raw = json.loads(found.to_json())
    assert raw["trends"][1]["directions"] == ["up", "down"]
    assert found.missing == 0
    with RunWriter(tmp_path / "c", scenario="s", seed=1, kinds=["netns"]) as writer:
        writer.finish(Verdict(status="valid"), Ledger())
    assert "3 figures of the first are missing" in summary(trends(first, tmp_path / "c"))
    assert differences(RunReader(first), RunReader(first)) == {}
    assert trends(first, first).hold
