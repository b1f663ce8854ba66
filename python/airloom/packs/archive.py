"""The archive of a pack: a ZIP file (PKWARE APPNOTE 6.3) with the SHA-256 of every member.

The first member is ``manifest.json``. Times and owners are constants and members are sorted, so the
same content gives the same archive, octet for octet, with the same version of zlib.

A pack comes from elsewhere, so it is read as hostile: every name, kind and size is checked before a
member is opened, every digest before anything is written. A member is a regular file with a
relative name; the sizes that the archive states cannot exceed what DEFLATE can hold
(1032 : 1, zlib's technical details) nor the limits below.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from pydantic import ValidationError

from airloom.errors import RunError, ScenarioError, writing
from airloom.host import files, output
from airloom.packs.manifest import FILE, SCHEMA, Manifest, Member
from airloom.results.folder import disk

MOST_MEMBERS = 200_000
LARGEST = 64 << 30
"""Octets of all members together, unpacked."""
LARGEST_MANIFEST = 64 << 20
_OF_A_MEMBER, _OF_THE_REST = 600, 1 << 20
"""Octets of a manifest for each member, on average, and for all else: a manifest takes thirty times its
size in memory, so a small archive has no large one."""
_RATIO = 1032
_LONGEST_NAME, _LONGEST_PART, _DEEPEST = 4000, 255, 64
_CHUNK = 1 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time of the format."""
_UNIX = 3
_ENCRYPTED = 1
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
    MemoryError,
)
"""What :mod:`zipfile` raises for damaged archives."""


def write(path: Path, manifest: Manifest, places: Mapping[str, Path]) -> Manifest:
    """Writes an archive of the files at ``places``, by member name; returns its manifest with all digests.

    Each file is copied in one pass, and its digest is that of the octets in the archive. An existing
    ``path`` is replaced once the new archive is complete, if it is a pack.
    """
    output.refuse_others(path, output.PACK, "name another file with --out")
    with (
        disk(path.parent),
        tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as draft,
    ):
        try:
            with tempfile.TemporaryFile(dir=path.parent) as store:
                manifest = _measured(manifest, places, store)
                _assemble(draft, manifest, store)
            os.chmod(draft.name, 0o644)
            os.replace(draft.name, path)
        except BaseException:
            os.unlink(draft.name)
            raise
    return manifest


def _measured(manifest: Manifest, places: Mapping[str, Path], store: IO[bytes]) -> Manifest:
    """Copies all files behind one another into ``store``, in order of their names."""
    members = {}
    for name in sorted(places):
        total, size = hashlib.sha256(), 0
        with files.reader(places[name]) as source:
            mode = os.fstat(source.fileno()).st_mode
            while chunk := source.read(_CHUNK):
                total.update(chunk)
                size += len(chunk)
                store.write(chunk)
        members[name] = Member(size=size, sha256=total.hexdigest(), executable=bool(mode & stat.S_IXUSR))
    store.seek(0)
    return manifest.model_copy(update={"members": members})


def _assemble(draft: IO[bytes], manifest: Manifest, store: IO[bytes]) -> None:
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        text = manifest.model_dump_json(indent=1, by_alias=True) + "\n"
        archive.writestr(_entry(FILE), text.encode())
        for name, member in manifest.members.items():
            with archive.open(_entry(name, member), "w", force_zip64=member.size >= 1 << 31) as sink:
                left = member.size
                while left:
                    chunk = store.read(min(_CHUNK, left))
                    sink.write(chunk)
                    left -= len(chunk)


def _entry(name: str, member: Member | None = None) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.create_system = _UNIX
    mode = 0o755 if member is not None and member.executable else 0o644
    entry.external_attr = (stat.S_IFREG | mode) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


