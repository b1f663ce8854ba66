"""The queue and the rate trace in force on every link, as results name them."""

from __future__ import annotations

from pathlib import Path

from airloom.planning.links.link_settings import LinkSettings, QueueSettings, RateTrace
from airloom.planning.plan import Plan
from airloom.units.figures import readable
from airloom.units.given import given

_DIGITS = 3


def of_links(plan: Plan) -> dict[str, str]:
    """Returns queue and trace of every limited link, by path: ``links[h1-h2].queue``.

    Directions that differ have paths of their own: ``links[h1-h2].forward.queue``. A link without a
    rate has no waiting frames, and is left out.
    """
    found: dict[str, str] = {}
    for link in plan.links.values():
        ways = {"forward": _of(link.forward), "backward": _of(link.backward)}
        same = ways["forward"] == ways["backward"]
        for way, said in ways.items():
            prefix = f"links[{link.name}]" if same else f"links[{link.name}].{way}"
            found |= {f"{prefix}.{word}": text for word, text in said.items()}
    return found


def _of(settings: LinkSettings) -> dict[str, str]:
    if settings.rate is None:
        return {}
    said = {"queue": given(settings.queue, QueueSettings()).text}
    if isinstance(settings.rate, RateTrace):
        said["trace"] = _trace(settings.rate)
    return said


def _trace(trace: RateTrace) -> str:
    mean = readable(trace.mean, "bit/s", _DIGITS)
    return f"{Path(trace.path).name}, {mean} on average" if trace.path else f"{mean} on average"
