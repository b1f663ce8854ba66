"""The kind ``container``: the host's kernel with an image as root file system (virtual routing).

A container is a ``netns`` node whose interfaces are ports of the engine. Its first process, the
same program as in every node, makes the unpacked image its root (``init/src/image.rs``), so that a
container ends with the run. docs/guide/kinds.md explains why no OCI runtime is used.
"""

# Public methods are documented where they are declared, in kind.py.
# ruff: noqa: D102

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from airloom import _engine, images
from airloom.host import binaries
from airloom.nodes.kind import Nature, NodeHandle
from airloom.nodes.kinds.netns import NetnsKind, NetnsNode
from airloom.nodes.process.channel import Message
from airloom.planning.plan import NodePlan


class ContainerNode(NetnsNode):
    """A node with an image as its root file system."""

    missing: ClassVar[str] = "its image has no such program: name one that is in it, or build it in"

    def _image(self) -> Message | None:
        image = self._of_plan()
        root: Path = images.root_of(image)
        return {"root": str(root), "user": image.user, "folder": image.folder}

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """The image's environment, without the controller's variables: their paths do not exist."""
        return {"PATH": images.PATH, "HOSTNAME": self.name, **dict(self._of_plan().env), **more}

    def _folder(self) -> str:
        return self._of_plan().folder

    def _visible(self) -> tuple[Path, ...]:
        """Adds the static traffic generator, which images do not contain."""
        return (*self._site.visible, binaries.find("airloom-traffic"))

    def _of_plan(self) -> images.Image:
        assert self._plan.image is not None
        return self._plan.image


class ContainerKind(NetnsKind):
    """Creates nodes whose root file system is an image."""

    name: ClassVar[str] = "container"
    nature: ClassVar[Nature] = Nature(
        taxonomy="OS-level virtualization",
        backend="virtual routing",
        own_files=True,
        start="milliseconds, once its image has been unpacked",
        memory="0.3 MB and the files it writes: hundreds on one machine",
        porting="none: images of container engines run unchanged",
        isolation="processes, network and files; no rights to devices, mounts or kernel settings",
        transparency="programs with their own libraries; the host kernel's network stack",
        flexibility="programs of any distribution, on the host's kernel",
    )

    def bring_up(self, plans: Sequence[NodePlan]) -> dict[str, NodeHandle]:
        for image in {plan.image for plan in plans if plan.image is not None}:
            images.root_of(image)
        return super().bring_up(plans)

    def node(self, plan: NodePlan, namespace: _engine.Namespace) -> NetnsNode:
        return ContainerNode(plan, self.name, namespace, self.site)
