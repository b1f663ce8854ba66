"""What an ordinary user types: the command, the Python API and notebooks, without root."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airloom.host import pcap, programs
from airloom.host.descendants import processes_below
from helpers import REPOSITORY
from helpers.ordinary import User, ordinary_user

pytestmark = pytest.mark.world

TWO = """name: two
nodes: {h1: , h2: }
links: [{ends: [h1, h2], rate: 10 Mbit/s, delay: 20 ms}]
measurements: [{name: rtt, ping: {from: h1, to: h2, count: 3, interval: 100 ms}}]
"""


@pytest.fixture
def user() -> Iterator[User]:
    with ordinary_user() as user:
        (user.folder / "two.yaml").write_text(TWO)
        yield user


def test_the_python_example_of_the_readme(user: User) -> None:
    readme = (REPOSITORY / "README.md").read_text()
    scenario = re.search(r"```yaml\n(.*?)```", readme, re.DOTALL)
    example = re.search(r"```python\n(.*?)```", readme, re.DOTALL)
    assert scenario is not None
    assert example is not None
    (user.folder / "two.yaml").write_text(scenario[1].replace("loss: 1 %", "loss: 0 %"))
    done = user.script(example[1])
    assert done.returncode == 0, done.stderr
    average = [float(found) for found in re.findall(r"rtt min/avg/max/mdev = ([\d.]+)/", done.stdout)]
    assert len(average) == 2
    assert 40 <= average[0] < 100 <= average[1], "two crossings of 20 ms, then of 50 ms"


LIVE = """
import json, threading
import pandas  # starts threads
import airloom
from airloom.runs.progress import Watcher

class Told(Watcher):
    def __init__(self):
        self.phases, self.measured_names, self.threads = [], [], set()
    def phase(self, text):
        self.phases.append(text)
        self.threads.add(threading.current_thread() is threading.main_thread())
    def measured(self, name, metrics):
        self.measured_names.append(name)

seen = {}
lab = airloom.Lab("two.yaml", out="lab", watcher=(told := Told()))
with lab:
    seen["up"] = [repr(lab), lab.is_up]
    node, link = lab["h1"], lab.link("h1", "h2")
    seen["class"] = [type(node).__name__, isinstance(lab, airloom.Lab), link is lab.link("h1", "h2")]
    seen["ok"] = node.run("ping -c 1 h2").ok
    program = lab["h2"].start("sleep 100")
    program.stop()
    link.set(delay="30 ms")
    seen["link"] = link.describe()
    reading = lab.measure("live", ping={"from": "h1", "to": "h2", "count": 2, "interval": "100 ms"})
    seen["metric"] = {one.name: one.value for one in reading.metrics()}
    seen["rows"] = reading.samples().num_rows
    seen["errors"] = []
    for wrong in (
        lambda: lab["h3"],
        lambda: link.set(delay="soon"),
        lambda: node.run("false", check=True),
        lambda: node.wait_port(9, timeout=0.1),
    ):
        try:
            wrong()
        except Exception as error:
            seen["errors"].append([type(error).__name__, getattr(error, "code", None)])
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(node.run("true").ok)) for _ in range(3)]
    [one.start() for one in threads]
    [one.join() for one in threads]
    seen["threads"] = answers
seen["after"] = [repr(lab), program.code, lab.result.verdict.status]
seen["phases"] = told.phases
run = airloom.run("two.yaml", out="run", watcher=(told := Told()))
seen["run"] = [told.measured_names, list(told.threads), sorted(set(run.measurements.name))]
print(json.dumps(seen))
"""


def test_a_laboratory_in_a_process_with_threads(user: User) -> None:
    done = user.script(LIVE)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["up"] == ["Lab('two', 2 nodes, up)", True]
    assert seen["class"] == ["LiveNode", True, True]
    assert seen["ok"] is True
    assert "30 ms" in seen["link"]
    assert seen["metric"]["received"] == 2
    assert seen["metric"]["rtt_min"] >= 60e6, "in ns"
    assert seen["rows"] == 2
    assert seen["errors"] == [
        ["RunError", "node.unknown"],
        ["ScenarioError", "unit.syntax"],
        ["RunError", "command.failed"],
        ["TimeoutError", None],
    ]
    assert seen["threads"] == [True, True, True]
    assert seen["after"][:2] == ["Lab('two', 2 nodes, not up)", 128 + signal.SIGTERM]
    assert seen["phases"][0] == "bringing up 2 nodes"
    assert seen["phases"][-1] == "collecting"
    assert seen["run"] == [["rtt"], [True], ["rtt"]]


UP = """
import os, sys, time
import airloom
lab = airloom.Lab("two.yaml", out="lab")
lab.__enter__()
lab["h2"].start("sleep 1000")
from airloom.rpc import client
print(client._helper()._process.pid, flush=True)
if sys.argv[1] == "leave":
    while not os.path.exists("leave now"):
        time.sleep(0.05)
    sys.exit()
