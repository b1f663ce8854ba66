"""The errors, as one tree; each has a stable code, the place in the scenario and the cure.

* LabError
  x ScenarioError     the description is wrong; nothing was started      exit code 2
  x HostError         this machine lacks something that has a name       exit code 3
  x RunError          it ran, and failed; what was measured is kept      exit code 1
"""

from __future__ import annotations


class LabError(Exception):
    """Base of all of Airloom's errors.

    ``code`` is stable and dotted (``link.rate.zero``); ``where`` names the place (``net.yaml:12:11
    links[3].rate``: line, column, path); ``cure`` says what to do.
    """

    exit_code = 1

    def __init__(self, code: str, message: str, *, where: str | None = None, cure: str | None = None):
        super().__init__(message)
        self.code = code
        self.message = message
        self.where = where
        self.cure = cure

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        cure = f" ({self.cure})" if self.cure else ""
        return f"{place}{self.message}{cure} [{self.code}]"


class ScenarioError(LabError):
    """The description is wrong; nothing was started.

    It speaks of the first mistake; ``further`` holds the others that were found with it.
    """

    exit_code = 2
    further: tuple[ScenarioError, ...] = ()


class HostError(LabError):
    """This machine lacks something that has a name."""

    exit_code = 3


class RunError(LabError):
    """It ran, and failed."""

    exit_code = 1
