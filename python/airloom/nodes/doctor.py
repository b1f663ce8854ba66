"""Tests the capabilities of this machine and names what to install for missing ones.

Nothing is changed: each test creates its namespace or device in a child process, which removes it.
"""

from __future__ import annotations

import fcntl
import getpass
import os
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from airloom import extras
from airloom.errors import HostError
from airloom.extras import SERVES, Extra
from airloom.host import binaries, idle_poll, namespace_cure, privilege, programs, radios
from airloom.host.user_namespace import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    unshare,
    why_one_user,
)
from airloom.nodes.all_nodes import KINDS
from airloom.nodes.guests import accelerator, initramfs
from airloom.nodes.kinds import qemu, uml
from airloom.nodes.process.supervisor import Supervisor
from airloom.scenario.model.base import BUILT

TUN = Path("/dev/net/tun")
_VIRTUAL = "virtual time"
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
        _kvm(),
        _device(Path("/dev/vhost-net"), "faster network cards of `qemu` nodes", "modprobe vhost_net"),
        _radios(),
        _guest_radios(),
        _virtual_time(),
        _regulatory(),
        _users(),
        *(_program(*entry) for entry in PROGRAMS.items()),
        *(_kind(name) for name in KINDS),
        *(_extra(name) for name in sorted(SERVES, reverse=True)),
    ]


def lacking_basics(findings: list[Finding]) -> list[Finding]:
    """The missing capabilities without which no run in wall time is possible."""
    return [finding for finding in findings if finding.need == "basic" and not finding.ok]


def runs_in_virtual_time(findings: list[Finding]) -> bool:
    """Whether a run in virtual time is possible, which needs no namespaces and no TAPs."""
    needed = {"airloom-init", "engine", _VIRTUAL}
    return needed <= {finding.name for finding in findings if finding.ok}


def require_basics(
    *,
    restart: bool = False,
    taps: bool = True,
    shares: Mapping[str, float] | None = None,
    namespaces: bool = True,
) -> None:
    """Raises :class:`HostError` for the first missing required capability. Call before a run.

    Without root privileges this process enters a user namespace. If it has threads, and ``restart``
    is true, it re-executes itself for that. ``namespaces`` is false for a run in virtual time, which can
    do without. See :func:`require_for`.
    """
    if privilege.ensure(restart=restart, taps=taps, namespaces=namespaces) == "none":
        needed = [_own("airloom-init")]
    else:
        needed = [_namespaces(), *([_tap()] if taps else []), _own("airloom-init")]
    for finding in lacking_basics(needed):
        raise HostError("host.lacks", f"{finding.name}: {finding.detail}", cure=finding.cure)
    if shares:
        with Supervisor() as supervisor:
            supervisor.require_shares(shares)


class Needs(Protocol):
    """What a run needs of this machine: a plan, or an experiment of several."""

    @property
    def has_taps(self) -> bool:
        """Whether it has TAPs of this machine."""

    @property
    def shares(self) -> dict[str, float]:
        """The shares of a processor that nodes are limited to."""

    @property
    def virtual(self) -> bool:
        """Whether it is in virtual time."""


def require_for(run: Needs, *, restart: bool = False) -> None:
    """Raises :class:`HostError` for the first capability that a run needs and this machine lacks."""
    require_basics(restart=restart, taps=run.has_taps, shares=run.shares, namespaces=not run.virtual)


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
        namespace_cure.cure(),
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
        namespace_cure.cure(),
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


def _kvm() -> Finding:
    """A guest kernel is started for a trial: the device may be there where none starts."""
    serves = "hardware virtualization for `qemu` nodes"
    found = _device(accelerator.KVM, serves, "enable VT-x or AMD-V, load kvm")
    if not found.ok:
        return found
    try:
        tried = accelerator.of(qemu.program_of(), qemu.kernel_of(None).image)
    except HostError as error:
        detail = f"{found.detail}, not tried: {error.message}"
        return replace(found, ok=False, detail=detail, cure=error.cure or "")
    if tried.name == "kvm":
        return replace(found, detail=f"{found.detail}, which starts a guest")
    cure = "on a virtual machine, its host must allow nested virtualization; `qemu` nodes run in software"
    return replace(found, ok=False, detail=tried.why, cure=cure)


