"""Mininet's own tests, unchanged: ``import mininet`` and the command ``mn`` lead to Airloom."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from airloom.mininet import verdict_files
from airloom.mininet.hook import MODULES

SOURCE = os.environ.get("AIRLOOM_TEST_MININET", "")

pytestmark = [
    pytest.mark.world,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not SOURCE, reason="no source of Mininet: make test-mininet"),
    pytest.mark.skipif(os.geteuid() != 0, reason="Mininet's tests expect root"),
]

EXPECTED: dict[str, set[str]] = {
    # It captures on the machine's loopback interface, which OpenFlow channels do not cross.
    "mininet/test/test_walkthrough.py": {"testWireshark"},
    "mininet/test/test_nets.py": set(),
    "mininet/test/test_hifi.py": set(),
    "mininet/test/test_util.py": set(),
    "examples/test/test_bind.py": set(),
    "examples/test/test_controllers.py": set(),
    "examples/test/test_controlnet.py": set(),
    "examples/test/test_emptynet.py": set(),
    "examples/test/test_intfoptions.py": set(),
    "examples/test/test_linearbandwidth.py": set(),
    "examples/test/test_linuxrouter.py": set(),
    "examples/test/test_mobility.py": set(),
    "examples/test/test_multilink.py": set(),
    "examples/test/test_multiping.py": set(),
    "examples/test/test_multipoll.py": set(),
    "examples/test/test_multitest.py": set(),
    "examples/test/test_natnet.py": set(),
    "examples/test/test_numberedports.py": set(),
    "examples/test/test_popen.py": set(),
    "examples/test/test_simpleperf.py": set(),
}
"""A file of tests: those that fail, as docs/guide/mininet.md says. They run one after the other: several
use the same names of interfaces on the machine itself."""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Folders in front of the paths of programs and modules, with Mininet's names."""
    package, programs = tmp_path / "modules" / "mininet", tmp_path / "programs"
    package.mkdir(parents=True)
    programs.mkdir()
    (package / "__init__.py").touch()
    for name in MODULES:
        (package / f"{name}.py").write_text(
            f"import sys\nfrom airloom.mininet import {name}\nsys.modules[__name__] = {name}\n"
        )
    (package / "examples").symlink_to(Path(SOURCE) / "examples")
    for name, words in (("python", ""), ("python3", ""), ("mn", "-m airloom mn")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        program.chmod(0o755)
    paths = os.pathsep.join([str(tmp_path / "modules"), *sys.path])
    # A busy machine may fail a test that measures: tests/helpers/tries.py reads the verdicts.
    return {
        **os.environ,
        "PYTHONPATH": paths,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        verdict_files.FOLDER: str(tmp_path / "verdicts"),
    }


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_of_mininets_tests(name: str, env: dict[str, str]) -> None:
    path = Path(SOURCE) / name
    if "pexpect" in path.read_text() and importlib.util.find_spec("pexpect") is None:
        pytest.skip("no pexpect: make test-mininet")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", path.name, "-v"],
        cwd=path.parent,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=850,
        check=False,
    )
    assert re.search(r"^Ran [1-9]\d* tests? in ", done.stderr, re.MULTILINE), done.stderr
    failed = set(re.findall(r"^(?:FAIL|ERROR): (\w+)", done.stderr, re.MULTILINE))
    assert failed == EXPECTED[name], done.stdout + done.stderr
