"""Runs of a sweep on the machines of a fleet: of this machine, of a real sshd, and of a real Slurm."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from airloom.compare.identical import compare
from airloom.host.descendants import processes_below
from helpers.kernels import BUILT, needs_virtual_time
from helpers.leftovers import Traces, command_line
from helpers.slurm import PARENTS, inside, lacking, remove_groups

pytestmark = [pytest.mark.world, pytest.mark.timeout(300)]

SHORT, LONG = 3, 30_000
"""Packets of a measurement."""
WAIT_S = 120.0
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
needs_sshd = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None, reason="no sshd or ssh: apt-get install openssh-server"
)
needs_slurm = pytest.mark.skipif(bool(lacking()), reason=lacking())


@dataclass(frozen=True)
class Fleet:
    """Machines of a launcher, and how a command comes to them."""

    spec: str
    names: tuple[str, str]
    environment: dict[str, str] = field(default_factory=dict)
    within: tuple[str, ...] = ()
    """Words before the command."""
    server: int | None = None
    """The process below which agents are, if it is not the command."""

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        return start(*words, within=self.within, **self.environment)

    def airloom(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return ended(self.start(*words))

    def agents(self, running: subprocess.Popen[str], count: int, *, busy: bool = True) -> list[int]:
        """Waits until there are so many agents, each with a guest if they are ``busy``: process IDs."""
        until = time.monotonic() + WAIT_S
        while True:
            below = processes_below(self.server or running.pid)
            found = [one for one in below if "fleet\0agent" in command_line(one) and is_python(one)]
            # Each has a parent with the same words, which removes its folder.
            found = [one for one in found if not any(child in found for child in processes_below(one)[1:])]
            if busy:
                found = [one for one in found if any(map(is_guest, processes_below(one)))]
            if len(found) == count:
                return found
            assert running.poll() is None, running.communicate()
            assert time.monotonic() < until, found
            time.sleep(0.05)


LOCAL = Fleet("local:2", ("local-1", "local-2"))


def scenario(
    folder: Path, *, count: int = SHORT, points: int = 3, time: str = "virtual", more: str = "delay: 20 ms"
) -> Path:
    """Writes a sweep of runs that ping so many times."""
    file = folder / "two.yaml"
    rates = ", ".join(f"{number + 1} Mbit/s" for number in range(points))
    file.write_text(
        f"""name: two
