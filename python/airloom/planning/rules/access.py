"""Rules of media without channel access: most keys of media and radios have no meaning there."""

from __future__ import annotations

from collections.abc import Iterator

from airloom.planning.network import Network
from airloom.planning.radio import media as words
from airloom.planning.radio.radios import RadioEnd
from airloom.scenario.model import Medium, Tuning
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.units.quantities import Rate

_OF_MEDIUM = {"access", "radio", "frame_errors"}
"""Keys of a medium that have a meaning."""


def of_medium(medium: Medium, path: Path_) -> Iterator[Problem]:
    """Yields the keys of a medium that have no meaning."""
    if medium.access.model == "none":
        for key in sorted(medium.model_fields_set - _OF_MEDIUM):
            yield _without(key, (*path, key))


def of_radio(end: RadioEnd, network: Network) -> Iterator[Problem]:
    """Yields what is wrong with a radio of such a medium."""
    if end.node in network.slivers:
        yield Problem(
            "medium.access",
            f"the medium {end.medium!r} has no channels that a slice could be granted",
            end.path,
            "use a medium with access: {model: dcf}",
        )
    for key in end.said:
        if key not in words.WITHOUT_ACCESS:
            yield _without(key, end.said_at(key))
    if not isinstance(end.said.get("rate"), Rate):
        yield _fixed(end.said_at("rate"))


def of_change(change: Tuning, path: Path_) -> Iterator[Problem]:
    """Yields what is wrong with a change of a radio of such a medium."""
    for key in Tuning.KEYS:
        if key != "rate" and getattr(change, key) is not None:
            yield _without(key, (*path, key))
    if change.rate is not None and not isinstance(change.rate, Rate):
        yield Problem(
            "radio.rate",
            "a radio without channel access needs a fixed rate",
            (*path, "rate"),
            "such as 11 Mbit/s",
        )


def _fixed(path: Path_) -> Problem:
    return Problem(
        "radio.rate",
        "a radio without channel access needs a fixed rate",
        path,
        "such as rate: 11 Mbit/s",
    )


def _without(key: str, path: Path_) -> Problem:
    return Problem(
        "medium.access",
        f"{key!r} has no meaning on a medium without channel access",
        path,
        "leave it out, or leave access: {model: none} out",
        key=True,
    )