if sys.argv[1] == "fork" and os.fork() == 0:
    time.sleep(60)
time.sleep(1000)
"""


@pytest.mark.parametrize("how", ["leave", "kill", "fork"])
def test_nothing_stays_after_the_process(user: User, how: str) -> None:
    (user.folder / "up.py").write_text(UP)
    process = user.start("up.py", how)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline()
        if not line and "no user namespace" in (text := process.stderr.read()):
            pytest.skip(text)
        helper = int(line)
        below = [helper, *_below(helper)]
        assert len(below) > 3, "the helper, the supervisor and the nodes"
        if how == "leave":
            (user.folder / "leave now").touch()
        else:
            process.kill()
        process.wait()
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below))
    finally:
        # A forked child of the process is not the laboratory's.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_until(true: Callable[[], bool]) -> None:
    """Waits for a condition for a minute at most."""
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def _below(pid: int) -> list[int]:
    return processes_below(pid)[1:]


LONG = """
import sys, threading
import airloom
try:
    print("begins", flush=True)
    airloom.run("long.yaml", out="run")
except airloom.RunError as error:
    print(error.code, error.exit_code)
lab = airloom.Lab("two.yaml", out="lab")
with lab:
    print("up", flush=True)
    try:
        lab["h1"].run("sleep 1000")
    except KeyboardInterrupt:
        print("interrupted", lab["h1"].run("echo still").stdout.strip(), flush=True)
"""


def test_ctrl_c_stops_a_run_and_interrupts_a_command(user: User) -> None:
    (user.folder / "long.yaml").write_text(TWO.replace("count: 3", "count: 1000"))
    (user.folder / "long.py").write_text(LONG)
    process = user.start("long.py")
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        if process.stdout.readline() != "begins\n":
            pytest.skip(process.stderr.read())
        wait_until(lambda: any(user.folder.glob("run/measurements/*/*")))
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "run.stopped 130\n"
        assert process.stdout.readline() == "up\n"
        wait_until(lambda: _runs("sleep\0001000"))
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted still\n"
        process.communicate()
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()
    assert "stopped by SIGINT" in (user.folder / "run" / "result.json").read_text()


def _runs(line: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_text().rstrip("\0") == line:
                return True
        except OSError:
            continue
    return False


ROUTED = """name: routed
routing: ospf
nodes: {a: , r1: , r2: , b: }
links:
  - {ends: [a, r1], rate: 100 Mbit/s}
  - {ends: [r1, r2], rate: 100 Mbit/s}
  - {ends: [r2, b], rate: 100 Mbit/s}
