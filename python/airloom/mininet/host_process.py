"""Host programs that serve a node from outside: a network stack, a window, a controller."""

from __future__ import annotations

import os
import subprocess
import weakref
from collections.abc import Sequence

from airloom.errors import HostError
from airloom.host import programs
from airloom.units.text import in_a_line

_MOST = 4096
"""Octets read from the end of a program's error output."""


def path_of(program: str, who: str, cure: str | None = None) -> str:
    """Returns a program's path; raises :class:`HostError` if it is not installed."""
    path = programs.find(program)
    if path is None:
        raise HostError(
            "host.program.missing",
            f"{who} needs the program {program}",
            cure=cure or programs.cure([program]),
        )
    return str(path)


class HostProcess(subprocess.Popen[bytes]):
    """A host program without input, isolated from the terminal's Ctrl-C; stores its errors."""

    def __init__(self, words: Sequence[str], descriptors: Sequence[int]) -> None:
        """``descriptors`` stay open in the program, with their numbers."""
        self._written = os.memfd_create("said", os.MFD_CLOEXEC)
        weakref.finalize(self, os.close, self._written)
        super().__init__(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._written,
            pass_fds=descriptors,
            start_new_session=True,
            cwd="/",
        )

    def said(self) -> str:
        """Returns the last lines of its standard error, joined to one."""
        # The program shares the file offset, so it must not change.
        size = os.fstat(self._written).st_size
        return in_a_line(os.pread(self._written, _MOST, max(0, size - _MOST)))
