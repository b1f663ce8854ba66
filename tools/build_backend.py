"""Build backend of Airloom's Python package (PEP 517), which extends maturin's.

maturin builds the extension module and the Python package. This backend adds to the wheel, inside
the package, the static programs that run in nodes (``bin``), the ``experiments``, the ``examples``,
what builds the guest kernel, and a manual page. The wheel's tag names the oldest glibc of the
extension module, found by maturin.

A source distribution contains the files tracked by git, or the whole tree without git.

usage: python tools/build_backend.py wheel|sdist|programs|man FOLDER
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import maturin
from maturin import (
    build_editable,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

TREE = Path(__file__).resolve().parents[1]
PROGRAMS = ("airloom-init", "airloom-traffic")
SHIPPED = ("experiments", "examples", "kernel", "tools/packages")
"""Source folders and files that a wheel contains inside the package."""
_UNTRACKED = {"target", "out", "dist", ".git", ".venv", "__pycache__"}
"""Folders without sources, for a tree without git."""


def build_wheel(
    wheel_directory: str,
    config_settings: Mapping[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds the wheel; returns its file name."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        command = [
            sys.executable,
            "-m",
            "maturin",
            "build",
            "--release",
            "--locked",
            "--interpreter",
            sys.executable,
        ]
        subprocess.run([*command, "--out", folder], cwd=TREE, check=True)
        (wheel,) = folder.glob("*.whl")
        more = {
            f"airloom/shipped/bin/{path.name}": (path.read_bytes(), 0o755)
            for path in build_programs(folder / "bin")
        }
        for name in SHIPPED:
            for path in sources(TREE / name):
                mode = 0o755 if os.access(path, os.X_OK) else 0o644
                more[f"airloom/shipped/{path.relative_to(TREE)}"] = (path.read_bytes(), mode)
        distribution = "-".join(wheel.name.split("-")[:2])
        more[f"{distribution}.data/data/share/man/man1/airloom.1"] = (manual().encode(), 0o644)
        _add(wheel, Path(wheel_directory, wheel.name), f"{distribution}.dist-info/RECORD", more)
        return wheel.name


def build_sdist(sdist_directory: str, config_settings: Mapping[str, Any] | None = None) -> str:
    """Packs the source distribution; returns its file name."""
    with tempfile.TemporaryDirectory() as temporary:
        metadata = Path(
            temporary, maturin.prepare_metadata_for_build_wheel(temporary), "METADATA"
        ).read_bytes()
    name = "airloom-" + _field(metadata, "Version")
    with tarfile.open(Path(sdist_directory, f"{name}.tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in sources(TREE):
            archive.add(path, f"{name}/{path.relative_to(TREE)}", recursive=False, filter=_nobodys)
        entry = tarfile.TarInfo(f"{name}/PKG-INFO")
        entry.size = len(metadata)
        archive.addfile(entry, io.BytesIO(metadata))
    return f"{name}.tar.gz"


def build_programs(folder: Path) -> list[Path]:
    """Builds the programs that run inside nodes into a folder.

    They are static, so they run on any root file system.
    """
    said = subprocess.run(["rustc", "-vV"], cwd=TREE, capture_output=True, text=True, check=True).stdout
    host = _field(said.encode(), "host")
    target = Path(os.environ.get("CARGO_TARGET_DIR", TREE / "target"), "static")
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--target", host, "--target-dir", target]
    # Flags for the machine's own programs, such as target-cpu=native, must not apply here.
    environment = {**os.environ, "RUSTFLAGS": "-C target-feature=+crt-static -C strip=symbols"}
    environment.pop("CARGO_ENCODED_RUSTFLAGS", None)
    packages = [word for name in PROGRAMS for word in ("-p", name)]
    subprocess.run([*command, *packages], cwd=TREE, env=environment, check=True)
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name in PROGRAMS:
        # A running program can't be written to, but its name can be moved to another file.
        part = folder / f".{name}.part"
        shutil.copy(target / host / "release" / name, part)
        made.append(part.rename(folder / name))
    return made


def manual() -> str:
    """Returns the manual page, generated from the help of the command line."""
    sys.path.insert(0, str(TREE / "python"))
    from airloom.cli.manual import page

    return page()


def sources(folder: Path) -> list[Path]:
    """Returns the source files of a folder in order; of a file, itself."""
    if folder.is_file():
        return [folder]
    if (TREE / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z", "."], cwd=folder, capture_output=True, check=True)
        found = [folder / name for name in listed.stdout.decode().split("\0") if name]
        # A file tracked by git may be missing from the tree.
        found = [path for path in found if path.is_symlink() or path.is_file()]
    else:
        found = []
        for base, folders, names in os.walk(folder):
            folders[:] = [name for name in folders if name not in _UNTRACKED]
            found += [Path(base, name) for name in names if not name.endswith(".so") and name != "PKG-INFO"]
    return sorted(found)


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.mode & 0o100 else 0o644
    return entry


def _field(text: bytes, name: str) -> str:
    return next(
        line.partition(": ")[2] for line in text.decode().splitlines() if line.startswith(f"{name}: ")
    )


def _add(wheel: Path, to: Path, record: str, more: Mapping[str, tuple[bytes, int]]) -> None:
    """Copies a wheel and adds files, given as path: content and mode."""
    with (
        zipfile.ZipFile(wheel) as old,
        zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new,
    ):
        rows = list(csv.reader(io.StringIO(old.read(record).decode())))
        for entry in old.infolist():
            if entry.filename != record:
                new.writestr(entry, old.read(entry))
        for path, (content, mode) in more.items():
            entry = zipfile.ZipInfo(path, old.getinfo(record).date_time)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.append([path, f"sha256={digest}", str(len(content))])
        # The record's own row has no hash and is the last one.
        rows.sort(key=lambda row: row[0] == record)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        new.writestr(old.getinfo(record), text.getvalue())


def main(what: str, folder: Path) -> None:
    """Builds one target of the Makefile."""
    folder.mkdir(parents=True, exist_ok=True)
    if what == "wheel":
        print(folder / build_wheel(str(folder)))
    elif what == "sdist":
        print(folder / build_sdist(str(folder)))
    elif what == "programs":
        build_programs(folder)
    elif what == "man":
        (folder / "airloom.1").write_text(manual(), encoding="utf-8")
        print(folder / "airloom.1")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], Path(sys.argv[2]))
