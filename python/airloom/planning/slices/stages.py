"""The times at which grants of slices change, and what they are from then on.

Events at one time take effect together, so that a slice can hand over what another one takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from airloom.scenario.model import Grant, GrantChange, Scenario

Stage = tuple[int, list[int], dict[str, Grant]]
"""A time in ns, the numbers of the events that change grants then, and the grants from then on."""


def changed(grant: Grant, change: GrantChange) -> Grant:
    """Returns the grant after a change; limits that the change does not name stay."""
    return grant.model_copy(update={key: getattr(change, key) for key in given(change)})


def given(change: GrantChange) -> list[str]:
    """The limits that a change names."""
    return [key for key in GrantChange.model_fields if getattr(change, key) is not None]


def granted(scenario: Scenario) -> dict[str, Grant]:
    """The grants at the start, by slice."""
    return {name: one.grant for name, one in scenario.slices.items() if one.grant is not None}


def stages(scenario: Scenario) -> Iterator[Stage]:
    """Yields, in time order, every time at which grants change."""
    grants = granted(scenario)
    numbered = ((event.at, number) for number, event in enumerate(scenario.events) if event.grant is not None)
    for at, group in groupby(sorted(numbered), key=lambda each: each[0]):
        numbers = [number for _, number in group]
        for number in numbers:
            event = scenario.events[number]
            if event.slice in grants and event.grant is not None:
                grants[event.slice] = changed(grants[event.slice], event.grant)
        yield at, numbers, dict(grants)
