"""Images for tests, made of a static busybox and further files; nothing is downloaded."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import struct
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
APPLETS = (
    "sh",
    "cat",
    "echo",
    "env",
    "hostname",
    "id",
    "ip",
    "ls",
    "mknod",
    "mount",
    "nc",
    "ping",
    "pwd",
    "sleep",
)
APPLETS += ("stat", "test", "touch", "true", "false", "rm", "mkdir", "wc", "tr", "cut", "grep", "kill", "ps")


def entry(name: str, content: bytes | None = None, **more: Any) -> tuple[tarfile.TarInfo, bytes]:
    """Returns one entry of a layer; without content a folder, unless ``type`` is set."""
    info = tarfile.TarInfo(name)
    info.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
    info.mode = 0o755
    info.size = len(content or b"")
    for word, value in more.items():
        setattr(info, word, value)
    return info, content or b""


def link(name: str, target: str, *, hard: bool = False) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, b"", type=tarfile.LNKTYPE if hard else tarfile.SYMTYPE, linkname=target)


def layer(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return file.getvalue()


def is_static(program: bytes) -> bool:
    """True if a 64-bit ELF program needs no interpreter (PT_INTERP, 3)."""
    start = struct.unpack_from("<Q", program, 32)[0]
    size, count = struct.unpack_from("<HH", program, 54)
    return all(struct.unpack_from("<I", program, start + size * number)[0] != 3 for number in range(count))


def static_busybox() -> bytes:
    """Returns the content of a static busybox."""
    found = shutil.which("busybox")
    if found is None or not is_static(Path(found).read_bytes()):
        pytest.skip("a static busybox is needed: apt-get install busybox-static")
    return Path(found).read_bytes()


def busybox() -> bytes:
    """Returns a layer with busybox under many names, two users, and folders."""
    passwd = b"root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000::/srv:/bin/sh\n"
    return layer(
        *(entry(name) for name in ("bin", "etc", "root", "srv", "usr", "usr/bin")),
        entry("tmp", mode=0o1777),
        entry("bin/busybox", static_busybox()),
        *(link(f"bin/{name}", "busybox") for name in APPLETS),
        entry("etc/passwd", passwd, mode=0o644),
        entry("etc/group", b"root:x:0:\napp:x:1000:\nextra:x:2000:app\n", mode=0o644),
    )


def sha256(octets: bytes) -> str:
    return f"sha256:{hashlib.sha256(octets).hexdigest()}"


def oci(
    folder: Path,
    layers: Sequence[bytes],
    config: dict[str, Any] | None = None,
    *,
    tag: str = "latest",
    architecture: str = ARCHITECTURE,
    compress: Any = gzip.compress,
) -> Path:
    """Adds an image to a folder in OCI layout, beside existing ones."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)

    def blob(octets: bytes, kind: str) -> dict[str, Any]:
        digest = sha256(octets)
        (blobs / digest.removeprefix("sha256:")).write_bytes(octets)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest, "size": len(octets)}

    described = {
        "architecture": architecture,
        "os": "linux",
        "config": config or {},
        "rootfs": {"type": "layers", "diff_ids": [sha256(octets) for octets in layers]},
    }
    manifest = {
        "schemaVersion": 2,
        "config": blob(json.dumps(described).encode(), "config.v1+json"),
        "layers": [blob(compress(octets), "layer.v1.tar") for octets in layers],
    }
    index = folder / "index.json"
    entries = json.loads(index.read_text())["manifests"] if index.exists() else []
    named = blob(json.dumps(manifest).encode(), "manifest.v1+json")
    named["annotations"] = {"org.opencontainers.image.ref.name": tag}
    index.write_text(json.dumps({"schemaVersion": 2, "manifests": [*entries, named]}))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return folder


def oci_tar(path: Path, layers: Sequence[bytes], config: dict[str, Any] | None = None) -> Path:
    """Writes an image in OCI layout as one tar."""
    folder = oci(path.with_suffix(".layout"), layers, config)
    with tarfile.open(path, "w") as tar:
        tar.add(folder, ".")
    return path


def docker_tar(path: Path, layers: Sequence[bytes], config: dict[str, Any] | None = None) -> Path:
    """Writes an image as a tar in the old format of ``docker save``, before OCI layout."""
    described = {
        "architecture": ARCHITECTURE,
        "os": "linux",
        "config": config or {},
        "rootfs": {"type": "layers", "diff_ids": [sha256(octets) for octets in layers]},
    }
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = [{"Config": "config.json", "RepoTags": ["tiny:1"], "Layers": names}]
    files = {"manifest.json": json.dumps(manifest).encode(), "config.json": json.dumps(described).encode()}
    files |= dict(zip(names, layers, strict=True))
    path.write_bytes(layer(*(entry(name, content) for name, content in files.items())))
    return path


def tree(folder: Path) -> Path:
    """Makes a root file system for a guest: busybox, mount points and a marker file."""
    for name in ("bin", "dev", "proc", "sys", "tmp", "run", "etc", "mnt"):
        (folder / name).mkdir(parents=True)
    program = folder / "bin" / "busybox"
    program.write_bytes(static_busybox())
    program.chmod(0o755)
    for applet in (*APPLETS, "sync"):
        (folder / "bin" / applet).symlink_to("busybox")
    (folder / "etc" / "mark").write_text("of the tree\n")
    return folder


def disk(folder: Path, size: str = "8M") -> Path:
    """Makes an ext4 image of a folder's content, beside the folder."""
    image = folder.with_suffix(".img")
    subprocess.run(["/sbin/mkfs.ext4", "-q", "-d", folder, image, size], check=True)
    return image
