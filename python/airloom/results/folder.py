"""Locks of result folders (one writer at a time), and uniform errors for their disk."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import weakref
from collections.abc import Iterator
from pathlib import Path

from airloom.errors import RunError, ScenarioError


class Lock:
    """Holds a folder until release, at the latest until the end of this process.

    The kernel ties the lock to the open folder (``flock``), so a killed process leaves no lock. On
    a file system without such locks, none is taken.
    """

    def __init__(self, folder: Path) -> None:
        """Creates the folder if needed; raises :class:`ScenarioError` if it has another writer."""
        with disk(folder):
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        self._release = weakref.finalize(self, os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._release()
            raise ScenarioError(
                "results.locked",
                "another run is writing into this folder",
                where=str(folder),
                cure="wait for its end, or name another folder with --out",
            ) from None
        except OSError:  # file system without locks
            pass

    @contextlib.contextmanager
    def kept_if_done(self) -> Iterator[None]:
        """Releases the lock if the block inside fails."""
        try:
            yield
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Releases the lock; a second call does nothing."""
        self._release()


@contextlib.contextmanager
def disk(folder: Path) -> Iterator[None]:
    """Inside, disk errors become an error that names the folder and the cure."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RunError(
                "results.disk-full",
                "the disk is full",
                where=str(folder),
                cure="free space, or name a folder on another disk with --out",
            ) from error
        raise RunError(
            "results.unwritable",
            f"the results cannot be written: {error.strerror or error}",
            where=str(folder),
            cure="name a folder that can be written with --out",
        ) from error


def refuse_foreign(folder: Path, scenario: str) -> None:
    """Raises ``results.exists`` if a run would replace files of a folder that holds no results.

    ``scenario`` is the text of its ``scenario.yaml``; the same text may be there already.
    """
    if any((folder / name).exists() for name in ("result.json", "sweep.json")):
        return
    for name in ("scenario.yaml", "details.json", "samples.parquet", "experiment.json", "report.html"):
        path = folder / name
        if not path.exists() or (name == "scenario.yaml" and _text(path) == scenario):
            continue
        raise exists(folder, f"a file {name}, which the results would replace")


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8") if path.is_file() else None
    except (OSError, ValueError):
        return None


def exists(folder: Path, what: str, cure: str = "") -> ScenarioError:
    """Returns the error for a folder that is not empty."""
    return ScenarioError(
        "results.exists",
        f"this folder already holds {what}",
        where=str(folder),
        cure=cure or "name another folder with --out, or remove this one",
    )
