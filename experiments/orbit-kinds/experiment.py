"""ORBIT's future work: the same flows over slices of every kind of node that works on this machine.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from airloom.experiments import capacity_search, orbit, usable_kinds
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Figures, Found
from airloom.experiments.orbit import NATIVE, Grid, Platform
from airloom.report.figures import Figure, Line
from airloom.results import Result, RunReader

TASKS = {
    "large": {"payload": 1470, "load": 50.0},
    "small": {"payload": 64, "load": 4.0},
    "calm": {"payload": 1470, "load": 10.0},
}
"""UDP flows: payload in octets, load in Mbit/s."""


def run(
    folder: Path, *, extent: Extent, progress: Callable[[str], None], kinds: Sequence[str] = ()
) -> Result:
    """Runs every task on every kind; those that were not asked for are tried first."""
    fails: dict[str, str] = {}
    if not kinds:
        kinds, fails = usable_kinds.kinds(folder, progress, extent, without=("native",))
    seconds = extent.choose(full=11.0, quick=2.5, smoke=1.3)
    platforms = orbit.platforms(kinds)
    with orbit.campaign(__file__, folder, progress=progress, kinds=kinds) as campaign:
        for kind, why in fails.items():
            campaign.note(f"kind {kind} is left out: {why}")
        tasks = extent.choose(full=tuple(TASKS), quick=tuple(TASKS), smoke=("calm",))
        cases = [_udp(platform, task, seconds) for platform in platforms for task in tasks]
        cases += [_tcp(platform, seconds + 1) for platform in platforms]
        found = campaign.measure(cases, _figures, extent.repetitions("throughput"))
        campaign.judge(lambda: _claims(campaign, found, platforms, kinds))
        campaign.draw(_share(found, platforms))
        return campaign.finish()


def _udp(platform: Platform, task: str, seconds: float) -> Case:
    buffers, queue = orbit.SHORT_QUEUE if task == "calm" else (orbit.LONG_QUEUE, orbit.LONG_QUEUE)
    grid = Grid(platform, buffers=buffers, queue=queue)
    payload, load = int(TASKS[task]["payload"]), TASKS[task]["load"]
    flows = [grid.flow(slice, load, seconds, payload=payload) for slice in platform.flows]
    return orbit.case(grid, "orbit-kinds", flows, seconds, task=task)


def _tcp(platform: Platform, seconds: float) -> Case:
    buffers, queue = orbit.SHORT_QUEUE
    grid = Grid(platform, buffers=buffers, queue=queue)
    flows = [grid.tcp(slice, seconds) for slice in platform.flows]
    return orbit.case(grid, "orbit-kinds", flows, seconds, task="tcp")


def _figures(case: Case, reader: RunReader) -> Figures:
    flows = orbit.flows_of(reader)
    if case.labels["task"] == "tcp":
        rates = [capacity_search.steady(reader, flow) for flow in flows]
        return {"throughput": (sum(rates) / len(rates), "bit/s")}
    return orbit.steady(reader, flows)


def _claims(campaign: Campaign, found: Found, platforms: Sequence[Platform], kinds: Sequence[str]) -> None:
    for platform in platforms[1:]:
        _against_native(campaign, found, platform)
    if {"uml", "qemu"} <= set(kinds):
        campaign.claim(
            "light", "UML costs the flow less jitter than a full virtual machine.", "uml < qemu",
            says="light",
            uml=found.sample("jitter", platform="uml", task="calm"),
            qemu=found.sample("jitter", platform="qemu", task="calm"),
        )  # fmt: skip


def _against_native(campaign: Campaign, found: Found, platform: Platform) -> None:
    who, label = platform.name, platform.label
    for task, says, statement in (
        ("large", "udp", "UDP with large packets saturates as native does over"),
        ("tcp", "tcp", "TCP gets what native gets over"),
    ):
        campaign.claim(
            f"{task}-{who}", f"{statement} {label}.", "sliver >= 0.98 * native", says=says,
            shape="sliver >= 0.9 * native", **orbit.sides(found, "throughput", platform, task=task),
        )  # fmt: skip
    campaign.claim(
        f"small-{who}",
        f"Small packets at a high rate are limited over {label}.",
        "sliver <= 0.95 * native",
        says="small",
        **orbit.sides(found, "throughput", platform, task="small"),
    )
    campaign.claim(
        f"jitter-{who}",
        f"A calm flow of UDP has under 0.5 ms of jitter over {label}.",
        "sliver <= 0.5 ms",
        says="jitter",
        sliver=found.sample("jitter", platform=who, task="calm"),
    )
    campaign.claim(
        f"same-{who}", f"All in all {label} fit ORBIT's flows: no throughput is 10 % below native.",
        "large >= 0.9 * native.large and tcp >= 0.9 * native.tcp and small >= 0.9 * native.small",
        says="future",
        **{task: found.sample("throughput", platform=who, task=task) for task in ("large", "tcp", "small")},
        **{
            f"native.{task}": found.sample("throughput", platform=NATIVE.name, task=task)
            for task in ("large", "tcp", "small")
        },
    )  # fmt: skip


def _share(found: Found, platforms: Sequence[Platform]) -> Figure:
    """Throughput by native's, one line for each kind; positions are the tasks in order."""
    tasks = [*TASKS, "tcp"]

    def share(platform: Platform, task: str) -> float | None:
        own, native = (
            found.mean("throughput", platform=name, task=task) for name in (platform.name, NATIVE.name)
        )
        return None if own is None or not native else 100 * own / native

    x = tuple(float(number) for number in range(1, len(tasks) + 1))
    return Figure(
        name="share",
        title="Throughput of each kind's slices by native's",
        x_label="task: " + ", ".join(f"{number} {task}" for number, task in enumerate(tasks, 1)),
        y_label="share of native",
        unit="%",
        lines=tuple(
            Line(label=one.label, role="measured", x=x, y=tuple(share(one, task) for task in tasks))
            for one in platforms[1:]
        ),
    )
