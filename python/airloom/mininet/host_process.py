"""Programs of the machine that serve a node from outside of it: a network stack, a window, a controller."""

from __future__ import annotations

import os
import shutil
import subprocess
import weakref
from collections.abc import Sequence

from airloom.errors import HostError
from airloom.host import programs
from airloom.units.text import in_a_line

_MOST = 4096
"""Octets at the end of what a program wrote that are looked at."""


def path_of(program: str, who: str, cure: str | None = None) -> str:
    """Where a program is; :class:`HostError` that says who needs it, and what installs it."""
    path = shutil.which(program)
    if path is None:
        raise HostError(
            "host.program.missing",
            f"{who} needs the program {program}",
            cure=cure or programs.cure([program]),
        )
    return path


class Beside(subprocess.Popen[bytes]):
    """Such a program, without input and away from this terminal's Ctrl-C; its errors are kept."""

    def __init__(self, words: Sequence[str], descriptors: Sequence[int]) -> None:
        """``descriptors`` stay open in it, with their numbers."""
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
        """The last lines of its standard error, in one line."""
        # Its place in the file is the program's, too: it must stay as it is.
        size = os.fstat(self._written).st_size
        return in_a_line(os.pread(self._written, _MOST, max(0, size - _MOST)))
