"""``airloom check``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from airloom.cli.options import Overrides, ScenarioFile, Seed
from airloom.units.given import given

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from airloom.cli.console import Console
    from airloom.planning.links.link_settings import LinkSettings
    from airloom.planning.plan import InterfacePlan, Plan
    from airloom.scenario.model import Grant

MOST_ROWS = 40
_DISTURBANCE = ("slice", "onto", "from", "at", "ch", "power\ndBm", "SNR\ndB", "SINR\ndB", "effect")


def command(
    file: ScenarioFile,
    overrides: Overrides = None,
    seed: Seed = None,
    coupling: Annotated[
        bool,
        typer.Option(
            "--coupling",
            help="Also compute in stepped time how strongly the UDP flows of slices couple by radio.",
        ),
    ] = False,
) -> None:
    """Check a scenario and show what it would build; changes nothing.

    Reports each mistake in one line, with file, line, path and allowed values; exit code 2.
    """
    from rich.text import Text

    from airloom.cli.console import Console
    from airloom.planning.capture import Capture
    from airloom.planning.estimate import estimate
    from airloom.planning.gate import check
    from airloom.planning.links import neighbours
    from airloom.planning.machine import host_needs
    from airloom.units.figures import readable
    from airloom.units.text import duration, seconds

    experiment = check(file, overrides or (), seed=seed)
    plan = experiment.plans[0]
    scenario = experiment.scenario
    console = Console()
    console.print(Text.assemble((scenario.name, "bold"), f" {scenario.description}".rstrip()))
    parts = [
        _count(len(plan.nodes), "node"),
        _count(len(plan.switches), "switch"),
        _count(len(plan.links), "link"),
        _count(sum(len(medium.radios) for medium in plan.media.values()), "radio"),
    ]
    parts += [
        _count(len(scenario.programs), "program"),
        _count(len(scenario.events), "event"),
        _count(len(scenario.measurements), "measurement"),
        _count(len(scenario.claims), "claim"),
    ]
    console.print(", ".join(part for part in parts if part))
    console.print(_nodes(plan))
    if plan.links:
        console.print(_links(plan))
    if plan.media:
        console.print(_radios(plan))
        _print_slices(console, plan)
    for turns in plan.turns:
        late = f", the first {duration(turns.phase)} later" if turns.phase else ""
        console.print(f"Turns {turns.name}: {turns.who}, {duration(turns.quantum)} each{late}")
    for processor in plan.processors:
        who = ", ".join(processor.guests)
        console.print(f"Processor {processor.name}: {who}; {processor.prices.words}; {processor.scheduler}")
    if coupling:
        console.print(_coupling(plan))
    overflow = neighbours.overflow(plan)
    for note in (*plan.notes, *host_needs.lacks(plan), *([overflow] if overflow else [])):
        console.print(Text(f"note: {note}"), soft_wrap=True)
    guess = estimate(plan)
    runs = len(experiment.plans)
    each = f"{runs} runs of " if runs > 1 else ""
    load = (
        f"; at most about {readable(round(guess.frames_per_second), 'frames/s')} over all links"
        if guess.frames_per_second
        else ""
    )
    least = "at least " if guess.open_ended else "about "
    console.print(f"{each}{least}{seconds(guess.duration)}{load}")
    octets = sum(Capture().octets(one) for one in experiment.plans)
    if octets:
        console.print(f"a capture (--pcap): at most about {readable(octets, 'octets', 3)}")


def _count(number: int, word: str) -> str:
    from airloom.units.text import plural

    return f"{number} {plural(word, number)}" if number else ""


def _nodes(plan: Plan) -> Table:
    from rich.table import Table

    table = Table(title="Nodes", title_justify="left")
    for column in ("node", "kind", "interface", "addresses", "link"):
        table.add_column(column, overflow="fold")
    for name, node in list(plan.nodes.items())[:MOST_ROWS]:
        shared = node.guest.shared if node.guest is not None else None
        kind = node.kind if shared is None else f"{node.kind} in {shared}"
        kind = f"{kind}, router" if node.forwarding else kind
        kind = f"{kind}, bridge" if any(one.bridge for one in node.interfaces) else kind
        rows = [
            (interface.name, " ".join(map(str, interface.addresses)) or "-", _joined(interface))
            for interface in node.interfaces
        ] or [("-", "-", "-")]
        for number, row in enumerate(rows):
            table.add_row(name if number == 0 else "", kind if number == 0 else "", *row)
    if len(plan.nodes) > MOST_ROWS:
        table.add_row("...", f"{len(plan.nodes) - MOST_ROWS} more", "", "", "")
    return table


def _joined(interface: InterfacePlan) -> str:
    """Returns the link of an interface, or the members of a bridge."""
    return ", ".join(interface.bridge) if interface.bridge else interface.link


def _links(plan: Plan) -> Table:
    from rich.table import Table

    table = Table(title="Links", title_justify="left")
    for column in ("link", "ends", "there", "back"):
        table.add_column(column, overflow="fold")
    for link in list(plan.links.values())[:MOST_ROWS]:
        back = "same" if link.backward == link.forward else _direction(link.backward)
        table.add_row(link.name, f"{link.a} - {link.b}", _direction(link.forward), back)
    if len(plan.links) > MOST_ROWS:
        table.add_row("...", f"{len(plan.links) - MOST_ROWS} more", "", "")
    return table


def _direction(settings: LinkSettings) -> str:
    """Returns the properties of a direction, and its queue if frames may wait there."""
    from airloom.planning.links.link_settings import QueueSettings

    if settings.queue is None and settings.rate is None:
        return settings.text
    return f"{settings.text}\nqueue: {(given(settings.queue, QueueSettings())).text}"


def _print_slices(console: Console, plan: Plan) -> None:
    """Prints which slice can disturb which, and by how much."""
    from rich.table import Table

    from airloom.planning.radio.interference import over_time
    from airloom.planning.slices import divisions
    from airloom.units.text import seconds

    grants = (radio.grant for medium in plan.media.values() for radio in medium.radios)
    slices = {grant.slice for grant in grants if grant is not None}
    if slices:
        console.print(_grants(plan))
        if (turns := _turns(plan)) is not None:
            console.print(turns)
    if len(slices) < 2:
        return
    found = over_time(plan)
    divided = divisions.over_time(plan)
    for division in divided[:MOST_ROWS]:
        console.print(f"Slices: {division.text}")
    if len(divided) > MOST_ROWS:
        console.print(f"Slices: {len(divided) - MOST_ROWS} more pairs share channels in such a way")
    if not found:
        if not divided:
            console.print("Slices: no channel of one overlaps a channel of another at any time")
        return
    table = Table(title="Slices that can disturb others", title_justify="left")
    changing = any(one.since_ns or one.until_ns is not None for one in found)
    for column in (*_DISTURBANCE, *(("since", "until") if changing else ())):
        table.add_column(column, overflow="fold")
    for one in found[:MOST_ROWS]:
        # z: a small negative ratio is shown as 0.0, not as -0.0.
        ratios = ("-" if ratio is None else f"{ratio:z.1f}" for ratio in (one.snr_db, one.sinr_db))
        where = (one.sender.partition(":")[0], one.receiver.partition(":")[0], str(one.channel))
        power = f"{one.power_dbm:.1f}"
        times = [
            seconds(one.since_ns) if one.since_ns else "start",
            "end" if one.until_ns is None else seconds(one.until_ns),
        ]
        table.add_row(one.source, one.victim, *where, power, *ratios, one.effect, *times[: 2 * changing])
    if len(found) > MOST_ROWS:
        table.add_row("...", f"{len(found) - MOST_ROWS} more")
    console.print(table)


def _coupling(plan: Plan) -> Table:
    """Returns the coupling of slices by radio: a row for each slice and the others beside it."""
    from rich.table import Table

    from airloom.experiments import slice_coupling
    from airloom.stats import mean
    from airloom.units.figures import readable

    table = Table(title="Coupling by radio, C = (R - R') / R", title_justify="left")
    for column in ("slice", "beside", "C", "C in 100 ms", "delay", "jitter", "loss"):
        table.add_column(column, overflow="fold")

    def shown(values: Sequence[float]) -> str:
        if not values:
            return "-"
        over = mean(values)
        return f"{over.value:.4f} ± {over.half_width:.2g}"

    def added(values: Sequence[float]) -> str:
        return f"{mean(values).value / 1e6:+.3g} ms" if values else "-"

    for one in slice_coupling.pairs(plan):
        figures = (shown(one.coupling), shown(one.most), added(one.delay_ns), added(one.jitter_ns))
        table.add_row(one.slice, ", ".join(one.others), *figures, shown(one.loss))
    span = readable(slice_coupling.SPAN, "ns")
    table.caption = (
        f"{slice_coupling.RUNS} runs of {span} in stepped time; ±: 95 % interval; added to those alone"
    )
    return table


def _grants(plan: Plan) -> Table:
    """Returns the grants of slices, and from when on they change."""
    from rich.table import Table

    from airloom.planning.slices.stages import granted, stages
    from airloom.units.text import seconds

    table = Table(title="Grants", title_justify="left")
    slices = plan.scenario.slices
    rows = [(0, name, grant) for name, grant in granted(plan.scenario).items()]
    for at, numbers, grants in stages(plan.scenario):
        changing = {plan.scenario.events[number].slice for number in numbers}
        rows += [(at, name, grants[name]) for name in grants if name in changing]
    shown = [
        {
            "slice": name,
            "from": seconds(at) if at else "start",
            "channels": ", ".join(getattr(channel, "text", str(channel)) for channel in grant.channels),
            "power": "" if grant.power is None else grant.power.text,
            **_in_time(plan, name, grant),
            "code": "" if grant.code is None else str(grant.code),
            "airtime weight": "" if grant.airtime_weight is None else str(grant.airtime_weight),
            "police": slices[name].police,
        }
        for at, name, grant in rows[:MOST_ROWS]
    ]
    columns = [column for column in shown[0] if any(row[column] for row in shown)]
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in shown:
        table.add_row(*(row[column] for column in columns))
    if len(rows) > MOST_ROWS:
        table.add_row("...", f"{len(rows) - MOST_ROWS} more")
    return table


def _in_time(plan: Plan, name: str, grant: Grant) -> dict[str, str]:
    """Returns the slots of a grant, the longest wait between two of them, and its hopping sequence."""
    from airloom.planning.radio.media import slots as encoded
    from airloom.planning.slices.divisions import longest_wait
    from airloom.units.figures import readable

    media = next(
        plan.scenario.media[medium.name]
        for medium in plan.media.values()
        if any(radio.grant is not None and radio.grant.slice == name for radio in medium.radios)
    )
    slots, wait, hops = "", "", ""
    if grant.slots is not None and media.slots is not None:
        slots = f"{', '.join(map(str, grant.slots))} of {media.slots.frame}"
        slots = slots if grant.hold else f"{slots} (not held)"
        wait = readable(longest_wait(encoded(media.slots, grant.slots)), "ns") if grant.hold else ""
    if grant.hops is not None and media.hops is not None:
        hops = f"{grant.hops.set}, sequence {grant.hops.sequence}, every {media.hops.dwell.text}"
    return {"slots": slots, "longest wait": wait, "hops": hops}


def _turns(plan: Plan) -> Table | None:
    """Returns which slice has which radio from when to when; None if that does not change."""
    from rich.table import Table

    from airloom.planning.slices.spans import WHOLE
    from airloom.units.text import seconds

    radios = [radio for medium in plan.media.values() for radio in medium.radios]
    granted = [(radio.grant, radio.node) for radio in radios if radio.grant is not None]
    if all(grant.held == WHOLE for grant, _ in granted):
        return None
    table = Table(title="Radios of slices", title_justify="left")
    for column in ("radio", "slice", "sliver", "from", "until"):
        table.add_column(column, overflow="fold")
    rows = sorted(
        (
            (grant.radio, since, until, grant.slice, sliver)
            for grant, sliver in granted
            for since, until in grant.held or ((math.inf, None),)
        ),
        key=lambda row: row[:2],
    )
    for radio, since, until, name, sliver in rows[:MOST_ROWS]:
        begin = "never" if since == math.inf else seconds(since) if since else "start"
        end = "-" if since == math.inf else "end" if until is None else seconds(until)
        table.add_row(radio, name, sliver, begin, end)
    if len(rows) > MOST_ROWS:
        table.add_row("...", f"{len(rows) - MOST_ROWS} more")
    return table


def _radios(plan: Plan) -> Table:
    from rich.table import Table

    from airloom.planning.radio.media import DEFAULT_POWER
    from airloom.units.figures import readable

    table = Table(title="Radios", title_justify="left")
    for column in ("radio", "medium", "phy", "channel", "power", "rate", "place"):
        table.add_column(column, overflow="fold")
    radios = [(medium.name, radio) for medium in plan.media.values() for radio in medium.radios]
    for medium, radio in radios[:MOST_ROWS]:
        said = radio.settings
        rate = said["rate"]
        if isinstance(rate, dict):
            (form, number), *_ = rate.items()
            rate = f"MCS {number}" if form == "mcs" else readable(number, "bit/s")
        power = f"{said['power_dbm']:g} dBm" if "power_dbm" in said else DEFAULT_POWER.text
        phy, channel = said.get("phy"), str(said.get("channel"))
        if phy is None:
            phy, channel, power = "none", "-", "-"
        place = radio.motion.get("static")
        where = (
            next(iter(radio.motion))
            if place is None
            else ", ".join(f"{place.get(axis, 0):g}" for axis in "xyz"[: max(2, len(place))]) + " m"
        )
        if "hops" in said:
            channel = f"{channel}, hops"
        table.add_row(radio.port, medium, phy, channel, power, rate, where)
    if len(radios) > MOST_ROWS:
        table.add_row("...", f"{len(radios) - MOST_ROWS} more")
    return table
