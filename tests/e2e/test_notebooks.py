"""The notebooks run from the first cell to the last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))

pytestmark = pytest.mark.world


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="pip install -r notebooks.lock")
    nbformat = pytest.importorskip("nbformat", reason="pip install -r notebooks.lock")
    pytest.importorskip("ipykernel", reason="pip install -r notebooks.lock")
    # A notebook keeps its results in a temporary folder.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": tmp_path}}).execute()
    shown = json.dumps([output for cell in notebook.cells for output in cell.get("outputs", [])])
    assert "text/html" in shown
    assert "<table>" in shown
    if path.stem != "first-laboratory":
        # The last phase of a run replaces the bars of its measurements.
        assert "collecting" in shown, "progress is displayed"
    assert "<object at" not in shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_output(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert all(cell.get("outputs", []) == [] for cell in cells)
