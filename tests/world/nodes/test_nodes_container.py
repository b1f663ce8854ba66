"""Nodes with an image for their root."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from airloom import images
from airloom.errors import HostError, RunError
from airloom.host import binaries
from airloom.images import Image, own
from airloom.nodes.kind import NodeHandle
from airloom.planning.plan import CpusPlan, NodePlan
from helpers.images import busybox, entry, layer, oci
from helpers.nodes import Up, eventually, interface, mount_points, node, processes_with

pytestmark = pytest.mark.world


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One unpacked image for all tests of this module."""
    folder = tmp_path_factory.mktemp("images")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


def image(store: Path, **config: Any) -> Image:
    path = oci(store / f"image{abs(hash(str(config)))}", [busybox(), layer(entry("srv/mine", b"x"))], config)
    return images.read(str(path), os.uname().machine)


def container(store: Path, name: str = "c", number: int = 1, config: Any = None, **more: Any) -> NodePlan:
    card = interface("eth0", number, f"10.1.0.{number}/24")
    return node(name, card, kind="container", image=image(store, **(config or {})), **more)


def shell(handle: NodeHandle, command: str, *, ok: bool = True) -> str:
    done = handle.exec(["sh", "-c", command], timeout=30)
    assert done.exit.ok or not ok, done.stderr
    return done.stdout


def test_programs_run_with_what_the_image_says(up: Up, store: Path) -> None:
    config = {"Env": ["COLOUR=red", "PATH=/bin"], "WorkingDir": "/srv/new", "User": "app"}
    handle = up(container(store, config=config))["c"]
    assert shell(handle, "pwd; id; echo $COLOUR $HOME $HOSTNAME; hostname").splitlines() == [
        "/srv/new",
        "uid=1000(app) gid=1000(app) groups=1000(app),2000(extra)",
        "red /srv c",
        "c",
    ]
    assert handle.exec(["sh", "-c", "exit 7"], timeout=20).exit.code == 7
    assert "grep" in shell(handle, "ls /bin")
    assert handle.exec(["env"], env={"COLOUR": "blue"}, timeout=20).stdout.count("COLOUR=blue") == 1


def test_traffic_can_be_measured_wherever_the_host_keeps_its_programs(up: Up, store: Path) -> None:
    traffic = str(binaries.find("airloom-traffic"))
    handle = up(container(store))["c"]
    assert "receive" in handle.exec([traffic, "--help"], timeout=20).stdout
    assert handle.exec(["sh", "-c", f"echo x > {traffic}"], timeout=20).exit.code != 0


def test_files_names_and_processes_are_its_own(up: Up, store: Path) -> None:
    handles = up(
        container(store, "c", 1, files={"/etc/new/x.conf": "a\n", "/bin/tool": "#!/bin/sh\necho ran\n"}),
        container(store, "d", 2),
    )
    assert shell(handles["c"], "cat /etc/new/x.conf; tool; cat /etc/hostname").split() == ["a", "ran", "c"]
    assert "10.1.0.2 d" in shell(handles["c"], "cat /etc/hosts").splitlines()
    shell(handles["c"], "echo changed > /srv/mine; rm /bin/ls; touch /new")
    assert shell(handles["d"], "cat /srv/mine; echo; ls /").split()[0] == "x"
    assert "new" not in shell(handles["d"], "ls /").split()
    assert set(shell(handles["c"], "cd /sys/class/net; echo *").split()) == {"lo", "eth0"}
    assert len([word for word in shell(handles["d"], "ls /proc").split() if word.isdigit()]) <= 3


def test_the_host_is_out_of_reach(up: Up, store: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "given").write_text("read me")
    mounts = mount_points()
    handle = up(container(store), visible=[shared])["c"]
    assert shell(handle, f"cat {shared}/given") == "read me"
    for attempt in (
        f"echo x > {shared}/given",
        f"mount -o remount,rw {shared}",
        "mknod /tmp/disk b 8 0",
        "mount -t proc proc /tmp",
        "echo x > /proc/sys/kernel/hostname",
        "echo x > /proc/sysrq-trigger",
        "cat /proc/1/root/etc/shadow",
        "/bin/busybox readlink /proc/1/fd/0",
        "cat /proc/1/mem",
        "echo x > /proc/1/exe",
        f"test -e {Path(__file__)}",
        f"kill -0 {os.getppid()}",
    ):
        assert not handle.exec(["sh", "-c", attempt], timeout=20).exit.ok, attempt
    shell(handle, "echo 1 > /proc/sys/net/ipv4/ip_forward; ip link set eth0 mtu 1400")
    assert (shared / "given").read_text() == "read me"
    assert mount_points() == mounts


