"""A GRE tunnel to a kernel that is not the host's: that of a User Mode Linux guest."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import airloom
from airloom import Scenario
from helpers.kernels import BUILT, LACK_OF_PACKAGED, needs_built
from helpers.machines import Machine, machine
from helpers.nodes import PYTHON

MODULES = sorted(Path("/usr/lib/uml/modules").glob("*/kernel/net/ipv4/ip_gre.ko"))

pytestmark = pytest.mark.world
packaged = pytest.param(
    "linux.uml",
    marks=pytest.mark.skipif(
        bool(LACK_OF_PACKAGED) or not MODULES, reason=LACK_OF_PACKAGED or "user-mode-linux has no modules"
    ),
    id="package",
)
built = pytest.param(str(BUILT), marks=needs_built, id="built")
"""Kernels: that of the distribution with its modules, and one that needs none."""

GUEST = """\
#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
[ ! -d "{modules}" ] || cd {modules}
for module in ../lib/crc-ccitt ipv4/tunnel4 ipv4/ip_tunnel ipv6/ipv6 ipv4/gre ipv4/ip_gre; do
  [ -e $module.ko ] && insmod $module.ko
done
ip link set lo up
ip addr add 192.0.2.2/24 dev vec0
ip link set vec0 up
ip link add far type {kind} local 192.0.2.2 remote 192.0.2.1 {options}
ip addr add 10.1.0.2/24 dev far
ip link set far mtu {mtu} up
sleep 2  # a ping that starts at a clock of zero takes it for a clock that is not set
echo READY
until ping -q -c 1 -W 1 10.1.0.1; do sleep 0.2; done
ping -n -q -c 5 -i 0.1 -M do -s $(({mtu} - 28)) 10.1.0.1 && echo PINGED
until sum=$(sha256sum < /dev/tcp/10.1.0.1/8000); do sleep 0.2; done  # until the server listens
echo SUM $sum
ip -s link show far
sleep 60
"""

SERVER = """\
import socket, sys
listening = socket.create_server(("10.1.0.1", 8000))
connection, _ = listening.accept()
connection.sendall(open(sys.argv[1], "rb").read())
"""


@contextlib.contextmanager
def wired() -> Iterator[tuple[Machine, Machine]]:
    """The machine of the tunnel, and that of a guest, which is the same: they share one kernel."""
    with machine("192.0.2.1") as one:
        one.sh("ip tuntap add tap0 mode tap; ip addr add 192.0.2.1/24 dev tap0; ip link set tap0 up")
        yield one, one


@contextlib.contextmanager
def behind_a_card() -> Iterator[tuple[Machine, Machine]]:
    """Likewise, but the guest's machine puts frames on a wire, which completes what a kernel leaves open."""
    with machine("192.0.2.1") as tunnel, machine("") as other:
        tunnel.sh(f"ip link add wire type veth peer name wire netns {other.process.pid}")
        tunnel.sh("ip addr add 192.0.2.1/24 dev wire; ip link set wire up")
        other.sh("ip tuntap add tap0 mode tap; ip link add both type bridge; ip link set both up")
        other.sh("for one in tap0 wire; do ip link set $one master both up; done")
        other.be_a_card()
        yield tunnel, other


@contextlib.contextmanager
def guest(where: Machine, folder: Path, kernel: str, **words: object):
    """A guest with the address 192.0.2.2 on the TAP of this machine; gives what it says."""
    init = folder / "init.sh"
    modules = MODULES[-1].parents[1] if kernel == "linux.uml" else "none"
    init.write_text(GUEST.format(modules=modules, **words))
    init.chmod(0o755)
    said = folder / "console"
    command = (
        f"exec {kernel} mem=128M umid=airloom-test-{os.getpid()} uml_dir={folder} root=/dev/root "
        f"rootfstype=hostfs rootflags=/ ro init={init} con=null con0=fd:0,fd:1 "
        f"fb_tunnels=none vec0:transport=tap,ifname=tap0,depth=64,gro=0 </dev/null >{said} 2>&1"
    )
    process = where.start(["setsid", "sh", "-c", command], folder)
    try:
        yield said
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.communicate()


def wait_for(word: str, said: Path, seconds: float = 60) -> str:
    """The line that begins with a word, once the guest has said it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        # What follows the last line break may be the beginning of a line.
        whole = said.read_text(errors="replace").rpartition("\n")[0] if said.exists() else ""
        for line in whole.splitlines():
            if line.startswith(word):
                return line
        time.sleep(0.1)
    raise AssertionError(said.read_text(errors="replace"))


@pytest.mark.parametrize("kernel", [packaged, built])
@pytest.mark.parametrize(
    ("tunnel", "options", "mtu"),
    [
        ({"kind": "gretap", "key": 7}, "key 7", 1458),
        ({"kind": "gretap", "key": 7, "sequence": True}, "key 7 seq", 1454),
        ({"kind": "gre", "key": 7}, "key 7", 1472),
        ({"kind": "gretap", "key": 7, "checksum": True}, "key 7 csum", 1454),
        ({"kind": "gre", "key": 7, "checksum": True}, "key 7 csum", 1468),
    ],
    ids=["ethernet", "sequence", "ip", "ethernet-checksum", "ip-checksum"],
)
def test_a_kernels_gre_is_a_peer(tmp_path, kernel, tunnel, options, mtu):
    content = os.urandom(3_000_000)
    with (
        behind_a_card() if "checksum" in tunnel else wired() as (where, other),
        guest(other, tmp_path, kernel, kind=tunnel["kind"], options=options, mtu=mtu) as said,
    ):
        wait_for("READY", said)
        scenario = Scenario.model_validate(
            {
                "name": "to-uml",
                "nodes": {"h1": {}},
                "tunnels": {"far": {"remote": "192.0.2.2", "namespace": where.namespace, **tunnel}},
                "links": [{"ends": ["h1", "far"], "addresses": [["10.1.0.1/24"], []], "mtu": mtu}],
            }
        )
        with airloom.Lab(scenario, out=tmp_path / "out") as lab:
            # What a test has in a folder of /tmp is not seen in a node.
            lab["h1"].run("sh -c 'cat > /tmp/file'", input=content.hex(), check=True)
            lab["h1"].run(
                [
                    PYTHON,
                    "-c",
                    "open('/tmp/raw','wb').write(bytes.fromhex(open('/tmp/file').read()))",
                ],
                check=True,
            )
            lab["h1"].start([PYTHON, "-c", SERVER, "/tmp/raw"])
            done = lab["h1"].run(f"ping -n -q -c 5 -i 0.1 -M do -s {mtu - 28} 10.1.0.2", check=True)
            assert "5 received" in done.stdout
            wait_for("PINGED", said)
            assert wait_for("SUM", said).split()[1] == hashlib.sha256(content).hexdigest()
            far = lab._one.world.engine.ledger()["ports"]["far"]
            assert far["tunnel"] == {}
            assert far["host_lost"] == {}
