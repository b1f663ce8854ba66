"""The cure for the name of a scenario that is no file."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from airloom.host.binaries import shipped


def cure(path: Path) -> str | None:
    """Returns the nearest file in the same folder, or the nearest example; None if there is neither."""
    near = _nearest(path, path.parent)
    if near is not None:
        return f"did you mean {path.with_name(near)}?"
    near = _nearest(path, shipped("examples"))
    if near is not None:
        return (
            f"`airloom examples copy {near.removesuffix('.yaml')}` copies the example {near} to this folder"
        )
    return None


def _nearest(path: Path, folder: Path) -> str | None:
    try:
        names = [one.name for one in folder.iterdir() if one.suffix in (".yaml", ".yml") and one.is_file()]
    except OSError:
        return None
    stems = {name.rpartition(".")[0]: name for name in sorted(names)}
    wanted = path.stem if path.suffix in (".yaml", ".yml") else path.name
    near = get_close_matches(wanted, stems, n=1, cutoff=0.7)
    return stems[near[0]] if near else None
