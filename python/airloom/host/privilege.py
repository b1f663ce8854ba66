"""The privilege to create namespaces: as root, as an ordinary user in a user namespace, or not at all."""

from __future__ import annotations

import functools
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Literal

from airloom.errors import HostError
from airloom.host import namespace_cure, user_namespace

Privilege = Literal["root", "user-namespace", "none"]

_CAP_NET_ADMIN, _CAP_SYS_ADMIN = 12, 21
_TUN = Path("/dev/net/tun")


def ensure(*, restart: bool = True, taps: bool = True, namespaces: bool = True) -> Privilege:
    """Makes sure that this process may create namespaces, unless it can do without (``namespaces``).

    As root it does nothing. Otherwise the process moves into a new user namespace. A process that
    already has threads cannot; it is restarted from the beginning, but only if ``restart``, which
    suits a command and not a notebook. ``taps``: ``/dev/net/tun`` is needed too. Raises
    :class:`~airloom.errors.HostError` with the setting that forbids it.

    A process that can do without namespaces stays where it is if this machine gives it none, and ``none``
    is returned.
    """
    rightful = is_capable()
    if rightful and not _in_user_namespace():
        return "root"
    if taps:
        _tun_is_open()
    if rightful:
        return "user-namespace"
    number = _refusal()
    if number != 0 and not namespaces:
        return "none"
    if number != 0:
        raise HostError(
            "host.user-namespace",
            f"this kernel gives an ordinary user no user namespace: {os.strerror(number)}",
            cure=f"{namespace_cure.cure()}; or run in virtual time, which needs none: --time virtual",
        )
    if len(os.listdir("/proc/self/task")) == 1:
        user_namespace.enter()
        return "user-namespace"
    if restart:
        sys.stdout.flush()
        sys.stderr.flush()
        words = [sys.executable, "-I", "-S", user_namespace.__file__, "become"]
        os.execv(sys.executable, [*words, sys.executable, *sys.orig_argv[1:]])
    raise HostError(
        "host.privilege",
        "this process has threads, so it cannot move into a user namespace",
        cure="start it by `unshare --user --map-root-user PROGRAM`, or as root",
    )


def can_enter() -> bool:
    """True if the kernel gives a user namespace to this user. It takes a trial, in a process of its own."""
    return _refusal() == 0


def is_capable() -> bool:
    """True if this process may create namespaces and interfaces."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            rights = int(line.split()[1], 16)
            return all(rights >> number & 1 for number in (_CAP_NET_ADMIN, _CAP_SYS_ADMIN))
    return False


def _in_user_namespace() -> bool:
    """True outside the initial user namespace, which maps every number to itself."""
    return Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]


def _tun_is_open() -> None:
    """Raises HostError unless /dev/net/tun is accessible; a user namespace grants no access to it."""
    if not _TUN.exists():
        raise HostError("host.tun-device", f"{_TUN} does not exist", cure="modprobe tun")
    if not os.access(_TUN, os.R_OK | os.W_OK):
        about = _TUN.stat()
        mode = stat.S_IMODE(about.st_mode)
        raise HostError(
            "host.tun-device",
            f"{_TUN} is closed to this user (mode {mode:04o}, owner {about.st_uid}:{about.st_gid})",
            cure=f"run as root, or open it as distributions do: chmod 0666 {_TUN}",
        )


@functools.cache
def _refusal() -> int:
    """The error number with which the kernel refuses a user namespace to this user; 0 if it gives one."""
    trial = [sys.executable, "-I", "-S", user_namespace.__file__, "trial"]
    return subprocess.run(trial, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode
