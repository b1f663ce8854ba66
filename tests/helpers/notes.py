"""What a run says while it goes on."""

from __future__ import annotations

from airloom.runs.progress import Watcher


class Notes(Watcher):
    """Receives what a run says, and keeps it."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.points: list[str] = []
        self.failures: list[str] = []
        self.problems: list[str] = []

    def happened(self, at: int, text: str) -> None:
        self.said.append(text)

    def point(self, number: int, total: int, text: str) -> None:
        self.points.append(f"{number}/{total} {text}")

    def problem(self, text: str) -> None:
        self.problems.append(text)

    def failed(self, name: str, message: str) -> None:
        self.failures.append(message)
