"""Guests of kind ``uml``: their channel, their faults, and what they cannot reach."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from airloom.errors import HostError, RunError
from airloom.host.descendants import processes_below
from airloom.nodes.guests.guest import GuestNode
from airloom.nodes.kind import NodeHandle
from airloom.nodes.kinds.uml import UmlKind, kernel_of
from airloom.nodes.process.supervisor import Supervisor
from airloom.planning.plan import CpusPlan
from helpers import REPOSITORY
from helpers.images import disk, tree
from helpers.nodes import PYTHON, Up, eventually, guest, interface, processes_with

LACKING = UmlKind.lacks()
pytestmark = [
    pytest.mark.world,
    pytest.mark.skipif(bool(LACKING), reason="; ".join(f"{one.message}: {one.cure}" for one in LACKING)),
]


@pytest.fixture
def g(up: Up) -> GuestNode:
    handle = up(guest("g"))["g"]
    assert isinstance(handle, GuestNode)
    return handle


def run(handle: NodeHandle, script: str) -> str:
    done = handle.exec(["sh", "-c", script], timeout=60)
    assert done.exit.ok, done.stderr
    return done.stdout


def test_programs_run_with_streams_codes_and_signals(g: GuestNode, tmp_path: Path) -> None:
    done = g.exec(["sh", "-c", "cat; echo error >&2; exit 7"], input="x" * 200_000, timeout=60)
    assert (len(done.stdout), done.stderr, done.exit.code) == (200_000, "error\n", 7)
    assert len(g.exec(["head", "-c", "3000000", "/dev/zero"], timeout=60).stdout) == 3_000_000
    process = g.start(["sleep", "1000"], stdout=tmp_path / "log")
    process.signal(signal.SIGTERM)
    assert process.wait(30).signal == signal.SIGTERM
    with pytest.raises(RunError, match="no-such-program: no such program"):
        g.start(["no-such-program"])
    assert g.exec(["sleep", "1000"], timeout=0.5).timed_out
    busy = g.exec(["sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"], timeout=60)
    assert busy.exit.user_ns + busy.exit.system_ns > 0
    assert g.cpu().user_ns > 0


def test_a_program_has_a_terminal_of_the_callers_size(g: GuestNode) -> None:
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    process = g.start(
        ["sh", "-c", "stty size; read word; echo got $word; sleep 1; stty size"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        tty=True,
    )
    said = b""
    while b"33 77" not in said:
        said += os.read(mine, 4096)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 99, 0, 0))
    os.write(mine, b"hello\r")
    while b"44 99" not in said:
        said += os.read(mine, 4096)
    assert process.wait(60).ok
    os.close(theirs)
    os.close(mine)
    assert b"got hello" in said


def test_what_nobody_reads_stops_no_one_else(g: GuestNode) -> None:
    reader, writer = os.pipe()
    flood = g.start(["yes"], stdout=writer)
    assert run(g, "echo here") == "here\n"
    os.close(writer)
    assert len(os.read(reader, 100)) == 100
    os.close(reader)
    flood.signal(signal.SIGKILL)
    assert flood.wait(30).signal == signal.SIGKILL


def test_its_clock_is_known_better_than_a_tick(g: GuestNode) -> None:
    first, second = g.clock(), g.clock()
    assert 0 < first.error < 10_000_000
    assert abs(first.ahead - second.ahead) <= first.error + second.error


def test_it_says_who_listens_and_what_its_interfaces_counted(g: GuestNode) -> None:
    listen = "import socket, time; s = socket.create_server(('', 7)); time.sleep(99)"
    server = g.start([PYTHON, "-c", listen])
    eventually(lambda: g.listens("tcp", 7), "nobody listens")
    assert not g.listens("udp", 7)
    server.signal(signal.SIGKILL)
    assert g.inner_counters()["eth0"]["rx_errors"] == 0
    assert "lo" in g.inner_counters()


def test_it_speaks_ipv6_at_once(up: Up) -> None:
    plan = guest("g")
    six = interface("eth0", 1, "fd00::1/64")
    g = up(replace(plan, interfaces=(six,)))["g"]
    assert "fd00::1/64" in run(g, "ip -6 addr show dev eth0")
    assert run(g, "ip -6 addr show tentative") == ""


ESCAPES = """
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
mark, folder, pid = sys.argv[1:]
os.makedirs("/mnt/host", exist_ok=True)
assert libc.mount(b"none", b"/mnt/host", b"hostfs", 0, b"/") == 0, "hostfs"
for place in ("tmp", "run", "var/tmp", "etc", "root", "usr/bin", "proc/sys/kernel", folder.lstrip("/")):
    try:
        os.close(os.open(f"/mnt/host/{place}/{mark}", os.O_CREAT | os.O_WRONLY))
        print("wrote", place)
    except OSError:
        pass
