"""Laboratories of other tools as scenarios: containerlab, Kathara, CORE, Shadow and MiniEdit.

:func:`convert` reads a file, or a folder with one, and returns a scenario as plain data, with notes on
what was read differently and a list of everything that is not carried over. Words that would change what
is measured are refused (:class:`~airloom.errors.ScenarioError`), the others are listed.
"""

from __future__ import annotations

from pathlib import Path

from airloom.errors import ScenarioError
from airloom.host.files import content
from airloom.scenario import formats
from airloom.scenario.imports import containerlab, core, kathara, miniedit, shadow
from airloom.scenario.imports.draft import Draft
from airloom.scenario.source import LARGEST_FILE

__all__ = ["Draft", "convert", "foreign"]

_READERS = {
    "containerlab": containerlab.read,
    "a Kathara lab.conf": kathara.read,
    "a CORE scenario": core.read,
    "Shadow": shadow.read,
    "a MiniEdit network": miniedit.read,
}
_FILES = ("lab.conf", "shadow.yaml", "topology.xml")
"""Files by which a folder is a laboratory; containerlab's end in `.clab.yml`."""


def foreign(path: Path, octets: bytes) -> formats.Format | None:
    """Returns the format of a file that :func:`convert` reads; None if it may be a scenario."""
    try:
        form = formats.recognise(octets)
    except ValueError:
        return None
    return form if form is not None and form.name in _READERS else None


def convert(path: Path, kind: str = "container") -> Draft:
    """Returns the scenario of a laboratory's file or folder.

    ``kind``: that of nodes with an image, ``container`` or ``netns``, where the programs are those of
    this machine. Raises :class:`ScenarioError` for a file that is not read or cannot be carried over.
    """
    path = _file(path)
    try:
        octets = content(path, LARGEST_FILE)
        form = formats.recognise(octets)
    except FileNotFoundError:
        raise ScenarioError("file.missing", "there is no such file", where=str(path)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ScenarioError("file.unreadable", f"cannot be read: {reason}", where=str(path)) from None
    if form is None or form.name not in _READERS:
        message, cure = formats.refusal(form, formats.IMPORT)
        raise ScenarioError("import.format", message, where=str(path), cure=cure)
    draft = Draft(path, kind)
    _READERS[form.name](draft, formats.text(octets))
    return draft


def _file(path: Path) -> Path:
    if not path.is_dir():
        return path
    found = [path / name for name in _FILES if (path / name).is_file()]
    found += sorted(path.glob("*.clab.y*ml"))
    if not found:
        raise ScenarioError(
            "import.format", "the folder has no laboratory", where=str(path), cure="name the file in it"
        )
    return found[0]
