"""Containernet's hosts: containers of images, by path or from a registry.

An image is a folder or file in the format of OCI or ``docker save``, or a name such as ``ubuntu:22.04``,
which is fetched from its registry once. No container engine is needed (docs/guide/kinds.md).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from airloom import images
from airloom.mininet.errors import Misused, Unsupported
from airloom.mininet.hosts import Host
from airloom.mininet.net import Mininet
from airloom.mininet.parameters import OF_NODE, note
from airloom.mininet.session import session
from airloom.planning.plan import MountPlan

_OF_DOCKER = frozenset(
    ("dimage", "dcmd", "environment", "volumes", "cpu_quota", "cpu_period", "build_params", "ports")
)
_NOTED = {
    "cpu_shares": "containers share the processors evenly",
    "cpuset_cpus": "hosts are not bound to processors",
    "mem_limit": "memory is not limited",
    "memswap_limit": "memory is not limited",
    "network_mode": "its only network is that of the script",
    "publish_all_ports": "no port of the machine is opened",
    "port_bindings": "no port of the machine is opened: `airloom exec` reaches the container",
    "ports": "no port of the machine is opened: `airloom exec` reaches the container",
    "dns": "names are resolved as in every host",
    "sysctls": "set them by cmd()",
    "devices": "containers have no devices of the machine",
    "cap_add": "containers have the rights of every host",
    "storage_opt": "there is no container engine",
    "extra_hosts": "names are resolved as in every host",
}


class Docker(Host):
    """A host whose files are those of an image."""

    _parameters: ClassVar[frozenset[str]] = OF_NODE | _OF_DOCKER

    def __init__(
        self, name: str, dimage: str | None = None, dcmd: Any = None, build_params: Any = None, **params: Any
    ) -> None:
        if build_params:
            raise Unsupported(
                f"Docker({name!r}, build_params=...)", "images are built before", cure="dimage=..."
            )
        if not dimage:
            raise Misused("image", f"container {name} has no image", cure="dimage='ubuntu:22.04', or a path")
        for word in sorted(_NOTED.keys() & params.keys()):
            value = params.pop(word)
            if value:
                note(f"Docker {name}: {word}={value!r} has no effect: {_NOTED[word]}")
        self.dimage, self.dcmd = dimage, dcmd
        self.environment: Mapping[str, str] = {
            str(key): str(value) for key, value in (params.pop("environment", None) or {}).items()
        }
        self.volumes = [_mount(name, one) for one in params.pop("volumes", None) or ()]
        quota, period = params.pop("cpu_quota", None), params.pop("cpu_period", None) or 100_000
        self._share = None if quota is None or quota < 0 else quota / period
        super().__init__(name, **params)
        if dcmd:
            words = shlex.split(dcmd) if isinstance(dcmd, str) else [str(word) for word in dcmd]
            self.handle.start(words, env=self.environment)

    def _stand(self) -> None:
        said = str(self.dimage)
        place = said if Path(said).exists() or said.startswith("docker://") else f"docker://{said}"
        self._image = images.read(place, os.uname().machine)
        self._handle = session().add_container(self.name, self._image, self.volumes, self._share)

    @property
    def folder(self) -> str:
        """The working folder of its programs: that of the image, not the script's."""
        return self._image.folder

    def variables(self) -> dict[str, str]:
        """Returns the variables of its programs beside those of the image."""
        return dict(self.environment)

    @property
    def shells(self) -> Sequence[Sequence[str]]:
        """The shells that an image may have, the best first."""
        return (*super().shells, ("sh", "-i"))


def _mount(name: str, said: Any) -> MountPlan:
    """Returns a volume, written ``/here:/there``, ``/here:/there:ro`` or ``:rw``."""
    source, _, rest = str(said).partition(":")
    target, _, mode = rest.partition(":")
    if not target.startswith("/") or mode not in ("", "ro", "rw"):
        raise Misused("volume", f"{name}: {said!r} is no volume", cure="write it as /here:/there:ro")
    if not Path(source).exists():
        raise Misused("volume", f"{name}: there is no {source} on this machine")
    return MountPlan(str(Path(source).resolve()), target, mode != "ro")


class Containernet(Mininet):
    """A network of hosts, switches and containers."""

    def addDocker(self, name: str, cls: Any = Docker, **params: Any) -> Any:
        """Adds a container; ``dimage`` is its image."""
        return self.addHost(name, cls=cls, **params)

    def removeDocker(self, name: str, **_: Any) -> None:
        """Removes a container."""
        self.delNode(self[name])

    def addExtSAP(self, *args: Any, **_: Any) -> None:
        """Not supported."""
        raise Unsupported("addExtSAP", "the network has no door to the machine", cure="addNAT()")


__all__ = ["Containernet", "Docker"]
