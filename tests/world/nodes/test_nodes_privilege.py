"""Nodes without root: an ordinary user inside a user namespace, and what closes that way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from airloom.host import binaries
from airloom.nodes.kinds.uml import PROGRAM, UmlKind
from helpers import REPOSITORY
from helpers.kernels import BUILT, LACK_OF_PACKAGED
from helpers.ordinary import NOBODY, environment, interpreter

pytestmark = pytest.mark.world


LAB = """
import sys
sys.path.insert(0, {tests!r})
from helpers.nodes import interface, node, plan_of
from airloom.host import privilege
from airloom.nodes.process.supervisor import Supervisor
from airloom.nodes.all_nodes import Nodes

print(privilege.ensure(), privilege.ensure())
plan = node("a", interface("eth0", 1, "10.1.0.1/24"), files={{"/etc/airloom-test.conf": "x"}})
with Supervisor() as supervisor, Nodes(plan_of([plan]), supervisor) as world:
    a = world.bring_up()["a"]
    ping = "ping -c1 -W5 10.1.0.1 >/dev/null && echo pinged"
    print(a.exec(["sh", "-c", f"hostname; {{ping}}; ls /etc/airloom-test.conf"]))
    a.exec(["sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"])
    cpu = a.cpu()
    print("used", cpu.user_ns + cpu.system_ns > 0, cpu.throttled_ns)
    print(*a.notes, sep="; ")
    a.pause()
    a.resume()
    print("through")
"""


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder that others may enter; those of pytest are closed to them whenever a session starts."""
    with tempfile.TemporaryDirectory(prefix="airloom-test-") as folder:
        yield Path(folder)


def as_nobody(script: str, folder: Path, tun_mode: str) -> subprocess.CompletedProcess[str]:
    """Runs a script as nobody, in a mount namespace where /dev/net/tun has a mode of its own.

    Its limit is the test's, which describes the processes that then still run.
    """
    if shutil.which("setpriv") is None or os.geteuid() != 0:
        pytest.skip("needs root and setpriv, to become nobody")
    python = interpreter()
    folder.chmod(0o777)
    for program in binaries.OWN_PROGRAMS:
        shutil.copy(binaries.find(program), folder / program)
    if LACK_OF_PACKAGED and os.access(BUILT, os.X_OK):
        # This user's default: root's cache is closed to it.
        shutil.copy(BUILT, folder / PROGRAM)
    (folder / "script.py").write_text(script)
    prepare = (
        "set -e; mount -t tmpfs none /mnt; "
        f"mknod -m {tun_mode} /mnt/tun c 10 200; mount --bind /mnt/tun /dev/net/tun; "
        'exec "$@"'
    )
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", prepare, "sh", *NOBODY, python, str(folder / "script.py")],
        env={
            **environment(),
            "AIRLOOM_BIN_DIR": str(folder),
            "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        check=False,
    )


def lab_script() -> str:
    return LAB.format(tests=str(REPOSITORY / "tests"))


@pytest.mark.parametrize("threads", [False, True], ids=["in place", "restarted"])
def test_an_ordinary_user_has_nodes(tmp_path: Path, threads: bool) -> None:
    script = lab_script()
    if threads:
        script = (
            "import threading, time\n"
            "threading.Thread(target=time.sleep, args=(1,), daemon=True).start()\n" + script
        )
    done = as_nobody(script, tmp_path, "666")
    if "no user namespace" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert "through" in done.stdout, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "user-namespace user-namespace"
    assert r"stdout='a\npinged\n/etc/airloom-test.conf\n'" in lines[1]
    assert lines[2] == "used True None"
    assert "no control group" in lines[3]


RUN = """
import json, sys
from pathlib import Path
import airloom
from airloom.cli import main

Path({folder!r}, "pair.yaml").write_text({scenario!r})
sys.argv = ["airloom", "run", {folder!r} + "/pair.yaml", "--out", {folder!r} + "/out", *{words!r}]
main()
"""
BUSY = """
name: busy
nodes: {a: {cpu: 10 %}, b: }
links: [{ends: [a, b]}]
measurements: [{name: rtt, ping: {from: a, to: b, count: 3, interval: 100 ms}}]
"""


def test_a_share_that_cannot_be_held_is_refused_before_the_start(tmp_path: Path) -> None:
    done = as_nobody(RUN.format(folder=str(tmp_path), scenario=BUSY, words=[]), tmp_path, "666")
    if "no user namespace" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 3, done.stdout + done.stderr
    said = " ".join(done.stderr.split())
    assert "node a: a share of a processor (`cpu`) cannot be held on this machine" in said
    assert "run as root" in said
    assert "host.cpu-share" in said
    assert not (tmp_path / "out").exists()


def test_what_a_node_does_without_stands_in_the_result(tmp_path: Path) -> None:
    script = RUN.format(folder=str(tmp_path), scenario=BUSY.replace("{cpu: 10 %}", ""), words=[])
    done = as_nobody(script, tmp_path, "666")
    if "no user namespace" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
    notes = json.loads((tmp_path / "out" / "result.json").read_text())["verdict"]["notes"]
    assert any(note.startswith("node a: no control group") for note in notes), notes
    assert "no control group" in done.stdout


