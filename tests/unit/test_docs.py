"""The documentation says what is so: links lead somewhere, examples pass the gate, commands exist."""

import re

import pytest
import yaml
from typer.main import get_command

from airloom.cli import app
from airloom.planning.gate import check
from helpers import REPOSITORY

ROOT = REPOSITORY
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("e*/*/README.md")])
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^ {4}|`)(?:\.venv/bin/)?airloom ([a-z][\w-]*)", re.MULTILINE)


def blocks(language):
    return [
        pytest.param(text, id=f"{page.relative_to(ROOT)}-{number}")
        for page in PAGES
        for number, (found, text) in enumerate(BLOCK.findall(page.read_text()))
        if found == language
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("text", blocks("yaml"))
def test_whole_scenarios_pass_the_gate(text, tmp_path):
    raw = yaml.safe_load(text)
    if not isinstance(raw, dict) or "name" not in raw:
        pytest.skip("a part of a scenario")
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    assert check(path).plans


@pytest.mark.parametrize("text", blocks("python"))
def test_python_compiles(text):
    compile(text, "example", "exec")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page):
    known = set(get_command(app).commands)
    said = set(COMMAND.findall(page.read_text()))
    assert said <= known, f"{page.name} speaks of {sorted(said - known)}"


def test_every_example_passes_the_gate():
    for path in ROOT.glob("examples/*.yaml"):
        assert check(path).plans, path.name
