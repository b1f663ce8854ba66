"""Untrusted files: bounded reads that never block, and removal of folders of any depth.

Whatever path a user gives, or a folder from elsewhere contains, is read by the functions of this module.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_PIECE = 1 << 20
"""Octets that one system call reads."""


def opened(path: str | Path) -> int:
    """Opens a regular file for reading; returns its descriptor, whose reads wait for nothing.

    Raises :class:`OSError` for any other file: a device or a pipe may never end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        about = os.fstat(descriptor)
        mode = about.st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        # Those of /proc say that they are regular, and empty: what they give is made while it is read,
        # and some wait for an event.
        if about.st_size == 0 and _gives(descriptor) and os.fstat(descriptor).st_size == 0:
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _gives(descriptor: int) -> bool:
    try:
        return bool(os.pread(descriptor, 1, 0))
    except OSError:
        return True


def reader(path: str | Path) -> BinaryIO:
    """Opens a regular file as :func:`opened` does; the caller limits what it reads of it."""
    return os.fdopen(opened(path), "rb")


def content(path: str | Path, largest: int) -> bytes:
    """Returns the content of a regular file of at most ``largest`` octets.

    Raises :class:`OSError` for any other file, and for a larger one: a file in ``/proc`` may have any
    length.
    """
    with reader(path) as file:
        size = os.fstat(file.fileno()).st_size
        # A buffer of the limit would be memory for the largest file that there may be.
        octets = b"" if size > largest else b"".join(_pieces(file, largest + 1))
    if max(size, len(octets)) > largest:
        raise OSError(errno.EFBIG, f"it is larger than {largest} octets", str(path))
    return octets


def _pieces(file: BinaryIO, length: int) -> Iterator[bytes]:
    """Yields what a file has, up to a length in octets."""
    while length > 0 and (piece := file.read(min(length, _PIECE))):
        length -= len(piece)
        yield piece


def text(path: str | Path, largest: int) -> str:
    """Returns a file of UTF-8 as :func:`content` does; raises :class:`UnicodeDecodeError` for another."""
    return content(path, largest).decode()


def head(path: str | Path, length: int) -> bytes:
    """Returns the first octets of a regular file; raises :class:`OSError` as :func:`content` does."""
    descriptor = opened(path)
    try:
        return os.pread(descriptor, length, 0)
    finally:
        os.close(descriptor)


def remove(path: str | Path) -> None:
    """Removes a folder and its content; does nothing if the folder does not exist.

    Nested folders are moved up to the top before they are emptied, so neither the depth nor the
    length of a path matters. Links are not followed.
    """
    try:
        root = _opened(path, None)
    except FileNotFoundError:
        return
    try:
        number = 0
        while folders := _emptied(root):
            for name in folders:
                inner = _opened(name, root)
                try:
                    for nested in _emptied(inner):
                        number += 1
                        while _exists(f"{number}", root):
                            number += 1
                        # To move a folder changes its entry "..", which needs the right to write it.
                        os.close(_opened(nested, inner))
                        os.rename(nested, f"{number}", src_dir_fd=inner, dst_dir_fd=root)
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=root)
    finally:
        os.close(root)
    os.rmdir(path)


def _opened(name: str | Path, parent: int | None) -> int:
    """Opens a folder, and gives its owner all rights to it."""
    how = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        folder = os.open(name, os.O_RDONLY | how, dir_fd=parent)
    except PermissionError:
        place = os.open(name, os.O_PATH | how, dir_fd=parent)
        try:
            os.chmod(f"/proc/self/fd/{place}", stat.S_IRWXU)
        finally:
            os.close(place)
        folder = os.open(name, os.O_RDONLY | how, dir_fd=parent)
    if os.fstat(folder).st_mode & stat.S_IRWXU != stat.S_IRWXU:
        os.fchmod(folder, stat.S_IRWXU)
    return folder


def _exists(name: str, parent: int) -> bool:
    try:
        os.lstat(name, dir_fd=parent)
    except FileNotFoundError:
        return False
    return True


def _emptied(folder: int) -> list[str]:
    """Removes everything except folders; returns the names of the folders."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if not is_folder:
            os.unlink(name, dir_fd=folder)
    return [name for name, is_folder in found if is_folder]
