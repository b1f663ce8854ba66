"""What the build backend adds to maturin's wheel, and what a source distribution has."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import io
import os
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from helpers import REPOSITORY

pytest.importorskip("maturin")


@pytest.fixture(scope="module")
def backend() -> ModuleType:
    path = REPOSITORY / "tools" / "build_backend.py"
    spec = importlib.util.spec_from_file_location("build_backend", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_wheel_with_more_files_has_them_in_its_record(backend: ModuleType, tmp_path: Path) -> None:
    old, new, record = tmp_path / "old.whl", tmp_path / "new.whl", "it-1.dist-info/RECORD"
    with zipfile.ZipFile(old, "w") as made:
        made.writestr("it/code.py", "")
        made.writestr(record, f"it/code.py,sha256=x,0\n{record},,\n")
    more = {"it/shipped/bin/program": (b"\x7fELF", 0o755), "it/shipped/a, b.txt": (b"text", 0o644)}
    backend._add(old, new, record, more)
    with zipfile.ZipFile(new) as wheel:
        assert wheel.namelist() == ["it/code.py", *more, record]
        rows = list(csv.reader(io.StringIO(wheel.read(record).decode())))
        assert rows[0] == ["it/code.py", "sha256=x", "0"]
        assert rows[-1] == [record, "", ""]
        for (path, (content, mode)), row in zip(more.items(), rows[1:-1], strict=True):
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert row == [path, f"sha256={digest}", str(len(content))]
            assert wheel.read(path) == content
            assert wheel.getinfo(path).external_attr >> 16 == 0o100000 | mode


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no cargo: https://rustup.rs")
def test_a_source_distribution_has_every_crate_and_no_build(
    backend: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in the environment that pip makes for a build, whose programs are found by name.
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    name = backend.build_sdist(str(tmp_path))
    with tarfile.open(tmp_path / name) as archive:
        names = {one.partition("/")[2] for one in archive.getnames()}
        root = name.removesuffix(".tar.gz")
        information = archive.extractfile(f"{root}/PKG-INFO")
        assert information is not None
        assert b"\nName: airloom\n" in information.read()
    for crate in ("engine", "ports", "bridge", "init", "traffic"):
        assert f"{crate}/Cargo.toml" in names
    assert {"Cargo.lock", "pyproject.toml", "tools/build_backend.py", "examples/chain.yaml"} <= names
    assert not [one for one in names if one.startswith(("target/", ".venv/", "dist/")) or one.endswith(".so")]
