"""A registry of images on this machine, by Debian's docker-registry."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def registry(folder: Path) -> Iterator[str]:
    """Serves images from a folder, without TLS; gives the registry's ``host:port``."""
    for program in ("skopeo", "docker-registry"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"localhost:{free.getsockname()[1]}"
    port = address.rpartition(":")[2]
    settings = folder / "registry.yml"
    settings.write_text(
        "version: 0.1\nlog: {level: error}\n"
        f"storage: {{filesystem: {{rootdirectory: {folder / 'store'}}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}'}}\n"
    )
    with (folder / "registry.log").open("w") as log:
        server = subprocess.Popen(["docker-registry", "serve", str(settings)], stdout=log, stderr=log)
        try:
            _answers(int(port), server)
            yield address
        finally:
            server.kill()
            server.wait()


def _answers(port: int, server: subprocess.Popen[bytes]) -> None:
    limit = time.monotonic() + 30
    while time.monotonic() < limit and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    pytest.fail("the registry does not answer")


def push(image: Path, name: str) -> None:
    """Copies an image in OCI layout to a registry: ``localhost:5000/web:1``."""
    command = [
        "skopeo",
        "copy",
        "--quiet",
        "--dest-tls-verify=false",
        f"oci:{image}:latest",
        f"docker://{name}",
    ]
    subprocess.run(command, check=True, capture_output=True)
