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
    from airloom.lab.running import running

    return _begin({lab.name: f"process {lab.pid}" for lab in running()}, incomplete)


def labs_and_runs(incomplete: str) -> Offer:
    """Returns the names of the running laboratories and runs."""
    from airloom.lab.running import running

    found = running("laboratory", "run")
    return _begin({lab.name: f"{lab.what}, process {lab.pid}" for lab in found}, incomplete)


def sources(context: typer.Context, incomplete: str) -> Offer:
    """Returns what can be captured in the laboratory or run of ``--lab``, or in the only one."""
    from airloom.lab.running import find

    try:
        lab = find(context.params.get("lab"), "laboratory", "run")
        from airloom.lab.client import Client  # with the types of messages, which take longer to load

        with Client(lab) as client:
            return _begin(client.sources(), incomplete)
    except (LabError, OSError):
        return []


def nodes(context: typer.Context, incomplete: str) -> Offer:
    """Returns the nodes of the laboratory of ``--lab``, or of the only one."""
    from airloom.lab.running import find

    try:
        lab = find(context.params.get("lab"))
        from airloom.lab.client import Client  # with the types of messages, which take longer to load

        with Client(lab) as client:
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
    from airloom.scenario.kind_names import KindName

    return _begin(dict.fromkeys(get_args(KindName), ""), incomplete)


def kinds_with_commas(incomplete: str) -> Offer:
    """Returns node kinds for the last item of a comma-separated list."""
    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    return [(before + comma + kind, said) for kind, said in kinds(last) if kind not in taken]


_RADIO_ACTIONS = ("info", "link", "scan", "station", "up", "down", "set")
_RADIO_KEYS = ("channel", "power", "rate", "rts", "ssid")


def radio_words(context: typer.Context, incomplete: str) -> Offer:
    """Returns the possible next words of ``airloom radio``."""
    written = context.params.get("words") or []
    if not written:
        return _begin(dict.fromkeys(_RADIO_ACTIONS, ""), incomplete)
    return _begin(dict.fromkeys(_RADIO_KEYS, ""), incomplete) if list(written) == ["set"] else []


def templates(incomplete: str) -> Offer:
    """Returns the templates of ``airloom init``."""
    from pathlib import Path

    folder = Path(__file__).with_name("templates")
    return _begin(dict.fromkeys(sorted(path.stem for path in folder.glob("*.yaml")), ""), incomplete)


def scenario_paths(incomplete: str) -> Offer:
    """Returns the paths for ``--set``: keys of the model, names of the scenario file on the line."""
    from airloom.cli.completion import typed
    from airloom.cli.scenario_keys import offered

    if "=" in incomplete:
        return []
    files = (word for word in typed() if word.endswith((".yaml", ".yml")))
    return offered(incomplete, next(files, None))


def _begin(words: Mapping[str, str], incomplete: str) -> Offer:
    return [(word, said) for word, said in words.items() if word.startswith(incomplete)]
