"""Fetches images from registries, by the installed skopeo.

::

    pinned("docker://alpine:3.20")     # docker://docker.io/library/alpine@sha256:...
    layout("docker://alpine:3.20")     # the folder in OCI layout

An image is fetched once and kept in ``airloom/registry`` below ``$XDG_CACHE_HOME`` (by default
``~/.cache``), in a folder named by the digest of its manifest. A tag stands for the digest that it
had when it was first asked for; :func:`update` asks again. A registry on the machine itself
(``localhost``) may be without TLS.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

from airloom.errors import HostError
from airloom.host import cache, programs
from airloom.images import archive
from airloom.images.archive import Image, ImageError

SCHEME = "docker://"
"""Begin of an image's name in a registry."""
_REFERENCE = re.compile(
    r"(?P<name>[a-z0-9][A-Za-z0-9._-]*(:[0-9]+(?=/))?(/[a-z0-9][a-z0-9._-]*)*)"
    r"(:(?P<tag>\w[\w.-]{0,127}))?(@(?P<digest>sha256:[0-9a-f]{64}))?",
    re.ASCII,
)
_MISSING = ("manifest unknown", "name unknown", "not found", "denied", "unauthorized")
"""What a registry says of an image that does not exist or is not for everybody."""
_ASK, _FETCH = 60.0, 1800.0
"""Time limits of a question and of a download, in seconds."""


def read(said: str, machine: str) -> Image:
    """Returns the image of a path or reference for an architecture in the kernel's terms."""
    return archive.read(str(layout(said)) if said.startswith(SCHEME) else said, machine)


def pinned(said: str) -> str:
    """Returns a reference with the digest of its manifest; a path as it is.

    Asks the registry the first time. Raises :class:`ImageError` if the registry has no such image,
    :class:`HostError` if it cannot be reached or skopeo is not installed.
    """
    if not said.startswith(SCHEME):
        return said
    name, _, digest = _parts(said)
    if digest is None:
        known = _tags(said)
        digest = known.read_text() if known.is_file() else update(said)
    return f"{SCHEME}{name}@{digest}"


def update(said: str) -> str:
    """Asks the registry for the digest that a reference has now, and keeps it; returns the digest."""
    name, tag, digest = _parts(said)
    if digest is not None:
        return digest
    manifest = _skopeo(said, _ASK, "inspect", "--raw", *_tls(name, ""), f"{SCHEME}{name}:{tag}")
    digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    cache.write(_tags(said), digest, f"the digest of {said}")
    return digest


def layout(said: str) -> Path:
    """Returns the folder of an image in OCI layout; fetches it the first time. Raises as :func:`pinned`."""
    exact = pinned(said)
    name, _, digest = _parts(exact)

    def fetch(part: Path) -> None:
        words = ("copy", "--quiet", *_tls(name, "src-"), exact, "oci:image")
        _skopeo(said, _FETCH, *words, folder=part)

    assert digest is not None
    return cache.made(cache.folder("registry", digest.removeprefix("sha256:")), fetch, said) / "image"


def _parts(said: str) -> tuple[str, str, str | None]:
    """Returns the name with its registry, the tag, and the digest if it is given."""
    found = _REFERENCE.fullmatch(said.removeprefix(SCHEME))
    if found is None:
        raise ImageError(
            "image.reference",
            f"{said!r} names no image in a registry",
            cure="write it like docker://alpine:3.20 or docker://registry.example:5000/web@sha256:...",
        )
    name = found["name"]
    first, slash, _ = name.partition("/")
    # As container engines do: a first part without a dot, a port or `localhost` is no registry.
    if not slash:
        name = f"docker.io/library/{name}"
    elif "." not in first and ":" not in first and first != "localhost":
        name = f"docker.io/{name}"
    return name, found["tag"] or "latest", found["digest"]


def _tags(said: str) -> Path:
    name, tag, _ = _parts(said)
    return cache.folder("registry", "tags", hashlib.sha256(f"{name}:{tag}".encode()).hexdigest())


def _tls(name: str, side: str) -> list[str]:
    host = name.partition("/")[0].rpartition(":")[0] or name.partition("/")[0]
    return [f"--{side}tls-verify=false"] if host in ("localhost", "127.0.0.1") else []


def _skopeo(said: str, limit: float, *words: str, folder: Path | None = None) -> bytes:
    """Runs skopeo and returns its output."""
    program = programs.find("skopeo")
    if program is None:
        raise HostError(
            "image.skopeo",
            f"{said} is fetched by skopeo, which is not installed",
            cure=f"{programs.cure(['skopeo'])}; or give a folder or tar of the image",
        )
    try:
        done = subprocess.run(
            [program, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=limit, cwd=folder
        )
    except subprocess.TimeoutExpired:
        raise _unreachable(said, f"no answer within {limit:g} s") from None
    if done.returncode == 0:
        return done.stdout
    text = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    match = re.search(r'msg="(.*)"', text)
    why = (match[1] if match else text).replace('\\"', '"')[-300:]
    if any(word in why for word in _MISSING):
        raise ImageError(
            "image.missing",
            f"the registry gives no image {said}: {why}",
            cure="check name and tag; for a private registry: skopeo login REGISTRY",
        )
    raise _unreachable(said, why)


def _unreachable(said: str, why: str) -> HostError:
    return HostError(
        "image.registry",
        f"{said} cannot be fetched: {why}",
        cure="connect this machine to the registry; or on another machine: "
        f"skopeo copy {said} oci:image:latest, and give that folder as 'image'",
    )
