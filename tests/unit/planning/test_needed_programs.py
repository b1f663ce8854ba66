"""Programs that are not installed and files that have no place, found before a run."""

from __future__ import annotations

import pytest

from airloom.planning.gate import check
from airloom.planning.machine import host_needs
from airloom.scenario import read


def lacks(text: str) -> list[str]:
    head = "name: two\nlinks: [{ends: [a, b]}]\n"
    plan = check(read(head + text)).plans[0]
    return [f"{error.where}: {error.message}" for error in host_needs.lacks(plan)]


@pytest.mark.parametrize(
    ("run", "files", "missing"),
    [
        ("no-such-program -x", "", True),
        ("/opt/no/such/program", "", True),
        ("sh -c true", "", False),
        ("no-such-program | cat", "", False),  # a shell's own error
        ("/tmp/made-while-it-runs", "", False),
        ("/opt/mine", "/opt/mine", False),
        ("mine", "/usr/local/bin/mine", False),
    ],
)
def test_a_program_that_is_not_installed(run: str, files: str, missing: bool) -> None:
    own = f"{{files: {{{files}: x}}}}" if files else ""
    found = lacks(f"nodes: {{a: {own}, b: }}\nprograms: [{{node: a, run: {run!r}}}]\n")
    name = run.split()[0]
    assert found == (
        [f"programs[0].run: the program {name} is not installed on this machine"] if missing else []
    )


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("/etc/passwd/x", "/etc/passwd is no folder on this machine"),
        ("/no-such-folder/x", "this machine has no folder /no-such-folder"),
        ("/x", "nothing is added to /"),
        ("/etc/ssl", "/etc/ssl is a folder on this machine"),
        ("/etc/new/x", None),
        ("/tmp/x", None),
    ],
)
def test_a_file_without_a_place(file: str, why: str | None) -> None:
    found = lacks(f"nodes: {{a: {{files: {{{file}: x}}}}, b: }}\n")
    expected = f"nodes.a.files.{file}: {why}, and a node of kind netns has its folders"
    assert found == ([expected] if why is not None else [])
