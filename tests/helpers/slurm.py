"""A real Slurm of several nodes on this machine, inside of namespaces of its own.

``python -m helpers.slurm TRACKING NODE [NODE ...] -- COMMAND ...`` starts a controller and a daemon
for each node, runs the command and ends all.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

TESTS = Path(__file__).parents[1]
FREEZER = Path("/sys/fs/cgroup/freezer")
"""By this hierarchy Slurm 22.05 tracks processes without systemd."""
CGROUPS, PARENTS = "proctrack/cgroup", "proctrack/linuxproc"
_PROGRAMS = ("munged", "slurmctld", "slurmd", "salloc", "srun", "scontrol", "unshare")
_FOLDER = Path("/mnt")
"""Of these namespaces only. Slurm's sockets have the whole path in their name."""
_ADDRESS = "10.9.9.1"
"""Slurm takes no loopback address."""
_READY_S = 30.0


def lacking() -> str:
    """Returns why there can be no Slurm here, or nothing."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    missing = [name for name in _PROGRAMS if shutil.which(name, path=path) is None]
    if missing:
        return f"no {missing[0]}: apt-get install slurmd slurmctld slurm-client munge"
    if os.getuid() != 0:
        return "daemons of Slurm have root's rights here"
    if not os.access(FREEZER, os.W_OK):
        return f"no {FREEZER}"
    return ""


def inside(nodes: Sequence[str], tracking: str = CGROUPS) -> list[str]:
    """Returns the words before a command that is to run beside a Slurm with these nodes."""
    apart = ["--net", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"]
    python = ["env", f"PYTHONPATH={TESTS}", sys.executable, "-m", "helpers.slurm"]
    return ["unshare", *apart, *python, tracking, *nodes, "--"]


def remove_groups(nodes: Sequence[str]) -> None:
    """Removes the control groups that daemons leave behind, as soon as their processes have ended."""
    until = time.monotonic() + _READY_S
    left = [FREEZER / f"slurm_{node}" for node in nodes]
    while left := [group for group in left if group.exists()]:
        for group in left:
            for folder, _, _ in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
        if time.monotonic() > until:
            raise TimeoutError(f"there are processes in {left[0]}")
        time.sleep(0.05)


def main(words: Sequence[str]) -> int:
    """Starts the daemons, runs the command and returns its exit code."""
    # The first process of a namespace has no default action for a signal.
    signal.signal(signal.SIGINT, lambda *_: None)
    border = words.index("--")
    tracking, nodes, command = words[0], words[1:border], words[border + 1 :]
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    os.environ["SLURM_CONF"] = f"{_FOLDER}/slurm.conf"
    os.environ.pop("PYTHONPATH")
    for command_line in (
        f"mount -t tmpfs none {_FOLDER}",
        "ip link set lo up",
        f"ip address add {_ADDRESS} dev lo",
    ):
        subprocess.run(command_line.split(), check=True)
    _write(tracking, nodes)
    munged = (f"--key-file={_FOLDER}/key", f"--socket={_FOLDER}/munge", f"--pid-file={_FOLDER}/munged.pid")
    apart = (f"--log-file={_FOLDER}/munged.log", f"--seed-file={_FOLDER}/munged.seed", "--force")
    subprocess.run(["munged", *munged, *apart], check=True)
    subprocess.run(["slurmctld", "-c"], check=True)
    for node in nodes:
        subprocess.run(["slurmd", "-N", node], check=True)
    until = time.monotonic() + _READY_S
    while _states() != {"idle"}:
        if time.monotonic() > until:
            raise TimeoutError((_FOLDER / "slurmctld.log").read_text())
        time.sleep(0.05)
    return _run(command)


def _run(command: Sequence[str]) -> int:
    """Runs a command as the first process of a namespace does: whatever has lost its parent is reaped."""
    process = subprocess.Popen(command)
    while True:
        ended, status = os.wait()
        if ended == process.pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode


def _states() -> set[str]:
    said = subprocess.run(["sinfo", "--noheader", "--format=%t"], capture_output=True, text=True)
    return set(said.stdout.split())


def _write(tracking: str, nodes: Sequence[str]) -> None:
    (_FOLDER / "key").write_bytes(os.urandom(128))
    (_FOLDER / "key").chmod(0o400)
    (_FOLDER / "state").mkdir()
    (_FOLDER / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
    host, first = socket.gethostname(), 17001
    each = "\n".join(
        f"NodeName={node} NodeHostname={host} NodeAddr={_ADDRESS} Port={first + number} CPUs={os.cpu_count()}"
        for number, node in enumerate(nodes)
    )
    (_FOLDER / "slurm.conf").write_text(
        f"""ClusterName=laboratory
SlurmctldHost={host}({_ADDRESS})
SlurmUser=root
AuthInfo=socket={_FOLDER}/munge
StateSaveLocation={_FOLDER}/state
SlurmdSpoolDir={_FOLDER}/spool-%n
SlurmctldPidFile={_FOLDER}/slurmctld.pid
SlurmdPidFile={_FOLDER}/%n.pid
SlurmctldLogFile={_FOLDER}/slurmctld.log
SlurmdLogFile={_FOLDER}/%n.log
ProctrackType={tracking}
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
SwitchType=switch/none
{each}
PartitionName=all Nodes=ALL Default=YES State=UP
"""
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
