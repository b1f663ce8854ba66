"""Extracts the uncompressed kernel from an image: emulated, decompression takes seconds.

A distribution's kernel is a self-extracting image (the kernel's
``Documentation/arch/x86/boot.rst``). QEMU can also boot the plain kernel in it, if that has an
entry point for virtual machines (PVH, a note of type 18).
"""

from __future__ import annotations

import hashlib
import lzma
import os
import struct
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from airloom.errors import HostError
from airloom.host import cache
from airloom.host.files import content

_MAGIC, _MAGIC_AT = b"HdrS", 0x202
_SETUP_AT, _VERSION_AT, _PAYLOAD_AT = 0x1F1, 0x206, 0x248
_SECTOR = 512
_WITH_PAYLOAD = 0x0208
"""The first version of the boot protocol that gives the payload's position."""
_LARGEST = 1 << 30
"""Maximum size of an image in octets."""
_NAME = "vmlinux"
"""The file in a folder of the cache; a folder without it belongs to a kernel that cannot be booted so."""
_NOTES = tuple(struct.pack("<III4s", 4, size, 18, b"Xen") for size in (4, 8))


@lru_cache
def descriptor(image: Path) -> int | None:
    """A descriptor of an image's plain kernel, owned by this module; None if not bootable.

    The plain kernel is kept in the cache folder: decompression takes a second of processor time.
    """
    compressed = content(image, _LARGEST)
    place = cache.folder("vmlinux", hashlib.sha256(compressed).hexdigest()[:24])
    try:
        cache.made(place, lambda part: _keep(part / _NAME, compressed), f"the plain kernel of {image}")
        return os.open(place / _NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except HostError:  # nothing can be kept here
        plain = plain_of(compressed)
        return None if plain is None else _in_memory(plain)


def _keep(file: Path, compressed: bytes) -> None:
    plain = plain_of(compressed)
    if plain is not None:
        file.write_bytes(plain)


def _in_memory(plain: bytes) -> int:
    held = os.memfd_create("airloom-vmlinux", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(held), "wb") as file:
        file.write(plain)
    return held


def plain_of(image: bytes) -> bytes | None:
    """The plain kernel in an image; None if the format differs or the kernel has no PVH entry."""
    if image[_MAGIC_AT : _MAGIC_AT + 4] != _MAGIC or len(image) < _PAYLOAD_AT + 8:
        return None
    if struct.unpack_from("<H", image, _VERSION_AT)[0] < _WITH_PAYLOAD:
        return None
    offset, length = struct.unpack_from("<II", image, _PAYLOAD_AT)
    begin = ((image[_SETUP_AT] or 4) + 1) * _SECTOR + offset
    try:
        plain = _unpacked(image[begin : begin + length])
    except (lzma.LZMAError, zlib.error, EOFError, OSError):
        return None
    has_entry = plain[:4] == b"\x7fELF" and any(note in plain for note in _NOTES)
    return plain if has_entry else None


def _unpacked(payload: bytes) -> bytes:
    if payload[:6] == b"\xfd7zXZ\0":
        return _whole(lzma.LZMADecompressor(), payload)
    if payload[:2] == b"\x1f\x8b":
        return _whole(zlib.decompressobj(31), payload)
    if payload[:4] == b"\x28\xb5\x2f\xfd":
        import pyarrow

        # The kernel's build appends four octets.
        with pyarrow.CompressedInputStream(pyarrow.BufferReader(payload[:-4]), "zstd") as stream:
            plain: bytes = stream.read()
        return plain
    return payload


def _whole(decompressor: Any, payload: bytes) -> bytes:
    plain: bytes = decompressor.decompress(payload)
    if not decompressor.eof:
        raise EOFError("the payload is cut short")
    return plain
