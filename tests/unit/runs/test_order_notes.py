"""Jitter that keeps the order of frames says what its mean delay became."""

from __future__ import annotations

from typing import Any

import pytest

from airloom.planning.gate import check
from airloom.runs.evidence import order_notes
from airloom.scenario.reader import read


def plan_with(jitter: str) -> Any:
    link = f"{{name: w, ends: [a, b], delay: 50 ms, jitter: {jitter}}}"
    text = f"name: x\nnodes: {{a: {{}}, b: {{}}}}\nlinks: [{link}]\n"
    (plan,) = check(read(text)).plans
    return plan


def ledger(held: int, held_ns: int, left: int = 1000) -> dict[str, Any]:
    quiet = {"left": 0, "held": 0, "held_ns": 0}
    return {"links": {"w": {"forward": {"left": left, "held": held, "held_ns": held_ns}, "backward": quiet}}}


@pytest.mark.parametrize(
    ("jitter", "width"),
    [
        ("{uniform: 10 ms}", 5.7735e6),
        ("{normal: 4 ms}", 4e6),
        ("{exponential: 3 ms}", 3e6),
        ("{pareto: 2 ms, shape: 3}", 1e6),
    ],
)
def test_a_mean_that_grew_by_a_twentieth_of_the_width_is_told(jitter: str, width: float) -> None:
    plan = plan_with(jitter)
    assert order_notes(plan, ledger(500, round(0.04 * width * 1000))) == []
    (note,) = order_notes(plan, ledger(500, round(0.5 * width * 1000)))
    assert note.startswith("link w forward: jitter keeps the order of frames, so 50 % waited")
    assert "jitter_reorders" in note


def test_a_link_without_jitter_or_frames_says_nothing() -> None:
    assert order_notes(plan_with("{uniform: 10 ms}"), ledger(0, 0)) == []
    assert order_notes(plan_with("{uniform: 10 ms}"), ledger(0, 0, left=0)) == []