measurements: [{name: rtt, ping: {from: a, to: b, count: 3, interval: 100 ms}}]
"""


def test_a_routing_daemon_of_frr_runs_in_a_folder_closed_to_the_user(user: User) -> None:
    if not os.access("/usr/lib/frr/zebra", os.X_OK):
        pytest.skip("needs frr")
    (user.folder / "routed.yaml").write_text(ROUTED)
    done = user.airloom("run", "routed.yaml", "--out", "out")
    assert done.returncode == 0, done.stdout + done.stderr
    measured = json.loads((user.folder / "out" / "result.json").read_text())["measurements"]
    assert {one["metric"]: one["mean"] for one in measured}["received"] == 3


CLOSED = """name: closed
nodes: {{a: {{files: {{{folder}/inside.conf: it is here, {folder}/deep/er.conf: too}}}}, b: }}
links: [{{ends: [a, b]}}]
programs: [{{node: a, run: "cat {folder}/inside.conf {folder}/deep/er.conf"}}]
measurements: [{{name: rtt, ping: {{from: a, to: b, count: 1}}}}]
"""


def test_a_file_in_a_folder_that_the_user_cannot_enter(user: User) -> None:
    closed = user.folder / "closed"
    closed.mkdir(mode=0o700)
    (user.folder / "closed.yaml").write_text(CLOSED.format(folder=closed))
    done = user.airloom("run", "closed.yaml", "--out", "out")
    assert done.returncode == 0, done.stdout + done.stderr
    (log,) = (user.folder / "out" / "nodes" / "a").glob("*.log")
    assert "it is heretoo" in log.read_text()
    assert list(closed.iterdir()) == []


NESTED = """name: nested
nodes: {{a: {{files: {{{outer}/new.conf: one, {outer}/inner/new.conf: two}}}}, b: }}
links: [{{ends: [a, b]}}]
programs: [{{node: a, run: "cat {outer}/new.conf {outer}/inner/new.conf {outer}/inner/old.conf"}}]
measurements: [{{name: rtt, ping: {{from: a, to: b, count: 1}}}}]
"""


def test_files_in_a_folder_of_root_inside_another(user: User) -> None:
    outer = user.folder / "outer"
    (outer / "inner").mkdir(parents=True)
    (outer / "inner" / "old.conf").write_text("three")
    (user.folder / "nested.yaml").write_text(NESTED.format(outer=outer))
    done = user.airloom("run", "nested.yaml", "--out", "out")
    assert done.returncode == 0, done.stdout + done.stderr
    (log,) = (user.folder / "out" / "nodes" / "a").glob("*.log")
    assert "onetwothree" in log.read_text()


USERS = """
import os
os.setgroups([33])
os.setgid(33)
os.setuid(33)
open("/tmp/mine", "w").close()
os.chown("/tmp/mine", 33, 33)
print("kept on")
"""


def test_a_daemon_that_changes_its_user_keeps_on(user: User) -> None:
    (user.folder / "daemon.py").write_text(USERS)
    (user.folder / "two.yaml").write_text(
        TWO + f"programs: [{{node: h1, run: /usr/bin/python3 {user.folder}/daemon.py}}]\n"
    )
    done = user.airloom("run", "two.yaml", "--out", "out")
    assert done.returncode == 0, done.stdout + done.stderr
    (log,) = (user.folder / "out" / "nodes" / "h1").glob("*.log")
    assert "kept on" in log.read_text()


def test_programs_of_administrators_are_found(user: User) -> None:
    """Those of /usr/sbin are not in the user's PATH, but doctor reports them as there."""
    (user.folder / "two.yaml").write_text(TWO + "programs: [{node: h1, run: runuser --version}]\n")
    done = user.airloom("run", "two.yaml", "--out", "out")
    assert done.returncode == 0, done.stdout + done.stderr
    (log,) = (user.folder / "out" / "nodes" / "h1").glob("*.log")
    assert "util-linux" in log.read_text()


def test_the_words_of_help(user: User) -> None:
    """`airloom --help` ends with what to begin with."""
    copied = user.airloom("examples", "copy")
    assert copied.returncode == 0, copied.stderr
    checked = user.airloom("check", "examples/chain.yaml")
    assert checked.returncode == 0, checked.stderr
    again = user.airloom("examples", "copy", "chain")
    assert "chain.yaml" in again.stdout
    assert (user.folder / "chain.yaml").read_text() == (REPOSITORY / "examples/chain.yaml").read_text()


def test_doctor_says_what_works_without_root(user: User) -> None:
    done = user.airloom("doctor")
    assert done.returncode == 0, done.stderr
    last = " ".join(done.stdout.split("For this user, without root,")[-1].split())
    assert last.startswith("wired and radio networks work, with nodes and switches of kind netns")
    assert "processor shares" in last


