"""The kind ``uml``: a User Mode Linux kernel per node, an ordinary process of the host.

The kernel is the distribution's (package ``user-mode-linux``), one built by ``kernel/build``, or
the user's own. The root is the host's file system, read-only under an overlay in the guest's
memory, or a copy-on-write disk image.
"""

# Public methods are documented where they are declared, in kind.py.
# ruff: noqa: D102

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from airloom import _engine
from airloom.errors import HostError
from airloom.host import cache, machine, programs
from airloom.nodes.guests import initramfs
from airloom.nodes.guests.guest import CAP_DAC_READ_SEARCH, CAP_NET_RAW, GuestNode, Machine
from airloom.nodes.guests.shared import GuestKind
from airloom.nodes.kind import Nature, Properties, Site
from airloom.nodes.process.channel import Message
from airloom.planning.plan import NodePlan
from airloom.scenario.model.base import BUILT

PROGRAM = "linux.uml"
"""File name of the distribution's kernel."""
INSTALL = "sudo apt-get install user-mode-linux, or build one: airloom kernel build"
_MODULES = Path("/usr/lib/uml/modules")
"""Folder of the distribution's modules, by kernel release."""
_NETWORK_DEVICE, _CONSOLE_DEVICE, _WIRELESS_DEVICE = 1, 3, 29
"""Virtio device identifiers."""
_NEEDED = ("overlay", "ipv6")
"""Modules that every guest needs; they may be built into the kernel."""
_SCRATCH = 16 << 20
"""Octets that a machine may use as files in addition to its memory."""
_COPY = 1 << 30
"""Maximum size in octets of a guest's changes to a disk image."""
_SPARED = (
    # The distribution's kernel spends most of its boot time on benchmarks of RAID parity
    # algorithms.
    "initcall_blacklist=raid6_select_algo,calibrate_xor_blocks",
    # For each of its 512 BSD pseudo terminals the distribution's kernel starts a process, /sbin/hotplug.
    "pty.legacy_count=0",
    # A guest has only the interfaces of its scenario: no simulated radios, tunnels or dummy
    # interfaces.
    "fb_tunnels=none",
    "dummy.numdummies=0",
)
"""Disables features built into some kernels that guests do not need."""
_VIRTUAL_OPTIONS = ("time-travel=ext:", "seed=", "spin=")
"""Options of a kernel that can be in virtual time."""
_WINDOW = "share a window of memory"
"""What a kernel says that needs few messages in virtual time (``kernel/patches/window.patch``)."""
_LATER = "let us run later than requested"
"""What a kernel says that can take turns in virtual time (``kernel/patches/yield-turn.patch``)."""
_REGISTERS = b"processors whose registers take up to"
"""What a kernel says that runs on a processor with AMX (``kernel/patches/host-state.patch``)."""
_ALL_REGISTERS = (6, 13)
"""Release of Linux since which every kernel does."""
_MAGIC = (
    ("ext4", 1080, b"\x53\xef"),
    ("squashfs", 0, b"hsqs"),
    ("xfs", 0, b"XFSB"),
    ("btrfs", 65600, b"_BHRfS_M"),
)
"""File systems of disk images: name, offset and value of their magic number."""
_READ_ONLY = ("squashfs",)
_TIMEOUT = 60.0
"""Seconds for a guest to become ready; it takes 0.5 on an idle processor."""
_VIRTUAL_TIMEOUT = 900.0
"""The same in virtual time, where all guests share a processor and other runs may go beside them."""


