"""An ordinary user, who runs what a reader of the documentation types, with Debian's PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from airloom.host import binaries
from helpers import REPOSITORY

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
DEBIANS = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"
"""PATH of a user of Debian: without the folders of administrators."""


@cache
def interpreter() -> str:
    """A Python that nobody may run, with the packages of this one."""
    for candidate in (sys.executable, f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"):
        # It must be able to start itself, and to load what this one loads.
        script = "import subprocess, sys, pydantic, airloom._engine; subprocess.run([sys.executable, '-V'])"
        trial = [*NOBODY, candidate, "-c", script]
        done = subprocess.run(trial, env=environment(), capture_output=True, check=False)
        if done.returncode == 0:
            return candidate
    pytest.skip("there is no Python here that an ordinary user may run with these packages")


def environment() -> dict[str, str]:
    """The variables of such a user, who has this Airloom."""
    paths = [str(REPOSITORY / "python"), sysconfig.get_path("purelib")]
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": ":".join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": "/",
    }


class User:
    """A user of this machine without root's rights, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = interpreter()

    @property
    def env(self) -> dict[str, str]:
        """Its variables."""
        more = {"PATH": DEBIANS, "HOME": str(self.folder), "COLUMNS": "200", "NO_COLOR": "1"}
        return {**environment(), **more, "AIRLOOM_BIN_DIR": str(self.folder / "bin"), "LANG": "C.UTF-8"}

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Starts Python with arguments."""
        return subprocess.Popen(
            [*NOBODY, self.python, *words],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs Python with arguments to its end; the limit is the test's."""
        process = self.start(*words)
        try:
            out, err = process.communicate()
        finally:
            process.kill()
        if "no user namespace" in err:
            pytest.skip(err.splitlines()[-1])
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def airloom(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs the command."""
        return self.run("-m", "airloom", *words)

    def script(self, text: str) -> subprocess.CompletedProcess[str]:
        """Runs a script from a file."""
        (self.folder / "script.py").write_text(text)
        return self.run("script.py")


@contextmanager
def ordinary_user() -> Iterator[User]:
    """Context manager: a user with a folder that it and its nodes may enter, unlike those below /tmp."""
    if shutil.which("setpriv") is None or os.geteuid() != 0:
        pytest.skip("needs root and setpriv, to become another user")
    with tempfile.TemporaryDirectory(prefix="airloom-user-", dir="/srv") as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "bin").mkdir()
        for program in binaries.OWN_PROGRAMS:
            shutil.copy(binaries.find(program), folder / "bin" / program)
        yield User(folder)
