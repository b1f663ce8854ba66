"""Checks a request against the inventory and the terms, and makes it a question to the search."""

from __future__ import annotations

from airloom.grid.admission import Ask
from airloom.grid.answers import Asked
from airloom.grid.inventory import SECOND, Testbed
from airloom.grid.messages import Request, stamp
from airloom.grid.refused import invalid
from airloom.scenario.suggest import nearest


def ask(testbed: Testbed, request: Request, now: int) -> Ask:
    """Returns the question; raises an error with the place of the first value that cannot be right."""
    start = now if request.start is None else stamp(request.start)
    end = stamp(request.end)
    window(testbed, start, end, now)
    if request.latest is not None and stamp(request.latest) < start:
        raise invalid("window.latest", "the latest start is before the start", "latest")
    if request.latest is not None:
        window(testbed, stamp(request.latest), stamp(request.latest) + end - start, now)
    return Ask(
        start,
        end,
        request.slice,
        nodes=_nodes(testbed, request),
        count=_count(request.count, len(request.nodes), "count", "nodes", len(testbed.nodes)),
        area=_area(request),
        radios=_radios(testbed, request),
        channels=_channels(testbed, request),
        channel_count=_count(
            request.channel_count, len(request.channels), "channel_count", "channels",
            len(testbed.inventory.channels),
        ),
        slots=_slots(testbed, request),
        power_dbm=_power(testbed, request),
        apart=request.apart,
    )  # fmt: skip


def window(testbed: Testbed, start: int, end: int, now: int) -> None:
    """Raises an error for a window that is empty, past, too long or too far ahead."""
    terms = testbed.inventory.terms
    if end <= start:
        raise invalid(
            "window.empty", "the window ends before it begins", "end", "give an end after the start"
        )
    if start < now:
        raise invalid("window.past", "the window begins in the past", "start", "leave `start` out for now")
    limited(testbed, start, end, now)
    if end > now + int(terms.ahead) // SECOND:
        raise invalid(
            "window.ahead", "the window ends too far ahead", "end", f"at most {terms.ahead.text} from now"
        )


def limited(testbed: Testbed, start: int, end: int, now: int) -> None:
    """Raises an error for a window that is too long."""
    longest = testbed.inventory.terms.longest
    if end - start > int(longest) // SECOND:
        raise invalid("window.long", "the window is too long", "end", f"at most {longest.text}")


def _nodes(testbed: Testbed, request: Request) -> tuple[str, ...]:
    for index, name in enumerate(request.nodes):
        if name not in testbed.nodes:
            cure = nearest(name, testbed.nodes)
            raise invalid("node.unknown", f"there is no node {name!r} to lend", f"nodes[{index}]", cure)
        if name in request.nodes[:index]:
            raise invalid("node.twice", f"{name!r} is named twice", f"nodes[{index}]")
    return tuple(request.nodes)


def _count(count: int | None, named: int, key: str, what: str, most: int) -> int:
    found = count if count is not None else max(named, 1)
    if found < named:
        raise invalid("count.small", f"{found} is less than the {named} {what} that are named", key)
    if found > most:
        raise invalid("count.large", f"the testbed has {most} {what}", key)
    return found


def _area(request: Request) -> tuple[float, float, float, float] | None:
    if request.area is not None and (request.area[0] > request.area[2] or request.area[1] > request.area[3]):
        raise invalid("area.empty", "the area is empty", "area", "[least x, least y, largest x, largest y]")
    return request.area


def _radios(testbed: Testbed, request: Request) -> int:
    for name in request.nodes:
        if len(testbed.nodes[name].radios) < request.radios:
            raise invalid("radios.large", f"{name!r} has {len(testbed.nodes[name].radios)} radios", "radios")
    most = max(len(node.radios) for node in testbed.nodes.values())
    if request.radios > most:
        raise invalid("radios.large", f"no node has more than {most} radios", "radios")
    return request.radios


def _channels(testbed: Testbed, request: Request) -> tuple[int, ...]:
    lent = testbed.inventory.channels
    for index, channel in enumerate(request.channels):
        if channel not in lent:
            cure = f"lent: {', '.join(map(str, lent))}"
            raise invalid("channel.unknown", f"channel {channel} is not lent", f"channels[{index}]", cure)
        if channel in request.channels[:index]:
            raise invalid("channel.twice", f"channel {channel} is named twice", f"channels[{index}]")
    return tuple(request.channels)


def _slots(testbed: Testbed, request: Request) -> int | None:
    if request.slots is not None and request.slots > testbed.frame:
        raise invalid("slots.large", f"a frame has {testbed.frame} slots", "slots")
    return None if request.slots == testbed.frame else request.slots


def _power(testbed: Testbed, request: Request) -> float:
    most = testbed.inventory.power
    if request.power_dbm is None:
        return float(most)
    if request.power_dbm > most:
        cure = f"at most {most.text}"
        raise invalid("power.large", f"{request.power_dbm:g} dBm is not lent", "power_dbm", cure)
    return request.power_dbm


def remembered(ask: Ask) -> Asked:
    """Returns a question without its window."""
    return Asked(
        nodes=ask.nodes, count=ask.count, area=ask.area, radios=ask.radios, channels=ask.channels,
        channel_count=ask.channel_count, slots=ask.slots, power_dbm=ask.power_dbm, apart=ask.apart,
    )  # fmt: skip


def recalled(asked: Asked, slice_name: str, start: int, end: int) -> Ask:
    """Returns the question that :func:`remembered` left without its window."""
    return Ask(start, end, slice_name, **dict(asked))