time: {time}
guest: {{kernel: {BUILT}}}
nodes: {{h1: , h2: }}
links: [{{ends: [h1, h2], rate: 10 Mbit/s, {more}}}]
measurements: [{{name: rtt, ping: {{from: h1, to: h2, count: {count}, interval: 100 ms}}}}]
sweep: {{"links[0].rate": [{rates}]}}
"""
    )
    return file


def start(*words: str | Path, within: tuple[str, ...] = (), **environment: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [*within, sys.executable, "-m", "airloom", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200", **environment},
    )
    _started.append(process)
    return process


_started: list[subprocess.Popen[str]] = []
"""Commands of the test."""


def ended(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    out, err = process.communicate(timeout=WAIT_S)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def airloom(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return ended(start(*words, **environment))


def same(one: Path, other: Path) -> bool:
    found = compare(one, other)
    assert found.differences == ()
    return True


def left() -> list[Path]:
    """Folders of agents of this test that are there although they should be removed by now."""
    until = time.monotonic() + 20
    while found := list(Path(os.environ["TMPDIR"]).glob("airloom-fleet-*")):
        if time.monotonic() > until:
            break
        time.sleep(0.1)
    return found


def is_guest(pid: int) -> bool:
    return "linux" in command_line(pid)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def is_python(pid: int) -> bool:
    """Whether it is no shell, and no client of ssh or Slurm, with the same words."""
    with contextlib.suppress(OSError):
        return Path(os.readlink(f"/proc/{pid}/exe")).name.startswith("python")
    return False


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A place of this test for what agents of this machine have; ends what it has started."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    yield
    for process in _started:
        if process.returncode is None:
            process.kill()
            process.communicate()
    _started.clear()


def machines(folder: Path) -> list[str | None]:
    return [one.get("machine") for one in json.loads((folder / "sweep.json").read_text())["points"]]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Fleet]:
    """``ssh here`` and ``ssh there`` reach a real sshd on a loopback address."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.7", 0))
        port = free.getsockname()[1]
    (tmp_path / "sshd").write_text(
        f"""ListenAddress 127.0.0.7:{port}
HostKey {tmp_path}/host
AuthorizedKeysFile {tmp_path}/user.pub
StrictModes no
UsePAM no
PidFile none
SetEnv SHLVL=2
PermitRootLogin yes
"""
    )
    public = " ".join((tmp_path / "host.pub").read_text().split()[:2])
    (tmp_path / "known").write_text(f"here {public}\n")
    (tmp_path / "config").write_text(
        f"""Host here there
 HostName 127.0.0.7
 HostKeyAlias here
 Port {port}
 User {getpass.getuser()}
 IdentityFile {tmp_path}/user
 IdentitiesOnly yes
 UserKnownHostsFile {tmp_path}/known
"""
    )
    # OpenSSH takes its configuration from the home in the user database, whatever HOME says.
    (tmp_path / "bin").mkdir()
    wrapper = tmp_path / "bin" / "ssh"
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {tmp_path}/config "$@"\n')
    wrapper.chmod(0o755)
    assert SSHD is not None
    with contextlib.suppress(OSError):
        Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen([SSHD, "-D", "-e", "-f", tmp_path / "sshd"], stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 10
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.7", port), 1):
                break
            assert time.monotonic() < until
            assert server.poll() is None
            time.sleep(0.05)
        path = f"{tmp_path}/bin:{os.environ['PATH']}"
        yield Fleet("ssh:here,there", ("here", "there"), {"PATH": path}, server=server.pid)
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def cluster() -> Iterator[Fleet]:
    """An allocation of both nodes of a real Slurm."""
    mark = uuid.uuid4().hex[:8]
    nodes = (f"{mark}-a", f"{mark}-b")
    allocation = ("salloc", "--quiet", "--nodes=2", "--exclusive")
    yield Fleet("slurm", nodes, within=(*inside(nodes), *allocation))
    remove_groups(nodes)


@pytest.fixture(
    params=[
        "local",
        pytest.param("ssh", marks=needs_sshd),
        pytest.param("slurm", marks=needs_slurm),
    ]
)
def fleet(request: pytest.FixtureRequest) -> Fleet:
    """Two machines of each launcher."""
    name = {"ssh": "host", "slurm": "cluster"}.get(request.param)
    chosen: Fleet = LOCAL if name is None else request.getfixturevalue(name)
    return chosen


@needs_virtual_time
def test_results_are_those_of_a_run_without_a_fleet(tmp_path: Path, fleet: Fleet) -> None:
    file = scenario(tmp_path)
    for out, more in (("fleet", ["--fleet", fleet.spec]), ("plain", ["--jobs", "1"])):
        done = fleet.airloom("run", file, "--pcap", "--out", tmp_path / out, *more)
        assert done.returncode == 0, done.stderr
    assert same(tmp_path / "fleet", tmp_path / "plain")
    assert set(machines(tmp_path / "fleet")) == set(fleet.names)
    assert machines(tmp_path / "plain") == [None] * 3


@needs_virtual_time
@pytest.mark.parametrize("all_of_it", [False, True])
def test_runs_of_a_killed_agent_are_made_by_another(tmp_path: Path, fleet: Fleet, all_of_it: bool) -> None:
    file = scenario(tmp_path, count=2000)
    running = fleet.start("run", file, "--fleet", fleet.spec, "--out", tmp_path / "out")
    killed = fleet.agents(running, 2)[0]
    traces = Traces.of(killed, tmp_path / "out")
    # Those of the Slurm are there to its end.
    for kind in os.listdir(f"/proc/{killed}/ns"):
        if (held := traces.namespaces.pop(os.readlink(f"/proc/{killed}/ns/{kind}"), None)) is not None:
            os.close(held)
    for one in [*([parent_of(killed)] if all_of_it else []), killed]:
        os.kill(one, signal.SIGKILL)
    traces.wait_gone()
    out, err = running.communicate(timeout=WAIT_S)
    assert running.returncode == 0, err
    assert "its connection ended" in out + err
    assert "another machine runs links[0].rate=" in out + err
    assert left() == []
    assert len(set(machines(tmp_path / "out"))) == 1
    fleet.airloom("run", file, "--out", tmp_path / "plain")
    assert same(tmp_path / "out", tmp_path / "plain")


@needs_virtual_time
def test_without_a_machine_the_sweep_fails_and_is_resumed(tmp_path: Path) -> None:
    file = scenario(tmp_path, count=2000, points=4)
    out = tmp_path / "out"
    running = start("run", file, "--fleet", "local:2", "--out", out)
    until = time.monotonic() + WAIT_S
    while not ((out / "sweep.json").exists() and any(machines(out))):
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)
    for one in LOCAL.agents(running, 2, busy=False):
        os.kill(one, signal.SIGKILL)
    _, err = running.communicate(timeout=WAIT_S)
    assert running.returncode == 1, err
    assert "its connection ended (--resume does the rest" in err
    assert left() == []
    kept = [one for one in machines(out) if one]
    assert 0 < len(kept) < 4
    done = airloom("run", file, "--fleet", "local:1", "--out", out, "--resume")
    assert done.returncode == 0, done.stderr
    assert None not in machines(out)
    airloom("run", file, "--out", tmp_path / "plain")
    assert same(out, tmp_path / "plain")


