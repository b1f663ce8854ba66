"""What a node sees of the host, and what the host sees of a node."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from airloom.errors import HostError
from airloom.nodes.process.supervisor import Supervisor
from airloom.planning.plan import MountPlan
from helpers.nodes import PYTHON, Up, groups_of, interface, mount_points, node

pytestmark = pytest.mark.world
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def shell(handle: object, command: str) -> str:
    done = handle.exec(["sh", "-c", command], timeout=30)  # type: ignore[attr-defined]
    assert done.exit.ok, done.stderr
    return str(done.stdout)


def test_host_name_and_hosts_file(up: Up) -> None:
    handles = up(
        node("alpha", interface("eth0", 1, "10.1.0.1/24")), node("beta", interface("eth0", 2, "10.1.0.2/24"))
    )
    assert shell(handles["alpha"], "hostname; cat /etc/hostname").split() == ["alpha", "alpha"]
    assert shell(handles["beta"], "hostname").strip() == "beta"
    assert "10.1.0.2 beta" in shell(handles["alpha"], "cat /etc/hosts").splitlines()
    assert shell(handles["alpha"], "getent hosts beta").split() == ["10.1.0.2", "beta"]
    assert socket.gethostname() not in ("alpha", "beta")


def test_each_node_has_its_own_tmp_and_run(up: Up) -> None:
    handles = up(node("a"), node("b"))
    for folder in ("/tmp", "/run", "/var/tmp", "/dev/shm"):
        shell(handles["a"], f"echo secret > {folder}/airloom-test-of-isolation")
        assert not Path(folder, "airloom-test-of-isolation").exists()
        assert "airloom-test-of-isolation" not in shell(handles["b"], f"ls -a {folder}")
    assert shell(handles["a"], "stat -c %a /tmp /run").split() == ["1777", "755"]


def test_a_node_sees_its_own_processes_only(up: Up) -> None:
    handle = up(node("a"))["a"]
    numbers = [int(word) for word in shell(handle, "ls /proc").split() if word.isdigit()]
    assert 1 in numbers
    assert len(numbers) <= 4
    assert not Path(f"/proc/{os.getpid()}").samefile("/proc/1")
    assert shell(handle, f"test -e /proc/{os.getpid()}/exe || echo unseen").strip() == "unseen"


def test_a_node_sees_its_own_interfaces_only(up: Up) -> None:
    handle = up(node("a", interface("mine0", 1)))["a"]
    assert set(shell(handle, "ls /sys/class/net").split()) == {"lo", "mine0"}


def test_files_of_the_scenario(up: Up, tmp_path: Path) -> None:
    names = {
        "/etc/hostname": "over one that is there\n",
        "/etc/airloom-test/deep/new.conf": "new, in a new folder\n",
        "/etc/airloom-test.conf": "new\n",
        "/run/airloom-test/a.conf": "in the node's own folder\n",
        "/tmp/script": "#!/bin/sh\necho ran\n",
        "/etc/hosts": "192.0.2.1 mine\n",
    }
    handles = up(node("a", interface("eth0", 1, "10.1.0.1/24"), files=names), node("b"))
    for path, content in names.items():
        assert shell(handles["a"], f"cat {path}") == content
    assert shell(handles["a"], "/tmp/script") == "ran\n"
    assert "passwd" in shell(handles["a"], "ls /etc").split()
    assert "airloom-test" not in shell(handles["b"], "ls /etc")
    assert not Path("/etc/airloom-test").exists()


def test_hosts_file_is_kept_when_a_folder_is_extended(up: Up) -> None:
    plan = node("a", interface("eth0", 1, "10.1.0.1/24"), files={"/etc/airloom-test.conf": "x\n"})
    assert "10.1.0.1 a" in shell(up(plan)["a"], "cat /etc/hosts")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("relative", "not an absolute path"),
        ("/etc/../x", "not an absolute path"),
        ("/etc", "is a folder"),
        ("/no-such-folder-here/x", "its first folder does not exist"),
        ("/etc/hostname/x", "/etc/hostname"),
        ("/dev/null/x", "/dev/null"),
        ("/etc/" + "a" * 256, "File name too long"),
    ],
)
def test_a_file_that_cannot_be_placed_is_named(up: Up, path: str, words: str) -> None:
    handle = up(node("a", files={path: "x"}))["a"]
    with pytest.raises(HostError, match=words) as caught:
        handle.exec(["true"], timeout=20)
    assert str(caught.value).startswith(f"node a: {path}: ")
    assert caught.value.cure


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        ("gone", "/srv/data", "No such file or directory"),
        ("folder", "/etc/hostname", "File exists"),
        ("folder", "/etc/hostname/x", "Not a directory"),
        ("file", "/etc", "Not a directory"),
    ],
)
def test_a_mount_that_has_no_place_is_named(
    up: Up, tmp_path: Path, source: str, target: str, words: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    place = MountPlan(str(tmp_path / source), target, False)
    handle = up(node("a", mounts=(place,)))["a"]
    with pytest.raises(HostError, match=words) as caught:
        handle.exec(["true"], timeout=20)
    assert re.match(r"node a: /\S+: ", str(caught.value))
    assert "mounts:" in (caught.value.cure or "")


def test_visible_folders_stay_visible(up: Up, tmp_path: Path) -> None:
    shown, hidden = tmp_path / "shown", tmp_path / "hidden"
    for folder in (shown, hidden):
        folder.mkdir()
        (folder / "script").write_text("#!/bin/sh\necho hello\n")
        (folder / "script").chmod(0o755)
    handle = up(node("a"), visible=[shown])["a"]
    assert handle.exec([f"{shown}/script"], timeout=20).stdout == "hello\n"
    assert not handle.exec(["test", "-e", str(hidden)], timeout=20).exit.ok
    shell(handle, f"echo result > {shown}/out")
    assert (shown / "out").read_text() == "result\n"


def test_the_host_keeps_its_mounts_and_files(up: Up, supervisor: Supervisor) -> None:
    watched = {"/etc/hosts", "/etc/hostname", "/etc", "/tmp", "/run", "/var/tmp", "/proc", "/sys"}
    before = [point for point in mount_points() if point in watched]
    hosts = Path("/etc/hosts").read_bytes()
    propagation = Path("/proc/self/mountinfo").read_text().count("shared:")
    handle = up(node("a", interface("eth0", 1, "10.1.0.1/24"), files={"/etc/airloom-test.conf": "x"}))["a"]
    shell(handle, "mount -t tmpfs none /mnt && touch /mnt/x")
    assert [point for point in mount_points() if point in watched] == before
    assert Path("/etc/hosts").read_bytes() == hosts
    assert Path("/proc/self/mountinfo").read_text().count("shared:") == propagation
    assert os.readlink(f"/proc/{supervisor.pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt")


@pytest.fixture
def host_socket() -> Iterator[Path]:
    """A socket of the host that only root may use, outside of the folders that nodes have for themselves."""
    path = Path(f"/var/airloom-test-{uuid.uuid4()}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen()
        yield path
        path.unlink()


STEAL = "import ctypes, os, sys; sys.exit(ctypes.CDLL(None).syscall(438, os.pidfd_open(1), 3, 0) < 0)"
"""Takes the control socket of the node's first process (``pidfd_getfd(2)``)."""


