"""The documentation agrees with the repository: links, anchors, files, modules, commands, identifiers."""

from __future__ import annotations

import importlib
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from typer.main import get_command

from airloom.cli import app
from airloom.mininet import options
from airloom.planning.gate import check
from helpers import REPOSITORY

ROOT = REPOSITORY
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("e*/*/README.md")])
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
FOLDERS = ("bridge", "docs", "engine", "examples", "experiments", "fuzz", "init", "kernel", "netns", "ports")
FOLDERS += ("python", "tests", "traffic")
FILE = re.compile(rf"^(?:{'|'.join(FOLDERS)})/[\w./{{}},*-]*$")
MODULE = re.compile(r"^airloom(?:\.[A-Za-z_]\w*)+$")
IDENTIFIER = re.compile(r"\b(?:[RE]-[A-Z]{3,}-[0-9]+|[DP]-[0-9]+)\b")
IDENTIFIERS = ROOT / "docs" / "inside" / "identifiers.md"
WITHOUT_CHECK = {"exec", "mn-run"}
"""Commands whose words after the first are another program's."""

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(language: str) -> list[object]:
    return [
        pytest.param(text, id=f"{page.relative_to(ROOT)}-{number}")
        for page in PAGES
        for number, (found, text) in enumerate(FENCE.findall(page.read_text()))
        if found == language
    ]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return FENCE.sub("", page.read_text())


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, made as GitHub makes them."""
    found: set[str] = set()
    for heading in HEADING.findall(prose(page)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        number, unique = 0, anchor
        while unique in found:
            number += 1
            unique = f"{anchor}-{number}"
        found.add(unique)
    return found


@pages
def test_links_and_anchors_resolve(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        path = page.parent / unquote(target) if target else page
        assert path.exists(), f"{page.name} links to {link}"
        if anchor:
            assert anchor in anchors(path.resolve()), f"{page.name} links to {link}"


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in LINK.findall(index.read_text())}
    assert {page.resolve() for page in ROOT.glob("docs/*/*.md")} <= linked


def spellings(path: str) -> list[str]:
    """The paths that ``a/{b,c}.rs`` stands for."""
    found = re.search(r"\{([^}]*)\}", path)
    if not found:
        return [path]
    return [
        one
        for word in found[1].split(",")
        for one in spellings(f"{path[: found.start()]}{word}{path[found.end() :]}")
    ]


@pages
def test_files_that_are_named_exist(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        pytest.skip("it names files as they were")
    for span in SPAN.findall(prose(page)):
        if FILE.match(span):
            for path in spellings(span.rstrip("/")):
                assert any(ROOT.glob(path)), f"{page.name} names {path}"


@pages
def test_python_names_exist(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        pytest.skip("it names modules as they were")
    for name in filter(MODULE.match, SPAN.findall(prose(page))):
        found: object = importlib.import_module("airloom")
        path = "airloom"
        for part in name.split(".")[1:]:
            path += f".{part}"
            try:
                found = getattr(found, part)
            except AttributeError:
                found = importlib.import_module(path)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_whole_scenarios_pass_the_gate(text: str, tmp_path: Path) -> None:
    raw = yaml.safe_load(text)
    if not isinstance(raw, dict) or "name" not in raw:
        pytest.skip("a part of a scenario")
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    assert check(path).plans


@pytest.mark.parametrize("text", blocks("python"))
def test_python_compiles(text: str) -> None:
    compile(text, "example", "exec")


def commands(page: Path) -> list[str]:
    """What follows ``airloom`` in code spans and in blocks of commands."""
    text = page.read_text()
    lines = [
        line
        for language, block in FENCE.findall(text)
        if language in ("", "sh")
        for line in block.splitlines()
    ]
    text = FENCE.sub("", text)
    lines += [line[4:] for line in text.splitlines() if line.startswith("    ")]
    lines += SPAN.findall(text)
    found = (re.match(r"(?:\.venv/bin/)?airloom (.+)", line.strip()) for line in lines)
    return [re.split(r" +(?:#|&|\||<|>)|$", match[1])[0] for match in found if match]


def known_options(command: Any) -> set[str]:
    return {
        option for parameter in command.params for option in parameter.opts + parameter.secondary_opts
    } | {
        "--help",
        "-h",
    }


def options_of_mn() -> set[str]:
    known = {option for action in options.parser()._actions for option in action.option_strings}
    return known | set(options.WITHOUT_MEANING)


@pages
def test_commands_and_options_exist(page: Path) -> None:
    for line in commands(page):
        words = [word.strip("[],;.") for word in line.split()]
        command: Any = get_command(app)
        while hasattr(command, "commands") and words and not words[0].startswith("-"):
            if words[0].isupper():
                break
            assert words[0] in command.commands, f"{page.name} names `airloom {line}`"
            command = command.commands[words.pop(0)]
        if command.name in WITHOUT_CHECK:
            continue
        known = options_of_mn() if command.name == "mn" else known_options(command)
        for word in words:
            if word.startswith("-") and len(word) > 1:
                option = word.partition("=")[0]
                assert option in known, f"{page.name} gives {option} to `airloom {line}`"


def test_options_of_mn_are_all_documented() -> None:
    text = (ROOT / "docs" / "guide" / "mininet.md").read_text()
    missing = {option for option in options_of_mn() if option.startswith("--") and f"`{option}`" not in text}
    assert missing <= {"--help"}


def test_every_example_passes_the_gate() -> None:
    for path in ROOT.glob("examples/*.yaml"):
        assert check(path).plans, path.name


def tracked() -> list[Path]:
    """The files of the repository; those of the folders when this is no clone."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return [ROOT / line for line in listed.stdout.splitlines()]
    return [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]


def test_every_identifier_of_a_publication_is_explained() -> None:
    explained = set(IDENTIFIER.findall(IDENTIFIERS.read_text()))
    for path in tracked():
        if (
            path.suffix in (".md", ".py", ".csv", ".yaml", ".rs")
            and "tests" not in path.parts
            and path.is_file()
        ):
            used = set(IDENTIFIER.findall(path.read_text(encoding="utf-8")))
            assert used <= explained, f"{path.relative_to(ROOT)}: {sorted(used - explained)}"
