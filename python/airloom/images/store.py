"""Unpacked images, each once for all nodes and runs of a user.

They are in ``airloom/images`` below ``$XDG_CACHE_HOME`` (by default ``~/.cache``), each in a folder
named by the digest of its layers, which nodes never write. Deleting them is safe while no laboratory
is up; they are unpacked again when they are wanted.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from airloom import cache
from airloom.errors import HostError
from airloom.images.archive import Image, ImageError

_LIMIT = 600.0
"""How long one image may take to unpack, in seconds."""


def folder() -> Path:
    """Where unpacked images are."""
    return cache.folder("images")


def root_of(image: Image) -> Path:
    """The unpacked root of an image; unpacked now if it is not there yet.

    :class:`~airloom.images.ImageError` for a layer that is damaged or does what no layer may do.
    """
    base = folder()
    ready = base / image.key
    try:
        base.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(base / f"{image.key}.lock"):
            if not ready.is_dir():
                _unpack(image, base / f"{image.key}.part", ready)
    except OSError as error:
        raise HostError(
            "host.image-store",
            f"the image {image.path.name} cannot be unpacked: {error}",
            cure=f"make room in {base}, or set XDG_CACHE_HOME to a folder that can be written",
        ) from None
    return ready


def _unpack(image: Image, part: Path, ready: Path) -> None:
    """Fills a folder beside the final one, so that what is there is always whole."""
    if part.exists():  # of a process that was killed
        shutil.rmtree(part)
    part.mkdir(mode=0o755)
    command = [sys.executable, "-P", "-m", "airloom.images.unpack", str(image.path), str(part)]
    command += [word for layer in image.layers for word in (layer.place, layer.digest or "", layer.diff)]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT,
        )
        if done.returncode != 0:
            why = done.stderr.strip().rpartition("\n")[2] or f"the unpacker ended with {done.returncode}"
            raise ImageError("image.layer", f"the image {image.path.name} cannot be unpacked: {why}")
        part.rename(ready)
    except subprocess.TimeoutExpired:
        raise ImageError(
            "image.layer", f"the image {image.path.name} was not unpacked within {_LIMIT:g} s"
        ) from None
    finally:
        if part.exists():
            shutil.rmtree(part)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lets one process at a time unpack an image; the lock goes with whoever held it."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
