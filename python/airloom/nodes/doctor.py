"""Tests the capabilities of this machine and names what to install for missing ones.

Nothing is changed: each test creates its namespace or device in a child process, which removes it.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from airloom.errors import HostError
from airloom.host import binaries, idle_poll, privilege, programs, radios
from airloom.host.user_namespace import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    unshare,
)
from airloom.nodes.all_nodes import KINDS
from airloom.nodes.process.supervisor import Supervisor

TUN = Path("/dev/net/tun")
_TUNSETIFF, _IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR = 0x400454CA, 0x0002, 0x1000, 0x4000


@dataclass(frozen=True, slots=True)
class Finding:
    """One capability of this machine."""

    name: str
    ok: bool
    need: Literal["basic", "optional"]
    detail: str
    """The test's result or error."""
    cure: str = ""
    """How to obtain a missing capability."""
    serves: str = ""
    """What the capability is needed for."""


def examine() -> list[Finding]:
    """Runs all tests, required capabilities first."""
    return [
        _namespaces(),
        _tap(),
        *(_own(name) for name in binaries.OWN_PROGRAMS),
        _extension(),
        _user_namespaces(),
        _cgroup_cpu(),
        _pressure(),
        _steal(),
        _idle(),
        _device(
            Path("/dev/kvm"), "hardware virtualization for `qemu` nodes", "enable VT-x or AMD-V, load kvm"
        ),
        _device(Path("/dev/vhost-net"), "faster network cards of `qemu` nodes", "modprobe vhost_net"),
        _radios(),
        *(_program(*entry) for entry in PROGRAMS.items()),
        *(_kind(name) for name in KINDS),
    ]


def lacking_basics(findings: list[Finding]) -> list[Finding]:
    """The missing capabilities without which no run is possible."""
    return [finding for finding in findings if finding.need == "basic" and not finding.ok]


def require_basics(
    *, restart: bool = False, taps: bool = True, shares: Mapping[str, float] | None = None
) -> None:
    """Raises :class:`HostError` for the first missing required capability. Call before a run.

    Without root privileges this process enters a user namespace. If it has threads, and ``restart``
    is true, it re-executes itself for that. ``taps`` and ``shares`` are those of the run's
    :class:`~airloom.planning.plan.Plan`.
    """
    privilege.ensure(restart=restart, taps=taps)
    needed = [_namespaces(), *([_tap()] if taps else []), _own("airloom-init")]
    for finding in lacking_basics(needed):
        raise HostError("host.lacks", f"{finding.name}: {finding.detail}", cure=finding.cure)
    if shares:
        with Supervisor() as supervisor:
            supervisor.require_shares(shares)


PROGRAMS = {
    "ping": "`ping` measurements",
    "iperf3": "`iperf3` measurements",
    "iperf": "`iperf` in Mininet's scripts and prompt, which take iperf3 without it",
    "iptables": "`NAT` between networks of Mininet's scripts",
    "slirp4netns": "`addNAT` of Mininet's scripts: access to the machine's network",
    "xterm": "windows of nodes in Mininet's scripts",
    "tcpdump": "looking into a node's interfaces",
    "ip": "looking at a node's addresses and routes",
    "iw": "setting up radios with `device: wlan`",
    "hostapd": "access points on radios with `device: wlan`",
    "wpa_supplicant": "stations with encryption on radios with `device: wlan`",
    "babeld": "the routing example with Babel",
    "zebra": "`routing: ospf`, `isis` and `bgp`",
    "skopeo": "images of containers from a registry",
    "ovs-testcontroller": "controllers of Mininet's scripts",
    "mnexec": "Mininet beside Airloom in `bench mininet` and the experiments of the MTU study",
    "brctl": "Mininet's Linux bridges",
}
"""Per program: what it is needed for."""


def _program(name: str, serves: str) -> Finding:
    path = programs.find(name)
    return Finding(
        name,
        path is not None,
        "optional",
        "not installed" if path is None else str(path),
        programs.cure([name]),
        serves,
    )


def _kind(name: str) -> Finding:
    kind = KINDS[name]
    lacking = kind.lacks()
    return Finding(
        f"kind {name}",
        not lacking,
        "optional",
        "; ".join(error.message for error in lacking) or kind.found(),
        "; ".join(dict.fromkeys(error.cure or "" for error in lacking)),
        f"{'switches' if name == 'openvswitch' else 'nodes'} of kind `{name}`",
    )


def _own(name: str) -> Finding:
    need: Literal["basic", "optional"] = "basic" if name == "airloom-init" else "optional"
    serves = "programs in nodes" if name == "airloom-init" else "`traffic` measurements"
    try:
        return Finding(name, True, need, str(binaries.find(name)), serves=serves)
    except HostError as error:
        return Finding(name, False, need, error.message, error.cure or "", serves)