@needs_root
def test_its_root_cannot_change_the_machine_by_the_ways_that_are_closed(up: Up) -> None:
    handle = up(node("a", interface("eth0", 1, "10.1.0.1/24")))["a"]
    before = Path("/proc/sys/kernel/panic").read_text()
    for attempt in (
        f"echo {before.strip()} > /proc/sys/kernel/panic",
        "echo h > /proc/sysrq-trigger",
        "umount /proc && test -e /proc/1",
        "umount /sys && test -e /sys/kernel",
        f"{PYTHON} -c 'import os; os.nice(-5)'",
        f"{PYTHON} -c 'import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))'",
        f"{PYTHON} -c 'import time; time.clock_settime(time.CLOCK_REALTIME, time.time())'",
        f"{PYTHON} -c 'import os; os.stat(\"/proc/1/fd/3\")'",
        f"{PYTHON} -c '{STEAL}'",
        "readlink /proc/1/root",
    ):
        assert not handle.exec(["sh", "-c", attempt], timeout=20).exit.ok, attempt
    assert Path("/proc/sys/kernel/panic").read_text() == before


@needs_root
def test_its_control_groups_are_all_that_it_sees_of_them(up: Up, supervisor: Supervisor) -> None:
    handle = up(node("a", cpu=0.5))["a"]
    assert {line.rpartition(":")[2] for line in shell(handle, "cat /proc/self/cgroup").split()} >= {"/"}
    for kind, options, limit in (("cgroup", "cpu", "cpu.cfs_quota_us"), ("cgroup2", "rw", "cpu.max")):
        mounted = f"mkdir /tmp/{kind} && mount -t {kind} -o {options} none /tmp/{kind} && ls /tmp/{kind}"
        seen = handle.exec(["sh", "-c", mounted], timeout=20).stdout.split()
        assert not any(name.startswith("airloom-") for name in seen)
        handle.exec(["sh", "-c", f"echo -1 > /tmp/{kind}/{limit}"], timeout=20)
    held = [
        path.read_text().split()[0]
        for base in groups_of(supervisor.pid)
        for name in ("cpu.cfs_quota_us", "cpu.max")
        for path in base.glob(f"node*/{name}")
    ]
    assert [quota for quota in held if quota not in ("-1", "max")] == ["5000"]