@needs_virtual_time
def test_a_stopped_agent_is_given_up(tmp_path: Path) -> None:
    file = scenario(tmp_path, count=2000)
    running = start("run", file, "--fleet", "local:2", "--out", tmp_path / "out")
    os.kill(LOCAL.agents(running, 2)[0], signal.SIGSTOP)
    out, err = running.communicate(timeout=WAIT_S)
    assert running.returncode == 0, err
    assert "its connection ended: it has said nothing for 5 s; another machine runs" in out + err
    assert left() == []


@needs_virtual_time
def test_an_agent_ends_when_it_hears_nothing(tmp_path: Path) -> None:
    file = scenario(tmp_path, count=LONG)
    running = start("run", file, "--fleet", "local:2", "--out", tmp_path / "out")
    # The agents themselves stay as zombies of a process that is stopped.
    started = [one for agent in LOCAL.agents(running, 2) for one in processes_below(agent)[1:]]
    traces = [Traces.of(one, tmp_path / "out") for one in started if is_guest(one)]
    os.kill(running.pid, signal.SIGSTOP)
    try:
        for one in traces:
            one.wait_gone()
        assert left() == []
    finally:
        running.kill()
        running.communicate()


@needs_virtual_time
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("launcher", ["local", pytest.param("ssh", marks=needs_sshd)])
def test_a_signal_to_the_command_ends_all(
    tmp_path: Path, request: pytest.FixtureRequest, number: int, launcher: str
) -> None:
    fleet: Fleet = LOCAL if launcher == "local" else request.getfixturevalue("host")
    file = scenario(tmp_path, count=LONG)
    running = fleet.start("run", file, "--fleet", fleet.spec, "--out", tmp_path / "out")
    traces = [Traces.of(one, tmp_path / "out") for one in [running.pid, *fleet.agents(running, 2)]]
    running.send_signal(number)
    _, err = running.communicate(timeout=WAIT_S)
    assert running.returncode == (130 if number == signal.SIGINT else -number), err
    for one in traces:
        one.wait_gone()
    assert left() == []
    if number == signal.SIGINT:
        assert len(list((tmp_path / "out/points").glob("*/result.json"))) > 1, "what was measured so far"


def test_a_machine_has_one_run_at_a_time_in_wall_time(tmp_path: Path) -> None:
    file = scenario(tmp_path, time="wall")
    done = airloom("run", file, "--fleet", "local:1", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    runs = [json.loads(one.read_text()) for one in sorted((tmp_path / "out").glob("points/*/result.json"))]
    spans = sorted((datetime.fromisoformat(one["started"]).timestamp(), one["wall_seconds"]) for one in runs)
    assert len(spans) == 3
    assert all(begin + lasts <= after for (begin, lasts), (after, _) in pairwise(spans))


def test_what_no_fleet_can_run_is_refused(tmp_path: Path) -> None:
    swept = scenario(tmp_path, time="wall")
    one = tmp_path / "one.yaml"
    one.write_text("name: one\nnodes: {h1: , h2: }\nlinks: [{ends: [h1, h2]}]\nduration: 1 s\n")
    for words, said in (
        ((swept, "--fleet", "locl:2"), "'locl:2' is no fleet"),
        ((one, "--fleet", "local:2"), "there is one run, and nothing to share out"),
        ((swept, "--fleet", "local:2", "--jobs", "1"), "leave out --jobs"),
        ((swept, "--fleet", "local:2", "--profile"), "leave out --profile"),
        ((swept, "--fleet", "local:2", "--web"), "leave out --web"),
    ):
        done = airloom("run", *words, "--out", tmp_path / "out")
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "out").exists()


