"""The kernel of a virtual machine: which one is taken, and why none is."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.errors import HostError
from airloom.nodes.guests import modules
from airloom.nodes.kinds import qemu

_PLAIN = ("virtio_pci", "virtio_console", "virtio_net", "overlay", "9pnet_virtio", "9p")


def _kernel(tmp_path: Path, release: str, *names: str) -> Path:
    """An installed kernel with these modules."""
    folder = tmp_path / "lib/modules" / release
    (folder / "kernel").mkdir(parents=True)
    for name in names:
        (folder / "kernel" / f"{name}.ko").write_bytes(b"")
    image = tmp_path / "boot" / f"vmlinuz-{release}"
    image.parent.mkdir(exist_ok=True)
    image.write_bytes(b"")
    return image


def test_a_kernel_without_simulated_radios_is_refused_for_a_node_with_radios(tmp_path: Path) -> None:
    image = _kernel(tmp_path, "9.1-cloud", *_PLAIN)
    assert qemu.kernel_of(str(image)).image == image
    with pytest.raises(HostError) as caught:
        qemu.kernel_of(str(image), radios=True)
    assert caught.value.code == "host.qemu-kernel"
    assert caught.value.message == f"{image} has no mac80211_hwsim"
    assert caught.value.cure == "take another kernel: sudo apt-get install linux-image-amd64"


def test_a_kernel_with_simulated_radios_is_taken(tmp_path: Path) -> None:
    image = _kernel(tmp_path, "9.2", *_PLAIN, "mac80211_hwsim")
    assert qemu.kernel_of(str(image), radios=True).modules == tmp_path / "lib/modules/9.2"


def test_a_module_has_the_name_of_its_file_with_underscores() -> None:
    assert modules.module_name("/lib/modules/9/kernel/crc32c-generic.ko.xz") == "crc32c_generic"
