"""Which machines the words of ``--fleet`` name, and which words are refused."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import pytest

from airloom.errors import HostError, ScenarioError
from airloom.fleet.launchers import launches


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that alone is searched for programs."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def put(folder: Path, name: str, script: str = "") -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "'' is no fleet"),
        ("locl:2", "'locl:2' is no fleet"),
        ("ray:here", "'ray:here' is no fleet"),
        ("local", "how many agents"),
        ("local:", "how many agents"),
        ("local:0", "how many agents"),
        ("local:-1", "how many agents"),
        ("local:1.5", "how many agents"),
        ("local:65", "how many agents"),
        ("local:٣", "how many agents"),
        ("ssh", "no host is named"),
        ("ssh:", "no host is named"),
        ("ssh:a,,b", "no host is named"),
        ("ssh:-oProxyCommand=true", "'-oProxyCommand=true' is no host"),
        ("ssh:a;b", "'a;b' is no host"),
        ("ssh:a b", "'a b' is no host"),
        ("ssh:$(id)", "is no host"),
        ("ssh:a, a", "a is named twice"),
        ("rspec", "no manifest is named"),
        ("slurm:4", "slurm takes the nodes of its allocation"),
        ("slurm", "this is no allocation of Slurm"),
    ],
)
def test_words_that_name_no_fleet_are_refused(
    programs: Path, monkeypatch: pytest.MonkeyPatch, spec: str, said: str
) -> None:
    put(programs, "ssh")
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    with pytest.raises(ScenarioError) as refused:
        launches(spec)
    assert said in refused.value.message
    assert refused.value.where == "--fleet"
    assert refused.value.cure


def test_agents_of_this_machine_share_its_processors() -> None:
    count = len(os.sched_getaffinity(0))
    found = launches("local:3")
    assert [one.name for one in found] == ["local-1", "local-2", "local-3"]
    assert {one.processors for one in found} == {max(1, count // 3)}


def test_hosts_are_reached_by_name_or_as_a_user(programs: Path) -> None:
    put(programs, "ssh")
    found = launches("ssh:lab1, me@10.0.0.2,fe80::1%eth0")
    assert [one.name for one in found] == ["lab1", "me@10.0.0.2", "fe80::1%eth0"]
    assert all(one.command[0] == str(programs / "ssh") for one in found)
    assert found[1].trial == "ssh me@10.0.0.2 true"


def manifest(folder: Path, nodes: str) -> str:
    path = folder / "manifest.xml"
    path.write_text(f'<rspec xmlns="http://www.geni.net/resources/rspec/3" type="manifest">{nodes}</rspec>')
    return f"rspec:{path}"


def node(name: str, *logins: str) -> str:
    inside = "".join(f'<login authentication="ssh-keys" {login}/>' for login in logins)
    return f'<node client_id="{name}"><services>{inside}</services></node>'


def test_nodes_of_a_manifest_are_reached_by_their_logins(programs: Path) -> None:
    """One that has a login for each member of its project is reached by that of this user."""
    put(programs, "ssh")
    me = getpass.getuser()
    near = node("near", 'hostname="pc1.example.net" port="22" username="else"')
    shared = (f'hostname="pc2" port="31" username="{name}"' for name in ("else", me))
    found = launches(manifest(programs, near + node("far", *shared) + node("bare", 'hostname="pc3"')))
    assert [one.name for one in found] == ["near", "far", "bare"]
    assert [one.trial for one in found] == [
        "ssh -p 22 else@pc1.example.net true",
        f"ssh -p 31 {me}@pc2 true",
        "ssh pc3 true",
    ]
    assert found[0].command[-4:-1] == ("-p", "22", "else@pc1.example.net")


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ("", "no node of it can be reached"),
        ('<node client_id="a"/>', "it has no <login>"),
        (node("a", 'username="x"'), "it has no hostname"),
        (node("a", 'hostname="-oProxyCommand=true"'), "is no host"),
        (node("a", 'hostname="x" username="-v"'), "is no host and no user"),
        (node("a", 'hostname="x" port="ssh"'), "'ssh' is no port"),
        (node("a", 'hostname="x"') * 2, "a is named twice"),
        ("<node", "it is no XML"),
    ],
)
def test_a_manifest_that_names_no_hosts_is_refused(programs: Path, nodes: str, said: str) -> None:
    put(programs, "ssh")
    with pytest.raises(ScenarioError) as refused:
        launches(manifest(programs, nodes))
    assert said in refused.value.message


def test_a_manifest_that_is_missing_is_named(programs: Path) -> None:
    with pytest.raises(ScenarioError) as refused:
        launches("rspec:nowhere.xml")
    assert refused.value.message == "No such file or directory"
    assert refused.value.where == "nowhere.xml"


@pytest.mark.parametrize(
    ("spec", "said"), [("ssh:a", "ssh is not installed"), ("slurm", "srun is not installed")]
)
def test_a_program_that_is_missing_is_named(
    programs: Path, monkeypatch: pytest.MonkeyPatch, spec: str, said: str
) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[1-2]")
    with pytest.raises(HostError) as refused:
        launches(spec)
    assert said in refused.value.message
    assert "apt install" in refused.value.cure


def test_each_node_of_an_allocation_has_a_step(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for Slurm's commands; tests/e2e/test_fleet.py has a real one."""
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[1-2]")
    put(programs, "srun")
    put(
        programs,
        "scontrol",
        'case "$2" in hostnames) echo node1; echo node2;; *) echo "ProctrackType = $TRACKING";; esac',
    )
    monkeypatch.setenv("TRACKING", "proctrack/cgroup")
    assert [one.name for one in launches("slurm")] == ["node1", "node2"]
    monkeypatch.setenv("TRACKING", "proctrack/linuxproc")
    with pytest.raises(HostError) as refused:
        launches("slurm")
    assert "ProctrackType=proctrack/cgroup" in refused.value.cure
