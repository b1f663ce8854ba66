"""The plain kernel in a distribution's image: found, kept in the cache, and taken from there."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from airloom.nodes.guests import vmlinux

PVH = struct.pack("<III4s", 4, 8, 18, b"Xen")
PLAIN = b"\x7fELF" + PVH + b"kernel" * 1000
SECTORS = 4
"""Of the boot code in front of the compressed kernel, less one."""


def image_of(plain: bytes) -> bytes:
    """A self-extracting image with a payload in gzip, by version 2.8 of the boot protocol."""
    packer = zlib.compressobj(wbits=31)
    payload = packer.compress(plain) + packer.flush()
    head = bytearray((SECTORS + 1) * 512)
    head[0x1F1] = SECTORS
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", head, 0x206, 0x0208)
    struct.pack_into("<II", head, 0x248, 0, len(payload))
    return bytes(head) + payload


@pytest.fixture(autouse=True)
def anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty cache on disk and in this process."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    vmlinux.descriptor.cache_clear()
    yield
    vmlinux.descriptor.cache_clear()


def read(descriptor: int | None) -> bytes:
    assert descriptor is not None
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def test_the_plain_kernel_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vmlinuz").write_bytes(image_of(PLAIN))
    assert read(vmlinux.descriptor(tmp_path / "vmlinuz")) == PLAIN
    vmlinux.descriptor.cache_clear()  # as in the next process
    monkeypatch.setattr(vmlinux, "plain_of", lambda image: pytest.fail("unpacked again"))
    assert read(vmlinux.descriptor(tmp_path / "vmlinuz")) == PLAIN


def test_another_content_at_the_same_path_is_another_kernel(tmp_path: Path) -> None:
    for plain in (PLAIN, PLAIN + b"newer"):
        (tmp_path / "vmlinuz").write_bytes(image_of(plain))
        assert read(vmlinux.descriptor(tmp_path / "vmlinuz")) == plain
        vmlinux.descriptor.cache_clear()


@pytest.mark.parametrize(
    "image",
    [image_of(b"\x7fELF without an entry"), image_of(PVH), PLAIN, image_of(PLAIN)[:-9]],
    ids=["no entry", "no ELF", "no image", "cut short"],
)
def test_what_cannot_be_booted_so_is_known_at_once_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, image: bytes
) -> None:
    (tmp_path / "vmlinuz").write_bytes(image)
    assert vmlinux.descriptor(tmp_path / "vmlinuz") is None
    vmlinux.descriptor.cache_clear()
    monkeypatch.setattr(vmlinux, "plain_of", lambda image: pytest.fail("unpacked again"))
    assert vmlinux.descriptor(tmp_path / "vmlinuz") is None


def test_without_a_cache_it_is_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "vmlinuz").write_bytes(image_of(PLAIN))
    descriptor = vmlinux.descriptor(tmp_path / "vmlinuz")
    assert descriptor is not None
    assert os.pread(descriptor, len(PLAIN) + 1, 0) == PLAIN
    os.close(descriptor)
