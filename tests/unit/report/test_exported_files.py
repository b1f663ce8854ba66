"""Exported figures replace figures, and no other file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airloom.errors import ScenarioError
from airloom.report import files
from airloom.report.page import Chapter
from airloom.report.style import Drawing


def draw(figure: Any, ink: Any) -> None:
    figure.add_subplot().plot([0, 1])


@pytest.mark.parametrize("form", ["png", "svg"])
def test_a_figure_replaces_a_figure_and_no_other_file(form: str, tmp_path: Path) -> None:
    chapter = Chapter("one", drawings=[Drawing("delay", "Delay", "a line", "", draw)])
    write = lambda: files._images([chapter], tmp_path, [form], lambda what, share: None)  # noqa: E731
    (path,) = write()
    assert write() == [path]
    path.write_text("measured by hand")
    with pytest.raises(ScenarioError, match=r"delay\.(png|svg): this file is there already and is not"):
        write()
    assert path.read_text() == "measured by hand"
