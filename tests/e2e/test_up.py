"""``airloom up`` with a script of commands and from a terminal; ``exec`` and ``shell`` from elsewhere."""

from __future__ import annotations

import signal

import pytest

from helpers.terminal import talk

pytestmark = pytest.mark.world

STAR = (
    "name: star\nnodes: {h1: {}, h2: {}}\nswitches: {s1: {}}\n"
    "links: [{ends: [h1, s1]}, {ends: [h2, s1], delay: 1 ms}]\n"
)


def sleeps(shell) -> bool:
    """Whether the program of a client runs, in a node."""
    return any(command.startswith("sleep 1000") for command in shell.leftovers().values())


@pytest.fixture
def up(shell, scenario):
    """A laboratory that is up, talked to through its standard input."""
    with shell.up(scenario(STAR), "h1", "h2") as process:
        yield process


def test_a_script_of_commands(shell, scenario):
    script = "h1 ping -c 1 h2\npingall\nlink h1 s1 set delay=5ms\nlinks\nverdict\nexit\nnever\n"
    done = shell.run("up", scenario(STAR), "--out", "results", input=script)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "1 received" in done.stdout
    assert "2 of 2 received" in done.stdout
    assert "h1-s1: h1:eth0 <-> s1 up unlimited, 5 ms" in done.stdout
    assert "verdict: " in done.stdout
    assert "never" not in done.stdout
    assert (shell.folder / "results" / "result.json").exists()
    shell.gone()


def test_a_script_with_a_failing_command_gives_exit_code_1(shell, scenario):
    done = shell.run("up", scenario(STAR), "--out", "results", input="h1 false\nnodes\n")
    assert done.returncode == 1
    assert "nodes:" in done.stdout


def test_exec_gives_output_and_exit_code(shell, up):
    lab = ("--lab", str(up.pid))
    done = shell.run("exec", *lab, "h1", "--", "sh", "-c", "hostname; echo wrong >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "h1\n", "wrong\n")
    done = shell.run("exec", *lab, "h1", "--", "ping", "-c", "1", "h2")
    assert done.returncode == 0
    assert "1 received" in done.stdout
    assert shell.run("exec", *lab, "h2", "--", "cat", input="given").stdout == "given"


def test_exec_says_what_is_wrong(shell, up):
    lab = ("--lab", str(up.pid))
    assert "there is no node h9" in shell.run("exec", *lab, "h9", "--", "true").stderr
    missing = shell.run("exec", *lab, "h1", "--", "no-such-program")
    assert missing.returncode == 1
    assert "no-such-program" in missing.stderr


def test_ctrl_c_reaches_the_program_of_exec(shell, up):
    client = shell.start("exec", "--lab", str(up.pid), "h1", "--", "sleep", "1000")
    shell.wait_until(lambda: sleeps(shell), "it sleeps")
    client.send_signal(signal.SIGINT)
    client.communicate(timeout=60)
    assert client.returncode == 128 + signal.SIGINT


def test_a_client_that_is_killed_takes_its_program_along(shell, up):
    client = shell.start("exec", "--lab", str(up.pid), "h1", "--", "sleep", "1000")
    shell.wait_until(lambda: sleeps(shell), "it sleeps")
    client.kill()
    client.communicate(timeout=60)
    shell.wait_until(lambda: not sleeps(shell), "it ended")


def test_a_shell_on_a_terminal(shell, up):
    code, heard = talk(
        shell,
        ["shell", "--lab", str(up.pid), "h1"],
        [
            # A shell that is just starting a program may swallow Ctrl-C: wait until the program speaks.
            ("# ", "hostname; tty; sh -c 'echo run''ning; exec sleep 1000'\r"),
            ("running\r", "\x03"),
            ("# ", "stty size; exit 5\r"),
        ],
    )
    assert code == 5
    assert "h1" in heard
    assert "not a tty" not in heard


def test_the_prompt_on_a_terminal(shell, scenario):
    code, heard = talk(
        shell,
        ["up", scenario(STAR), "--out", "results"],
        [
            ("airloom> ", "h1 ping -c 1 h2\r"),
            ("1 received", ""),
            # The echo of the line is no sign that its program runs.
            ("airloom> ", "h1 sh -c 'echo run''ning; exec sleep 1000'\r"),
            ("running\r", "\x03"),
            ("airloom> ", "help\r"),
            ("pingall", ""),
            ("airloom> ", "exit\r"),
        ],
    )
    assert code == 0, heard
    shell.gone()


def test_ctrl_c_at_the_prompt_is_no_end(shell, scenario):
    code, heard = talk(
        shell,
        ["up", scenario(STAR), "--out", "results"],
        [
            ("airloom> ", "no"),
            ("no", "\x03"),
            ("airloom> ", "nodes\r"),
            ("h1 h2", ""),
            ("airloom> ", "\x04"),
        ],
    )
    assert code == 0, heard


def test_sigkill_of_a_laboratory_leaves_nothing(shell, up):
    client = shell.start("exec", "--lab", str(up.pid), "h1", "--", "sleep", "1000")
    shell.wait_until(lambda: sleeps(shell), "it sleeps")
    up.kill()
    _, errors = client.communicate(timeout=60)
    assert client.returncode == 1
    assert "the laboratory ended" in errors
    up.communicate(timeout=60)
    shell.gone()


def test_sigterm_ends_a_laboratory_in_good_order(shell, up):
    up.send_signal(signal.SIGTERM)
    up.communicate(timeout=60)
    assert up.returncode == 143
    shell.gone()
