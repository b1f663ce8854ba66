"""The kind ``qemu``: a full virtual machine per node, with KVM or emulated in software.

The kernel is one of the distribution's (package ``linux-image-amd64``) or the user's own; Airloom
builds an initramfs with the modules that it needs. The root is the host's file system, read-only
over 9P under an overlay in the guest's memory, or a copy-on-write disk image. The network cards are
virtio: either served by the engine over vhost-user, or TAPs in the host's kernel.
"""

# Public methods are documented where they are declared, in kind.py.
# ruff: noqa: D102

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from airloom import _engine
from airloom.errors import HostError
from airloom.host import cache, programs
from airloom.nodes.guests import accelerator, initramfs, modules, tap_bridge, vmlinux
from airloom.nodes.guests.guest import CAP_DAC_READ_SEARCH, GuestNode, Machine
from airloom.nodes.guests.guest_node import card_name
from airloom.nodes.guests.shared import GuestKind
from airloom.nodes.kind import Nature, NodeHandle, Properties, Site
from airloom.nodes.kinds.uml import file_system
from airloom.nodes.process.channel import Message
from airloom.planning.plan import InterfacePlan, NodePlan

PROGRAM = f"qemu-system-{os.uname().machine}"
INSTALL_QEMU = "sudo apt-get install qemu-system-x86"
INSTALL_KERNEL = "sudo apt-get install linux-image-amd64"
_CHANNEL = "virtio_console"
_BASIC = ("virtio_pci", _CHANNEL, "virtio_net", "overlay")
_SHARED = ("9pnet_virtio", "9p")
_RADIOS = "mac80211_hwsim"
_CIPHERS = ("ctr", "ccm", "gcm", "cmac")
"""Modules for WPA, which the kernel cannot load itself: it looks for them in the initramfs."""
_DISK = ("virtio_blk", "crc32c_generic")
"""Modules for a disk root. File systems request the checksum's module under another name."""
_MODULES = Path("/lib/modules")
_WORDS = "console=ttyS0 quiet panic=-1 cryptomgr.notests mac80211_hwsim.radios=0"
"""The kernel's command line. Its own tests of ciphers take a seventh of a start in software. Its radios
are created when the guest is set up."""
_TIMEOUT = 120.0
"""Seconds for a guest to become ready; in software it takes ten on an idle processor."""
_SCRATCH = 64 << 20
_COPY = 1 << 30
"""Maximum size in octets of a guest's changes to a disk image."""
_VHOST = Path("/dev/vhost-net")
_READ_ONLY = ("squashfs",)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel for QEMU, and its modules."""

    image: Path
    modules: Path


class QemuNode(GuestNode):
    """A QEMU virtual machine."""

    monitored: ClassVar[bool] = True
    virtio_radios: ClassVar[bool] = False

    def __init__(self, plan: NodePlan, kind: str, namespace: _engine.Namespace, site: Site) -> None:
        super().__init__(plan, kind, namespace, site)
        self._given: list[int] = []
        """Descriptors of its network cards that are still open in this process."""

    def machine(self) -> Machine:
        settings = self.settings
        program, kernel = program_of(), kernel_of(settings.kernel, self.radios > 0)
        by = accelerator.of(program, kernel.image)
        root, disk, needed = _root(settings.root)
        folder = kernel.modules.parent
        wireless = self.wlan_path
        if wireless is not None:
            needed = (*needed, _RADIOS, *_CIPHERS)
        needed = (*needed, *self.bridge_modules)
        early = modules.in_order(kernel.modules, (*_BASIC, *needed))
        firmware = initramfs.regulatory() if wireless is not None else ()
        argv = [program, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]
        memory = f"{settings.memory >> 20}M"
        argv += ["-accel", by.argument, "-cpu", by.cpu, "-m", memory]
        plain = vmlinux.descriptor(kernel.image)
        held = [initramfs.descriptor(firmware, early), *([] if plain is None else [plain])]
        image = str(kernel.image) if plain is None else "/proc/self/fd/5"
        argv += ["-kernel", image, "-initrd", "/proc/self/fd/4"]
        argv += ["-append", " ".join((_WORDS, *settings.append, "--", "guest", "/dev/vport0p1"))]
        argv += ["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]
        # The first device on the bus, so that it is the first in the guest.
        argv += ["-device", "virtio-serial-pci,addr=0x3", "-chardev", "socket,id=channel,fd=3"]
        argv += ["-device", "virtserialport,chardev=channel,nr=1", *disk]
        vhost_sockets = [one for node in self.inside for one in node.vhost_paths]
        if vhost_sockets:
            # The engine maps this memory.
            argv += ["-object", f"memory-backend-memfd,id=memory,size={memory},share=on"]
            argv += ["-machine", "memory-backend=memory"]
            cards = self._served(
                4 + len(held), [interface for interface, _ in vhost_sockets], by.name == "kvm"
            )
        else:
            cards = self._cards(4 + len(held), by.name == "kvm")
        before = (*held, *(path for _, path in vhost_sockets), *self._given)
        monitors = [path for node in self.inside for path in node.monitor_paths]
        argv += [*cards, *_monitors(4 + len(before), len(monitors))]
        after = [*before, *monitors]
        if wireless is not None:
            argv += ["-chardev", f"socket,id=radios,path=/proc/self/fd/{4 + len(after)}"]
            argv += ["-device", "virtserialport,chardev=radios,nr=2"]
            after.append(wireless)
        return Machine(
            argv=tuple(argv),
            root=root,
            memory=_SCRATCH + (_COPY if disk and root["from"] == "disk" else 0),
            timeout=_TIMEOUT,
            descriptors=tuple(after),
            env={"TMPDIR": "/dev/shm", "HOME": "/dev/shm"},
            capabilities=(CAP_DAC_READ_SEARCH,),
            devices=("kvm",) if by.name == "kvm" else (),
            module_folder=str(folder) if settings.root is None and folder != _MODULES.resolve() else None,
            radio_stream="/dev/vport0p2" if wireless is not None else None,
        )

    def close(self) -> None:
        super().close()
        self._give_back()

    def _visible(self) -> tuple[Path, ...]:
        kernel, root = kernel_of(self.settings.kernel, self.radios > 0), self.settings.root
        own = [kernel.image, kernel.modules.parent, *([Path(root)] if root is not None else [])]
        return (*super()._visible(), *(path.resolve() for path in own))

    def _served(self, first: int, interfaces: Sequence[InterfacePlan], kvm: bool) -> list[str]:
        """Arguments for vhost-user network cards; their sockets are descriptors from ``first`` on."""
        words: list[str] = []
        for number, one in enumerate(interfaces):
            words += ["-chardev", f"socket,id=vhost{number},path=/proc/self/fd/{first + number}"]
            words += ["-netdev", f"vhost-user,id={card_name(one)},chardev=vhost{number}"]
            # Without KVM, QEMU 7.2 expects KVM's interrupts if such a card has more than one
            # vector.
            words += ["-device", _card(number, one, "disable-legacy=on" + ("" if kvm else ",vectors=0"))]
        return words

    def _cards(self, first: int, kvm: bool) -> list[str]:
        """Arguments for network cards behind host TAPs, which are descriptors from ``first`` on."""
        self._give_back()
        words: list[str] = []
        behind_taps = [
            (node.namespace_number, place, one)
            for node in self.inside
            for place, one in enumerate(node.behind_taps)
        ]
        for number, (namespace, place, one) in enumerate(behind_taps):
            tap = tap_bridge.join(namespace, one.name, place, one.mac, one.mtu)
            net = f"tap,id={card_name(one)},fd={first + len(self._given)}"
            self._given.append(tap)
            if kvm and os.access(_VHOST, os.R_OK | os.W_OK):
                net += f",vhost=on,vhostfd={first + len(self._given)}"
                self._given.append(os.open(_VHOST, os.O_RDWR | os.O_CLOEXEC))
            words += ["-netdev", net, "-device", _card(number, one)]
        return words

    def _give_back(self) -> None:
        given, self._given = self._given, []
        for descriptor in given:
            os.close(descriptor)


def _card(number: int, interface: InterfacePlan, *more: str) -> str:
    """The ``-device`` argument of a network card."""
    card = f"virtio-net-pci,netdev={card_name(interface)},mac={interface.mac},host_mtu={interface.mtu}"
    return ",".join([card, f"addr={0x10 + number:#x}", "romfile=", *more])


def _monitors(first: int, count: int) -> list[str]:
    """Arguments for monitors; their sockets are descriptors from ``first`` on."""
    words: list[str] = []
    for number in range(count):
        words += ["-chardev", f"socket,id=monitor{number},path=/proc/self/fd/{first + number}"]
        words += ["-mon", f"chardev=monitor{number},mode=control"]
    return words


class QemuKind(GuestKind):
    """Creates QEMU virtual machines."""

    name: ClassVar[str] = "qemu"
    machines = QemuNode
    properties: ClassVar[Properties] = Properties(
        programs=True, own_kernel=True, engine=True, cpu_share=True, pause=True, virtual_time=False
    )
    nature: ClassVar[Nature] = Nature(
        taxonomy="native virtualization",
        backend="hosted VMM",
        own_files=True,
        start="4 s of processor time in software emulation; not measured with KVM",
        memory="160 MiB or more for the machine and 130 MB for QEMU: dozens need a large host",
        porting="none: the distribution's kernel with virtio drivers",
        isolation="a separate machine; its process has no root capabilities and can read the host's files",
        transparency="programs, kernel and drivers",
        flexibility="any Linux kernel with virtio and 9P as modules, different for each node",
    )

    def bring_up(self, plans: Sequence[NodePlan]) -> dict[str, NodeHandle]:
        for plan in plans:
            assert plan.guest is not None
            kernel = kernel_of(plan.guest.kernel, any(one.wlan is not None for one in plan.interfaces))
            note = f"machines with {kernel.image.name} run {accelerator.of(program_of(), kernel.image).words}"
            if note not in self.notes:
                self.notes.append(note)
        return super().bring_up(plans)

    @classmethod
    def lacks(cls) -> list[HostError]:
        found = []
        for act in (program_of, lambda: kernel_of(None)):
            try:
                act()
            except HostError as error:
                found.append(error)
        return found

    @classmethod
    def found(cls) -> str:
        program, kernel = program_of(), kernel_of(None)
        return f"{program} with {kernel.image}, {accelerator.of(program, kernel.image).words}"


def program_of() -> str:
    """Path of QEMU. Raises :class:`~airloom.errors.HostError` if it is not installed."""
    found = programs.find(PROGRAM)
    if found is None:
        raise HostError("host.qemu", f"{PROGRAM} is not installed", cure=INSTALL_QEMU)
    return str(found)


def kernel_of(wish: str | None, radios: bool = False) -> Kernel:
    """The kernel and its modules; by default the newest usable one of the distribution.

    ``radios``: it must have simulated radios (``mac80211_hwsim``).

    Beside ``/boot``, ``airloom/kernel`` in the user's cache is searched: a package can be unpacked
    there (``dpkg -x``) on a machine where it is not to be installed.
    """
    needed = (*_BASIC, *_SHARED, *((_RADIOS,) if radios else ()))
    if wish is not None:
        image = Path(wish)
        found = _modules(image)
        if found is None:
            raise HostError(
                "host.qemu-kernel",
                f"the modules of {image} are not on this machine",
                cure=f"they belong into {image.parent.parent}/lib/modules or /lib/modules",
            )
        lacking = modules.lacking(found, needed)
        if lacking:
            raise HostError(
                "host.qemu-kernel",
                f"{image} has no {', '.join(lacking)}",
                cure=f"take another kernel: {INSTALL_KERNEL}",
            )
        return Kernel(image.resolve(), found.resolve())
    for folder in (Path("/boot"), cache.folder("kernel", "boot")):
        for image in sorted(folder.glob("vmlinuz-*"), key=_age, reverse=True):
            found = _modules(image)
            if found is not None and not modules.lacking(found, needed):
                return Kernel(image.resolve(), found.resolve())
    raise HostError(
        "host.qemu-kernel",
        f"no kernel for virtual machines, with {', '.join(needed)}, is in /boot",
        cure=INSTALL_KERNEL,
    )


def _age(image: Path) -> list[int]:
    """The numbers of its release, for sorting kernels by age."""
    return [int(part) for part in image.name.replace("-", ".").split(".") if part.isdigit()]


def _modules(image: Path) -> Path | None:
    """Folder of a kernel's modules, from the release in its name."""
    release = image.name.partition("-")[2]
    for base in (image.parent.parent / "lib/modules", _MODULES):
        if release and (base / release / "kernel").is_dir():
            return base / release
    return None


def _root(wish: str | None) -> tuple[Message, list[str], tuple[str, ...]]:
    """The guest's root file system, the QEMU arguments for it, and the modules that it needs."""
    if wish is None or Path(wish).is_dir():
        share = f"local,id=host,path={wish or '/'},security_model=none,readonly=on,multidevs=remap"
        device = "virtio-9p-pci,fsdev=host,mount_tag=host,addr=0x4"
        return {"from": "shared", "tag": "host"}, ["-fsdev", share, "-device", device], _SHARED
    kind = file_system(Path(wish))
    root = {"from": "disk", "device": "/dev/vda", "filesystem": kind, "layer": kind in _READ_ONLY}
    drive = f"file={wish},format=raw,if=none,id=disk,snapshot=on"
    return root, ["-drive", drive, "-device", "virtio-blk-pci,drive=disk,addr=0x4"], (*_DISK, kind)
