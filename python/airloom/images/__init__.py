"""Images of containers, as the Open Container Initiative (OCI) and ``docker save`` write them.

:mod:`~airloom.images.archive` reads what an image says of itself, :mod:`~airloom.images.store` keeps
unpacked root file systems, and :mod:`~airloom.images.unpack` is the program that unpacks one, shut
into the folder that it fills. Images of this machine's own programs are made by
:mod:`~airloom.images.own`, of the files that :mod:`~airloom.images.gather` finds.
"""

from airloom.images.archive import PATH, Archive, Image, ImageError, Layer, read
from airloom.images.store import root_of

__all__ = ["PATH", "Archive", "Image", "ImageError", "Layer", "read", "root_of"]
