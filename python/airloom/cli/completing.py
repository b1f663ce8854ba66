"""What the shell offers for a word that is half written: names that this machine knows now.

Each function returns words that begin with what is written, most with a line of help. None of them
fails: a word that cannot be completed gets no offer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import typer

from airloom.errors import LabError

Offer = list[tuple[str, str]]
"""Words, each with its help."""


def labs(incomplete: str) -> Offer:
    """Names of the laboratories that are up."""
    from airloom.lab.server import running

    return _begin({lab.name: f"process {lab.pid}" for lab in running()}, incomplete)


def nodes(context: typer.Context, incomplete: str) -> Offer:
    """Nodes of the laboratory that ``--lab`` names, or of the only one."""
    from airloom.lab.server import Visit, find

    try:
        with Visit(find(context.params.get("lab"))) as visit:
            return _begin(dict.fromkeys(visit.info()["nodes"], ""), incomplete)
    except (LabError, OSError):
        return []


def experiments(incomplete: str) -> Offer:
    """Experiments, with their summaries."""
    from airloom.experiments.registry import discover

    return _begin({one.name: one.summary for one in discover().values()}, incomplete)


def benchmarks(incomplete: str) -> Offer:
    """Benchmarks, with what they measure."""
    from airloom import bench

    more = {"all": "all of them", "list": "list them"}
    return _begin({**{name: bench.describe(name) for name in bench.names()}, **more}, incomplete)


def kinds(incomplete: str) -> Offer:
    """Kinds of nodes."""
    from airloom.scenario.model.base import KindName

    return _begin(dict.fromkeys(get_args(KindName), ""), incomplete)


def kinds_with_commas(incomplete: str) -> Offer:
    """Kinds of nodes; the last of a list that is written with commas."""
    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    return [(before + comma + kind, said) for kind, said in kinds(last) if kind not in taken]


def radio_words(context: typer.Context, incomplete: str) -> Offer:
    """What ``airloom radio`` can be told after the words that are there."""
    from airloom.cli.radio import ACTIONS, KEYS

    written = context.params.get("words") or []
    if not written:
        return _begin(dict.fromkeys(ACTIONS, ""), incomplete)
    return _begin(dict.fromkeys(KEYS, ""), incomplete) if list(written) == ["set"] else []


def _begin(words: Mapping[str, str], incomplete: str) -> Offer:
    return [(word, said) for word, said in words.items() if word.startswith(incomplete)]