CONTAINER = """
import os, sys
sys.path[:0] = [{tests!r}]
os.environ["XDG_CACHE_HOME"] = {folder!r}
from helpers.images import busybox, oci
from helpers.nodes import interface, node, plan_of
from pathlib import Path
from airloom import images
from airloom.host import privilege
from airloom.nodes.process.supervisor import Supervisor
from airloom.nodes.all_nodes import Nodes

privilege.ensure()
path = oci(Path({folder!r}) / "image", [busybox()], {{"User": "app", "WorkingDir": "/srv"}})
image = images.read(str(path), os.uname().machine)
plan = node("c", interface("eth0", 1, "10.1.0.1/24"), kind="container", image=image)
with Supervisor() as supervisor, Nodes(plan_of([plan]), supervisor) as world:
    c = world.bring_up()["c"]
    print(c.exec(["sh", "-c", "pwd; id -u; ip link set eth0 mtu 1400 && ping -c1 10.1.0.1 | grep -c from"]))
    print(*c.notes, sep="; ")
"""


def test_an_ordinary_user_has_containers(tmp_path: Path) -> None:
    script = CONTAINER.format(tests=str(REPOSITORY / "tests"), folder=str(tmp_path))
    done = as_nobody(script, tmp_path, "666")
    if "no user namespace" in done.stderr or "Skipped" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert r"stdout='/srv\n0\n1\n'" in done.stdout, done.stdout + done.stderr
    assert "without root there is no user 1000 here" in done.stdout


OWN_IMAGE = """
import os
from pathlib import Path
os.environ["XDG_CACHE_HOME"] = {folder!r}
import airloom
from airloom import Scenario
from airloom.images import own
from airloom.host import privilege

privilege.ensure()
own.make(Path({folder!r}) / "image", ["sh", "ping", "python3"])
nodes = {{"a": {{}}, "b": {{}}}}
said = {{"name": "own", "kind": "container", "image": {folder!r} + "/image", "nodes": nodes}}
said["links"] = [{{"ends": ["a", "b"]}}]
with airloom.Lab(Scenario.model_validate(said), out={folder!r} + "/out") as lab:
    print(lab["a"].run("ping -c 1 b > /dev/null && python3 -c 'import json, socket; print(json.dumps([1]))'"))
"""


def test_an_ordinary_user_has_containers_of_this_machines_programs(tmp_path: Path) -> None:
    done = as_nobody(OWN_IMAGE.format(folder=str(tmp_path)), tmp_path, "666")
    if "no user namespace" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert r"stdout='[1]\n'" in done.stdout, done.stdout + done.stderr


GUESTS = """
import airloom
from airloom import Scenario
from airloom.host import privilege

said = {{"name": "rootless", "kind": "uml", "nodes": {{"a": {{}}, "b": {{}}}}}}
said["links"] = [{{"ends": ["a", "b"]}}]
privilege.ensure(taps=False)
with airloom.Lab(Scenario.model_validate(said), out={folder!r} + "/out") as lab:
    a, b = lab["a"], lab["b"]
    print("root", a.run("id -u", timeout=60).stdout.strip())
    print("pinged", a.run("ping -n -q -c 2 -i 0.5 -W 5 b", timeout=60).ok)
    b.start("iperf3 -s -1")
    print("tcp", a.run("until iperf3 -c b -n 5M; do sleep 0.3; done", timeout=60).ok)
    b.pause()
    print("paused", a.run("ping -n -q -c 1 -W 1 b", timeout=60).ok)
    b.resume()
    print("resumed", a.run("ping -n -q -c 3 -W 5 b", timeout=60).ok)
    b.kill()
    b.restart()
    print("again", a.run("ping -n -q -c 5 -W 5 b", timeout=60).ok)
    a.stop()
    print("interfaces", sorted(set(b.counters()) - {{"hwsim0"}}))
print("through")
"""


@pytest.mark.skipif(bool(UmlKind.lacks()), reason="sudo apt-get install user-mode-linux")
def test_an_ordinary_user_has_guests_with_the_engines_own_devices(tmp_path: Path) -> None:
    # Not even TAPs are open to it.
    done = as_nobody(GUESTS.format(folder=str(tmp_path)), tmp_path, "600")
    if "no user namespace" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.stdout.splitlines() == [
        "root 0",
        "pinged True",
        "tcp True",
        "paused False",
        "resumed True",
        "again True",
        "interfaces ['eth0', 'lo']",
        "through",
    ], done.stderr


