"""Errors of calls to the grid manager: each has a status of HTTP beside code, message and cure."""

from __future__ import annotations

from typing import Any

from airloom.errors import LabError


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
        **more: Any,
    ):
        super().__init__(code, message, where=where, cure=cure)
        self.status = status
        self.more = more
        """Further data of the answer, such as the nearest possible window."""

    def plain(self) -> dict[str, Any]:
        """Returns the error as data for JSON."""
        said = {
            "code": self.code,
            "message": self.message,
            "where": self.where,
            "cure": self.cure,
            **self.more,
        }
        return {key: value for key, value in said.items() if value is not None}


def absent(what: str, name: str) -> Refused:
    """Returns the error for something that does not exist, or that the caller may not know of."""
    return Refused(404, f"{what}.unknown", f"there is no {what} {name!r}")


def invalid(code: str, message: str, where: str, cure: str | None = None) -> Refused:
    """Returns the error for a value that cannot be right."""
    return Refused(422, code, message, where=where, cure=cure)