LIFT = """
mkdir /tmp/g && mount -t {kind} none /tmp/g || exit 0
for limit in /tmp/g/cpu.cfs_quota_us /tmp/g/cpu.max; do test -e $limit && echo {free} > $limit; done
mkdir -p /tmp/g/airloom-test/below
"""
MOUNTS = {"cgroup -o cpu": "-1", "cgroup -o memory": "-1", "cgroup2": "max 100000"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to have shares of processors")
def test_its_share_of_a_processor_cannot_be_lifted(up: Up, store: Path) -> None:
    own.make(store / "tools", ["sh", "unshare", "mount", "mkdir", "timeout"])
    tools = images.read(str(store / "tools"), os.uname().machine)
    card = interface("eth0", 1, "10.1.0.1/24")
    handle = up(node("c", card, kind="container", image=tools, cpu=0.1))["c"]
    for kind, free in MOUNTS.items():
        script = LIFT.format(kind=kind, free=free)
        handle.exec(["unshare", "-UrmC", "sh", "-c", script], timeout=20)
        handle.exec(["unshare", "-Urm", "sh", "-c", script], timeout=20)
    walked = [folder for _, folders, _ in os.walk("/sys/fs/cgroup") for folder in folders]
    assert "airloom-test" not in walked
    assert not handle.exec(["unshare", "-UrC", "sh", "-c", "exit 0"], timeout=20).exit.ok
    assert handle.exec(["unshare", "-Urm", "sh", "-c", "exit 0"], timeout=20).exit.ok
    before, begun = handle.cpu(), time.monotonic()
    handle.exec(["sh", "-c", "timeout 2 sh -c 'while :; do :; done'"], timeout=60)
    used, passed = handle.cpu(), time.monotonic() - begun
    spent = (used.user_ns + used.system_ns - before.user_ns - before.system_ns) / 1e9
    assert spent < 0.15 * passed


def test_what_airloom_itself_needs_of_the_host_is_not_shown(
    up: Up, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As where Airloom is installed below /tmp.
    place = tmp_path / "place"
    place.mkdir()
    (place / "code").write_text("of Airloom")
    monkeypatch.setattr(binaries, "hidden_folders", lambda: [place])
    handles = up(container(store), node("n", interface("eth0", 2, "10.1.0.2/24")))
    assert shell(handles["n"], f"cat {place}/code") == "of Airloom"
    assert not handles["c"].exec(["cat", f"{place}/code"], timeout=20).exit.ok
    assert not handles["c"].exec(["test", "-e", str(place)], timeout=20).exit.ok


def test_its_interfaces_are_ports_and_static_programs_of_the_host_run(up: Up, store: Path) -> None:
    traffic = binaries.find("airloom-traffic")
    handle = up(container(store), visible=[traffic])["c"]
    assert shell(handle, "ping -c1 -W5 10.1.0.1").count("1 packets received") == 1
    assert handle.exec([str(traffic), "--version"], timeout=20).exit.ok
    assert set(handle.taps) == {"eth0"}
    assert handle.counters()["lo"]["rx_packets"] >= 2
    assert handle.cpu().user_ns + handle.cpu().system_ns > 0


def test_it_ends_like_every_node(up: Up, store: Path) -> None:
    mark = f"AIRLOOM_TEST={os.getpid()}-{id(up)}"
    handle = up(container(store))["c"]
    handle.start(["sh", "-c", "trap '' TERM; while :; do sleep 1000; done"], env=dict([mark.split("=")]))
    eventually(lambda: processes_with(mark) != [], "it did not start")
    handle.kill()
    assert processes_with(mark) == []
    handle.restart()
    assert shell(handle, "cat /srv/mine") == "x"


@pytest.mark.parametrize(
    ("config", "error", "words"),
    [
        ({"User": "nobody-here"}, HostError, 'the image\'s user "nobody-here" is not in its /etc/passwd'),
        ({"WorkingDir": "/bin/sh/x"}, HostError, "/bin/sh/x"),
    ],
)
def test_an_image_that_contradicts_itself_is_refused_by_name(
    up: Up, store: Path, config: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match="node c: ") as caught:
        up(container(store, config=config))["c"].exec(["true"], timeout=20)
    assert words in str(caught.value)


def test_a_program_that_the_image_has_not_is_named(up: Up, store: Path) -> None:
    handle = up(container(store))["c"]
    with pytest.raises(RunError, match="node c: cannot start python3: no such program"):
        handle.exec(["python3"], timeout=20)


def test_its_programs_are_on_its_processor(up: Up, store: Path) -> None:
    first = min(os.sched_getaffinity(0))
    handle = up(container(store, cpus=CpusPlan((first,), "batch", nice=2)))["c"]
    assert handle.exec(["true"], timeout=20).exit.ok
    assert handle.scheduling == f"processor {first}; policy batch; nice 2"
