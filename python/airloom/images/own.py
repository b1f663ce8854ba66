"""Images of this machine's own programs: an OCI image layout with one layer, the same octets every time.

::

    own.make(Path("own.oci"), ["sh", "ping", "iperf3", "python3"])   # where a user wants it
    own.of(["sh", "ping"])                                           # kept below the cache's folder

An image that is kept is made once for the programs as they are: its name is the digest of what was
gathered, paths, sizes and times.
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
from airloom.images.archive import ARCHITECTURES, TAG, ImageError
from airloom.images.gather import Entry, File, Folder, Link, Text, gather

_MARK = "airloom.programs"
"""Annotation by which an image of this machine's programs is known, and which names them."""
_FORM = 1
"""Counts with every change of what is made of the same files."""
_TYPE = "application/vnd.oci.image"


@dataclass(frozen=True, slots=True)
class Made:
    """What an image was made of."""

    programs: int
    libraries: int
    files: int
    octets: int
    """Of all files together."""


def make(folder: Path, programs: Sequence[str], more: Sequence[str] = ()) -> Made:
    """Makes an image in a folder, in which there may be one of this machine's programs already.

    :class:`HostError` for a program that is missing or cannot be read, :class:`ImageError` for a folder
    that holds something else.
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
        cure = "make room for it, or name another folder"
        raise HostError(
            "image.write", f"the image cannot be written: {error}", where=str(folder), cure=cure
        ) from None


def of(programs: Sequence[str]) -> Path:
    """An image of these programs, made now if there is none of them as they are; :class:`HostError`."""
    names = tuple(dict.fromkeys(programs))
    entries = _gathered(names, os.environ.get("PATH", ""))
    described = json.dumps([_FORM, names, list(entries)]) + "\n".join(map(repr, entries.values()))
    key = hashlib.sha256(described.encode()).hexdigest()
    return cache.made(
        cache.folder("own", key), lambda part: _write(part, entries, names), "the image of this machine"
    )


@lru_cache(maxsize=16)
def _gathered(programs: tuple[str, ...], search: str) -> Mapping[str, Entry]:
    """An experiment asks for the same programs before every run."""
    return gather(programs)


def replaceable(folder: Path) -> None:
    """:class:`ImageError` unless a folder is not there, is empty, or holds an image that was made here."""
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
    """Writes the one layer, a plain tar: it seldom leaves the machine, and compressing takes longest."""
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
    """A file that knows the digest and the number of the octets that were written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, octets: Any) -> int:
        """Writes on."""
        self.digest.update(octets)
        self.size += len(octets)
        return self._file.write(octets)


def _add(tar: tarfile.TarFile, path: str, entry: Entry) -> None:
    """Everything is root's; times are the files' own, by which Python knows that a module is compiled."""
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
