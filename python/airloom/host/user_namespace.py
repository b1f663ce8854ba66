"""A user namespace that makes an ordinary user root over the namespaces created in it.

It is also a program for processes with threads, which cannot move themselves::

    python usernamespace.py trial               # exits with the kernel's error number, or 0
    python usernamespace.py become PROGRAM ...  # moves, then becomes the program

It imports nothing else from Airloom.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000


def enter() -> None:
    """Moves this process, which must be single-threaded, into a new user namespace as its root."""
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER)
    # The kernel accepts a group map only after setgroups is denied (user_namespaces(7)).
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def unshare(flags: int) -> None:
    """Moves this process into new namespaces (unshare(2)); raises :class:`OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _main(words: list[str]) -> int:
    if words[:1] == ["trial"]:
        try:
            enter()
            unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID)
        except OSError as error:
            return error.errno or 1
        return 0
    if words[:1] == ["become"] and words[1:]:
        enter()
        os.execvp(words[1], words[1:])
    return 2


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