NOTEBOOK = """
import sys
import nbclient, nbformat
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in (
    "import airloom; result = airloom.run('two.yaml', out='run')",
    "lab = airloom.Lab('two.yaml', out='lab').__enter__(); lab",
    "print(lab['h1'].run('ping -c 1 h2').ok)",
    "result",
)])
# The test's user has no kernel of its own installed.
manager = nbclient.NotebookClient(notebook, timeout=100).create_kernel_manager()
manager.kernel_spec.argv[0] = sys.executable
nbclient.NotebookClient(notebook, timeout=100, km=manager).execute()
for cell in notebook.cells:
    for output in cell.outputs:
        print(output.get("text") or output.get("data", {}).get("text/html") or output.output_type)
"""


def test_a_notebook(user: User) -> None:
    for module in ("nbclient", "nbformat", "ipykernel"):
        pytest.importorskip(module, reason="pip install -r notebooks.lock")
    done = user.script(NOTEBOOK)
    assert done.returncode == 0, done.stderr
    assert "Lab(&#x27;two&#x27;, 2 nodes, up)" in done.stdout, done.stdout
    assert "\nTrue\n" in done.stdout
    assert "collecting" in done.stdout, "progress is displayed"
    assert "ms</td>" in done.stdout, "figures of the result"


DAEMONS = {
    "nginx": (
        "h1: {files: {/etc/nginx/lab.conf: 'error_log stderr; events {} http { access_log off; "
        "server { listen 80; "
        "location / { return 200 served; } } }', /var/lib/nginx/own: ''}}",
        "nginx -c /etc/nginx/lab.conf -g 'daemon off;'",
        "port: 80",
        "curl -s --max-time 5 http://h1/",
        "served",
    ),
    "dnsmasq": (
        "h1: ",
        "dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts --log-facility=- "
        "--address=/lab.test/10.9.8.7",
        "port: 53",
        "python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5); "
        r"""s.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0\3lab\4test\0\0\1\0\1", ("h1", 53)); """
        "print(socket.inet_ntoa(s.recv(512)[-4:]))'",
        "10.9.8.7",
    ),
}
"""Daemons that begin as root and become another user: node, program, readiness, a client, its answer."""


@pytest.mark.parametrize("name", DAEMONS)
def test_a_daemon_of_root_serves(user: User, name: str) -> None:
    if programs.find(name) is None:
        pytest.skip(f"{name} is not installed")
    node, program, ready, client, answer = DAEMONS[name]
    (user.folder / "serve.yaml").write_text(
        f"name: serve\nnodes:\n  {node}\n  h2:\nlinks: [{{ends: [h1, h2]}}]\nprograms:\n"
        f"- {{node: h1, name: daemon, run: {json.dumps(program)}, until_end: true, "
        f"ready: {{{ready}, within: 30 s}}}}\n"
        f"- {{node: h2, name: client, after: daemon, run: {json.dumps(client)}}}\n"
    )
    done = user.airloom("run", "serve.yaml", "--out", "out")
    logs = {path.name: path.read_text() for path in (user.folder / "out" / "nodes").rglob("*.log")}
    assert done.returncode == 0, (done.stderr, logs)
    assert answer in logs["client.log"], logs


CAPTURED = """
import os, signal, subprocess, sys, time
import airloom
with airloom.Lab("two.yaml") as lab:
    words = ["capture", "--lab", "two", "h1:eth0", "--out", "h1.pcapng"]
    client = subprocess.Popen([sys.executable, "-m", "airloom", *words], stderr=subprocess.PIPE, text=True)
    while client.poll() is None and not (os.path.exists("h1.pcapng") and os.path.getsize("h1.pcapng")):
        time.sleep(0.05)
    print(lab["h1"].run("ping -c 3 -i 0.2 h2").ok)
    client.send_signal(signal.SIGINT)
    said = client.stderr.read()
    print(client.wait(), said)
"""


def test_frames_of_a_laboratory_are_captured_from_another_terminal(user: User) -> None:
    done = user.script(CAPTURED)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("True\n0 captured "), done.stdout
    echoes = [one for one in pcap.frames(user.folder / "h1.pcapng") if one.octets[23:24] == b"\x01"]
    assert [one.direction for one in echoes] == ["out", "in"] * 3
