"""Reads image archives: an OCI folder or tar, or a tar written by ``docker save``.

::

    image = read("web.tar", "x86_64")
    with Archive(image.path) as archive, archive.open(image.layers[0].place) as octets: ...

Formats: OCI Image Layout 1.1 (folder or tar), and Docker's image format 1.2, in which a
``manifest.json`` names a configuration and layers.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Self, cast

from airloom.errors import ScenarioError
from airloom.host import files
from airloom.images.bounded import BROKEN, LARGEST_PIECE, Bounded, TooLarge

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Default search path of an image that sets none."""
TAG = "org.opencontainers.image.ref.name"
"""Annotation that names one of several images in an archive."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
"""The kernel's names of architectures and the OCI's, where they differ."""
_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_LARGEST = 64 << 30
"""Largest tar, in octets."""
_LONGEST = 8 << 20
"""Largest index, manifest or configuration, in octets; real ones have a few thousand."""
_DEEPEST = 4
"""Most levels of nested indexes."""
_MOST_MEMBERS = 20_000
"""Most files of an archive; real ones have some for each layer."""
_MOST_NAMES = 20
"""Most names of images that an error lists."""


class ImageError(ScenarioError):
    """The file is not an image, or not one that can run on this machine."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: a tar, which may be compressed."""

    place: str
    """Path in the archive."""
    digest: str | None
    """SHA-256 of the layer as stored, if the image states it."""
    diff: str
    """SHA-256 of the uncompressed tar."""


@dataclass(frozen=True, slots=True)
class Image:
    """One image of an archive."""

    path: Path
    layers: tuple[Layer, ...]
    env: tuple[tuple[str, str], ...]
    command: tuple[str, ...]
    """Entry point and its arguments: the image's default command; empty if there is none."""
    folder: str
    """Working folder."""
    user: str
    """``user[:group]``; empty for root."""

    @property
    def key(self) -> str:
        """Identifies the root file system that all layers together form."""
        return hashlib.sha256("\n".join(layer.diff for layer in self.layers).encode()).hexdigest()


class Archive:
    """Gives access to the files of a folder or a tar by their relative paths."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stack = ExitStack()
        self._tar: tarfile.TarFile | None = None
        if not path.is_dir():
            try:
                stream = Bounded(self._stack.enter_context(files.reader(path)))
                tar = self._tar = self._stack.enter_context(
                    tarfile.open(fileobj=cast(IO[bytes], stream), mode="r:")  # noqa: SIM115
                )
                self._members = {_plain(member.name): member for member in _members(tar) if member.isfile()}
            except BROKEN as error:
                self._stack.close()
                why = str(error) if isinstance(error, TooLarge) else getattr(error, "strerror", None)
                raise _not_an_image(path, why or "it is no tar") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def has(self, place: str) -> bool:
        """True if the archive has such a file."""
        return place in self._members if self._tar is not None else (self.path / place).is_file()

    def open(self, place: str) -> IO[bytes]:
        """Opens a file in the archive; raises :class:`ImageError` if it does not exist."""
        if not self.has(place):
            raise ImageError(
                "image.incomplete", f"the image {self.path.name} has no {place}", cure="copy it again"
            )
        if self._tar is None:
            try:
                return files.reader(self.path / place)
            except OSError as error:
                raise _not_an_image(self.path, f"{place}: {error.strerror or error}") from None
        return cast(IO[bytes], self._tar.extractfile(self._members[place]))

    def json(self, place: str, digest: str | None = None) -> Any:
        """Reads a JSON file and verifies its digest."""
        octets = b""
        try:
            with self.open(place) as file:
                while len(octets) <= _LONGEST and (piece := file.read(LARGEST_PIECE)):
                    octets += piece
        except ImageError:
            raise
        except BROKEN as error:
            raise _not_an_image(self.path, f"{place} cannot be read: {str(error)[:100]}") from None
        if len(octets) > _LONGEST:
            raise _not_an_image(self.path, f"{place} is longer than {_LONGEST} octets")
        if digest is not None and f"sha256:{hashlib.sha256(octets).hexdigest()}" != digest:
            raise damaged(self.path, place)
        try:
            return json.loads(octets)
        except (ValueError, RecursionError):
            raise _not_an_image(self.path, f"{place} is no JSON") from None


def damaged(path: Path, place: str) -> ImageError:
    """Returns the error for a part that does not match its digest."""
    return ImageError(
        "image.damaged",
        f"the image {path.name} is damaged: {place} does not match its digest",
        cure="copy it again",
    )


def read(said: str, machine: str) -> Image:
    """Returns the image ``PATH`` or ``PATH:TAG`` for an architecture in the kernel's terms."""
    path, tag = Path(said), None
    if not path.exists() and ":" in path.name:
        before, _, tag = said.rpartition(":")
        path = Path(before)
    if not path.exists():
        raise ImageError(
            "image.missing",
            f"there is no image {Path(said).name!r}",
            cure="give a folder or tar of this machine, or docker://NAME:TAG for one in a registry",
        )
    about = path.stat().st_mode
    if not stat.S_ISDIR(about) and not stat.S_ISREG(about):
        raise _not_an_image(path, "it is neither a folder nor a regular file")
    if path.stat().st_size > _LARGEST:
        raise _not_an_image(path, f"it is larger than {_LARGEST >> 30} GiB")
    index = path / "index.json"
    stamp = (index if index.is_file() else path).stat()
    return _read(path, tag, ARCHITECTURES.get(machine, machine), (stamp.st_mtime_ns, stamp.st_size))


