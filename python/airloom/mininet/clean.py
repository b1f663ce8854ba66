"""Cleaning up: what an Airloom process leaves behind is nothing, so this ends what it still has."""

from __future__ import annotations

from airloom.mininet import session


class Cleanup:
    """Mininet's collection of things to clean."""

    @classmethod
    def cleanup(cls) -> None:
        """Ends all nodes of this process."""
        session.close()

    @classmethod
    def addCleanupCallback(cls, callback: object) -> None:
        """Nothing: there is nothing that would outlive the process."""


cleanup = Cleanup.cleanup
addCleanupCallback = Cleanup.addCleanupCallback
