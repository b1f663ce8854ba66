"""Slips in YAML that the parser reports elsewhere, and names of files that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.errors import ScenarioError
from airloom.scenario import missing_file, slips
from airloom.scenario.source import Source


@pytest.mark.parametrize("text", ["h1:eth0", "http://place", "a: b", "plain", None, 7, ""])
def test_what_is_no_slip(text: object) -> None:
    found = slips.glued(text)
    assert found is None or text == "h1:eth0", "only the place of a text tells an interface from a key"


def test_an_interface_in_a_text_with_another_error_is_not_blamed() -> None:
    with pytest.raises(ScenarioError, match="did not find expected"):
        Source.of_text("links:\n- {ends: [h1:eth0, h2:eth0]\nname: x\n", "text")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("helo.yaml", "did you mean {folder}/hello.yaml?"),
        ("helo", "did you mean {folder}/hello.yaml?"),
        ("hello", "did you mean {folder}/hello.yaml?"),
        ("chain.yaml", "`airloom examples copy chain` copies the example chain.yaml to this folder"),
        ("nothing-like-it.yaml", None),
    ],
)
def test_the_nearest_file_or_example(tmp_path: Path, asked: str, said: str | None) -> None:
    (tmp_path / "hello.yaml").write_text("name: hello\n")
    (tmp_path / "z.yaml").write_text("name: z\n")
    expected = said.format(folder=tmp_path) if said is not None else None
    assert missing_file.cure(tmp_path / asked) == expected
