"""What doctor says at its end, and the commands that it offers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airloom.host.namespace_cure import cure
from airloom.nodes.doctor import Finding, summary


def machine(root: Path, *, container: bool = False, **switches: int) -> Path:
    """The files of a machine with these sysctls, whose dots are written as double underscores."""
    for name, value in switches.items():
        path = root / "proc" / "sys" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    if container:
        (root / ".dockerenv").touch()
    return root


UBUNTU_24 = {
    "kernel__apparmor_restrict_unprivileged_userns": 1,
    "kernel__unprivileged_userns_clone": 1,
    "user__max_user_namespaces": 63000,
}


def test_ubuntu_24_04_is_told_the_switch_of_apparmor(tmp_path: Path) -> None:
    said = cure(machine(tmp_path, **UBUNTU_24))
    assert said == "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"


@pytest.mark.parametrize(
    ("switches", "said"),
    [
        ({"kernel__unprivileged_userns_clone": 0}, "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
        ({"user__max_user_namespaces": 0}, "sudo sysctl -w user.max_user_namespaces=10000"),
        (
            {"user__max_user_namespaces": 0, "user__max_net_namespaces": 0},
            "sudo sysctl -w user.max_user_namespaces=10000 user.max_net_namespaces=10000",
        ),
        ({"user__max_user_namespaces": 5}, "run as root"),
        ({}, "run as root"),
    ],
)
def test_only_switches_that_forbid_are_named(switches: dict[str, int], said: str, tmp_path: Path) -> None:
    assert cure(machine(tmp_path, **switches)) == said


def test_in_a_container_root_is_no_cure(tmp_path: Path) -> None:
    said = cure(machine(tmp_path, container=True))
    assert said == "start the container by: docker run --privileged --device /dev/net/tun"
    with_switch = cure(machine(tmp_path, container=True, **UBUNTU_24))
    assert with_switch.endswith("on its host: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")


def finding(name: str, ok: bool, serves: str = "something", need: str = "optional") -> Finding:
    return Finding(name, ok, need, "detail", "cure", serves)  # type: ignore[arg-type]


FOUND = [
    finding("namespaces", True, need="basic"),
    finding("kind netns", True),
    finding("kind uml", False, "nodes of kind `uml`"),
    finding("skopeo", False, "images of containers from a registry"),
]


@pytest.mark.parametrize(("user", "who"), [(0, "For root,"), (1000, "For this user, without root,")])
def test_the_end_says_what_works_and_what_does_not(
    user: int, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    said = summary(FOUND)
    works, lacks = said.split(" Not for this user: ")
    assert works.startswith(who)
    assert "kind netns." in works
    assert "nodes of kind `uml` (kind uml)" in lacks
    assert "images of containers from a registry (skopeo)" in lacks
    assert ("real interfaces" in lacks) == (user != 0)


def test_without_what_every_run_needs_nothing_works() -> None:
    said = summary([finding("tap", False, need="basic"), *FOUND[1:]])
    assert said.startswith("Nothing runs for")
    assert "tap must be there first" in said