def _radios() -> Finding:
    found = radios.lack()
    serves = "`device: wlan` in nodes of kind `netns` and `container`"
    if found is None:
        return Finding("radios", True, "optional", "mac80211_hwsim", serves=serves)
    return Finding("radios", False, "optional", *found, serves)


def _guest_radios() -> Finding:
    name, serves = "802.11 in guests", "`device: wlan`, hostapd, mesh and batman-adv in nodes of kind `uml`"
    cure = "airloom kernel build"
    kernel = uml.built()
    if not os.access(kernel, os.X_OK):
        return Finding(name, False, "optional", f"there is no {kernel}", cure, serves)
    try:
        return Finding(name, True, "optional", f"{kernel} {uml.release_of(kernel)}", cure, serves)
    except HostError as error:
        return Finding(name, False, "optional", error.message, cure, serves)


def _virtual_time() -> Finding:
    serves = "`time: virtual`, which needs no namespaces"
    try:
        kernel = uml.kernel_of(BUILT)
        uml.require_virtual_time(kernel)
    except HostError as error:
        return Finding(_VIRTUAL, False, "optional", error.message, error.cure or "", serves)
    return Finding(_VIRTUAL, True, "optional", f"{kernel} {uml.release_of(kernel)}", serves=serves)


def _regulatory() -> Finding:
    found = initramfs.regulatory()
    return Finding(
        "regulatory database",
        bool(found),
        "optional",
        found[0] if found else "not installed",
        f"sudo apt-get install {initramfs.REGULATORY_PACKAGE}",
        "access points and meshes at 5 GHz with `device: wlan`",
    )


def _users() -> Finding:
    """Whether the programs of nodes can be several users."""
    name, serves = "users in nodes", "programs that change their user without root, such as sshd"
    why = None if os.geteuid() == 0 else why_one_user()
    if why is None:
        return Finding(name, True, "optional", "more than root", serves=serves)
    cure = "sudo apt-get install uidmap"
    if "range" in why:
        user = getpass.getuser()
        cure = f"sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}"
    return Finding(name, False, "optional", f"root alone: {why}", cure, serves)


def _extra(name: Extra) -> Finding:
    """An extra of the Python package."""
    try:
        extras.require(name)
    except HostError:
        cure = f"{sys.executable} -m pip install 'airloom[{name}]'"
        return Finding(f"extra {name}", False, "optional", "not installed", cure, SERVES[name])
    return Finding(f"extra {name}", True, "optional", "installed", serves=SERVES[name])


def summary(findings: list[Finding]) -> str:
    """Returns in two sentences what works for this user, and what does not."""
    who = "root" if os.geteuid() == 0 else "this user, without root"
    lacking = [finding.name for finding in lacking_basics(findings)]
    if lacking and runs_in_virtual_time(findings):
        return (
            f"For {who}, virtual time works: airloom run FILE --time virtual. "
            f"In wall time nothing runs: {', '.join(lacking)} must be there first."
        )
    if lacking:
        return f"Nothing runs for {who}: {', '.join(lacking)} must be there first."
    kinds = [one.name.removeprefix("kind ") for one in findings if one.ok and one.name.startswith("kind ")]
    missing = dict.fromkeys(f"{one.serves} ({one.name})" for one in findings if not one.ok)
    if os.geteuid() != 0:
        missing["real interfaces of this machine (root)"] = None
    rest = f" Not for this user: {'; '.join(missing)}." if missing else " Nothing is missing."
    return (
        f"For {who}, wired and radio networks work, with nodes and switches of kind {', '.join(kinds)}.{rest}"
    )


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