def test_doctor_tells_what_machines_can_do(fleet: Fleet) -> None:
    done = fleet.airloom("fleet", "doctor", fleet.spec)
    assert done.returncode == 0, done.stderr
    for name in fleet.names:
        assert any(name in line and socket.gethostname() in line for line in done.stdout.splitlines())
    said = " ".join(done.stdout.replace("│", " ").split())
    assert said.count("wired and radio networks work") == 2
    assert left() == []


@needs_sshd
def test_nodes_of_a_manifest_are_reached(tmp_path: Path, host: Fleet) -> None:
    login = f'<login hostname="here" username="{getpass.getuser()}"/>'
    nodes = "".join(f'<node client_id="{name}"><services>{login}</services></node>' for name in ("a", "b"))
    (tmp_path / "manifest.xml").write_text(
        f'<rspec xmlns="http://www.geni.net/resources/rspec/3" type="manifest">{nodes}</rspec>'
    )
    done = host.airloom("fleet", "doctor", f"rspec:{tmp_path}/manifest.xml")
    assert done.returncode == 0, done.stderr
    rows = [line.replace("│", " ").split() for line in done.stdout.splitlines()]
    assert [row[0] for row in rows if row[1:2] == [socket.gethostname()]] == ["a", "b"]


@needs_sshd
def test_a_host_that_cannot_be_reached_is_named_with_the_reason(tmp_path: Path, host: Fleet) -> None:
    with (tmp_path / "config").open("a") as config:
        config.write("Host nowhere\n HostName nowhere.invalid\n")
    done = host.airloom("fleet", "doctor", "ssh:here,nowhere")
    assert done.returncode == 2
    assert "nowhere: ssh: Could not resolve hostname nowhere.invalid" in done.stderr
    assert "ssh nowhere true" in done.stderr
    assert left() == []


@needs_sshd
def test_a_shell_that_prints_something_is_named(tmp_path: Path, host: Fleet) -> None:
    wrapper = tmp_path / "bin" / "ssh"
    wrapper.write_text(
        "#!/bin/sh\necho Welcome to the laboratory\nexec " + wrapper.read_text().split("exec ")[1]
    )
    done = host.airloom("fleet", "doctor", "ssh:here")
    assert done.returncode == 2
    assert "it begins with 'Welcome to the laboratory', which is no agent" in done.stderr
    assert left() == []


@needs_slurm
def test_a_slurm_that_would_leave_guests_behind_is_refused() -> None:
    node = uuid.uuid4().hex[:8]
    allocation = ("salloc", "--quiet", "--nodes=1")
    loose = Fleet("slurm", (node, node), within=(*inside([node], PARENTS), *allocation))
    done = loose.airloom("fleet", "doctor", loose.spec)
    assert done.returncode == 3
    assert "proctrack/linuxproc" in done.stderr
    assert "ProctrackType=proctrack/cgroup" in done.stderr


@needs_sshd
def test_what_differs_there_is_refused_before_anything_starts(tmp_path: Path, host: Fleet) -> None:
    """Another release, and a file with another content."""
    tables = tmp_path / "delays.txt"
    tables.write_text("1 ms\n2 ms\n")
    file = scenario(tmp_path, more="delay: 20 ms, jitter: {table: delays.txt}")
    for patch, said in (
        ('import airloom.host.machine as one; one.__version__ = "0.0.9"', "here: airloom is 0.0.9 there"),
        (
            "from airloom.planning import inputs; true = inputs.digest; "
            'inputs.digest = lambda path: "other" if path.endswith("delays.txt") else true(path)',
            "delays.txt has another content there",
        ),
    ):
        agent = tmp_path / "agent"
        agent.write_text(f"{patch}\nfrom airloom.fleet.agent import main\nmain()\n")
        wrapper = tmp_path / "bin" / "ssh"
        wrapper.write_text(
            f"#!/bin/sh\nexec {shutil.which('ssh')} -F {tmp_path}/config -T here {sys.executable} {agent}\n"
        )
        done = host.airloom("run", file, "--fleet", "ssh:here", "--out", tmp_path / "out")
        assert (done.returncode, said in done.stderr) == (3, True), done.stderr
    assert not (tmp_path / "out").exists()
