"""What a node sees of the host, and what the host sees of a node."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from airloom.errors import HostError
from airloom.nodes.process.supervisor import Keeper
from helpers.nodes import Up, interface, mount_points, node

pytestmark = pytest.mark.world


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
    ],
)
def test_a_file_that_cannot_be_placed_is_named(up: Up, path: str, words: str) -> None:
    handle = up(node("a", files={path: "x"}))["a"]
    with pytest.raises(HostError, match=words) as caught:
        handle.exec(["true"], timeout=20)
    assert "node a" in str(caught.value)


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


def test_the_host_keeps_its_mounts_and_files(up: Up, keeper: Keeper) -> None:
    watched = {"/etc/hosts", "/etc/hostname", "/etc", "/tmp", "/run", "/var/tmp", "/proc", "/sys"}
    before = [point for point in mount_points() if point in watched]
    hosts = Path("/etc/hosts").read_bytes()
    propagation = Path("/proc/self/mountinfo").read_text().count("shared:")
    handle = up(node("a", interface("eth0", 1, "10.1.0.1/24"), files={"/etc/airloom-test.conf": "x"}))["a"]
    shell(handle, "mount -t tmpfs none /mnt && touch /mnt/x")
    assert [point for point in mount_points() if point in watched] == before
    assert Path("/etc/hosts").read_bytes() == hosts
    assert Path("/proc/self/mountinfo").read_text().count("shared:") == propagation
    assert os.readlink(f"/proc/{keeper.pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt")


def test_hosts_file_cannot_be_spoiled_for_others(up: Up) -> None:
    handles = up(node("a", interface("eth0", 1, "10.1.0.1/24")), node("b"))
    assert not handles["a"].exec(["sh", "-c", "echo x > /etc/hosts"], timeout=20).exit.ok
    assert "10.1.0.1 a" in shell(handles["b"], "cat /etc/hosts")
