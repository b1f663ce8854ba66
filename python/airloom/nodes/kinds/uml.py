"""The kind ``uml``: a User Mode Linux kernel for each node, an ordinary process of the host.

The kernel is the distribution's (package ``user-mode-linux``), one that ``kernel/build`` made, or the
user's own. Its root is the host's own file system, read-only under a layer in the guest's memory, or
a disk image, of which the guest writes a copy.
"""

# Public methods are documented where they are declared, in kind.py.
# ruff: noqa: D102

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from airloom.errors import HostError
from airloom.host import cache
from airloom.nodes.guests import initramfs
from airloom.nodes.guests.guest import CAP_DAC_READ_SEARCH, CAP_NET_RAW, GuestNode, Machine
from airloom.nodes.guests.shared import GuestKind
from airloom.nodes.kind import Nature, Properties
from airloom.nodes.process.channel import Message
from airloom.scenario.model.base import BUILT

PROGRAM = "linux.uml"
"""The distribution's kernel."""
INSTALL = "sudo apt-get install user-mode-linux, or build one: make kernel"
_MODULES = Path("/usr/lib/uml/modules")
"""Folders of the distribution's modules, by the kernel's release."""
_NEEDED = ("overlay", "ipv6")
"""Modules that every guest has; a kernel may have them built in."""
_SCRATCH = 16 << 20
"""Octets beside its memory that a machine may use as files."""
_COPY = 1 << 30
"""Octets that a guest may write on its copy of a disk image."""
_SPARED = (
    # Most of the start of the distribution's kernel is a race between ways to compute RAID's parities.
    "initcall_blacklist=raid6_select_algo,calibrate_xor_blocks",
    # A guest has the interfaces of its scenario: no simulated radios, no tunnels to nowhere, no dummy.
    "mac80211_hwsim.radios=0",
    "fb_tunnels=none",
    "dummy.numdummies=0",
)
"""What a guest does without that some kernel has built in."""
_COPY_FILE = "/dev/shm/root.cow"
_MAGIC = (
    ("ext4", 1080, b"\x53\xef"),
    ("squashfs", 0, b"hsqs"),
    ("xfs", 0, b"XFSB"),
    ("btrfs", 65600, b"_BHRfS_M"),
)
"""File systems of images: name, place and content of what tells them."""
_READ_ONLY = ("squashfs",)
_PATIENCE = 60.0
"""Seconds that a guest may take to be ready; it takes half a second where the processor is free."""


class UmlNode(GuestNode):
    """One User Mode Linux guest."""

    def machine(self) -> Machine:
        settings = self.settings
        kernel = kernel_of(settings.kernel)
        folder = module_folder(kernel)
        wanted = _NEEDED if settings.network == "tap" else (*_NEEDED, "virtio_net")
        root, disk = _root(settings.root)
        # What is loaded before the root is there must be in the first file system.
        modules = modules_in(folder, wanted) if folder is not None else ()
        early = modules if root["from"] != "hostfs" or root["folder"] != "/" else ()
        memory = settings.memory >> 20
        argv = [str(kernel), f"mem={memory}M", "initrd=/proc/self/fd/4", f"umid={self.name}"]
        argv += ["uml_dir=/dev/shm", "con=null", "con0=null,fd:1", "ssl=null", "ssl0=fd:3", "panic=1"]
        argv += [*_SPARED, *disk]
        argv += [
            f"vec{number}:transport=raw,ifname={interface.name},mac={interface.mac},mtu={interface.mtu},depth=128,gro=1"
            for number, interface in enumerate(self.behind_taps)
        ]
        knockers = [knocker for node in self.inside for _, knocker in node.knockers]
        argv += [f"virtio_uml.device=/proc/self/fd/{number}:1" for number, _ in enumerate(knockers, 5)]
        return Machine(
            argv=(*argv, "--", "guest", "/dev/ttyS0"),
            env={"TMPDIR": "/dev/shm", "HOME": "/dev/shm"},
            root=root,
            memory=settings.memory + _SCRATCH + (_COPY if disk else 0),
            patience=_PATIENCE,
            descriptors=(initramfs.descriptor(early), *knockers),
            capabilities=(CAP_DAC_READ_SEARCH, *((CAP_NET_RAW,) if settings.network == "tap" else ())),
            modules=modules,
            module_folder=str(folder.parent) if folder is not None and not early else None,
        )

    def _visible(self) -> tuple[Path, ...]:
        root = self.settings.root
        own = [kernel_of(self.settings.kernel), *([Path(root)] if root is not None else [])]
        return (*super()._visible(), *own)


