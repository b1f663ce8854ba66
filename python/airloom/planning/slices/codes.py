"""Codes of slices: admission, encoding for the engine, and what a receiver hears of another code.

The factors are those of ``medium/codes.rs``, where their derivation is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_

if TYPE_CHECKING:
    from airloom.scenario.model import Codes, Grant, Scenario


def settings(codes: Codes, number: int) -> dict[str, Any]:
    """Returns the code of a radio for the engine."""
    return {"spreading": codes.spreading, "number": number, "synchronous": codes.synchronous}


def factor(sender: Mapping[str, Any] | None, receiver: Mapping[str, Any] | None) -> float:
    """Returns the share of a signal's power that is left after the correlation with the receiver's code,
    0 to 1; codes as encoded for the engine.
    """
    if receiver is None or sender == receiver:
        return 1.0
    if sender is None:
        return 1.0 / float(receiver["spreading"])
    if sender["synchronous"] and receiver["synchronous"]:
        return 0.0
    return 2.0 / (3.0 * float(receiver["spreading"]))


def problems(scenario: Scenario, medium: str, name: str) -> Iterator[Problem]:
    """Checks that the medium has the code of the slice ``name``."""
    codes, grant = scenario.media[medium].codes, scenario.slices[name].grant
    if grant is None or grant.code is None:
        return
    path: Path_ = ("slices", name, "grant", "code")
    if codes is None:
        cure = f"media: {{{medium}: {{codes: {{spreading: 16}}}}}}"
        yield Problem("slice.code", f"the medium {medium!r} has no codes", path, cure)
    elif grant.code >= codes.spreading:
        cure = f"with this spreading factor they are 0 to {codes.spreading - 1}"
        yield Problem("slice.code", f"there is no code {grant.code}", path, cure)


def same(one: Grant, other: Grant) -> bool:
    """Whether two slices have the same code."""
    return one.code is not None and one.code == other.code


def orthogonal(codes: Codes | None, one: Grant, other: Grant) -> bool:
    """Whether two slices of one medium never hear each other: their codes differ, with aligned chips."""
    aligned = codes is not None and codes.synchronous
    return aligned and one.code is not None and other.code is not None and one.code != other.code
