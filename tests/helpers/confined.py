"""A program without namespaces, mounts and other personalities, as in a container or a batch job.

::

    python confined.py PROGRAM [ARGUMENT]...

Linux's system call filter (seccomp(2)) refuses them with the error numbers of container engines, whatever
rights the program has. It imports nothing else.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys

_LOAD, _EQUAL, _ANY_OF, _RETURN = 0x20, 0x15, 0x45, 0x06
"""BPF: load a word of the call's data; compare; test bits; return."""
_NUMBER, _FIRST = 0, 16
"""Offsets of the call's number and of the low word of its first argument (``struct seccomp_data``)."""
_ALLOW, _ERROR = 0x7FFF_0000, 0x0005_0000
_CLONE, _CLONE3, _PERSONALITY = 56, 435, 135
_NAMESPACES = 0x7E02_0080
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, NEWTIME."""
_REFUSED = {
    "mount": 165,
    "umount2": 166,
    "pivot_root": 155,
    "chroot": 161,
    "unshare": 272,
    "setns": 308,
    "bpf": 321,
    "mount_setattr": 442,
    "open_tree": 428,
    "move_mount": 429,
}
"""By name: numbers of system calls on x86-64."""
_NO_NEW_PRIVILEGES, _SET_FILTER, _FILTER = 38, 22, 2


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


def _filter() -> list[tuple[int, int, int, int]]:
    refusal = _ERROR | errno.EPERM
    steps = [(_LOAD, 0, 0, _NUMBER)]
    for number in _REFUSED.values():
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, refusal)]
    steps += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ERROR | errno.ENOSYS)]
    # Docker's profile allows the personality of Linux, and asking for the present one.
    steps += [(_EQUAL, 0, 5, _PERSONALITY), (_LOAD, 0, 0, _FIRST), (_EQUAL, 2, 0, 0)]
    steps += [(_EQUAL, 1, 0, 0xFFFF_FFFF), (_RETURN, 0, 0, refusal), (_RETURN, 0, 0, _ALLOW)]
    steps += [(_EQUAL, 0, 3, _CLONE), (_LOAD, 0, 0, _FIRST), (_ANY_OF, 0, 1, _NAMESPACES)]
    return [*steps, (_RETURN, 0, 0, refusal), (_RETURN, 0, 0, _ALLOW)]


def confine() -> None:
    """Confines this process and all that it starts."""
    steps = _filter()
    instructions = (_Instruction * len(steps))(*(_Instruction(*step) for step in steps))
    program = _Program(len(steps), instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(
        _SET_FILTER, _FILTER, ctypes.byref(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    confine()
    os.execvp(sys.argv[1], sys.argv[1:])
