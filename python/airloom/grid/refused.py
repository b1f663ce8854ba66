"""Errors of calls to the grid manager: each has a status of HTTP beside code, message and cure."""

from __future__ import annotations

from typing import TypedDict, Unpack

from airloom.errors import LabError
from airloom.grid.answers import Error, Window


class More(TypedDict, total=False):
    """What an answer to a refused call says besides code, message, place and cure: see :class:`Error`."""

    proven: bool
    nearest: Window | None
    latest_end: str


class Refused(LabError):
    """A call was refused; nothing was changed."""

    exit_code = 2

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        where: str | None = None,
        cure: str | None = None,
        **more: Unpack[More],
    ):
        super().__init__(code, message, where=where, cure=cure)
        self.status = status
        self._more = more

    @property
    def answer(self) -> Error:
        """The body of the answer."""
        return Error(code=self.code, message=self.message, where=self.where, cure=self.cure, **self._more)


def absent(what: str, name: str) -> Refused:
    """Returns the error for something that does not exist, or that the caller may not know of."""
    return Refused(404, f"{what}.unknown", f"there is no {what} {name!r}")


def invalid(code: str, message: str, where: str, cure: str | None = None) -> Refused:
    """Returns the error for a value that cannot be right."""
    return Refused(422, code, message, where=where, cure=cure)