def _extension() -> Finding:
    try:
        import airloom._engine as engine
    except ImportError as error:
        return Finding("engine", False, "basic", str(error), "make setup", "everything")
    return Finding("engine", True, "basic", str(engine.__file__), serves="everything")


def _namespaces() -> Finding:
    flags = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID
    how = "as root"
    if os.geteuid() != 0:
        flags |= CLONE_NEWUSER
        how = "inside a user namespace"
    error = _in_child(lambda: unshare(flags))
    return Finding(
        "namespaces",
        error is None,
        "basic",
        how if error is None else f"refused: {error}",
        "run as root, or sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000",
        "nodes",
    )


def _tap() -> Finding:
    serves = "links of nodes"
    cure = f"modprobe tun; in a container pass the device through (--device {TUN})"
    if not TUN.exists():
        return Finding("tap", False, "basic", f"{TUN} does not exist", cure, serves)

    def trial() -> None:
        unshare(CLONE_NEWNET if os.geteuid() == 0 else CLONE_NEWNET | CLONE_NEWUSER)
        with TUN.open("r+b", buffering=0) as device:
            request = struct.pack("16sH22x", b"trial0", _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR)
            fcntl.ioctl(device, _TUNSETIFF, request)

    error = _in_child(trial)
    detail = f"{TUN}, with segmentation offload" if error is None else f"{TUN} refused: {error}"
    return Finding("tap", error is None, "basic", detail, cure, serves)


def _user_namespaces() -> Finding:
    def trial() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
        unshare(CLONE_NEWUSER | CLONE_NEWNET)

    error = _in_child(trial)
    return Finding(
        "user namespaces",
        error is None,
        "optional",
        "open to ordinary users" if error is None else f"refused: {error}",
        "sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0",
        "running without root",
    )


def _cgroup_cpu() -> Finding:
    serves = "`cpu` and `cpus: {share: ...}` of nodes"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, folder, kind, options, *_ = line.split()
        if kind == "cgroup2":
            controllers = Path(folder, "cgroup.controllers")
            if controllers.is_file() and "cpu" in controllers.read_text().split():
                return _cgroup_writable(folder, "version 2", serves)
        elif kind == "cgroup" and "cpu" in options.split(","):
            return _cgroup_writable(folder, "version 1", serves)
    return Finding(
        "processor shares",
        False,
        "optional",
        "no cgroup hierarchy with the cpu controller",
        "boot with systemd.unified_cgroup_hierarchy=1",
        serves,
    )


def _cgroup_writable(folder: str, version: str, serves: str) -> Finding:
    ok = os.access(folder, os.W_OK)
    detail = f"cgroup {version} at {folder}" if ok else f"cgroup {version} at {folder} needs root"
    return Finding("processor shares", ok, "optional", detail, "run as root", serves)


def _pressure() -> Finding:
    path = Path("/proc/pressure/cpu")
    serves = "processor pressure in the verdict"
    try:
        path.read_text()
    except OSError as error:
        return Finding(
            "pressure", False, "optional", f"{path}: {error.strerror}", "boot the kernel with psi=1", serves
        )
    return Finding("pressure", True, "optional", str(path), serves=serves)


def _steal() -> Finding:
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    ok = len(fields) > 8
    return Finding(
        "steal", ok, "optional", "/proc/stat", "needs Linux 2.6.11 or newer", "time stolen, in the verdict"
    )


def _idle() -> Finding:
    ok = not idle_poll.would_help()
    detail = "processors do not halt" if ok else "idle processors halt, and the hypervisor wakes them late"
    cure = "`engine: {idle: poll}` in scenarios, or boot the machine's kernel with cpuidle_haltpoll.force=1"
    return Finding("idle", ok, "optional", detail, cure, "lateness below a millisecond")


def _device(path: Path, serves: str, cure: str) -> Finding:
    if not path.exists():
        return Finding(path.name, False, "optional", f"{path} does not exist", cure, serves)
    ok = os.access(path, os.R_OK | os.W_OK)
    return Finding(
        path.name,
        ok,
        "optional",
        str(path) if ok else f"{path}: no permission",
        "add yourself to its group",
        serves,
    )


def _radios() -> Finding:
    found = radios.lack()
    serves = "`device: wlan` in nodes of kind `netns` and `container`"
    if found is None:
        return Finding("radios", True, "optional", "mac80211_hwsim", serves=serves)
    return Finding("radios", False, "optional", *found, serves)


def _in_child(trial: Callable[[], None]) -> str | None:
    """Runs a test in a child process. Returns None if it succeeded, else the error text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            trial()
            os._exit(0)
        except BaseException as error:
            text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            os.write(writing, text.encode())
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return None if status == 0 else text or f"ended with status {status}"
