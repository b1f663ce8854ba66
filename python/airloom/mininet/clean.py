"""Cleanup: ends the nodes of this process. An ended Airloom process leaves nothing behind."""

from __future__ import annotations

import subprocess

from airloom.mininet import session
from airloom.mininet.log import info


def sh(cmd: str) -> str:
    """Runs a shell command on this machine; returns its standard output."""
    info(f"{cmd}\n")
    return subprocess.run(["/bin/sh", "-c", cmd], stdout=subprocess.PIPE, text=True, check=False).stdout


class Cleanup:
    """Mininet's cleanup class."""

    @classmethod
    def cleanup(cls) -> None:
        """Ends all nodes of this process."""
        session.close()

    @classmethod
    def addCleanupCallback(cls, callback: object) -> None:
        """Does nothing: no resource outlives the process."""


cleanup = Cleanup.cleanup
addCleanupCallback = Cleanup.addCleanupCallback
