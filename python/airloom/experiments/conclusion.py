"""Conclusions of experiments: what was reproduced and what was not, with the one reason that decides it.

An experiment has its conclusion in ``conclusion.md`` beside ``experiment.py``. It is a list in Markdown
whose items begin with the labels of one of :data:`FORMS`, in that order, and have at most :data:`WORDS`
words each. The page of a full and valid result carries it behind the summary.
"""

from __future__ import annotations

import re

from airloom.errors import ScenarioError
from airloom.experiments import markdown
from airloom.experiments.registry import Experiment

FILE = "conclusion.md"
FORMS = (
    ("Reproduced", "Not reproduced"),
    ("Reproduced", "Not reproduced", "Cannot be right"),
    ("Shown", "Not shown"),
)
"""Labels of a conclusion: the first two forms are about a published result, the last is about an own one.

``Cannot be right`` is for published figures that arithmetic or the standard excludes.
"""
WORDS = 50
"""Most words of an item, its label included."""
_ITEM = re.compile(r"\*\*([^*]+):\*\* \S")
BEGINS = "- **"
"""How a conclusion begins on a page; no summary begins so."""
_COMMAND = "\n\n    "
"""What ends the part of a page before its command."""


def read(experiment: Experiment) -> str | None:
    """Returns the conclusion of an experiment as its page has it, wrapped.

    An experiment that Airloom ships needs one; somebody's own may have none, which gives ``None``. Raises
    ``ScenarioError`` if it is missing where it is needed, or has another form.
    """
    path = experiment.path.with_name(FILE)
    if not path.exists() and not experiment.shipped:
        return None
    try:
        return markdown.items(_items(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        why = "this experiment has no conclusion"
    except ValueError as error:
        why = str(error)
    forms = "; or ".join(", ".join(f"- **{label}:**" for label in form) for form in FORMS)
    raise ScenarioError(
        "experiment.conclusion", why, where=str(path), cure=f"begin its items, and no others, with {forms}"
    )


def put(page: str, conclusion: str | None) -> str:
    """Returns a page with this conclusion behind its summary, instead of the one that it has, if any."""
    head, command, rest = page.partition(_COMMAND)
    blocks = [one for one in head.split("\n\n") if not one.startswith(BEGINS)]
    return "\n\n".join([*blocks, *([conclusion] if conclusion else [])]) + command + rest


def _items(text: str) -> list[str]:
    """Returns the items of a conclusion; raises ``ValueError`` if it has another form."""
    items: list[str] = []
    for line in text.strip().splitlines():
        if line.startswith("- "):
            items.append(line[2:].strip())
        elif line.startswith("  ") and line.strip() and items:
            items[-1] += f" {line.strip()}"
        else:
            raise ValueError(f"a conclusion has nothing but its items, not {line[:40]!r}")
    labels = tuple(found[1] if (found := _ITEM.match(one)) else one[:40] for one in items)
    if labels not in FORMS:
        raise ValueError(f"a conclusion has no such labels: {', '.join(labels) or 'none at all'}")
    for label, one in zip(labels, items, strict=True):
        if (words := len(one.split())) > WORDS:
            raise ValueError(f"an item of a conclusion has at most {WORDS} words, and {label!r} has {words}")
    return items
