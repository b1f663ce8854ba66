"""Two network namespaces, joined by a veth pair, that stand for two machines; and what runs in them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

A, B = "192.0.2.1", "192.0.2.2"
A6, B6 = "2001:db8::1", "2001:db8::2"


@dataclass
class Machine:
    """A namespace that lives as long as its process."""

    process: subprocess.Popen[bytes]
    address: str

    @property
    def namespace(self) -> str:
        return f"/proc/{self.process.pid}/ns/net"

    def sh(self, script: str, *, timeout: float = 30) -> str:
        """What a script says that runs in it; it must end with 0."""
        enter = ["nsenter", "-t", str(self.process.pid), "-n", "sh", "-ec", script]
        done = subprocess.run(enter, capture_output=True, text=True, timeout=timeout, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, command: list[str], folder: Path) -> subprocess.Popen[bytes]:
        """A program that goes on in it."""
        enter = ["nsenter", "-t", str(self.process.pid), "-n", *command]
        return subprocess.Popen(enter, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@contextmanager
def two_machines(mtu: int = 1600) -> Iterator[tuple[Machine, Machine]]:
    """Both, with addresses of both families; ``mtu`` is that of the wire between them."""
    processes = [
        subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; exec cat"], stdin=-1, stdout=subprocess.PIPE)
        for _ in "ab"
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        a, b = Machine(processes[0], A), Machine(processes[1], B)
        a.sh(f"ip link add wire mtu {mtu} type veth peer name wire mtu {mtu} netns {b.process.pid}")
        for machine, old, new in ((a, A, A6), (b, B, B6)):
            machine.sh(
                f"ip link set lo up; ip addr add {old}/24 dev wire; "
                f"ip addr add {new}/64 dev wire nodad; ip link set wire up"
            )
        yield a, b
    finally:
        for process in processes:
            process.kill()
            process.communicate()
