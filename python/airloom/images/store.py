"""Unpacked images, each once for all nodes and runs of a user.

They are in ``airloom/images`` below ``$XDG_CACHE_HOME`` (by default ``~/.cache``), each in a folder
named by the digest of its layers, which nodes never write. Deleting them is safe while no laboratory
is up; they are unpacked again when they are wanted.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from airloom.host import cache
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