class UmlKind(GuestKind):
    """Makes User Mode Linux guests."""

    name: ClassVar[str] = "uml"
    machines = UmlNode
    properties: ClassVar[Properties] = Properties(
        programs=True, own_kernel=True, engine=True, cpu_share=True, pause=True, virtual_time=False
    )
    nature: ClassVar[Nature] = Nature(
        taxonomy="paravirtualization",
        backend="hosted VMM",
        own_files=True,
        start="0.32 s, 0.12 s with the kernel of `make kernel` (`bench guests`)",
        memory="21 MB of a guest with 48 MiB, 14 MB with the kernel of `make kernel`: dozens on one machine",
        porting="Linux is ported to Linux (`ARCH=um`); other systems are not",
        isolation="own kernel and files; its process can read the host's files",
        transparency="programs and the whole network stack; no real hardware, one processor",
        flexibility="any Linux that builds for `um`, different for each node",
    )

    @classmethod
    def lacks(cls) -> list[HostError]:
        try:
            release_of(kernel_of(None))
        except HostError as error:
            return [error]
        return []

    @classmethod
    def found(cls) -> str:
        return f"{kernel_of(None)} {release_of(kernel_of(None))}"


def kernel_of(wish: str | None) -> Path:
    """The kernel's program; :class:`~airloom.errors.HostError` if it is not there.

    Without a wish it is the distribution's, or the one that ``kernel/build`` made.
    """
    if wish is None:
        found = shutil.which(PROGRAM) or shutil.which(built())
    else:
        found = shutil.which(built() if wish == BUILT else wish)
    if found is None:
        if wish is None:
            raise HostError("host.uml", f"{PROGRAM} is not installed", cure=INSTALL)
        if wish == BUILT:
            raise HostError("host.uml", f"no kernel is built: there is no {built()}", cure="make kernel")
        raise HostError("host.uml", f"the kernel {wish} cannot be executed", cure="chmod +x, or name another")
    return Path(found).resolve()


def built() -> Path:
    """Where ``kernel/build`` leaves its newest kernel, which may not be there."""
    return cache.folder("kernel") / "linux"


@lru_cache
def release_of(kernel: Path) -> str:
    """What a kernel calls itself, such as 6.1.176."""
    try:
        said = subprocess.run([kernel, "--version"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise HostError(
            "host.uml", f"{kernel} is no User Mode Linux kernel that runs here: {error}", cure=INSTALL
        ) from None
    return said.stdout.strip()


def module_folder(kernel: Path) -> Path | None:
    """Where a kernel's modules are; None if it has none here, and so has everything built in."""
    folder = _MODULES / release_of(kernel)
    return folder if folder.is_dir() else None


def modules_in(folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Paths of modules and of those that they need, in the order of loading (``modules.dep(5)``)."""
    needs: dict[str, list[str]] = {}
    for line in (folder / "modules.dep").read_text().splitlines():
        path, _, before = line.partition(":")
        needs[path.rpartition("/")[2].partition(".")[0].replace("-", "_")] = [path, *before.split()]
    found = [path for name in names for path in reversed(needs.get(name, []))]
    return tuple(str(folder / path) for path in dict.fromkeys(found))


def _root(wish: str | None) -> tuple[Message, list[str]]:
    """The guest's root file system, and what its machine is told of it."""
    if wish is None or Path(wish).is_dir():
        return {"from": "hostfs", "folder": wish or "/"}, []
    kind = file_system(Path(wish))
    root = {"from": "disk", "device": "/dev/ubda", "filesystem": kind, "layer": kind in _READ_ONLY}
    return root, [f"ubd0={_COPY_FILE},{wish}"]


def file_system(image: Path) -> str:
    """What an image is formatted with, by its magic numbers."""
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
