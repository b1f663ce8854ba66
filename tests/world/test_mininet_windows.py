"""Windows of nodes, on a display of the test's own."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from airloom.errors import HostError, RunError
from airloom.mininet import session
from airloom.mininet.cli import CLI
from airloom.mininet.net import Mininet
from airloom.mininet.switches import LearningSwitch
from airloom.mininet.term import makeTerm
from airloom.mininet.topo import SingleSwitchTopo

pytestmark = [
    pytest.mark.world,
    pytest.mark.skipif(
        shutil.which("xterm") is None or shutil.which("Xvfb") is None,
        reason="sudo apt-get install xterm xvfb",
    ),
]


@pytest.fixture
def display(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    reading, writing = os.pipe()
    words = ["Xvfb", "-displayfd", str(writing), "-nolisten", "tcp", "-screen", "0", "640x480x8"]
    server = subprocess.Popen(words, pass_fds=[writing], stderr=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading) as says:
        name = f":{says.readline().strip()}"
    monkeypatch.setenv("DISPLAY", name)
    yield name
    # A server that a client has only just left may not heed SIGTERM.
    server.kill()
    server.wait()


@pytest.fixture
def net() -> Iterator[Mininet]:
    net = Mininet(topo=SingleSwitchTopo(2), switch=LearningSwitch)
    net.start()
    yield net
    net.stop()
    session.close()


def eventually(holds) -> bool:
    until = time.monotonic() + 20
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)
    return bool(holds())


def ended(pid: int) -> bool:
    """Whether a process has; nobody may have asked how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_window_shows_a_program_in_the_node(display: str, net: Mininet, tmp_path: Path):
    (window,) = makeTerm(net["h1"], "Host", cmd=f"sh -c 'hostname > {tmp_path}/note; tty >> {tmp_path}/note'")
    assert window.wait(20) == 0
    name, terminal = (tmp_path / "note").read_text().split()
    assert name == "h1"
    assert terminal.startswith("/dev/pts/")


def test_a_window_that_is_closed_ends_its_shell(display: str, net: Mininet):
    h1 = net["h1"]
    (window,) = makeTerm(h1, cmd="sleep 600")
    assert eventually(lambda: h1.cmd("pgrep -x sleep"))
    window.kill()
    window.wait()
    assert eventually(lambda: not h1.cmd("pgrep -x sleep"))


def test_windows_of_all_hosts_go_with_the_network(display: str):
    net = Mininet(topo=SingleSwitchTopo(2), xterms=True)
    net.start()
    windows = list(net.terms)
    assert len(windows) == 3  # and the controller's
    assert [one.poll() for one in windows] == [None] * 3
    net.stop()
    assert None not in [one.poll() for one in windows]


def test_the_prompt_opens_them(display: str, net: Mininet, capfd: pytest.CaptureFixture[str]):
    CLI(net, stdin=io.StringIO("xterm h1 h2\nxterm s1\nxterm h9\ngterm h1\nx h1 xclock\nexit\n"))
    assert [one.poll() for one in net.terms] == [None, None]
    said = "".join(capfd.readouterr())
    for words in ("switches of the engine run none", "no node h9", "those of xterm", "have no display"):
        assert words in said


@pytest.mark.skipif(shutil.which("ovs-vswitchd", path="/usr/sbin:/usr/bin") is None, reason="no Open vSwitch")
def test_a_switch_without_a_class_becomes_one_that_has_a_window(display: str):
    net = Mininet(topo=SingleSwitchTopo(2))
    net.start()
    try:
        CLI(net, stdin=io.StringIO("xterm s1\nexit\n"))
        assert [one.poll() for one in net.terms] == [None]
        assert net["s1"].pid is not None
    finally:
        net.stop()
        session.close()


def test_they_go_with_a_script_that_is_killed(display: str, tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, signal
            from airloom.mininet.node import Host
            from airloom.mininet.term import makeTerm

            print(makeTerm(Host("h1"))[0].pid, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
            """
        )
    )
    done = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    assert eventually(lambda: ended(int(done.stdout)))


def test_without_a_display(net: Mininet, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(HostError, match="node h1: there is no display"):
        makeTerm(net["h1"])
    with pytest.raises(RunError, match=r"node h1: no window opens: .*Can't open display"):
        makeTerm(net["h1"], display="no-such-display:0")
