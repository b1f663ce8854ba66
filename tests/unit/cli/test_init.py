"""``airloom init``: every template makes a scenario that passes the check, with any answers."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airloom.cli import template
from airloom.errors import ScenarioError
from airloom.planning.gate import check
from airloom.scenario import read

NAMES = sorted(template.known())
AIRLOOM = (sys.executable, "-m", "airloom", "init")


def init(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command without a terminal."""
    return subprocess.run(
        [*AIRLOOM, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("name", NAMES)
def test_each_template_passes_the_check(name: str) -> None:
    one = template.find(name)
    values = {question.key: question.read(question.default) for question in one.questions}
    scenario = read(one.made("own-name", values))
    assert scenario.name == "own-name"
    assert check(scenario).plans
    assert one.about


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_answers_are_in_the_scenario(name: str, data: st.DataObject) -> None:
    one = template.find(name)
    kinds = {
        "rate": st.integers(1, 1000).map("{} Mbit/s".format),
        "duration": st.integers(1, 500).map("{} ms".format),
        "length": st.integers(1, 30).map("{} m".format),
    }
    values = {}
    for question in one.questions:
        if question.key == "channel":
            text = data.draw(st.sampled_from(["36", "40", "149"]))
        elif question.kind == "count":
            text = str(data.draw(st.integers(question.least, min(question.most, 12))))
        else:
            text = data.draw(kinds[question.kind])
        values[question.key] = question.read(text)
    made = one.made("n", values)
    assert check(read(made)).plans
    for key, value in values.items():
        word = str(value) if type(value) is int else value.text
        if one.text.count(f"{{{{ {key} }}}}"):
            assert word in made, key


def test_stations_stand_where_they_were_asked_to() -> None:
    one = template.find("cell")
    values = {key: one.questions[number].read(text) for number, (key, text) in enumerate(
        (("count", "4"), ("distance", "25 m"), ("channel", "40"))
    )}  # fmt: skip
    nodes = read(one.made("n", values)).nodes
    for name, node in nodes.items():
        x, y = (float(each) for each in node.position[:2])
        assert (x * x + y * y) ** 0.5 == pytest.approx(0 if name == "ap" else 25, abs=0.02)


@pytest.mark.parametrize(
    ("kind", "text"),
    [("count", "0"), ("count", "6"), ("count", "x"), ("count", "1e3"), ("count", "9" * 5000), ("rate", "3"),
     ("rate", "0 bit/s"), ("length", "-2 m"), ("duration", "")],
)  # fmt: skip
def test_what_no_scenario_can_have_is_refused_with_the_question(kind: str, text: str) -> None:
    question = template.Question("key", "Words", "2", kind, 1, 5)
    with pytest.raises(ScenarioError) as caught:
        question.read(text)
    assert (caught.value.code, caught.value.where) == ("template.value", "key")


def test_without_a_terminal_nothing_is_asked(tmp_path: Path) -> None:
    done = init(tmp_path, "own net.yaml", "--template", "lan", "--with", "count=6")
    assert done.returncode == 0, done.stderr
    assert "airloom run" in done.stdout
    made = read((tmp_path / "own net.yaml").read_text())
    assert made.name == "own-net"
    assert len(made.nodes) == 6
    again = init(tmp_path, "own net.yaml", "--template", "lan")
    assert again.returncode == 2
    assert "[file.exists]" in again.stderr
    assert read((tmp_path / "own net.yaml").read_text()) == made


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--template", "cel"], "template.unknown"),
        (["--with", "rate"], "option.value"),
        (["--with", "rtae=1 Mbit/s"], "template.question"),
        (["--with", "rate=1"], "template.value"),
        (["none/there.yaml"], "file.unwritable"),
    ],
)
def test_a_refusal_leaves_nothing(words: list[str], code: str, tmp_path: Path) -> None:
    done = init(tmp_path, *words)
    assert done.returncode == (1 if code == "file.unwritable" else 2)
    assert f"[{code}]" in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_list_has_every_question(tmp_path: Path) -> None:
    done = init(tmp_path, "--list")
    for one in template.known().values():
        assert one.about in done.stdout
        for question in one.questions:
            assert f"{question.key}={question.default}" in done.stdout


def test_a_terminal_is_asked_until_the_answer_is_good(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(AIRLOOM, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, b"link\n20\n20 Mbit/s\n\n")
    said = b""
    try:
        while piece := os.read(ours, 4096):
            said += piece
    except OSError:  # the terminal has ended with the command
        pass
    os.close(ours)
    assert process.wait(timeout=60) == 0, said
    assert b"has no unit" in said
    (link,) = read((tmp_path / "link.yaml").read_text()).links
    assert re.search(r"20 Mbit/s", str(link.rate.text))
    assert link.delay.text == "10 ms"
