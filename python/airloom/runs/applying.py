"""Applies a changed plan to a running laboratory: refused as a whole, or done as a whole.

Everything that can be known before is checked before anything changes. New nodes and published ports, which
this machine may refuse, come first and go again if one cannot be had, or if an event has been meanwhile. An
error after that ends the laboratory.
"""

from __future__ import annotations

import time
from dataclasses import replace

from airloom.errors import LabError, RunError
from airloom.planning.difference import Difference, Present, compare
from airloom.planning.links.neighbours import settle
from airloom.planning.plan import Plan
from airloom.runs import growing
from airloom.runs.programs import POLL, Supervised
from airloom.runs.runner import Runner


def difference(runner: Runner, after: Plan) -> Difference:
    """Returns the difference from what runs to a plan."""
    world = runner.world
    plan = world.plan
    emulated = [name for name, link in plan.links.items() if world.is_emulated(link)]
    return compare(
        Present(
            _lasting(plan),
            world.now(),
            {name: world.link_settings(name) for name in emulated},
            frozenset(name for name in emulated if not world.is_wanted_up(name)),
            {name: handle.state for name, handle in world.nodes.items()},
            {radio["port"]: radio for radio in world.radios()} if plan.media else {},
            world.switches,
            world.laws,
            runner.by_hand,
        ),
        _lasting(after),
    )


def _lasting(plan: Plan) -> Plan:
    """Returns the plan with the neighbours that stay for ever on this machine."""
    nodes = {
        name: replace(node, neighbours=tuple(one for one in node.neighbours if one.permanent))
        for name, node in settle(plan).plan.nodes.items()
    }
    return replace(plan, nodes=nodes)


def apply(runner: Runner, found: Difference, plan: Plan) -> None:
    """Carries out a difference; ``plan`` is that of the laboratory from then on.

    Raises the error of a new node that cannot be made, and then nothing has changed. After any other
    error the run fails.
    """
    world = runner.world
    runner.timeline.ask(lambda: None)  # refuses if the run has failed already
    growing.add_nodes(world, found)
    try:
        since = _change_events(runner, found)
    except LabError:
        growing.remove_new_nodes(world, found)
        raise
    for step in found.steps:
        runner.remark(str(step))
    try:
        ended = _end_programs(runner, found)
        growing.carry_out(world, found, plan)
        if since is not None:
            world.schedule(plan, since)
        runner.timeline.ask(lambda: _begin_programs(runner, found, plan, ended))
    except Exception as error:
        reason = error if isinstance(error, LabError) else RunError("apply.failed", repr(error))
        failure = RunError("apply.failed", f"the laboratory ends, because a change failed: {reason}")
        runner.fail(failure)
        raise failure from error


def _change_events(runner: Runner, found: Difference) -> int | None:
    """Exchanges the events to come; returns the time in ns since which the engine's changes are withdrawn."""
    events = found.events
    if not (events.removed or events.added or events.reschedules):
        return None
    since = runner.timeline.ask(lambda: runner.change_events(events.removed, events.added))
    runner.by_hand = [event for event in runner.by_hand if event not in events.removed]
    return since


def _end_programs(runner: Runner, found: Difference) -> list[Supervised]:
    """Ends the programs that go or change, and those of nodes that end.

    Returns those that run before and go on in the new plan.
    """
    nodes = {*found.nodes_removed, *found.nodes_restarted}

    def stop() -> list[Supervised]:
        going = [
            one
            for name, one in runner.programs.items()
            if name in found.programs_removed or one.node in nodes
        ]
        alive = [one for one in going if one.alive or one.state == "waiting"]
        for one in alive:
            one.stop()
        return [*alive, *(one for node in nodes for one in runner.switching.take(node))]

    ended = runner.timeline.ask(stop)
    while any(one.alive for one in ended):
        time.sleep(POLL / 1e9)
    return [one for one in ended if one.name in runner.programs and one.name not in found.programs_removed]


def _begin_programs(runner: Runner, found: Difference, plan: Plan, ended: list[Supervised]) -> None:
    """Starts the programs that are new, and those again that ended with their nodes."""
    restarted = [name for name, one in runner.programs.items() if one.node in found.nodes_restarted]
    for name in {*found.programs_removed, *restarted}:
        runner.retire(name)
    runner.plan = plan
    for program in plan.scenario.programs:
        if program.name is not None and program.name not in runner.programs:
            runner.add_program(program)
    runner.order_programs()
    for name in dict.fromkeys([*found.programs_added, *(one.name for one in ended)]):
        runner.launch(name)
