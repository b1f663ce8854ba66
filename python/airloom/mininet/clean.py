"""Cleanup: ends the nodes of this process. An ended Airloom process leaves nothing behind."""

from __future__ import annotations

from airloom.mininet import session


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
