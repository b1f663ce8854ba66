"""When ``kernel/build`` builds a kernel, and when the one that is there will do."""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers import REPOSITORY

pytestmark = pytest.mark.slow

KERNEL = REPOSITORY / "kernel"
SOURCES = glob.glob("/usr/src/linux-source-*.tar.xz")
BUILDS = 77
"""The exit code of the stub of ``tar``: sources would be unpacked."""


def recipe() -> str:
    script = (KERNEL / "build").read_text().splitlines(keepends=True)
    options = (KERNEL / "fragment.config").read_text().splitlines(keepends=True)
    parts = [line for line in script if not line.lstrip(" ").startswith("#")]
    parts += [line for line in options if line.startswith(("CONFIG_", "# CONFIG_"))]
    parts += [path.read_text() for path in sorted(KERNEL.glob("patches/*.patch"))]
    return hashlib.sha256("".join(parts).encode()).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A kernel that was built from what is here, of sources of any version."""
    folder = tmp_path / "kernel"
    folder.mkdir()
    (folder / "linux-6.12").write_text("#!/bin/sh\n")
    (folder / "linux-6.12").chmod(0o755)
    (folder / "linux").symlink_to("linux-6.12")
    version = "none"
    if SOURCES:
        newest = subprocess.run(["sort", "-V"], input="\n".join(SOURCES), capture_output=True, text=True)
        with open(newest.stdout.split()[-1], "rb") as file:
            version = hashlib.file_digest(file, "sha256").hexdigest()
    (folder / "linux.recipe").write_text(f"{recipe()} {version}\n")
    return folder


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    stubs = folder.parent / "stubs"
    stubs.mkdir(exist_ok=True)
    (stubs / "tar").write_text(f"#!/bin/sh\nexit {BUILDS}\n")
    (stubs / "tar").chmod(0o755)
    env = {**os.environ, "PATH": f"{stubs}:{os.environ['PATH']}"}
    return subprocess.run([KERNEL / "build", folder], capture_output=True, text=True, env=env)


def test_a_kernel_of_the_same_recipe_is_kept(folder: Path) -> None:
    done = build(folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{folder}/linux-6.12 is up to date\n"


@pytest.mark.skipif(
    not SOURCES or not all(map(shutil.which, ("flex", "bison", "bc", "xz", "patch"))),
    reason="what a kernel is built with is not installed: make kernel",
)
@pytest.mark.parametrize("changed", ["recipe", "sources", "kernel"])
def test_another_recipe_or_no_kernel_is_built(folder: Path, changed: str) -> None:
    written = folder / "linux.recipe"
    same, version = written.read_text().split()
    if changed == "recipe":
        written.write_text(f"{'0' * 64} {version}\n")
    elif changed == "sources":
        written.write_text(f"{same} {'0' * 64}\n")
    else:
        (folder / "linux-6.12").unlink()
    done = build(folder)
    assert done.returncode == BUILDS, done.stdout + done.stderr
    assert not list(folder.glob("build-*")), "what was begun is gone"