try:
    with open("/mnt/host/proc/sys/kernel/core_pattern", "w") as file:
        file.write(mark)
    print("wrote core_pattern")
except OSError:
    pass
if os.path.exists(f"/mnt/host/proc/{pid}/root/etc/passwd"):
    print("sees the controller")
try:
    print("is root over its supervisor:", os.listdir("/mnt/host/proc/1/root/etc"))
except OSError:
    pass
try:
    socket.create_connection(("127.0.0.1", int(os.environ["HOST_PORT"])), timeout=1)
    print("reached the host")
except OSError:
    pass
"""


def test_it_cannot_write_to_the_host_see_its_processes_or_reach_its_network(up: Up, tmp_path: Path) -> None:
    mark = f"airloom-escape-{uuid.uuid4()}"
    with socket.create_server(("127.0.0.1", 0)) as server:
        g = up(guest("g"), visible=[tmp_path])["g"]
        (tmp_path / "seen").write_text("seen")
        assert run(g, f"cat {tmp_path}/seen") == "seen"
        done = g.exec(
            [PYTHON, "-c", ESCAPES, mark, str(tmp_path), str(os.getpid())],
            env={"HOST_PORT": str(server.getsockname()[1])},
            timeout=60,
        )
        assert (done.exit.code, done.stdout, done.stderr) == (0, "", "")
        # Its own root can be written, and nobody sees it.
        run(g, f"echo x > /etc/{mark}; echo x > /usr/bin/{mark}; rm -rf /var/lib/*")
    assert not any(Path(place, mark).exists() for place in ("/tmp", "/etc", "/usr/bin", tmp_path))
    assert list(Path("/var/lib").iterdir())


TRIAL = """
import os, socket, sys
for path in sys.argv[2:]:
    try:
        os.close(os.open(path, os.O_RDWR))
        print("opened", path)
    except OSError:
        pass
try:
    socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect(sys.argv[1])
    print("connected")
except OSError:
    pass
