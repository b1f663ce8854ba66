"""Which machines a fleet has, and the command that starts the agent on each."""

from __future__ import annotations

import getpass
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from airloom.errors import HostError, ScenarioError
from airloom.host import rspec_tree
from airloom.host.files import content
from airloom.host.rspec_tree import Element

FORMS = "local:N, ssh:HOST,HOST,..., rspec:FILE or slurm"
MOST_LOCAL = 64
"""Most agents on this machine."""
_AGENT = ("-P", "-m", "airloom", "fleet", "agent")
_COUNT = re.compile(r"[0-9]{1,3}")
_PORT = re.compile(r"[0-9]{1,5}")
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@%-]*")
"""A host for ``ssh``: no option of it, and no word for a shell."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How one machine is reached."""

    name: str
    command: tuple[str, ...]
    """Its standard streams are those of the agent."""
    trial: str
    """A command by which a user sees why the machine cannot be reached."""
    processors: int | None = None
    """Processors that its runs may have at most; None for all that the machine has."""


def launches(spec: str) -> list[Launch]:
    """Returns the machines of a fleet, in the order in which they are named.

    Raises :class:`ScenarioError` for what is no fleet, and :class:`HostError` if the program that reaches
    its machines is missing.
    """
    word, colon, rest = spec.partition(":")
    launcher = _LAUNCHERS.get(word)
    if launcher is None:
        raise ScenarioError("fleet.unknown", f"{spec!r} is no fleet", where="--fleet", cure=f"write {FORMS}")
    found = launcher(rest if colon else None)
    names = [one.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ScenarioError("fleet.twice", f"{twice} is named twice", where="--fleet", cure="name it once")
    return found


def _local(count: str | None) -> list[Launch]:
    if count is None or not _COUNT.fullmatch(count) or not 1 <= int(count) <= MOST_LOCAL:
        raise ScenarioError(
            "fleet.local",
            f"local:{count or ''} does not say how many agents this machine has",
            where="--fleet",
            cure=f"write local:2; 1 to {MOST_LOCAL}",
        )
    share = max(1, len(os.sched_getaffinity(0)) // int(count))
    command = (sys.executable, *_AGENT)
    return [
        Launch(f"local-{number}", command, "airloom --version", share) for number in range(1, int(count) + 1)
    ]


def _ssh(hosts: str | None) -> list[Launch]:
    named = [host.strip() for host in (hosts or "").split(",")]
    for host in named:
        if not _HOST.fullmatch(host):
            raise ScenarioError(
                "fleet.host",
                f"{host!r} is no host" if host else "no host is named",
                where="--fleet",
                cure="write ssh:HOST,HOST,... with names of ~/.ssh/config, or USER@HOST",
            )
    return [_by_ssh(host, host) for host in named]


def _rspec(file: str | None) -> list[Launch]:
    """The nodes of a manifest, as testbeds of GENI give it: ``<login>`` says how each is reached."""
    if not file:
        raise ScenarioError(
            "fleet.rspec", "no manifest is named", where="--fleet", cure="write rspec:manifest.xml"
        )
    try:
        root = rspec_tree.parse(content(Path(file), rspec_tree.LARGEST + 1), file)
    except OSError as error:
        raise ScenarioError("fleet.rspec", f"{error.strerror}", where=file, cure="name a manifest") from None
    found = [_logged_in(node, file) for node in root.each("node")]
    if not found:
        raise root.refusal(file, "no node of it can be reached", "give the manifest, not the request")
    return found


def _logged_in(node: Element, file: str) -> Launch:
    services = node.first("services")
    logins = [] if services is None else list(services.each("login"))
    if not logins:
        raise node.refusal(file, "it has no <login>", "give the manifest, not the request")
    # A node has one for each user of its project.
    mine = next((one for one in logins if one.get(file, "username") == getpass.getuser()), logins[0])
    host, port, user = mine.must(file, "hostname"), mine.get(file, "port"), mine.get(file, "username")
    for word in (host, user):
        if word is not None and not _HOST.fullmatch(word):
            raise mine.refusal(file, f"{word!r} is no host and no user")
    if port is not None and not _PORT.fullmatch(port):
        raise mine.refusal(file, f"{port!r} is no port")
    more = () if port is None else ("-p", port)
    return _by_ssh(node.must(file, "client_id"), host if user is None else f"{user}@{host}", more)


def _by_ssh(name: str, host: str, more: tuple[str, ...] = ()) -> Launch:
    client = _program("ssh", "apt install openssh-client")
    batch = ("-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", *more)
    return Launch(name, (client, *batch, host, _anywhere()), shlex.join(["ssh", *more, host, "true"]))


def _slurm(rest: str | None) -> list[Launch]:
    """The nodes of the Slurm allocation that this process is in, each with a step of its own."""
    if rest is not None:
        raise ScenarioError(
            "fleet.slurm", "slurm takes the nodes of its allocation", where="--fleet", cure="write slurm"
        )
    nodes = os.environ.get("SLURM_JOB_NODELIST")
    if not nodes:
        raise ScenarioError(
            "fleet.slurm",
            "this is no allocation of Slurm",
            where="--fleet",
            cure="salloc -N 4 airloom run ..., or write it into a script for sbatch",
        )
    srun, scontrol = _program("srun", _SLURM), _program("scontrol", _SLURM)
    _refuse_loose_tracking(scontrol)
    listed = subprocess.run([scontrol, "show", "hostnames", nodes], capture_output=True, text=True)
    if listed.returncode != 0:
        raise HostError("fleet.slurm", f"scontrol: {listed.stderr.strip()}", cure="ask the administrator")
    # A step that overlaps others has all that the job has on its node.
    step = ("--nodes=1", "--ntasks=1", "--overlap", "--mem=0", "--cpu-bind=none", "--kill-on-bad-exit")
    return [
        Launch(
            node,
            (srun, f"--nodelist={node}", *step, "--quiet", "sh", "-c", _anywhere()),
            f"srun --overlap --nodelist={node} true",
        )
        for node in listed.stdout.split()
    ]


_SLURM = "apt install slurm-client, on a machine of a Slurm cluster"


def _refuse_loose_tracking(scontrol: str) -> None:
    """Refuses a cluster that does not end what an agent started, if the agent is killed."""
    said = subprocess.run([scontrol, "show", "config"], capture_output=True, text=True).stdout
    tracking = re.search(r"^ProctrackType\s*=\s*(\S+)", said, re.MULTILINE)
    if tracking is not None and tracking[1] == "proctrack/linuxproc":
        raise HostError(
            "fleet.tracking",
            "this Slurm tracks processes by their parents (proctrack/linuxproc): of an agent that is killed "
            "it leaves the guests",
            cure="ProctrackType=proctrack/cgroup in slurm.conf",
        )


def _program(name: str, cure: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise HostError("fleet.program", f"{name} is not installed", cure=cure)
    return found


def _anywhere() -> str:
    """Shell words that start the agent on another machine.

    By the Python that this process has, if it is at the same place there, as on a shared file system or in
    an environment that was made in the same way; else by the command ``airloom``.
    """
    same, agent = shlex.quote(sys.executable), " ".join(_AGENT)
    return f"if [ -x {same} ]; then exec {same} {agent}; else exec airloom fleet agent; fi"


_LAUNCHERS: dict[str, Callable[[str | None], list[Launch]]] = {
    "local": _local,
    "ssh": _ssh,
    "rspec": _rspec,
    "slurm": _slurm,
}
