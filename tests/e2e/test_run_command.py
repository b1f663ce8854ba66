"""``airloom run`` from the outside: results, exit codes, and what is left however it ends."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import REPOSITORY, forked, needs_root_to_mount
from helpers.nodes import groups_of

pytestmark = pytest.mark.world

PAIR = "name: pair\nnodes: {a: {}, b: {}}\nlinks: [{ends: [a, b], delay: 10 ms}]\n"
SHORT = PAIR + "measurements: [{name: rtt, ping: {from: a, to: b, count: 5, interval: 20 ms}}]\n"
LONG = (
    PAIR
    + "programs: [{node: a, run: sleep 1000, name: stubborn, until_end: true}]\n"
    + "measurements:\n"
    + "  - {name: rtt, ping: {from: a, to: b, count: 5, interval: 20 ms}}\n"
    + "  - {name: endless, ping: {from: a, to: b, count: 100000, interval: 20 ms}}\n"
)


def result(shell, folder: str = "results") -> dict:
    return json.loads((shell.folder / folder / "result.json").read_text())


def begun(shell, process: forked.Started) -> None:
    """Waits until the second measurement runs."""
    path = shell.folder / "results" / "measurements" / "endless" / "client.out"
    shell.wait_until(
        lambda: process.poll() is not None or (path.exists() and b"bytes from" in path.read_bytes()),
        "the run got to its second measurement",
    )
    assert process.poll() is None, process.communicate()


@pytest.mark.quick
def test_a_run_prints_its_figures_and_the_verdict(shell, scenario):
    done = shell.run("run", scenario(SHORT), "--out", "results")
    assert done.returncode == 0, done.stderr
    assert "rtt mean" in done.stdout
    assert any(word in done.stdout for word in ("VALID", "DEGRADED", "INVALID"))
    found = {(one["name"], one["metric"]): one["mean"] for one in result(shell)["measurements"]}
    assert 20e6 <= found["rtt", "rtt_min"] < 22e6
    assert {"scenario.yaml", "result.json", "samples.parquet", "details.json"} <= set(
        os.listdir(shell.folder / "results")
    )
    shell.gone()


def test_a_run_loads_no_package_for_which_every_run_would_wait(shell, scenario):
    """Each takes a tenth of a second or more, some of it while the run measures."""
    code = (
        "import sys\n"
        "from airloom.cli import tree\n"
        "sys.argv = ['airloom', *sys.argv[1:]]\n"
        "tree.group_for(sys.argv[1:])(standalone_mode=False)\n"
        "print({'pandas', 'scipy', 'matplotlib'} & set(sys.modules))"
    )
    words = [sys.executable, "-c", code, "run", scenario(SHORT), "--out", "results"]
    done = subprocess.run(words, cwd=shell.folder, env=shell.env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "set()"


def test_strict_fails_a_run_that_is_not_valid(shell, scenario):
    strict = SHORT + "limits: {lateness_p99: 1 ns, lateness_max: 1 ns}\n"
    done = shell.run("run", scenario(strict), "--out", "results", "--strict", "-q")
    assert done.returncode == 1
    assert result(shell)["verdict"]["status"] != "valid"
    assert "--strict" in done.stderr


def test_a_failing_program_gives_exit_code_1_and_its_last_lines(shell, scenario):
    program = "programs: [{node: a, run: [sh, -c, 'echo no luck; exit 9']}]\n"
    done = shell.run("run", scenario(SHORT + program), "--out", "results")
    assert done.returncode == 1
    assert "exit code 9" in done.stderr
    assert "no luck" in done.stderr
    assert result(shell)["verdict"]["status"] == "invalid"
    shell.gone()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_it_in_good_order(shell, scenario, number, code):
    process = shell.start("run", scenario(LONG), "--out", "results")
    begun(shell, process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert signal.Signals(number).name in errors
    found = result(shell)
    assert found["verdict"]["status"] == "invalid"
    assert "stopped by" in found["verdict"]["reasons"][0]
    assert ("rtt", "received") in {(one["name"], one["metric"]) for one in found["measurements"]}
    assert found["ledger"]["delivered"] > 0
    shell.gone()


def test_ctrl_c_before_anything_is_measured(shell, scenario):
    process = shell.start("run", scenario(LONG), "--out", "results")
    shell.wait_until(lambda: (shell.folder / "results" / "result.json").exists(), "results were begun")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert result(shell)["verdict"]["status"] == "invalid"
    shell.gone()


def test_a_second_ctrl_c_ends_it_at_once(shell, scenario):
    deaf = LONG.replace("run: sleep 1000", "run: [sh, -c, 'trap \"\" TERM; while :; do sleep 1; done']")
    process = shell.start("run", scenario(deaf), "--out", "results")
    begun(shell, process)
    process.send_signal(signal.SIGINT)
    shell.wait_until(lambda: "client" not in " ".join(shell.leftovers().values()), "it began to stop")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    shell.gone()


def test_sigkill_leaves_nothing(shell, scenario):
    process = shell.start("run", scenario(LONG), "--out", "results")
    begun(shell, process)
    inside = shell.leftovers()
    assert any("sleep 1000" in command for command in inside.values())
    mounts = Path("/proc/self/mountinfo").read_text()
    process.kill()
    process.communicate(timeout=60)
    shell.gone()
    assert Path("/proc/self/mountinfo").read_text() == mounts
    # The groups bear the number of the supervisor, which is one of those inside.
    assert groups_of(process.pid, *inside) == []
    assert result(shell)["verdict"]["status"] == "invalid"


def test_two_runs_at_once(shell, scenario):
    file = scenario(SHORT)
    both = [shell.start("run", file, "--out", name, "-q") for name in ("first", "second")]
    assert [(process.communicate(timeout=60)[1], process.returncode) for process in both] == [("", 0)] * 2
    for name in ("first", "second"):
        assert result(shell, name)["ledger"]["host_lost"] == 0
    shell.gone()


def in_a_mount_namespace(*before: str) -> tuple[str, ...]:
    """A prefix that runs a command after some others, in a mount namespace of its own."""
    return ("unshare", "--mount", "sh", "-ec", "; ".join([*before, 'exec "$@"']), "sh")


@needs_root_to_mount
def test_no_dev_net_tun(shell, scenario):
    prefix = in_a_mount_namespace("mount -t tmpfs none /dev/net")
    done = shell.run("run", scenario(SHORT), "--out", "results", prefix=prefix)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert "/dev/net/tun does not exist" in line
    assert "modprobe tun" in line
    assert not (shell.folder / "results").exists()


def test_no_permission_for_namespaces(shell, scenario):
    """In a user namespace whose limit on network namespaces is zero."""
    limit = 'echo 0 > /proc/sys/user/max_net_namespaces; exec "$@"'
    prefix = ("unshare", "--user", "--map-root-user", "sh", "-ec", limit, "sh")
    done = shell.run("run", scenario(SHORT), "--out", "results", prefix=prefix)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert "namespaces: refused" in line
    assert not (shell.folder / "results").exists()


@needs_root_to_mount
def test_a_disk_that_is_full_while_recording(shell, scenario):
    """The verdict is written all the same, and says so; the process in there prints it for us."""
    disk = shell.folder / "disk"
    disk.mkdir()
    flow = (
        PAIR + "measurements: [{name: flow, traffic: {from: a, to: b, interval: 100 us, size: 64 B, "
        "duration: 2 s}}]\n"
    )
    script = (
        f"mount -t tmpfs -o size=700k none {disk}; "
        f"{shlex.join([sys.executable, '-m', 'airloom', 'run', scenario(flow)])} -q --out {disk}/results "
        "|| echo code $?; "
        f"cat {disk}/results/result.json"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], env=shell.env, capture_output=True, text=True, timeout=100
    )
    assert "code 1" in done.stdout
    assert "full" in done.stderr
    found = json.loads(done.stdout[done.stdout.rindex('{\n  "schema"') :])
    assert found["verdict"]["status"] == "invalid"
    assert "full" in " ".join(found["verdict"]["reasons"])
    shell.gone()


def test_a_sweep_that_was_cut_short_is_resumed(shell, scenario):
    file = scenario(SHORT + "sweep: {'links[0].delay': [1 ms, 2 ms, 3 ms]}\n")
    process = shell.start("run", file, "--out", "results")
    first = shell.folder / "results" / "points" / "p0000-r00" / "samples.parquet"
    shell.wait_until(first.exists, "the first point was done")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    refused = shell.run("run", file, "--out", "results")
    assert refused.returncode != 0
    assert "--resume" in refused.stderr
    kept = first.stat().st_mtime_ns
    done = shell.run("run", file, "--out", "results", "--resume")
    assert done.returncode == 0, done.stderr
    assert first.stat().st_mtime_ns == kept
    assert "3 of 3" in done.stdout
    shell.gone()


def cut_after_the_first_point(shell, file: str) -> None:
    process = shell.start("run", file, "--out", "results", "-q")
    first = shell.folder / "results" / "points" / "p0000-r00" / "samples.parquet"
    shell.wait_until(first.exists, "the first point was done")
    process.kill()
    process.communicate(timeout=60)


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    for word in words:
        assert word in line


def test_runs_of_another_scenario_are_not_mixed_in(shell, scenario):
    (shell.folder / "link.trace").write_text("1\n2\n")
    text = SHORT.replace("delay: 10 ms", "delay: 10 ms, loss: 0 %").replace(
        "links: [", "links: [{ends: [a, b], trace: link.trace}, "
    )
    file = scenario(text + "sweep: {'measurements[0].ping.count': [5, 6, 7]}\n")
    cut_after_the_first_point(shell, file)
    kept = (shell.folder / "results" / "sweep.json").read_text()
    resume = ("run", file, "--out", "results", "--resume", "-q")
    refused(shell.run(*resume, "--set", "links[1].delay=20 ms"), "links[1].delay", "10 ms", "20 ms")
    refused(shell.run(*resume, "--seed", "5"), "seed is 1 there, 5 here", "[results.other-sweep]")
    (shell.folder / "link.trace").write_text("1\n3\n")
    refused(shell.run(*resume), "link.trace has changed since")
    assert (shell.folder / "results" / "sweep.json").read_text() == kept
    (shell.folder / "link.trace").write_text("1\n2\n")
    assert shell.run(*resume).returncode == 0
    shell.gone()


def test_one_folder_has_one_writer(shell, scenario):
    file = scenario(LONG + "repetitions: 2\n")
    process = shell.start("run", file, "--out", "results", "-q")
    shell.wait_until(lambda: (shell.folder / "results" / "points").exists(), "results were begun")
    refused(shell.run("run", file, "--out", "results", "--resume"), "results", "[results.locked]")
    process.kill()
    process.communicate(timeout=60)
    shell.wait_until(lambda: not shell.leftovers(), "everything ended")
    short = ("run", scenario(SHORT), "--out", "results")
    refused(shell.run(*short), "holds a sweep", "[results.exists]")
    assert shell.run("report", "results").returncode == 0
    shell.gone()


def test_a_sweep_does_not_overwrite_a_single_run(shell, scenario):
    assert shell.run("run", scenario(SHORT), "--out", "results", "-q").returncode == 0
    before = result(shell)
    for more in ((), ("--resume",)):
        done = shell.run("run", scenario(SHORT + "repetitions: 2\n"), "--out", "results", *more)
        refused(done, "single run", "[results.exists]")
    assert result(shell) == before
    shell.gone()


def test_a_run_that_asks_too_much_never_gives_a_silent_wrong_figure(shell):
    """All of it on one processor, so that it is too much on any machine.

    What gives way differs: the engine, whose frames the host then loses, or the sources, which are late.
    """
    example = REPOSITORY / "examples" / "overload.yaml"
    processor = str(min(os.sched_getaffinity(0)))
    shorter = [f"measurements[{i}].traffic.duration=2 s" for i in range(1, 5)]
    words = [word for one in [*shorter, "measurements[0].ping.count=5"] for word in ("--set", one)]
    done = shell.run(
        *("run", str(example), "--out", "results", "--strict", "-q", *words),
        prefix=("taskset", "-c", processor),
    )
    assert done.returncode == 1, done.stderr
    verdict = result(shell)["verdict"]
    assert verdict["status"] in ("degraded", "invalid")
    assert {"host.cpu-pressure", "node.starved"} <= set(verdict["codes"])
    assert {"host.lost", "traffic.pacing"} & set(verdict["codes"])
    assert any("n1" in reason and "waited for a processor" in reason for reason in verdict["reasons"])
    shell.gone()