class UmlNode(GuestNode):
    """A User Mode Linux guest."""

    def __init__(self, plan: NodePlan, kind: str, namespace: _engine.Namespace, site: Site) -> None:
        assert plan.guest is not None
        kernel = kernel_of(plan.guest.kernel)
        require_registers(kernel)
        if site.pacer is not None:
            require_virtual_time(kernel, waits=site.pacer.may_wait(plan.name))
        super().__init__(plan, kind, namespace, site)

    def machine(self) -> Machine:
        settings = self.settings
        kernel = kernel_of(settings.kernel)
        folder = module_folder(kernel)
        wanted = (*_NEEDED, *self.bridge_modules)
        if settings.network != "tap":
            wanted = (*wanted, "virtio_net")
        # In its mount namespace, it has an empty /dev/shm of its own. The command line, from which the
        # kernel takes randomness, has no path that differs between runs.
        scratch = str(self._site.supervisor.folder or "/dev/shm")
        root, disk = _root(settings.root, f"{self.name}.cow")
        # Modules loaded before the root is mounted must be in the initramfs.
        modules = modules_in(folder, wanted) if folder is not None else ()
        early = modules if root["from"] != "hostfs" or root["folder"] != "/" else ()
        memory = settings.memory >> 20
        argv = [str(kernel), f"mem={memory}M", "initrd=/proc/self/fd/4", f"umid={self.name}"]
        argv += ["uml_dir=.", "con=null", "con0=null,fd:1", "ssl=null", "panic=1"]
        argv += ["ssl0=fd:3"] if self._time is None else []
        argv += [*_SPARED, f"mac80211_hwsim.radios={self.radios}", *disk]
        argv += [
            f"vec{number}:transport=raw,ifname={interface.name},mac={interface.mac},mtu={interface.mtu},depth=128,gro=1"
            for number, interface in enumerate(self.behind_taps)
        ]
        vhost_paths = [path for node in self.inside for _, path in node.vhost_paths]
        devices = [(path, _NETWORK_DEVICE) for path in vhost_paths]
        firmware: tuple[str, ...] = ()
        if self.wlan_path is not None:
            devices.append((self.wlan_path, _WIRELESS_DEVICE))
            firmware = initramfs.regulatory()
        if self._time is not None:
            devices.append((self._time.console.path, _CONSOLE_DEVICE))
        argv += [
            f"virtio_uml.device=/proc/self/fd/{number}:{id}" for number, (_, id) in enumerate(devices, 5)
        ]
        paths = [path for path, _ in devices]
        if self._time is not None and self._site.pacer is not None:
            paths.append(self._time.time.path)
            argv += [f"time-travel=ext:{self._time.number + 1}:/proc/self/fd/{4 + len(paths)}"]
            # Without a preference the kernel would write its messages to the channel's console too.
            argv += [f"seed={self._site.pacer.seed_of(self.name)}", "norandmaps", "console=tty0"]
        return Machine(
            argv=(
                *argv,
                *settings.append,
                "--",
                "guest",
                "/dev/ttyS0" if self._time is None else "/dev/hvc0",
            ),
            env={"TMPDIR": scratch, "HOME": scratch},
            folder=scratch,
            root=root,
            memory=settings.memory + _SCRATCH + (_COPY if disk else 0),
            timeout=_TIMEOUT if self._time is None else _VIRTUAL_TIMEOUT,
            descriptors=(initramfs.descriptor((*early, *firmware)), *paths),
            capabilities=(CAP_DAC_READ_SEARCH, *((CAP_NET_RAW,) if settings.network == "tap" else ())),
            modules=modules,
            module_folder=str(folder.parent) if folder is not None and not early else None,
        )

    def _visible(self) -> tuple[Path, ...]:
        root = self.settings.root
        own = [kernel_of(self.settings.kernel), *([Path(root).resolve()] if root is not None else [])]
        return (*super()._visible(), *own)


class UmlKind(GuestKind):
    """Creates User Mode Linux guests."""

    name: ClassVar[str] = "uml"
    machines = UmlNode
    properties: ClassVar[Properties] = Properties(
        programs=True, own_kernel=True, engine=True, cpu_share=True, pause=True, virtual_time=True
    )
    nature: ClassVar[Nature] = Nature(
        taxonomy="paravirtualization",
        backend="hosted VMM",
        own_files=True,
        start="0.32 s, 0.12 s with the kernel of `airloom kernel build` (`bench guests`)",
        memory="21 MB of a guest with 48 MiB, 14 MB with the kernel of `airloom kernel build`: dozens on "
        "one machine",
        porting="Linux is ported to Linux (`ARCH=um`); other systems are not",
        isolation="own kernel and files; its process can read the host's files",
        transparency="programs and the whole network stack; no real hardware, one processor",
        flexibility="any Linux that builds for `um`, different for each node",
    )

    @classmethod
    def lacks(cls) -> list[HostError]:
        try:
            require_registers(kernel_of(None))
        except HostError as error:
            return [error]
        return []

    @classmethod
    def found(cls) -> str:
        return f"{kernel_of(None)} {release_of(kernel_of(None))}"


def kernel_of(wish: str | None) -> Path:
    """Path of the kernel's program. Raises :class:`~airloom.errors.HostError` if it does not exist.

    The default is the distribution's, or the one that ``kernel/build`` made: the first that runs on this
    machine's processor.
    """
    if wish is None:
        there = [path for name in (PROGRAM, str(built())) if (path := programs.find(name)) is not None]
        found = next(
            (path for path in there if _keeps_registers(Path(path).resolve())), next(iter(there), None)
        )
    else:
        found = programs.find(str(built()) if wish == BUILT else wish)
    if found is None:
        if wish is None:
            raise HostError("host.uml", f"{PROGRAM} is not installed", cure=INSTALL)
        if wish == BUILT:
            raise HostError(
                "host.uml", f"no kernel is built: there is no {built()}", cure="airloom kernel build"
            )
        raise HostError("host.uml", f"the kernel {wish} cannot be executed", cure="chmod +x, or name another")
    return Path(found).resolve()


def built() -> Path:
    """Path where ``kernel/build`` stores its newest kernel; it may not exist."""
    return cache.folder("kernel") / "linux"


