"""Selects how QEMU runs a machine on this host: with KVM, or in software.

``/dev/kvm`` may exist without being able to boot a kernel, as inside some virtual machines. A
kernel is therefore booted as a test, up to its first program. The result is cached until the host
reboots or the kernel or QEMU changes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from airloom.host import cache
from airloom.nodes.guests import initramfs, vmlinux

KVM = Path("/dev/kvm")
_TRIAL = 10.0
"""Seconds for a kernel to reach its first program with KVM; it takes one."""
_MARK = "airloom-init 0"
"""Output of the first program."""


@dataclass(frozen=True, slots=True)
class Accelerator:
    """The accelerator for QEMU, and why it is not KVM."""

    name: str
    why: str = ""
    """Why the machine is emulated in software; empty if it is not."""

    @property
    def argument(self) -> str:
        """Value of QEMU's ``-accel``, with a small cache of translated code for emulation."""
        return self.name if self.name == "kvm" else "tcg,tb-size=64"

    @property
    def cpu(self) -> str:
        """Value of QEMU's ``-cpu``: every feature, but in software no fast string operations (ERMS).

        Kernel and programs that see this feature copy with ``rep movsb``, which an emulator executes octet
        by octet. Without it they copy eight or more at once, and TCP of a guest is two to four times faster.
        """
        return "max" if self.name == "kvm" else "max,erms=off"

    @property
    def words(self) -> str:
        """Text for the notes of a result."""
        return "by KVM" if self.name == "kvm" else f"in software, for {self.why}"


@lru_cache
def of(program: str, kernel: Path) -> Accelerator:
    """The accelerator that works for a kernel."""
    if not os.access(KVM, os.R_OK | os.W_OK):
        return Accelerator("tcg", f"{KVM} {'is closed to this user' if KVM.exists() else 'does not exist'}")
    kept = _kept(program, kernel)
    with contextlib.suppress(OSError, ValueError, TypeError):
        return Accelerator(**json.loads(kept.read_text()))
    found = _try(program, kernel)
    with contextlib.suppress(OSError):  # the test is then repeated next time
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(asdict(found)))
    return found


def _try(program: str, kernel: Path) -> Accelerator:
    kvm = Accelerator("kvm")
    archive, plain = initramfs.descriptor(), vmlinux.descriptor(kernel)
    words = [
        program,
        "-accel",
        kvm.argument,
        "-cpu",
        kvm.cpu,
        "-m",
        "256",
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
    ]
    words += ["-display", "none", "-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]
    words += [
        "-kernel",
        str(kernel) if plain is None else f"/proc/self/fd/{plain}",
        "-initrd",
        f"/proc/self/fd/{archive}",
    ]
    words += ["-append", "console=ttyS0 quiet panic=-1 -- --version"]
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[archive, *([] if plain is None else [plain])],
            timeout=_TRIAL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Accelerator("tcg", f"{KVM} does not start {kernel.name} within {_TRIAL:g} s")
    said = done.stdout.decode(errors="replace")
    if _MARK in said:
        return kvm
    last = said.strip().rpartition("\n")[2][:200]
    return Accelerator("tcg", f"{KVM} does not start {kernel.name}: {last or 'it says nothing'}")


def _kept(program: str, kernel: Path) -> Path:
    """Path of the cached result, specific to this boot of the host, QEMU and the kernel."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    about = [boot, *(f"{path}:{os.stat(path).st_mtime_ns}" for path in (program, str(kernel)))]
    return cache.folder("kvm") / hashlib.sha256("\n".join(about).encode()).hexdigest()[:24]
