"""``manifest.json`` of a pack: what it is of, its members with their digests, its origin."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from airloom.results.result import Part

FILE = "manifest.json"
SCHEMA = 1

Class = Literal["run", "sweep", "experiment"]


class Member(Part):
    """One file of the archive."""

    size: int = Field(ge=0)
    """Octets."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    executable: bool = False


class Source(Part):
    """A file, folder or image that the runs used."""

    digest: str
    """As in ``details.json``: ``sha256:``, ``image:`` or ``folder:`` and hexadecimal digits."""
    included: bool = False
    """True if ``inputs/PATH`` of the archive holds it; else the other machine must have it."""


class Origin(Part):
    """Where the results were made."""

    machine: dict[str, list[str]] = Field(default_factory=dict)
    """Properties of the machine, such as ``processor``; several values if runs differ."""
    versions: dict[str, list[str]] = Field(default_factory=dict)


class Experiment(Part):
    """How the experiment was run."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    extent: Literal["full", "quick", "smoke"]
    kinds: tuple[str, ...] = ()


class Manifest(Part):
    """Contents of ``manifest.json``."""

    version: int = Field(default=SCHEMA, alias="schema")
    of: Class
    scenario: str
    """Name of the scenario or experiment."""
    experiment: Experiment | None = None
    """Only of an experiment."""
    origin: Origin = Origin()
    inputs: dict[str, Source] = Field(default_factory=dict)
    """By absolute path on the machine of origin, or by an image's name in a registry."""
    members: dict[str, Member] = Field(default_factory=dict)
