"""Nodes of kind ``container``: their images and the images' default commands."""

from __future__ import annotations

import os
from collections.abc import Iterator

from airloom.images import Image, ImageError, pinned, read
from airloom.planning.network import Network
from airloom.scenario.model import Node, Program, Scenario
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_

KIND = "container"


def image_of(scenario: Scenario, node: Node) -> Image | None:
    """Returns a node's image; None if its kind has none. Raises :class:`ImageError`."""
    if (node.kind or scenario.kind) != KIND:
        return None
    return read(node.image or scenario.image or "", os.uname().machine)


def with_commands(scenario: Scenario, network: Network) -> Scenario:
    """Returns the scenario with the image's default command for every program without a command."""
    if all(program.run is not None for program in scenario.programs):
        return scenario
    programs = []
    for program in scenario.programs:
        command = _command(scenario, network, program) if program.run is None else None
        programs.append(program.model_copy(update={"run": list(command)}) if command else program)
    return scenario.model_copy(update={"programs": programs})


def with_digests(scenario: Scenario) -> Scenario:
    """Returns the scenario with the digest of every image from a registry, so that it names one image."""

    def exact(node: Node) -> Node:
        return node if node.image is None else node.model_copy(update={"image": pinned(node.image)})

    update: dict[str, object] = {}
    if scenario.image is not None:
        update["image"] = pinned(scenario.image)
    update["nodes"] = {name: exact(node) for name, node in scenario.nodes.items()}
    if scenario.topology is not None:
        update["topology"] = scenario.topology.model_copy(update={"node": exact(scenario.topology.node)})
    update["slices"] = {
        name: one.model_copy(update={"node": exact(one.node)}) for name, one in scenario.slices.items()
    }
    return scenario.model_copy(update=update)


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields everything that is wrong with images."""
    kinds = {name: node.kind or scenario.kind for name, node in network.nodes.items()}
    seen: set[str] = set()
    for name, kind in kinds.items():
        said = network.nodes[name].image
        own: Path_ = ("nodes", name, "image")
        if kind != KIND:
            if said is not None:
                yield Problem(
                    "image.kind",
                    f"a node of kind {kind} has no image",
                    own,
                    f"make it of kind {KIND}",
                    key=True,
                )
            continue
        image, path = (said, own) if said is not None else (scenario.image, ("image",))
        if image is None:
            at = ("nodes", name, "kind") if network.nodes[name].kind else ("kind",)
            if "" not in seen:
                yield Problem(
                    "image.missing",
                    f"the container {name!r} has no image",
                    at,
                    "give 'image:', an OCI folder or tar, or docker://NAME:TAG; "
                    "'airloom image make' makes one of this machine's programs",
                )
            seen.add("")
        elif image not in seen:
            seen.add(image)
            try:
                read(image, os.uname().machine)
            except ImageError as error:
                yield Problem(error.code, error.message, path, error.cure)
    if scenario.image is not None and KIND not in kinds.values():
        yield Problem("image.kind", f"no node is of kind {KIND}", ("image",), "leave it out", key=True)


def nothing_to_run(scenario: Scenario, network: Network, program: Program, path: Path_) -> Iterator[Problem]:
    """Yields a problem if a program has no command and its node's image has no default command."""
    node = network.nodes.get(program.node)
    if node is None or (node.kind or scenario.kind) != KIND:
        yield Problem("key.missing", "the key 'run' is missing", path)
        return
    yield Problem(
        "program.run",
        f"the image of {program.node!r} runs nothing by itself",
        path,
        "give 'run:', a command line",
    )


def _command(scenario: Scenario, network: Network, program: Program) -> tuple[str, ...] | None:
    node = network.nodes.get(program.node)
    try:
        image = None if node is None else image_of(scenario, node)
    except ImageError:  # reported by the rules
        return None
    return image.command if image is not None else None
