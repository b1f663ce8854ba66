"""Stores unpacked images, each once for all nodes and runs of a user.

They are in ``airloom/images`` below ``$XDG_CACHE_HOME`` (by default ``~/.cache``), each in a folder
named by the digest of its layers; nodes never write there. They can be deleted while no laboratory
is up, and are unpacked again when needed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from airloom.host import cache
from airloom.images.archive import Image, ImageError

_LIMIT = 600.0
"""Time limit for unpacking one image, in seconds."""


def folder() -> Path:
    """Returns the folder with the unpacked images."""
    return cache.folder("images")


def root_of(image: Image) -> Path:
    """Returns the root folder of an unpacked image; unpacks the image first if necessary.

    Raises :class:`~airloom.images.ImageError` for a layer that is damaged or not allowed.
    """
    return cache.made(
        folder() / image.key, lambda part: _unpack(image, part), f"the unpacked image {image.path.name}"
    )


def _unpack(image: Image, part: Path) -> None:
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
    except subprocess.TimeoutExpired:
        raise ImageError(
            "image.layer", f"the image {image.path.name} was not unpacked within {_LIMIT:g} s"
        ) from None
    if done.returncode != 0:
        why = done.stderr.strip().rpartition("\n")[2] or f"the unpacker ended with {done.returncode}"
        raise ImageError("image.layer", f"the image {image.path.name} cannot be unpacked: {why}")
