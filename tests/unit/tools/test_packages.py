"""``tools/packages`` against an apt of the test's own: what it says, what it runs, and that it waits."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import REPOSITORY

TOOL = REPOSITORY / "tools" / "packages"
LOAD = """
import importlib.machinery, importlib.util, sys
loader = importlib.machinery.SourceFileLoader("packages", sys.argv[1])
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("packages", loader))
sys.dont_write_bytecode = True
sys.modules["packages"] = tool
loader.exec_module(tool)
"""
SHOW = f"""{LOAD}
print(*(one.shown_by for one in tool.TARGETS["test"]))
"""
INSTALL = f"""{LOAD}
tool.TARGETS["setup"] = [
    tool.Package("sh-package", "sh", "is there"),
    tool.Package("absent-package", "no-such-program-anywhere", "tests that need it"),
]
sys.exit(tool.main("setup"))
"""
HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""
APT_GET = """#!/bin/sh
echo "$@" >>"{log}"
if [ -e "{busy}" ]; then
    rm "{busy}"
    echo "E: Could not get lock {lock}. It is held by process 1 (apt)" >&2
    exit 100
fi
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="without root's rights nothing is installed")


class Apt:
    """A system's folders with locks, and an ``apt-get`` that writes down what it is asked."""

    def __init__(self, folder: Path) -> None:
        self.lock = folder / "var/lib/apt/lists/lock"
        self.frontend = folder / "var/lib/dpkg/lock-frontend"
        for lock in (self.lock, self.frontend):
            lock.parent.mkdir(parents=True)
            lock.touch()
        self.log = folder / "log"
        self.busy = folder / "busy"
        program = folder / "bin/apt-get"
        program.parent.mkdir()
        program.write_text(APT_GET.format(log=self.log, busy=self.busy, lock=self.lock))
        program.chmod(0o755)
        (folder / "apt.conf").write_text(f'Dir "{folder}";\n')
        self.env = {
            **os.environ,
            "APT_CONFIG": str(folder / "apt.conf"),
            "PATH": f"{program.parent}:{os.environ['PATH']}",
        }

    def asked(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def install(self, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", INSTALL, str(TOOL)],
            env={**self.env, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def apt(tmp_path: Path) -> Apt:
    return Apt(tmp_path)


def hold(lock: Path) -> subprocess.Popen[str]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_it_says_what_it_installs_and_why_and_installs_no_more(apt: Apt) -> None:
    said, errors = apt.install().communicate()
    assert "absent-package  tests that need it" in said, errors
    assert "sh-package" not in said
    update, install = apt.asked()
    assert update.endswith("update -qq")
    assert "install -y --no-install-recommends absent-package" in install
    assert "DPkg::Lock::Timeout=" in install


@pytest.mark.parametrize("which", ["lock", "frontend"])
def test_it_waits_for_another_apt(apt: Apt, which: str) -> None:
    lock: Path = getattr(apt, which)
    with hold(lock) as holder:
        tool = apt.install()
        assert tool.stdout is not None
        lines = iter(tool.stdout.readline, "")
        told = next(line for line in lines if "holds" in line)
        assert f"({holder.pid}) holds {lock}: waiting" in told
        assert apt.asked() == []
        holder.communicate()
    _, errors = tool.communicate()
    assert tool.returncode == 0, errors
    assert len(apt.asked()) == 2


def test_an_apt_that_was_quicker_is_waited_for_as_well(apt: Apt) -> None:
    apt.busy.touch()
    tool = apt.install()
    _, errors = tool.communicate()
    assert tool.returncode == 0, errors
    assert len(apt.asked()) == 3


def test_an_apt_that_does_not_end_is_named(apt: Apt) -> None:
    with hold(apt.lock) as holder:
        tool = apt.install(AIRLOOM_APT_WAIT="1")
        _, errors = tool.communicate()
        holder.communicate()
    assert tool.returncode == 1
    assert f"({holder.pid}) holds {apt.lock} after 1 s" in errors
    assert apt.asked() == []


def test_every_program_without_which_a_test_is_skipped_is_installed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHOW, str(TOOL)], capture_output=True, text=True, check=True, timeout=60
    )
    installed = {Path(word).name for word in done.stdout.split()}
    named = {
        program
        for path in (REPOSITORY / "tests").rglob("test_*.py")
        for call in re.findall(r"\bneeds\(([^)]*)\)", path.read_text())
        for program in re.findall(r'"([^"]+)"', call)
    }
    assert "iw" in named
    assert named <= installed
