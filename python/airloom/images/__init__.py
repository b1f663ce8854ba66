"""Container images in the formats of the Open Container Initiative (OCI) and ``docker save``.

:mod:`~airloom.images.archive` reads an image's configuration, :mod:`~airloom.images.registry`
fetches an image from a registry, :mod:`~airloom.images.store` keeps unpacked root file systems, and
:mod:`~airloom.images.unpack` is the program that unpacks one in a chroot.
:mod:`~airloom.images.own` makes images of this machine's own programs from the files that
:mod:`~airloom.images.gather` finds.
"""

from airloom.images.archive import PATH, Archive, Image, ImageError, Layer
from airloom.images.registry import pinned, read
from airloom.images.store import root_of

__all__ = ["PATH", "Archive", "Image", "ImageError", "Layer", "pinned", "read", "root_of"]