class Pack:
    """An archive whose names, kinds and sizes were checked; :meth:`verify` checks its digests."""

    def __init__(self, path: Path) -> None:
        """Opens and checks an archive; raises :class:`ScenarioError` if it is not acceptable."""
        self.path = path
        try:
            self._file = files.reader(path)
        except OSError as error:
            reason = error.strerror or str(error)
            raise ScenarioError("pack.unreadable", f"cannot be read: {reason}", where=str(path)) from None
        try:
            with self._sound():
                self._archive = zipfile.ZipFile(self._file)
            self._entries = self._checked_entries()
            self.manifest = self._read_manifest()
            self._check_members()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def verify(self) -> None:
        """Compares the digest of every member with the manifest; writes nothing."""
        for name in self.manifest.members:
            for _ in self._octets(name):
                pass

    def unpack(self, folder: Path) -> None:
        """Verifies the pack, then writes its members into a new folder, all or none of them."""
        self.verify()
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ScenarioError(
                "pack.exists",
                "there is something at this place already",
                where=str(folder),
                cure="name a new folder",
            )
        with disk(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            self._require_space(folder.parent)
            draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            for name, member in self.manifest.members.items():
                self._write(name, member, draft / name)
            with disk(folder):
                draft.chmod(0o755)
                draft.replace(folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise

    def read(self, name: str, most: int = LARGEST_MANIFEST) -> bytes:
        """Returns a member's octets, verified; raises an error if it is missing or too large."""
        member = self.manifest.members.get(name)
        if member is None:
            raise self._refused("members", f"there is no member {name!r}")
        if member.size > most:
            raise self._refused("size", f"the member {name!r} has {member.size:,} octets")
        return b"".join(self._octets(name))

    def _require_space(self, folder: Path) -> None:
        size = sum(member.size for member in self.manifest.members.values())
        free = shutil.disk_usage(folder).free
        if size > free:
            raise RunError(
                "pack.disk",
                f"the pack has {size:,} octets unpacked, and the disk {free:,} free",
                where=str(folder),
                cure="free space, or name a folder on another disk",
            )

    def _write(self, name: str, member: Member, target: Path) -> None:
        octets = self._octets(name)
        with writing(target, "pack.unwritable", "a member", "name another folder"):
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as sink:
                sink.writelines(octets)
            target.chmod(0o755 if member.executable else 0o644)

    def _checked_entries(self) -> dict[str, zipfile.ZipInfo]:
        found: dict[str, zipfile.ZipInfo] = {}
        packed = unpacked = 0
        infos = self._archive.infolist()
        if len(infos) > MOST_MEMBERS:
            raise self._refused("size", f"{len(infos):,} members are more than {MOST_MEMBERS:,}")
        for info in infos:
            name = info.orig_filename
            fault = fault_of(name)
            if fault:
                raise self._refused("name", f"the member name {_shown(name)} {fault}")
            if name in found:
                raise self._refused("twice", f"the member {_shown(name)} occurs twice")
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG):
                what = "a symbolic link" if kind == stat.S_IFLNK else "no regular file"
                raise self._refused("kind", f"the member {_shown(name)} is {what}")
            if info.flag_bits & _ENCRYPTED:
                raise self._refused("kind", f"the member {_shown(name)} is encrypted")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise self._refused("kind", f"the member {_shown(name)} has an unknown compression")
            if info.file_size > _RATIO * (info.compress_size + 1):
                said = f"{info.file_size:,} octets from {info.compress_size:,}"
                raise self._refused("size", f"the member {_shown(name)} claims {said}: that cannot be")
            packed, unpacked = packed + info.compress_size, unpacked + info.file_size
            found[name] = info
        if unpacked > LARGEST:
            raise self._refused("size", f"{unpacked:,} octets unpacked are more than {LARGEST:,}")
        if packed > os.fstat(self._file.fileno()).st_size:
            raise self._refused("size", "its members overlap")
        for name in found:
            for place in _folders(name):
                if place in found:
                    raise self._refused("name", f"the member {_shown(place)} is a file and a folder")
        return found

    def _read_manifest(self) -> Manifest:
        info = self._entries.pop(FILE, None)
        if info is None:
            raise self._refused("manifest", f"it has no {FILE}")
        if info.file_size > min(LARGEST_MANIFEST, _OF_THE_REST + _OF_A_MEMBER * len(self._entries)):
            raise self._refused("size", f"{FILE} has {info.file_size:,} octets")
        with self._sound(), self._archive.open(info) as source:
            text = source.read(LARGEST_MANIFEST + 1)
        try:
            manifest = Manifest.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise self._refused("manifest", f"{FILE} is wrong: {place}: {first['msg']}") from None
        if manifest.version != SCHEMA:
            said = f"{FILE} has schema {manifest.version}, and this release reads {SCHEMA}"
            raise self._refused("manifest", said, "use the release of Airloom that made it")
        return manifest

    def _check_members(self) -> None:
        stated = self.manifest.members
        for name in stated.keys() - self._entries.keys():
            raise self._refused("members", f"the member {_shown(name)} of {FILE} is missing")
        for name, info in self._entries.items():
            if name not in stated:
                raise self._refused("members", f"the member {_shown(name)} is not in {FILE}")
            if info.file_size != stated[name].size:
                said = f"{info.file_size:,} octets, and {stated[name].size:,} by {FILE}"
                raise self._refused("digest", f"the member {_shown(name)} has {said}")

    def _octets(self, name: str) -> Iterator[bytes]:
        """Yields a member's octets; raises the error if the digest differs after the last of them."""
        member, total, size = self.manifest.members[name], hashlib.sha256(), 0
        with self._sound(name), self._archive.open(self._entries[name]) as source:
            while chunk := source.read(_CHUNK):
                size += len(chunk)
                if size > member.size:
                    break
                total.update(chunk)
                yield chunk
        if size != member.size or total.hexdigest() != member.sha256:
            raise self._digest_differs(name)

    @contextmanager
    def _sound(self, member: str | None = None) -> Iterator[None]:
        """Inside, a damaged archive raises the error of this module."""
        try:
            yield
        except _BROKEN as error:
            if member is not None:
                raise self._digest_differs(member) from error
            raise self._refused("damaged", f"this is no complete ZIP archive: {error}") from None

    def _digest_differs(self, name: str) -> ScenarioError:
        said = f"the member {_shown(name)} does not match its digest in {FILE}"
        return self._refused("digest", said, "copy the pack again, or ask for a new one")

    def _refused(self, code: str, message: str, cure: str | None = None) -> ScenarioError:
        return ScenarioError(
            f"pack.{code}",
            message,
            where=str(self.path),
            cure=cure or "ask for a new pack; nothing was written",
        )


def fault_of(name: str) -> str | None:
    """Returns what is wrong with a member's name; None for a relative path of plain parts."""
    parts = name.split("/")
    if name.startswith("/"):
        return "is absolute"
    if ".." in parts:
        return "leaves the archive"
    if not all(parts) or "." in parts:
        return "has an empty part"
    if "\\" in name or not name.isprintable():
        return "has a character that no name may have"
    try:
        lengths = [len(part.encode()) for part in parts]
    except UnicodeEncodeError:
        return "has a character that no name may have"
    if max(lengths) > _LONGEST_PART or sum(lengths) + len(parts) > _LONGEST_NAME or len(parts) > _DEEPEST:
        return "is too long"
    return None


def _folders(name: str) -> Iterator[str]:
    place, _, _ = name.rpartition("/")
    while place:
        yield place
        place, _, _ = place.rpartition("/")


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else f"{name[:77]}...")