@lru_cache
def release_of(kernel: Path) -> str:
    """The release reported by a kernel, such as 6.1.176."""
    try:
        said = subprocess.run([kernel, "--version"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise HostError(
            "host.uml", f"{kernel} is no User Mode Linux kernel that runs here: {error}", cure=INSTALL
        ) from None
    return said.stdout.strip()


def require_registers(kernel: Path) -> None:
    """Raises :class:`~airloom.errors.HostError` for a kernel that cannot run on this machine's processor."""
    release_of(kernel)
    if not _keeps_registers(kernel):
        raise HostError(
            "host.uml-registers",
            f"the kernel {kernel} cannot run on this machine: its processor has more registers (AMX) than "
            "the kernel keeps of a process",
            cure="build one that can: airloom kernel build",
        )


def _keeps_registers(kernel: Path) -> bool:
    """Whether a kernel keeps all registers that a process has on this machine's processor.

    Before 6.13 kernels kept 2696 octets: all but the tiles of AMX, 8 KiB. Of a script that starts a kernel
    nothing is known.
    """
    if "amx_tile" not in machine.processor_features() or _is_script_or_mentions(kernel, _REGISTERS):
        return True
    try:
        numbers = re.match(r"(\d+)\.(\d+)", release_of(kernel))
    except HostError:
        return True  # it does not run at all, which has an error of its own
    return numbers is None or (int(numbers[1]), int(numbers[2])) >= _ALL_REGISTERS


@lru_cache
def _is_script_or_mentions(kernel: Path, words: bytes) -> bool:
    """Whether a kernel is no program, or contains a text. To ask the kernel itself would take a process."""
    try:
        program = kernel.read_bytes()
    except OSError:
        return False
    return not program.startswith(b"\x7fELF") or words in program


def require_virtual_time(kernel: Path, *, waits: bool = False) -> None:
    """Raises :class:`~airloom.errors.HostError` for a kernel that cannot be in virtual time.

    ``waits``: or cannot run later than it requests, which turns and modelled processors need.
    """
    missing = [option for option in _VIRTUAL_OPTIONS if option not in _options_of(kernel)]
    if missing:
        raise HostError(
            "host.uml-time",
            f"the kernel {kernel} cannot be in virtual time: it has no option {missing[0]}",
            cure="build one: airloom kernel build",
        )
    if _WINDOW not in _options_of(kernel):
        raise HostError(
            "host.uml-time",
            f"the kernel {kernel} cannot be in virtual time: it shares no memory with its calendar",
            cure="build one: airloom kernel build",
        )
    if waits and _LATER not in _options_of(kernel):
        raise HostError(
            "host.uml-turns",
            f"the kernel {kernel} cannot take turns or share a processor in virtual time: it cannot run late",
            cure="build one: airloom kernel build",
        )


@lru_cache
def _options_of(kernel: Path) -> str:
    """What a kernel says about its options."""
    release_of(kernel)
    said = subprocess.run([kernel, "--help"], capture_output=True, text=True, timeout=10, check=False)
    return said.stdout + said.stderr


def module_folder(kernel: Path) -> Path | None:
    """Folder of a kernel's modules; None if there is none, so that everything is built in."""
    folder = _MODULES / release_of(kernel)
    return folder if folder.is_dir() else None


def modules_in(folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Paths of modules and their dependencies, in the order of loading (``modules.dep(5)``)."""
    needs: dict[str, list[str]] = {}
    for line in (folder / "modules.dep").read_text().splitlines():
        path, _, before = line.partition(":")
        needs[path.rpartition("/")[2].partition(".")[0].replace("-", "_")] = [path, *before.split()]
    found = [path for name in names for path in reversed(needs.get(name, []))]
    return tuple(str(folder / path) for path in dict.fromkeys(found))


def _root(wish: str | None, changes: str) -> tuple[Message, list[str]]:
    """The guest's root file system, and the machine's arguments for it. ``changes`` to an image are kept in
    that file.
    """
    if wish is None or Path(wish).is_dir():
        return {"from": "hostfs", "folder": wish or "/"}, []
    kind = file_system(Path(wish))
    root = {"from": "disk", "device": "/dev/ubda", "filesystem": kind, "layer": kind in _READ_ONLY}
    return root, [f"ubd0={changes},{wish}"]


def file_system(image: Path) -> str:
    """Type of the file system in an image, from its magic number."""
    try:
        with image.open("rb") as file:
            head = file.read(1 << 17)
    except OSError as error:
        raise HostError(
            "host.uml", f"{image}: {error.strerror}", cure="name an image that can be read"
        ) from None
    for kind, place, magic in _MAGIC:
        if head[place : place + len(magic)] == magic:
            return kind
    raise HostError(
        "host.uml",
        f"{image} is no disk image with one of {', '.join(kind for kind, _, _ in _MAGIC)} on it",
        cure="give a file system image without a partition table, or a folder",
    )
