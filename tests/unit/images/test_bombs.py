"""Image archives that ask for more than they are: each is refused in words, at once, in little memory."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from airloom.images import archive, bounded
from airloom.images.archive import ImageError, read

pytestmark = pytest.mark.timeout(240)
MIB = 1 << 20


def member(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def zeros(path: Path, head: bytes, count: int, pack: Callable[[bytes], bytes]) -> Path:
    """A file of a compressed head, and ``count`` times 8 MiB of zeros."""
    piece = pack(bytes(8 * MIB))
    path.write_bytes(pack(head) + piece * count)
    return path


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_zeros_in_a_member_or_a_header_end_early(
    tmp_path: Path, pack: Callable[[bytes], bytes], kind: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "FLOOR", 4 * MIB)
    monkeypatch.setattr(bounded, "RATIO", 2)
    path = zeros(tmp_path / "image.tar", member("x", 1 << 32, kind), 4, pack)
    with pytest.raises(ImageError, match=r"far more octets|larger than 1,048,576 octets"):
        read(str(path), "x86_64")


def test_a_header_that_claims_a_gibibyte_takes_no_memory(tmp_path: Path) -> None:
    path = zeros(tmp_path / "image.tar", member("x", 1 << 30, tarfile.XHDTYPE), 128, gzip.compress)
    program = (
        "import resource, sys\n"
        "from airloom.images.archive import ImageError, read\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: read(sys.argv[1], 'x86_64')\n"
        "except ImageError as error: print(error.message)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=200, check=True
    )
    said, more = done.stdout.splitlines()
    assert "larger than 1,048,576 octets" in said
    assert int(more) * 1024 < 100 * MIB


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_MOST_MEMBERS", 100)
    path = tmp_path / "image.tar"
    path.write_bytes(b"".join(member(f"m{number}", 0) for number in range(101)) + bytes(1024))
    with pytest.raises(ImageError, match="more than 100 files"):
        read(str(path), "x86_64")


def test_many_images_in_an_index_are_told_apart_in_linear_time(tmp_path: Path) -> None:
    digest = "sha256:" + "0" * 64
    entries = [
        {"digest": digest, "size": number, "annotations": {archive.TAG: f"t{number}"}}
        for number in range(40_000)
    ]
    (tmp_path / "index.json").write_text(json.dumps({"manifests": entries}))
    with pytest.raises(ImageError, match="40000 images") as refused:
        read(str(tmp_path), "x86_64")
    assert len(refused.value.cure or "") < 1000
    assert (refused.value.cure or "").endswith("and 39980 more")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
def test_a_damaged_archive_is_no_image(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name in ("index.json", "manifest.json"):
            info = tarfile.TarInfo(name)
            octets = os.urandom(3000)
            info.size = len(octets)
            tar.addfile(info, io.BytesIO(octets))
    good = pack(file.getvalue())
    for at in range(0, len(good), max(1, len(good) // 25)):
        path = tmp_path / f"{at}.tar"
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
        with pytest.raises(ImageError):
            read(str(path), "x86_64")
        path.write_bytes(good[:at])
        with pytest.raises(ImageError):
            read(str(path), "x86_64")


@pytest.mark.parametrize("target", ["/proc/kmsg", "/dev/zero", "fifo", "folder"])
def test_a_folder_with_something_else_than_files(tmp_path: Path, target: str) -> None:
    index = tmp_path / "index.json"
    if target == "fifo":
        os.mkfifo(index)
    elif target == "folder":
        index.mkdir()
    else:
        index.symlink_to(target)
    with pytest.raises(ImageError):
        read(str(tmp_path), "x86_64")
