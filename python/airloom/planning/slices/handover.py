"""Grants that change during a run: what each slice holds when, and whether all can hold it at once.

Events at one time take effect together, so that a slice can hand over what another one takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from airloom.planning.network import Network, Sliver
from airloom.planning.radio import media
from airloom.planning.radio.channels import number_of
from airloom.planning.slices import admission, hopping
from airloom.planning.slices.spans import at_time, within
from airloom.planning.slices.stages import given, stages
from airloom.scenario.model import Grant, Scenario
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_


def sliver_at(scenario: Scenario, sliver: Sliver, at: int, phy: str) -> Sliver:
    """Returns a sliver with the grant that its slice has at a time in ns."""
    for since, _, grants in stages(scenario):
        if since <= at:
            sliver = _with(sliver, grants[sliver.slice], phy)
    return sliver


def _with(sliver: Sliver, grant: Grant, phy: str) -> Sliver:
    channels = tuple(number_of(channel, phy) for channel in grant.channels)
    return replace(sliver, grant=grant, channels=channels)


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields what is wrong with changes of grants, and slices that hold the same thing at one time."""
    ends = {end.node: end for end in network.radios}
    told: set[Path_] = set()
    for at, numbers, grants in stages(scenario):
        of_slice: dict[str | None, Path_] = {}
        naming: dict[tuple[str | None, str], Path_] = {}
        for number in numbers:
            event, where = scenario.events[number], ("events", number, "grant")
            of_slice[event.slice] = where
            for key in given(event.grant) if event.grant is not None else ():
                naming[event.slice, key] = (*where, key)
        slivers = []
        for sliver in network.slivers.values():
            phy = media.phy_of(ends[sliver.name].said)
            now = _with(sliver, grants[sliver.slice], phy)
            slivers.append((now, phy))
            if (path := naming.get((sliver.slice, "channels"))) is not None:
                yield from admission.no_channel(now, phy, path, told)
                medium = ends[sliver.name].medium
                hops = hopping.problems(scenario, medium, sliver.slice, now.channels, phy)
                for problem in hops if path not in told else ():
                    told.add(path)
                    yield Problem(problem.code, problem.message, path, problem.cure)
            if (path := naming.get((sliver.slice, "slots"))) is not None:
                medium = ends[sliver.name].medium
                yield from admission.no_slot(scenario, medium, now.grant.slots, path, told)
        for number, (sliver, phy) in enumerate(slivers):
            for other, _ in slivers[:number]:
                air = scenario.media[ends[sliver.name].medium]
                if not (within(sliver.held, at) and within(other.held, at)):
                    continue
                both = admission.conflict(sliver, other, phy, air)
                place = of_slice.get(sliver.slice) or of_slice.get(other.slice)
                if both is not None and place is not None and place not in told:
                    told.add(place)
                    yield Problem(
                        "slice.channels",
                        f"{at_time(at)}channel {both[0]} of {sliver.slice!r} overlaps channel "
                        f"{both[1]} of {other.slice!r}, and both are on {sliver.node!r}",
                        place,
                        "let the other slice hand it over at the same time or before",
                    )
