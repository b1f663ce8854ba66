"""Makes reproducible OCI images of this machine's own programs, with one layer.

::

    own.make(Path("own.oci"), ["sh", "ping", "iperf3", "python3"])   # in a given folder
    own.of(["sh", "ping"])                                           # in the cache folder

A cached image is made once for each state of the programs: its name is the digest of the paths,
sizes and times of the files.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from airloom.errors import HostError
from airloom.host import cache
from airloom.host.programs import search_path
from airloom.images.archive import ARCHITECTURES, TAG, ImageError
from airloom.images.gather import Entry, File, Folder, Link, Text, gather

_MARK = "airloom.programs"
"""Annotation that marks an image of this machine's programs and lists them."""
_FORM = 1
"""Format version: increases when the same files give a different image."""
_TYPE = "application/vnd.oci.image"


@dataclass(frozen=True, slots=True)
class Made:
    """Describes what an image contains."""

    programs: int
    libraries: int
    files: int
    octets: int
    """Size of all files together."""


def make(folder: Path, programs: Sequence[str], more: Sequence[str] = ()) -> Made:
    """Makes an image in a folder, which may contain an earlier image of this kind.

    Raises :class:`HostError` for a program that is missing or unreadable, :class:`ImageError` for a
    folder with other content.
    """
    with _disk(folder):
        replaceable(folder)
    entries = gather(programs, more)
    with _disk(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".airloom-", dir=folder.parent) as beside:
            part = Path(beside, "image")
            part.mkdir()
            _write(part, entries, programs)
            if folder.exists():
                shutil.rmtree(folder)
            part.rename(folder)
    files = {path: entry for path, entry in entries.items() if isinstance(entry, File)}
    return Made(
        len(set(programs)),
        sum(".so" in os.path.basename(path) for path in files),
        len(files),
        sum(entry.size for entry in files.values()),
    )


@contextlib.contextmanager
def _disk(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        cure = "free space for it, or name another folder"
        raise HostError(
            "image.write", f"the image cannot be written: {error}", where=str(folder), cure=cure
        ) from None


def of(programs: Sequence[str]) -> Path:
    """Returns the cached image of these programs, made if necessary; raises :class:`HostError`."""
    names = tuple(dict.fromkeys(programs))
    entries = _gathered(names, search_path())
    described = json.dumps([_FORM, names, list(entries)]) + "\n".join(map(repr, entries.values()))
    key = hashlib.sha256(described.encode()).hexdigest()
    return cache.made(
        cache.folder("own", key), lambda part: _write(part, entries, names), "the image of this machine"
    )


@lru_cache(maxsize=16)
def _gathered(programs: tuple[str, ...], search: str) -> Mapping[str, Entry]:
    """Cached: an experiment needs the same programs before every run."""
    return gather(programs)


def replaceable(folder: Path) -> None:
    """Raises :class:`ImageError` unless a folder is missing, empty or an image of this kind."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        marks = json.loads((folder / "index.json").read_text())["annotations"]
    except (OSError, ValueError, KeyError, TypeError):
        marks = {}
    if _MARK not in marks:
        raise ImageError(
            "image.exists",
            "this is there already, and is no image that was made of this machine's programs",
            where=str(folder),
            cure="name another folder",
        )


def _write(folder: Path, entries: Mapping[str, Entry], programs: Sequence[str]) -> None:
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def blob(kind: str, described: Any) -> dict[str, Any]:
        octets = _json(described)
        digest = hashlib.sha256(octets).hexdigest()
        (blobs / digest).write_bytes(octets)
        return _descriptor(kind, digest, len(octets))

    layer = _layer(blobs, entries)
    machine = os.uname().machine
    config = {
        "architecture": ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": {"Env": ["LANG=C.UTF-8"]},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_TYPE}.manifest.v1+json",
        "config": blob("config.v1+json", config),
        "layers": [layer],
    }
    index = {
        "schemaVersion": 2,
        "mediaType": f"{_TYPE}.index.v1+json",
        "manifests": [blob("manifest.v1+json", manifest) | {"annotations": {TAG: "latest"}}],
        "annotations": {_MARK: " ".join(programs)},
    }
    (folder / "index.json").write_bytes(_json(index))
    (folder / "oci-layout").write_bytes(_json({"imageLayoutVersion": "1.0.0"}))


def _layer(blobs: Path, entries: Mapping[str, Entry]) -> dict[str, Any]:
    """Writes the layer as plain tar: compression would take longest and images are rarely copied."""
    place = blobs / "layer"
    with place.open("wb") as file:
        counted = _Counted(file)
        with tarfile.open(fileobj=counted, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for path, entry in entries.items():
                _add(tar, path, entry)
    digest = counted.digest.hexdigest()
    place.rename(blobs / digest)
    return _descriptor("layer.v1.tar", digest, counted.size)


class _Counted(io.RawIOBase):
    """A file object that counts and hashes the octets written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, octets: Any) -> int:
        """Writes octets."""
        self.digest.update(octets)
        self.size += len(octets)
        return self._file.write(octets)


def _add(tar: tarfile.TarFile, path: str, entry: Entry) -> None:
    """Adds an entry owned by root; file times stay: Python validates compiled modules by them."""
    info = tarfile.TarInfo(path.removeprefix("/"))
    match entry:
        case Folder(mode):
            info.type, info.mode = tarfile.DIRTYPE, mode
            tar.addfile(info)
        case Link(target):
            info.type, info.linkname, info.mode = tarfile.SYMTYPE, target, 0o777
            tar.addfile(info)
        case Text(content):
            octets = content.encode()
            info.size, info.mode = len(octets), 0o644
            tar.addfile(info, io.BytesIO(octets))
        case File(size, mtime_ns, mode):
            info.size, info.mode, info.mtime = size, mode, mtime_ns // 1_000_000_000
            with open(path, "rb") as file:
                tar.addfile(info, file)


def _descriptor(kind: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": f"{_TYPE}.{kind}", "digest": f"sha256:{digest}", "size": size}


def _json(described: Any) -> bytes:
    return json.dumps(described, sort_keys=True).encode()
