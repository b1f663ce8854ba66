"""Programs in nodes: how they start, what they see, how they end."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from airloom.errors import RunError
from airloom.nodes.kind import Exit, NodeHandle
from airloom.nodes.process.supervisor import Supervisor
from helpers.nodes import Up, eventually, interface, node

pytestmark = pytest.mark.world


@pytest.fixture
def a(up: Up) -> NodeHandle:
    return up(node("a", interface("eth0", 1, "10.1.0.1/24")))["a"]


def test_exit_codes_and_signals(a: NodeHandle) -> None:
    assert a.start(["true"]).wait(20).ok
    assert a.start(["sh", "-c", "exit 7"]).wait(20).code == 7
    process = a.start(["sleep", "1000"])
    assert process.poll() is None
    with pytest.raises(TimeoutError):
        process.wait(0.05)
    process.signal(signal.SIGTERM)
    assert process.wait(20) == process.poll()
    assert process.wait(20).signal == signal.SIGTERM
    process.signal(signal.SIGTERM)  # nothing happens


def test_a_signal_reaches_the_whole_group(a: NodeHandle, tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = (
        "trap 'echo parent; exit 3' USR1; "
        "sh -c \"trap 'echo child; exit' USR1; echo up; sleep 1000 & wait\" & "
        "wait"
    )
    process = a.start(["sh", "-c", script], stdout=log)
    eventually(lambda: "up" in log.read_text(), "it did not start")
    eventually(
        lambda: a.exec(["sh", "-c", "ls -d /proc/[0-9]* | wc -l"], timeout=20).stdout.strip() > "4",
        "no child",
    )
    process.signal(signal.SIGUSR1)
    assert process.wait(20).code == 3
    eventually(lambda: {"parent", "child"} <= set(log.read_text().split()), "it reached only one")


def test_processor_time_of_a_program(a: NodeHandle) -> None:
    done = a.exec(["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"], timeout=60)
    assert done.exit.user_ns + done.exit.system_ns > 10_000_000
    total = a.cpu()
    assert total.user_ns + total.system_ns >= 0.9 * (done.exit.user_ns + done.exit.system_ns)


def test_environment_and_folder(a: NodeHandle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_CONTROLLER", "1")
    done = a.exec(["sh", "-c", "pwd; echo $FROM_CONTROLLER $MINE"], env={"MINE": "x y"}, timeout=20)
    assert done.stdout == "/tmp\n1 x y\n"
    assert a.exec(["pwd"], folder="/usr", timeout=20).stdout == "/usr\n"


@pytest.mark.parametrize(
    ("argv", "folder", "words"),
    [
        (["no-such-program"], None, "cannot start no-such-program: no such program"),
        (["/etc/passwd"], None, "cannot start /etc/passwd: Permission denied"),
        (["true"], "/no/such", "working folder /no/such"),
        ([], None, "program without a name"),
        (["a\0b"], None, "name of the program"),
    ],
)
def test_what_cannot_start_says_why(a: NodeHandle, argv: list[str], folder: str | None, words: str) -> None:
    with pytest.raises(RunError, match=words) as caught:
        a.start(argv, folder=folder)
    assert caught.value.code == "program.start"
    assert "node a" in str(caught.value)
    assert a.exec(["true"], timeout=20).exit.ok


def test_a_log_that_cannot_be_opened_is_named(a: NodeHandle, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no-such"):
        a.start(["true"], stdout=tmp_path / "no-such" / "log")


def test_input_and_output(a: NodeHandle) -> None:
    text = "line\n" * 100_000
    done = a.exec(["cat"], input=text, timeout=60)
    assert done.stdout == text
    assert a.exec(["sh", "-c", "echo out; echo err >&2"], timeout=20).stderr == "err\n"
    assert a.exec(["true"], input=text, timeout=20).exit.ok  # does not read its input


def test_a_time_limit_ends_the_command_and_keeps_its_output(a: NodeHandle) -> None:
    done = a.exec(["sh", "-c", "echo before; sleep 1000"], timeout=1)
    assert done.timed_out
    assert done.stdout == "before\n"
    assert done.exit.signal == signal.SIGKILL


def test_what_a_command_leaves_behind_does_not_hold_it_up(a: NodeHandle) -> None:
    done = a.exec(["sh", "-c", "echo now; setsid sleep 1000 & exit 0"], timeout=60)
    assert (done.stdout, done.timed_out) == ("now\n", False)


def test_a_flood_goes_to_its_file(a: NodeHandle, tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = a.start(["sh", "-c", "yes flood | head -c 50000000; echo end"], stdout=log)
    assert process.wait(60).ok
    assert log.stat().st_size == 50_000_000 + len("end\n")


def test_a_flood_to_the_caller_is_cut(a: NodeHandle) -> None:
    done = a.exec(["sh", "-c", "yes | head -c 100000000"], timeout=60)
    assert done.exit.ok
    assert len(done.stdout) == 64 << 20


def test_orphans_are_reaped(a: NodeHandle) -> None:
    a.exec(["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do (sleep 0.01 &) ; done"], timeout=20)

    def states() -> str:
        return a.exec(["sh", "-c", "cat /proc/[0-9]*/stat | cut -d' ' -f2,3"], timeout=20).stdout

    eventually(lambda: "sleep" not in states(), "orphans are left")


def test_many_programs_at_once(a: NodeHandle) -> None:
    ends: list[Exit] = []
    processes = [a.start(["sh", "-c", f"exit {number}"], on_exit=ends.append) for number in range(100)]
    assert [process.wait(60).code for process in processes] == list(range(100))
    assert sorted(exit.code or 0 for exit in ends) == list(range(100))


def test_many_nodes_at_once(up: Up) -> None:
    handles = up(*(node(f"n{number}") for number in range(60)))
    for handle in handles.values():
        handle.wake()
    with ThreadPoolExecutor(20) as pool:
        done = list(
            pool.map(lambda handle: handle.exec(["hostname"], timeout=60).stdout.strip(), handles.values())
        )
    assert done == list(handles)


def test_a_node_without_programs_costs_no_process(up: Up, supervisor: Supervisor) -> None:
    up(*(node(f"n{number}") for number in range(5)))
    children = Path(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children").read_text()
    assert children == ""


def test_an_interactive_terminal(a: NodeHandle) -> None:
    near, far = pty.openpty()
    try:
        process = a.start(["sh", "-i"], stdin=far, stdout=far, stderr=far, tty=True, env={"PS1": "ready> "})
        seen = bytearray()
        thread = threading.Thread(target=_read_until_closed, args=(near, seen), daemon=True)
        thread.start()
        eventually(lambda: b"ready>" in seen, "no prompt")
        # A shell that is just starting a program may swallow Ctrl-C: wait until the program speaks.
        os.write(near, b"tty; sh -c 'echo run''ning; exec sleep 1000'; echo after\n")
        eventually(lambda: b"running" in seen, "it does not run")
        assert b"/dev/pts/" in seen
        os.write(near, b"\x03")  # Ctrl-C ends the sleep only
        os.write(near, b"echo still here; exit 5\n")
        assert process.wait(20).code == 5
        eventually(lambda: b"still here" in seen, "the shell has ended, or its output is lost")
    finally:
        os.close(far)
        os.close(near)


def _read_until_closed(fd: int, seen: bytearray) -> None:
    try:
        while piece := os.read(fd, 4096):
            seen += piece
    except OSError:
        pass


def test_listeners_are_seen(a: NodeHandle) -> None:
    assert not a.listens("tcp", 7777)
    script = "import socket, time; s = socket.create_server(('', 7777)); time.sleep(1000)"
    a.start(["python3", "-c", script])
    eventually(lambda: a.listens("tcp", 7777), "the listener is not seen")
    assert not a.listens("udp", 7777)


def test_pause_and_resume(a: NodeHandle, tmp_path: Path) -> None:
    log = tmp_path / "log"
    a.start(["sh", "-c", "while :; do echo x; sleep 0.01; done"], stdout=log)
    eventually(lambda: log.exists() and log.stat().st_size > 0, "it does not write")
    a.pause()
    assert a.state == "paused"
    with pytest.raises(RunError, match="is paused"):
        a.start(["true"])
    size = log.stat().st_size
    with pytest.raises(TimeoutError):
        threading_wait(0.3)
    assert log.stat().st_size == size
    a.resume()
    eventually(lambda: log.stat().st_size > size, "it does not go on")


def threading_wait(seconds: float) -> None:
    if not threading.Event().wait(seconds):
        raise TimeoutError


def test_a_processor_share_is_held(up: Up) -> None:
    handle = up(node("a", cpu=0.2))["a"]
    handle.exec(["true"], timeout=20)
    if any("share is not held" in note for note in handle.notes):
        pytest.skip(handle.notes[-1])
    handle.exec(["timeout", "2", "sh", "-c", "while :; do :; done"], timeout=60)
    used = handle.cpu()
    # At most the share; less if others keep the processors busy.
    assert used.user_ns + used.system_ns <= 0.25 * 2_300_000_000
    assert used.throttled_ns
    assert used.throttled_ns > 0


def test_signals_of_this_process_do_not_leak(a: NodeHandle) -> None:
    # Python ignores SIGPIPE and SIGXFSZ, and the first process blocks everything.
    done = a.exec(["sh", "-c", "grep -E 'SigBlk|SigIgn' /proc/self/status"], timeout=20)
    assert [line.split()[1].strip("0") for line in done.stdout.splitlines()] == ["", ""]
    limit = a.exec(["sh", "-c", "ulimit -n"], timeout=20).stdout.strip()
    own = subprocess.run(["sh", "-c", "ulimit -n"], capture_output=True, text=True, check=True).stdout.strip()
    assert limit == own