print(len(open("/etc/shadow").read()) > 0, os.access("/root", os.R_OK | os.X_OK))
"""
HOSTS = ["/dev/kvm", "/dev/net/tun", "/dev/kmsg", "/dev/mem", "/dev/tty0", "/dev/vda", "/dev/loop-control"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to go where a machine is")
def test_its_machine_reaches_neither_sockets_nor_devices_of_the_host(g: GuestNode) -> None:
    # What a guest that has broken out of its machine could do: whatever the machine's own process may.
    g.exec(["true"], timeout=60)
    machine = g.processes()[0]
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{machine}/status").read_text().splitlines())
    user, group = status["Uid"].split()[0], status["Gid"].split()[0]
    kept = [
        name
        for number, name in ((2, "dac_read_search"), (13, "net_raw"))
        if int(status["CapEff"], 16) >> number & 1
    ]
    assert int(status["CapEff"], 16) & ~(1 << 2 | 1 << 13) == 0
    capabilities = ",".join(["-all", *(f"+{name}" for name in kept)])
    become = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--no-new-privs"]
    become += [
        f"--inh-caps={capabilities}",
        f"--ambient-caps={capabilities}",
        f"--bounding-set={capabilities}",
    ]
    if user != "0":
        become.append("--securebits=+no_setuid_fixup")
    path = Path(f"/var/airloom-test-{uuid.uuid4()}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen()
        try:
            done = subprocess.run(
                [
                    "nsenter",
                    "-t",
                    str(machine),
                    "-m",
                    *become,
                    PYTHON,
                    "-c",
                    TRIAL,
                    str(path),
                    *HOSTS,
                ],
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            path.unlink()
    # It still reads every file, for its guest.
    assert done.stdout.split() == ["True", "True"], done.stdout + done.stderr


def test_a_guest_that_dies_says_why_and_leaves_the_others_alone(up: Up) -> None:
    failed: list[NodeHandle] = []
    nodes = up(guest("g"), guest("h"), on_failure=failed.append)
    run(nodes["h"], "true")
    with contextlib.suppress(RunError):  # it may die before it answers that the program has started
        nodes["g"].start(["sh", "-c", "echo c > /proc/sysrq-trigger"])
    eventually(lambda: bool(failed), "the guest does not fail")
    assert nodes["g"].state == "failed"
    assert "Kernel panic" in str(nodes["g"].failure)
    with pytest.raises(RunError, match="node g is failed"):
        nodes["g"].exec(["true"])
    assert run(nodes["h"], "echo on") == "on\n"
    nodes["g"].restart()
    assert run(nodes["g"], "echo again") == "again\n"


def test_a_guest_without_memory_kills_its_own_programs_alone(up: Up) -> None:
    nodes = up(guest("g"), guest("h"))
    eat = "x = []\nwhile True: x.append(b'x' * (1 << 20))"
    assert not nodes["g"].exec([PYTHON, "-c", eat], timeout=60).exit.ok
    assert run(nodes["g"], "echo lives") == "lives\n"
    assert run(nodes["h"], "echo on") == "on\n"


def test_what_a_guest_can_fill_of_the_host_is_its_own_share(up: Up) -> None:
    nodes = up(guest("g"), guest("h"))
    fill = "mkdir -p /mnt/h; mount -t hostfs none /mnt/h -o /; dd if=/dev/zero of=/mnt/h/dev/shm/x bs=1M"
    with contextlib.suppress(RunError):  # it may be its own memory that it has no room for
        filled = nodes["g"].exec(["sh", "-c", fill], timeout=60)
        if filled.exit.signal is None:
            assert "No space left" in filled.stderr
            written = re.search(r"(\d+) bytes", filled.stderr)
            assert written is not None
            assert int(written[1]) < 100 << 20
    assert run(nodes["h"], "echo on") == "on\n"


def test_a_kernel_that_does_not_boot_is_named_with_its_last_words(up: Up, tmp_path: Path) -> None:
    kernel = tmp_path / "kernel"
    kernel.write_text('#!/bin/sh\necho 1.0\n[ "$1" = --version ] || { echo broken by design >&2; exit 9; }\n')
    kernel.chmod(0o755)
    g = up(guest("g", kernel=str(kernel)))["g"]
    with pytest.raises(RunError, match=r"exit code 9.*broken by design"):
        g.exec(["true"])


def test_a_kernel_that_hangs_is_given_up(up: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airloom.nodes.kinds.uml._TIMEOUT", 1.0)
    kernel = tmp_path / "kernel"
    kernel.write_text('#!/bin/sh\n[ "$1" = --version ] || exec sleep 1000\necho 1.0\n')
    kernel.chmod(0o755)
    g = up(guest("g", kernel=str(kernel)))["g"]
    with pytest.raises(RunError, match="does not come up in time"):
        g.exec(["true"])


def test_a_guest_that_hangs_is_named_and_can_be_switched_off_and_on(
    up: Up, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = up(guest("g"), guest("h"))
    g = nodes["g"]
    assert isinstance(g, GuestNode)
    run(g, "true")
    monkeypatch.setattr("airloom.nodes.process.init._TIMEOUT", 2.0)
    os.kill(g.processes()[0], signal.SIGSTOP)
    with pytest.raises(RunError, match="node g: its first process does not answer within 2 s"):
        g.exec(["true"])
    assert run(nodes["h"], "echo on") == "on\n"
    monkeypatch.undo()
    g.kill()
    g.restart()
    assert run(g, "echo again") == "again\n"


def test_a_missing_kernel_and_a_bad_image_are_refused_with_a_cure(up: Up, tmp_path: Path) -> None:
    with pytest.raises(HostError, match="cannot be executed"):
        up(guest("g", kernel=str(tmp_path / "none")))
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 17))
    with pytest.raises(HostError, match="no disk image"):
        up(guest("g", root=str(image)))


def test_an_image_is_a_root_whose_copy_is_written(up: Up, tmp_path: Path) -> None:
    image = disk(tree(tmp_path / "tree"))
    before = image.read_bytes()
    g = up(guest("g", root=str(image)))["g"]
    assert run(g, "cat /etc/mark; echo changed > /etc/mark; sync") == "of the tree\n"
    assert run(g, "cat /etc/mark") == "changed\n"
    with pytest.raises(RunError, match="python3: no such program"):
        g.start(["python3"])
    assert image.read_bytes() == before


def test_scheduling_is_what_was_asked_for(up: Up) -> None:
    g = up(guest("g", cpus=CpusPlan((0,), "batch", nice=7)))["g"]
    run(g, "true")
    made = [pid for pid in processes_below(os.getpid()) if _is_machine(Path("/proc", str(pid)), "umid=g")]
    assert made
    pid = made[0]
    assert os.sched_getscheduler(pid) == os.SCHED_BATCH
    assert os.sched_getaffinity(pid) == {0}
    assert os.getpriority(os.PRIO_PROCESS, pid) == 7
    assert g.scheduling == "processor 0; policy batch; nice 7"


def _is_machine(process: Path, word: str) -> bool:
    try:
        return word.encode() in (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


CONTROLLER = """
import sys, time
sys.path[:0] = {tests!r}
from helpers.nodes import guest, plan_of
from airloom.nodes.process.supervisor import Supervisor
from airloom.nodes.all_nodes import Nodes
supervisor = Supervisor()
world = Nodes(plan_of([guest("a"), guest("b")]), supervisor)
world.bring_up()
world.settle()
print(supervisor.pid, flush=True)
time.sleep(1000)
"""


def test_guests_go_with_a_controller_that_is_killed(tmp_path: Path) -> None:
    mark = f"AIRLOOM_TEST={uuid.uuid4()}"
    code = CONTROLLER.format(tests=[str(REPOSITORY / "tests")])
    controller = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | dict([mark.split("=")]) | {"TMPDIR": str(tmp_path)},
    )
    assert controller.stdout is not None
    supervisor = int(controller.stdout.readline())
    below = processes_below(supervisor)
    assert sum(_is_machine(Path("/proc", str(pid)), "umid=a") for pid in below) >= 1
    controller.kill()
    controller.wait()
    controller.stdout.close()
    eventually(lambda: not any(Path("/proc", str(pid)).exists() for pid in below), "machines are left")
    assert processes_with(mark) == []
    assert list(tmp_path.iterdir()) == []


def test_the_host_may_forbid_ptrace(up: Up, tmp_path: Path) -> None:
    """User Mode Linux runs its guest's programs under ptrace and says so when it cannot."""
    kernel = tmp_path / "kernel"
    kernel.write_text(
        "#!/usr/bin/python3\n"
        "import ctypes, os, struct, sys\n"
        "class Filter(ctypes.Structure):\n"
        "    _fields_ = [('length', ctypes.c_ushort), ('code', ctypes.c_void_p)]\n"
        "rules = [(0x20, 0, 0, 0), (0x15, 0, 1, 101), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]\n"
        "code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *rule) for rule in rules))\n"
        "if sys.argv[1] != '--version':\n"
        "    libc = ctypes.CDLL(None)\n"
        "    libc.prctl(38, 1, 0, 0, 0)\n"
        "    assert libc.prctl(22, 2, ctypes.byref(Filter(4, ctypes.addressof(code)))) == 0\n"
        f"os.execv('{kernel_of(None)}', ['linux.uml', *sys.argv[1:]])\n"
    )
    kernel.chmod(0o755)
    g = up(guest("g", kernel=str(kernel)))["g"]
    with pytest.raises(RunError, match=r"(before it was ready|ended with exit code).*ptrace"):
        g.exec(["true"])


def test_the_channel_bears_noise(supervisor: Supervisor, up: Up, tmp_path: Path) -> None:
    """A machine that speaks otherwise on its channel loses it, and nobody else notices."""
    kernel = tmp_path / "kernel"
    kernel.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && { echo 1.0; exit; }\n'
        "head -c 100000 /dev/urandom >&3\nsleep 1000\n"
    )
    kernel.chmod(0o755)
    nodes = up(guest("g", kernel=str(kernel)), guest("h"))
    with pytest.raises(RunError, match="does not speak as agreed"):
        nodes["g"].exec(["true"])
    assert run(nodes["h"], "echo on") == "on\n"
    assert supervisor.failure is None


def test_its_machine_has_memory_and_switches_contexts(g: GuestNode) -> None:
    run(g, "true")
    before = g.switches()
    run(g, "for i in 1 2 3 4 5; do true | cat; done")
    after = g.footprint()
    assert after is not None
    assert sum((before | g.switches()).values()) > sum(before.values())
    # Less than the machine's 64 MiB and the program itself, more than a kernel.
    assert 4 << 20 < after.resident < 128 << 20