@lru_cache(maxsize=64)
def _read(path: Path, tag: str | None, wanted: str, stamp: tuple[int, int]) -> Image:
    """Reads an image; cached until it changes, because many nodes and plans name the same one."""
    with Archive(path) as archive:
        try:
            if archive.has("index.json"):
                config, layers = _oci(archive, tag, wanted)
            elif archive.has("manifest.json"):
                config, layers = _docker(archive, tag)
            else:
                raise _not_an_image(path, "it has neither index.json nor manifest.json")
            return _image(archive, config, layers, wanted)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _not_an_image(path, f"its description is not as it should be ({error!r})") from None


def _oci(archive: Archive, tag: str | None, wanted: str) -> tuple[dict[str, Any], list[Layer]]:
    entries = archive.json("index.json")["manifests"]
    tags = {
        entry.get("annotations", {}).get(TAG) or f"#{number}": entry for number, entry in enumerate(entries)
    }
    manifest = _described(archive, _one_of(archive.path, tags, tag))
    for _ in range(_DEEPEST):
        if manifest.get("mediaType") not in _INDEXES and "manifests" not in manifest:
            break
        fitting = {
            entry.get("platform", {}).get("architecture", "unknown"): entry
            for entry in reversed(manifest["manifests"])
        }
        if wanted not in fitting:
            raise _other_machine(archive.path, ", ".join(sorted(fitting)), wanted)
        manifest = _described(archive, fitting[wanted])
    config = _described(archive, manifest["config"])
    diffs = config["rootfs"]["diff_ids"]
    layers = [
        Layer(_blob(entry["digest"]), entry["digest"], diff)
        for entry, diff in zip(manifest["layers"], diffs, strict=True)
    ]
    return config, layers


def _described(archive: Archive, descriptor: dict[str, Any]) -> Any:
    """Reads the JSON file that an OCI descriptor refers to."""
    return archive.json(_blob(descriptor["digest"]), descriptor["digest"])


def _docker(archive: Archive, tag: str | None) -> tuple[dict[str, Any], list[Layer]]:
    entries = archive.json("manifest.json")
    named = {
        name: entry
        for number, entry in enumerate(entries)
        for name in entry.get("RepoTags") or [f"#{number}"]
    }
    entry = _one_of(archive.path, named, tag)
    config = archive.json(_plain(entry["Config"]))
    diffs = config["rootfs"]["diff_ids"]
    return config, [
        Layer(_plain(place), None, diff) for place, diff in zip(entry["Layers"], diffs, strict=True)
    ]


def _one_of(path: Path, tags: dict[str, dict[str, Any]], tag: str | None) -> dict[str, Any]:
    """Returns the image with a tag, or the only one."""
    matching = [entry for name, entry in tags.items() if tag in (name, name.rpartition(":")[2])]
    found = list(tags.values()) if tag is None else matching
    different = {json.dumps(entry, sort_keys=True): entry for entry in found}
    if len(different) == 1:
        return next(iter(different.values()))
    more = f" and {len(tags) - _MOST_NAMES} more" if len(tags) > _MOST_NAMES else ""
    names = ", ".join(str(name)[:100] for name in list(tags)[:_MOST_NAMES]) + more or "none"
    if tag is not None and not found:
        raise ImageError("image.tag", f"{path.name} has no image {tag!r}", cure=f"it has: {names}")
    raise ImageError(
        "image.tag", f"{path.name} has {len(different)} images", cure=f"name one as PATH:TAG: {names}"
    )


def _image(archive: Archive, config: dict[str, Any], layers: list[Layer], wanted: str) -> Image:
    path = archive.path
    if config.get("os", "linux") != "linux":
        raise ImageError("image.machine", f"the image {path.name} is for {config['os']}, not for Linux")
    if config.get("architecture", wanted) != wanted:
        raise _other_machine(path, config["architecture"], wanted)
    for layer in layers:
        if not _DIGEST.fullmatch(layer.diff):
            raise ValueError(layer.diff)
        archive.open(layer.place).close()
    said = config.get("config") or {}
    entries = [entry.partition("=") for entry in said.get("Env") or []]
    command = [*(said.get("Entrypoint") or []), *(said.get("Cmd") or [])]
    return Image(
        path.resolve(),
        tuple(layers),
        tuple((name, value) for name, _, value in entries),
        tuple(str(word) for word in command),
        str(said.get("WorkingDir") or "/"),
        str(said.get("User") or ""),
    )


def _members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yields the members of an archive, up to :data:`_MOST_MEMBERS`."""
    for number, member in enumerate(tar):
        if number == _MOST_MEMBERS:
            raise TooLarge(f"it has more than {_MOST_MEMBERS:,} files")
        yield member


def _blob(digest: str) -> str:
    if not _DIGEST.fullmatch(digest):
        raise ValueError(digest)
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"


def _plain(name: str) -> str:
    return name.removeprefix("./")


def _not_an_image(path: Path, why: str) -> ImageError:
    return ImageError(
        "image.format",
        f"{path.name} is no image: {why}",
        cure="give a folder or tar in the OCI's layout, or a tar by `docker save` or `podman save`",
    )


def _other_machine(path: Path, has: str, wanted: str) -> ImageError:
    return ImageError(
        "image.machine",
        f"the image {path.name} is for {has}, and this machine is {wanted}",
        cure=f"build or save it for linux/{wanted}",
    )
