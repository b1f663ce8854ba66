"""What gives an ordinary user user namespaces on this machine: as a command, where one helps."""

from __future__ import annotations

import contextlib
from pathlib import Path

_SWITCHES = {
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),  # Ubuntu 23.10 and later
    "kernel/unprivileged_userns_clone": ("0", "1"),  # Debian's and Ubuntu's kernels
    "user/max_user_namespaces": ("0", "10000"),
    "user/max_net_namespaces": ("0", "10000"),
}
"""Sysctls that can disable user namespaces: the disabling value and an enabling one."""


def in_container(root: Path = Path("/")) -> bool:
    """Whether this is a container of Docker or Podman."""
    return any((root / name).exists() for name in (".dockerenv", "run/.containerenv"))


def cure(root: Path = Path("/")) -> str:
    """Returns the command that lets an ordinary user have namespaces, or what else helps.

    ``root``: where the machine's files are.
    """
    found = []
    for path, (closes, opens) in _SWITCHES.items():
        with contextlib.suppress(OSError):
            if (root / "proc/sys" / path).read_text().strip() == closes:
                found.append(f"{path.replace('/', '.')}={opens}")
    if in_container(root):
        # The container's own policy refuses too, also for its root, and it cannot set its host's switches.
        words = f"; on its host: sudo sysctl -w {' '.join(found)}" if found else ""
        return f"start the container by: docker run --privileged --device /dev/net/tun{words}"
    return f"sudo sysctl -w {' '.join(found)}" if found else "run as root"
