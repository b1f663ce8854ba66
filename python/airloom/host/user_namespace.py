"""A user namespace that makes an ordinary user root over the namespaces created in it.

It is also a program for processes with threads, which cannot move themselves::

    python usernamespace.py trial               # exits with the kernel's error number, or 0
    python usernamespace.py become PROGRAM ...  # moves, then becomes the program

It imports nothing else from Airloom.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import sys
from collections.abc import Callable
from pathlib import Path

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000


def enter() -> None:
    """Moves this process, which must be single-threaded, into a new user namespace as its root.

    If ``newuidmap`` is installed and the user has ranges in ``/etc/subuid`` and ``/etc/subgid``, the
    namespace has the users and groups 1 to 65536 too. Else it has root alone.
    """
    user, group = os.geteuid(), os.getegid()
    mapped = _mapper(user, group)
    unshare(CLONE_NEWUSER)
    mapped()
    if not _has_map("gid_map"):
        # The kernel accepts a group map of an ordinary user only after setgroups is denied
        # (user_namespaces(7)).
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    if not _has_map("uid_map"):
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")


def why_one_user() -> str | None:
    """Returns why a namespace of this user has a single user; None if it has more."""
    if any(_tool(name) is None for name in _TOOLS):
        return f"{' and '.join(_TOOLS)} are not installed"
    for file in _TOOLS.values():
        if _range(file, os.geteuid()) is None:
            return f"{file} has no range for this user"
    return None


_TOOLS = {"newuidmap": "/etc/subuid", "newgidmap": "/etc/subgid"}
"""Programs that write a map with more than one number, and where they look up what a user may map."""
_MOST = 65536


def _mapper(user: int, group: int) -> Callable[[], None]:
    """Returns a function that has a child write both maps: it stays in the present namespace."""
    if why_one_user() is not None:
        return lambda: None
    reading, writing = os.pipe()
    outside = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)
        codes = []
        for (name, file), own in zip(_TOOLS.items(), (user, group), strict=True):
            first, count = _range(file, user) or (0, 0)
            numbers = [0, own, 1, 1, first, min(count, _MOST)]
            words = [str(word) for word in (_tool(name), outside, *numbers)]
            # Its refusal is no error: the namespace has one user then.
            codes.append(os.spawnv(os.P_WAIT, words[0], words))
        os._exit(any(codes))
    os.close(reading)

    def write() -> None:
        os.close(writing)
        os.waitpid(child, 0)

    return write


def _has_map(file: str) -> bool:
    return bool(Path("/proc/self", file).read_text().strip())


def _tool(name: str) -> str | None:
    return next((path for folder in _FOLDERS if os.access(path := f"{folder}/{name}", os.X_OK)), None)


_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin")


def _range(file: str, user: int) -> tuple[int, int] | None:
    """The first range of numbers that a user may map: first and count."""
    names = [str(user)]
    with contextlib.suppress(KeyError):
        names.append(pwd.getpwuid(user).pw_name)
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, numbers = line.partition(":")
        first, _, count = numbers.partition(":")
        if name in names and first.isdecimal() and count.isdecimal() and int(count) > 0:
            return int(first), int(count)
    return None


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
