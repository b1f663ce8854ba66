"""Builds the initramfs of guests: an archive in memory that contains ``airloom-init``.

The format is "newc" of cpio (the kernel's
``Documentation/driver-api/early-userspace/buffer-format.rst``). The archive is a sealed memfd: no
process can change it, and it disappears with its last descriptor.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath

from airloom.host import binaries
from airloom.nodes.guests.modules import content_of, module_name

_FOLDER, _FILE = 0o040755, 0o100755
_WORD = 4
_REGULATORY = ("/lib/firmware/regulatory.db", "/lib/firmware/regulatory.db.p7s")
"""The regulatory database and its signature, which the kernel reads when its 802.11 stack starts."""


def archive(files: Mapping[str, bytes], folders: Iterable[str] = ()) -> bytes:
    """An archive of files by absolute path and their parent folders, all owned by root."""
    made = {parent for path in files for parent in PurePosixPath(path).parents} | {
        PurePosixPath(path) for path in folders
    }
    entries = [(str(path), _FOLDER, b"") for path in sorted(made) if str(path) != "/"]
    entries += [(path, _FILE, content) for path, content in files.items()]
    parts = [_entry(number, *entry) for number, entry in enumerate(entries, 1)]
    return b"".join(parts) + _entry(0, "TRAILER!!!", 0, b"")


def descriptor(files: Sequence[str] = (), early: Sequence[str] = ()) -> int:
    """A descriptor of the guests' archive; this module keeps ownership.

    ``files`` (modules, firmware) keep their paths in the archive; modules in ``early`` are loaded in
    order before anything else, with their parameters on the kernel's command line.
    """
    program = binaries.find("airloom-init")
    return _made(program, program.stat().st_mtime_ns, tuple(files), tuple(early))


REGULATORY_PACKAGE = "wireless-regdb"
WITHOUT_REGULATORY = (
    "this machine has no regulatory database, so kernels of guests allow no access point and no mesh at "
    f"5 GHz, whatever the country is (sudo apt-get install {REGULATORY_PACKAGE})"
)
"""Note on guests with 802.11 devices."""


def regulatory() -> tuple[str, ...]:
    """The files of the regulatory database, if it is installed."""
    return tuple(path for path in _REGULATORY if Path(path).is_file())


@lru_cache
def _made(program: Path, _: int, paths: tuple[str, ...], early: tuple[str, ...]) -> int:
    files = {"/init": program.read_bytes()} | {path: Path(path).read_bytes() for path in paths}
    files |= {
        f"/early/{number:02}-{module_name(path)}": content_of(Path(path)) for number, path in enumerate(early)
    }
    content = archive(files, ("/dev", "/proc", "/sys", "/root"))
    held = os.memfd_create("airloom-initramfs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with os.fdopen(os.dup(held), "wb") as file:
        file.write(content)
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(held, fcntl.F_ADD_SEALS, seals)
    return held


def _entry(number: int, path: str, mode: int, content: bytes) -> bytes:
    name = path.lstrip("/").encode() + b"\0"
    # Inode, mode, owner, group, links, time, size, four device numbers, length of the name,
    # checksum.
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    return _padded(head) + _padded(content)


def _padded(octets: bytes) -> bytes:
    return octets + b"\0" * (-len(octets) % _WORD)