def test_what_programs_need_stays_possible(up: Up) -> None:
    handle = up(node("a", interface("eth0", 1, "10.1.0.1/24")))["a"]
    shell(handle, "echo 1 > /proc/sys/net/ipv4/ip_forward && cat /proc/sys/kernel/osrelease")
    shell(handle, "mount -t tmpfs none /mnt && umount /mnt && nice -n 5 true && ulimit -c 0")
    trace = (
        "import ctypes, os, signal, sys\n"
        "pid = os.fork()\n"
        "if pid == 0: signal.pause()\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "sys.exit(0 if libc.ptrace(16, pid, None, None) == 0 else ctypes.get_errno())\n"
    )
    assert handle.exec([PYTHON, "-c", trace], timeout=20).exit.ok


def test_hosts_file_cannot_be_spoiled_for_others(up: Up) -> None:
    handles = up(node("a", interface("eth0", 1, "10.1.0.1/24")), node("b"))
    assert not handles["a"].exec(["sh", "-c", "echo x > /etc/hosts"], timeout=20).exit.ok
    assert "10.1.0.1 a" in shell(handles["b"], "cat /etc/hosts")


WITHOUT_HOSTS = """
import airloom
with airloom.Lab(airloom.Scenario(name="x", nodes={"a": {}, "b": {}}, links=[{"ends": ["a", "b"]}])) as lab:
    print(lab["a"].run("getent hosts b", check=True).stdout.split()[1])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="takes a file away from a copy of /etc")
def test_names_are_known_on_a_machine_without_a_hosts_file(tmp_path: Path) -> None:
    minimal = tmp_path / "etc"
    subprocess.run(["cp", "-a", "/etc", minimal], check=True, timeout=30)
    (minimal / "hosts").unlink()
    script = f'mount --bind {minimal} /etc && ! [ -e /etc/hosts ] && cd {tmp_path} && exec "$0" -c "$1"'
    command = ["unshare", "--mount", "sh", "-c", script, sys.executable, WITHOUT_HOSTS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == "b\n", done.stderr
