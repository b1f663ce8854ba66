"""This machine's installed Mininet as a peer: detection, and an isolated run.

It runs in its own network and mount namespace. Its switches are bridges in this namespace, so they
and anything else that it leaves behind end with the namespace.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from airloom.errors import HostError

SCRIPT = Path(__file__).with_name("on_mininet.py")
CURE = "sudo apt-get install mininet bridge-utils iperf3"
_PYTHONS = ("/usr/bin/python3", "python3")
_ALONE = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_BEGIN = 'mount -t sysfs sysfs /sys && ip link set lo up && exec "$@"'


@functools.cache
def python() -> str | None:
    """Returns the interpreter with Mininet; None if it or a requirement is missing."""
    if not all(
        shutil.which(name, path="/usr/sbin:/sbin:/usr/bin:/bin") for name in ("brctl", "mnexec", "iperf3")
    ):
        return None
    for name in _PYTHONS:
        path = shutil.which(name)
        if path is None:
            continue
        asked = subprocess.run([path, "-c", "import mininet.net"], capture_output=True, timeout=60)
        if asked.returncode == 0:
            return path
    return None


def required() -> str:
    """Returns the interpreter; raises :class:`HostError` with the command that installs Mininet."""
    found = python()
    if found is None:
        raise HostError("host.lacks", "Mininet is not installed", cure=CURE)
    return found


def lacks() -> str:
    """Returns why this machine cannot run Mininet, with the cure; empty if it can."""
    if python() is None:
        return f"it is not installed ({CURE})"
    return "" if os.geteuid() == 0 else "it needs root (sudo airloom ...)"


def on_mininet(*words: object, timeout: float = 300) -> dict[str, Any]:
    """Returns the output of ``on_mininet.py`` with the installed Mininet; needs root."""
    command = [*_ALONE, "sh", "-c", _BEGIN, "sh", required(), str(SCRIPT), *map(str, words)]
    return _said(command, timeout)


def on_airloom(*words: object, timeout: float = 300) -> dict[str, Any]:
    """Returns the output of ``on_mininet.py`` with Airloom's implementation of the API."""
    return _said([sys.executable, "-m", "airloom", "mn-run", str(SCRIPT), *map(str, words)], timeout)


def _said(command: list[str], timeout: float) -> dict[str, Any]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        said = f"{' '.join(command[-3:])} has not ended after {timeout:g} s"
        raise HostError("host.peer", said) from None
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise HostError(
            "host.peer", f"{' '.join(command[-3:])} failed: {(done.stderr or done.stdout).strip()[-500:]}"
        )
    found: dict[str, Any] = json.loads(lines[-1])
    return found