SHARED = """
import airloom
from airloom import Scenario
from airloom.host import privilege

said = {{"name": "rootless", "guests": {{"box": {{"kind": "uml"}}}}, "switches": {{"s1": {{}}}}}}
said["nodes"] = {{name: {{"inside": "box"}} for name in "ab"}} | {{"c": {{"kind": "uml"}}}}
said["links"] = [{{"ends": [name, "s1"]}} for name in "abc"]
privilege.ensure(taps=False)
with airloom.Lab(Scenario.model_validate(said), out={folder!r} + "/out") as lab:
    a, b, c = lab["a"], lab["b"], lab["c"]

    def reached(source, target):
        return source.run(f"ping -n -q -c 3 -i 0.5 -W 5 {{lab.addresses[target]}}", timeout=60).ok

    print("root", a.run("id -u", timeout=60).stdout.strip())
    print("pinged", reached(a, "b"), reached(c, "a"))
    count = b.start("while :; do echo x; sleep 0.05; done", name="count")
    b.pause()
    print("paused", b.state, reached(c, "b"))
    b.resume()
    a.kill()
    print("killed", a.state, reached(c, "b"), count.code)
    a.restart()
    print("again", reached(a, "c"))
    a.stop()
    print("stopped", a.state, sorted(b.counters()))
print("through")
"""


@pytest.mark.skipif(bool(UmlKind.lacks()), reason="sudo apt-get install user-mode-linux")
def test_an_ordinary_user_has_several_nodes_in_one_guest(tmp_path: Path) -> None:
    done = as_nobody(SHARED.format(folder=str(tmp_path)), tmp_path, "600")
    if "no user namespace" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.stdout.splitlines() == [
        "root 0",
        "pinged True True",
        "paused paused True",
        "killed stopped True None",
        "again True",
        "stopped stopped ['eth0', 'lo']",
        "through",
    ], done.stderr


COMMANDS = """
import os, sys
from pathlib import Path
from airloom.cli import main

os.chdir({folder!r})
Path("pair.yaml").write_text({pair!r})
Path("experiments/tiny").mkdir(parents=True, exist_ok=True)
Path("experiments/tiny/experiment.py").write_text({experiment!r})
sys.argv = ["airloom", *{words!r}.split()]
main()
"""
PAIR = """
name: pair
nodes: {a: , b: }
links: [{ends: [a, b]}]
measurements: [{name: rtt, ping: {from: a, to: b, count: 3, interval: 100 ms}}]
"""
EXPERIMENT = """
import airloom

def run(folder, *, extent, progress):
    return airloom.run({}).result
"""


@pytest.mark.skipif(bool(UmlKind.lacks()), reason="sudo apt-get install user-mode-linux")
@pytest.mark.parametrize(
    ("words", "refused"),
    [
        ("run pair.yaml --set kind=uml --out out", False),
        ("run pair.yaml --out out", True),
        ("compare pair.yaml --kinds uml,native --out out", False),
        ("compare pair.yaml --kinds uml,netns --out out", True),
        ("experiment run tiny --out out", False),
        ("calibrate netns", True),
    ],
)
def test_only_who_has_taps_needs_the_device(tmp_path: Path, words: str, refused: bool) -> None:
    run = EXPERIMENT.format("'pair.yaml', overrides={'kind': 'uml'}, out=folder")
    script = COMMANDS.format(folder=str(tmp_path), pair=PAIR, experiment=run, words=words)
    done = as_nobody(script, tmp_path, "600")
    if "no user namespace" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == (3 if refused else 0), done.stdout + done.stderr
    assert ("/dev/net/tun is closed to this user" in done.stderr) == refused
    assert (tmp_path / "out").exists() != refused


def test_a_closed_device_is_named_with_its_cure(tmp_path: Path) -> None:
    done = as_nobody(lab_script(), tmp_path, "600")
    assert done.returncode != 0
    assert "/dev/net/tun is closed to this user (mode 0600, owner 0:0)" in done.stderr
    assert "chmod 0666 /dev/net/tun" in done.stderr
    assert "host.tun-device" in done.stderr


def test_a_process_with_threads_that_may_not_restart_says_so(tmp_path: Path) -> None:
    script = (
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(5,), daemon=True).start()\n"
        "from airloom.host import privilege\n"
        "privilege.ensure(restart=False)\n"
    )
    done = as_nobody(script, tmp_path, "666")
    if "no user namespace" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert "host.privilege" in done.stderr


def test_closed_user_namespaces_are_named(tmp_path: Path) -> None:
    script = (
        "import os\n"
        "from airloom.host import privilege, user_namespace\n"
        # In a namespace of its own the limit can be set to none, for all below it.
        "user_namespace.enter()\n"
        "open('/proc/sys/user/max_user_namespaces', 'w').write('0')\n"
        "privilege.is_capable = lambda: False\n"
        "privilege.ensure()\n"
    )
    done = as_nobody(script, tmp_path, "666")
    if "max_user_namespaces" not in done.stderr and "PermissionError" in done.stderr:
        pytest.skip("user namespaces are closed here anyway")
    assert "gives an ordinary user no user namespace: No space left on device" in done.stderr
    assert "sysctl -w user.max_user_namespaces=10000" in done.stderr


def test_the_own_programs_need_no_library() -> None:
    program = binaries.find("airloom-init")
    if "debug" in program.parts:
        pytest.skip("a debug build is not static; `make setup` makes one that is")
    with program.open("rb") as file:
        assert b"ld-linux" not in file.read(4096)
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("airloom-init ")
    assert subprocess.run([program], capture_output=True, check=False).returncode == 2
