"""Shell completion: names that are valid on this machine now.

Each function returns the words that start with the typed text, most with a help line. The functions
raise no errors: without a match there is no completion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import typer

from airloom.errors import LabError

Offer = list[tuple[str, str]]
"""Completions, each with its help."""


def labs(incomplete: str) -> Offer:
    """Returns the names of the running laboratories."""
    from airloom.lab.client import running

    return _begin({lab.name: f"process {lab.pid}" for lab in running()}, incomplete)


def nodes(context: typer.Context, incomplete: str) -> Offer:
    """Returns the nodes of the laboratory of ``--lab``, or of the only one."""
    from airloom.lab.client import Client, find

    try:
        with Client(find(context.params.get("lab"))) as client:
            return _begin(dict.fromkeys(client.info()["nodes"], ""), incomplete)
    except (LabError, OSError):
        return []


def experiments(incomplete: str) -> Offer:
    """Returns the experiments, with their summaries."""
    from airloom.experiments.registry import discover

    return _begin({one.name: one.summary for one in discover().values()}, incomplete)


def benchmarks(incomplete: str) -> Offer:
    """Returns the benchmarks, with their descriptions."""
    from airloom import bench

    more = {"all": "all of them", "list": "list them"}
    return _begin({**{name: bench.describe(name) for name in bench.names()}, **more}, incomplete)


def kinds(incomplete: str) -> Offer:
    """Returns the node kinds."""
    from airloom.scenario.model.base import KindName

    return _begin(dict.fromkeys(get_args(KindName), ""), incomplete)


def kinds_with_commas(incomplete: str) -> Offer:
    """Returns node kinds for the last item of a comma-separated list."""
    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    return [(before + comma + kind, said) for kind, said in kinds(last) if kind not in taken]


def radio_words(context: typer.Context, incomplete: str) -> Offer:
    """Returns the possible next words of ``airloom radio``."""
    from airloom.cli.radio import ACTIONS, KEYS

    written = context.params.get("words") or []
    if not written:
        return _begin(dict.fromkeys(ACTIONS, ""), incomplete)
    return _begin(dict.fromkeys(KEYS, ""), incomplete) if list(written) == ["set"] else []


def _begin(words: Mapping[str, str], incomplete: str) -> Offer:
    return [(word, said) for word, said in words.items() if word.startswith(incomplete)]
