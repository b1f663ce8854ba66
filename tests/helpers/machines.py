"""Two network namespaces, joined by a veth pair, as two machines; and programs in them."""

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
    """A namespace with the lifetime of its process."""

    process: subprocess.Popen[bytes]
    address: str

    @property
    def namespace(self) -> str:
        return f"/proc/{self.process.pid}/ns/net"

    def sh(self, script: str, *, timeout: float = 90) -> str:
        """Returns the output of a script that runs in it; the exit code must be 0."""
        enter = ["nsenter", "-t", str(self.process.pid), "-n", "sh", "-ec", script]
        done = subprocess.run(enter, capture_output=True, text=True, timeout=timeout, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def be_a_card(self) -> None:
        """Makes the kernel compute checksums and segment super-frames, as for a real card."""
        self.sh("ethtool -K wire tx off gso off tso off >/dev/null")

    def start(self, command: list[str], folder: Path) -> subprocess.Popen[bytes]:
        """Starts a program that continues in it."""
        enter = ["nsenter", "-t", str(self.process.pid), "-n", *command]
        return subprocess.Popen(enter, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@contextmanager
def machine(address: str) -> Iterator[Machine]:
    """A machine with only a loopback interface."""
    command = ["unshare", "-n", "sh", "-c", "ip link set lo up; echo; exec cat"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield Machine(process, address)
    finally:
        process.kill()
        process.communicate()


@contextmanager
def two_machines(mtu: int = 1600) -> Iterator[tuple[Machine, Machine]]:
    """Both machines with IPv4 and IPv6 addresses; ``mtu`` is that of the wire between them."""
    with machine(A) as a, machine(B) as b:
        a.sh(f"ip link add wire mtu {mtu} type veth peer name wire mtu {mtu} netns {b.process.pid}")
        for one, old, new in ((a, A, A6), (b, B, B6)):
            one.sh(f"ip addr add {old}/24 dev wire; ip addr add {new}/64 dev wire nodad; ip link set wire up")
        yield a, b
