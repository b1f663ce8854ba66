"""The program that unpacks an image, in a chroot at the target folder.

::

    python -m airloom.images.unpack ARCHIVE FOLDER [PLACE DIGEST DIFF]...

It opens the archive, calls chroot on FOLDER and unpacks the layers over each other, so no link in a
layer can lead outside. A layer with names that leave the image is still refused, because it can
only be malicious. Without root all files belong to the current user. Devices are skipped: a node
has its own. Whiteouts follow the OCI image specification (``.wh.NAME``, ``.wh..wh..opq``).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
import shutil
import stat
import sys
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from airloom.host.files import remove
from airloom.host.parent import die_with_parent
from airloom.images.archive import Archive, ImageError, damaged
from airloom.images.bounded import BROKEN, LARGEST_PIECE, Bounded

_MEMORY = 4 << 30
"""Limit of address space in octets, against headers that claim huge sizes."""
_SHARE = 0.5
"""Part of the free disk space that an image may use."""
_DEEPEST = 256
"""Most levels of nested folders."""
_MOST_FILES = 2_000_000
"""Most entries of all layers together."""
_CAPABILITY = "security.capability"
_OPAQUE, _GONE = ".wh..wh..opq", ".wh."


class Refused(Exception):
    """A layer cannot be unpacked, or is not allowed."""


class Counted:
    """A stream that hashes what is read from it."""

    def __init__(self, stream: IO[bytes] | Bounded) -> None:
        self._stream = stream
        self._sum = hashlib.sha256()

    def read(self, most: int = -1) -> bytes:
        """Reads octets."""
        octets = self._stream.read(most)
        self._sum.update(octets)
        return octets

    def digest(self) -> str:
        """Reads to the end and returns the digest of everything."""
        while self.read(LARGEST_PIECE):
            pass
        return f"sha256:{self._sum.hexdigest()}"


class Unpacker:
    """Unpacks layers over each other into this process's root."""

    def __init__(self, free: int, mapped: bool) -> None:
        self._free = free
        self._files = 0
        self._mapped = mapped
        """True if files can be given to other users."""

    def lay(self, number: int, octets: IO[bytes]) -> None:
        """Unpacks one uncompressed tar over the existing files."""
        made: set[str] = set()
        folders: list[tuple[str, tarfile.TarInfo]] = []
        with tarfile.open(fileobj=octets, mode="r|") as tar:
            for member in tar:
                tar.members.clear()  # type: ignore[attr-defined]  # they are of no use here, and may be many
                self._files += 1
                if self._files > _MOST_FILES:
                    raise Refused(f"it has more than {_MOST_FILES:,} files")
                path = _within(member.name)
                if path == "/":
                    continue
                name = os.path.basename(path)
                if name == _OPAQUE:
                    _empty(os.path.dirname(path), made)
                elif name.startswith(_GONE):
                    _remove(os.path.join(os.path.dirname(path), name.removeprefix(_GONE)))
                else:
                    self._one(tar, member, path)
                    made.add(path)
                    if member.isdir():
                        folders.append((path, member))
        for path, member in reversed(folders):
            with contextlib.suppress(OSError):  # a later entry may have removed it
                os.utime(path, (member.mtime, member.mtime), follow_symlinks=False)

    def _one(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        there = _lstat(path)
        if there is not None and not (member.isdir() and stat.S_ISDIR(there.st_mode)):
            _remove(path)
        if member.isdir():
            if _lstat(path) is None:
                os.mkdir(path)
        elif member.isreg():
            self._free -= member.size
            if self._free < 0:
                raise Refused("its files take more than half of the space that is free")
            source = cast(IO[bytes], tar.extractfile(member))
            with open(path, "xb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
        elif member.issym():
            os.symlink(member.linkname, path)
        elif member.islnk():
            os.link(_within(member.linkname), path, follow_symlinks=False)
            return
        elif member.isfifo():
            os.mkfifo(path)
        else:
            return
        if self._mapped:
            os.chown(path, member.uid, member.gid, follow_symlinks=False)
        if not member.issym():
            os.chmod(path, member.mode & 0o7777)
            if self._mapped and f"SCHILY.xattr.{_CAPABILITY}" in member.pax_headers:
                value = member.pax_headers[f"SCHILY.xattr.{_CAPABILITY}"]
                os.setxattr(path, _CAPABILITY, value.encode("utf-8", "surrogateescape"))
            if not member.isdir():
                os.utime(path, (member.mtime, member.mtime))


def _within(name: str) -> str:
    """Returns an absolute path in the image; raises :class:`Refused` if it leaves the image."""
    parts = PurePosixPath(name).parts
    if ".." in parts:
        raise Refused(f"the name {name!r} leaves the image")
    if "\0" in name:
        raise Refused(f"{name!r} is no name")
    if len(parts) > _DEEPEST:
        raise Refused(f"the name {name[:60] + '...'!r} is nested deeper than {_DEEPEST} folders")
    return os.path.join("/", *(part for part in parts if part != "/"))


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def _remove(path: str) -> None:
    there = _lstat(path)
    if there is None:
        return
    if stat.S_ISDIR(there.st_mode):
        remove(path)
    else:
        os.unlink(path)


def _empty(folder: str, made: set[str]) -> None:
    """Removes what lower layers put in a folder; entries of this layer stay."""
    for entry in os.scandir(folder) if os.path.isdir(folder) else ():
        if not any(path == entry.path or path.startswith(f"{entry.path}/") for path in made):
            _remove(entry.path)


def _users_are_mapped() -> bool:
    """True if this process may give files to any user."""
    lines = Path("/proc/self/uid_map").read_text().split("\n")
    return os.geteuid() == 0 and any(int(line.split()[2]) > 65535 for line in lines if line.strip())


def unpack(archive: Archive, folder: str, layers: list[tuple[str, str, str]]) -> None:
    """Unpacks all layers into a folder, which becomes this process's root."""
    opened = [(archive.open(place), place, digest, diff) for place, digest, diff in layers]
    streams = [(_checked(archive, file, place, digest), diff) for file, place, digest, diff in opened]
    mapped = _users_are_mapped()
    free = os.statvfs(folder)
    os.chroot(folder)
    os.chdir("/")
    os.umask(0)
    unpacker = Unpacker(int(free.f_bavail * free.f_frsize * _SHARE), mapped)
    for number, (stream, diff) in enumerate(streams, 1):
        try:
            counted = Counted(stream)
            unpacker.lay(number, cast(Any, counted))
            if counted.digest() != diff:
                raise Refused("its content does not match its digest")
        except (Refused, *BROKEN) as error:
            said = str(error) or type(error).__name__
            raise Refused(f"layer {number}: {said}") from None


def _checked(archive: Archive, file: IO[bytes], place: str, digest: str) -> Bounded:
    """Returns a layer, decompressed, after its digest was verified."""
    if digest and Counted(file).digest() != digest:
        raise damaged(archive.path, place)
    return Bounded(file)


def main(words: list[str]) -> int:
    """The main program; the last line of standard error describes a failure."""
    path, folder, *rest = words
    layers = list(zip(rest[::3], rest[1::3], rest[2::3], strict=True))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    die_with_parent()
    try:
        with Archive(Path(path)) as archive:
            unpack(archive, folder, layers)
    except (Refused, ImageError, OSError) as error:
        print(error.message if isinstance(error, ImageError) else error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
