"""Settings that have no effect are named in a note; parts of a queue that are not named stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.errors import ScenarioError
from airloom.planning.gate import check
from airloom.planning.links.link_settings import Law
from airloom.planning.timed_changes import link_changes

TWO = "name: test\nnodes: {a: , b: }\nlinks: [{ends: [a, b], %s}]\nduration: 9 s\n"


def notes(text: str, tmp_path: Path) -> list[str]:
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    (plan,) = check(path).plans
    return [one for one in plan.notes if "no effect" in one or "whole seconds" in one]


@pytest.mark.parametrize(
    ("key", "without", "needed"),
    [
        ("jitter_reorders", "jitter_reorders: true", "jitter: {uniform: 1 ms}, delay: 1 ms"),
        ("reorder", "reorder: 1 %", "delay: 1 ms"),
        ("queue", "queue: {packets: 9}", "rate: 1 Mbit/s"),
        ("queue.ecn", "rate: 1 Mbit/s, queue: {ecn: true}", ""),
        ("overhead", "overhead: 3 B", "rate: 1 Mbit/s"),
        ("late", "late: slip", "rate: 1 Mbit/s"),
    ],
)
def test_a_setting_without_effect_is_noted(key: str, without: str, needed: str, tmp_path: Path) -> None:
    (found,) = notes(TWO % without, tmp_path)
    assert found.startswith(f"links[0].{key} has no effect: ")
    if needed:
        assert notes(TWO % f"{without}, {needed}", tmp_path) == []
        later = f"events: [{{at: 1 s, link: a-b, set: {{{needed}}}}}]\n"
        assert notes(TWO % without + later, tmp_path) == []
        one_way = f"{without}, backward: {{{needed}}}"
        assert notes(TWO % one_way, tmp_path) == []


def test_a_note_on_generated_links_comes_once(tmp_path: Path) -> None:
    text = "name: test\ntopology: {generator: chain, nodes: 5, link: {jitter_reorders: true}}\n"
    assert notes(text, tmp_path) == ["topology.link.jitter_reorders has no effect: there is no jitter"]


def test_a_table_that_sets_what_is_needed_counts(tmp_path: Path) -> None:
    (tmp_path / "path.csv").write_text("time [s], jitter [ms]\n0, 0\n1, 2\n")
    text = TWO % "delay: 5 ms, jitter_reorders: true, series: path.csv"
    assert notes(text, tmp_path) == []


def test_a_duration_that_iperf3_rounds_is_noted(tmp_path: Path) -> None:
    text = (TWO % "delay: 1 ms") + "measurements: [{name: m, iperf3: {from: a, to: b, duration: %s}}]\n"
    assert notes(text % "1500 ms", tmp_path) == [
        "measurements[0].iperf3.duration: iperf3 takes whole seconds, so that 1.5 s becomes 2 s"
    ]
    assert notes(text % "2 s", tmp_path) == []


RED = "rate: 1 Mbit/s, queue: {discipline: red, red_min: 3 kB, red_max: 9 kB, size: 50 kB, ecn: true}"


def queues(said: str, tmp_path: Path) -> dict[str, tuple[int | None, int | None, Law | None, bool]]:
    path = tmp_path / "scenario.yaml"
    path.write_text(TWO % RED + f"events: [{{at: 1 s, link: a-b, set: {{queue: {{{said}}}}}}}]\n")
    (plan,) = check(path).plans
    found = {}
    for change in link_changes(plan):
        assert change.settings is not None
        queue = change.settings.queue
        assert queue is not None
        found[change.direction] = (queue.packets, queue.octets, queue.discipline, queue.ecn)
    return found


def test_what_an_event_does_not_name_of_a_queue_stays(tmp_path: Path) -> None:
    now = queues("red_max: 30 kB", tmp_path)
    packets, octets, discipline, ecn = now["forward"]
    assert now["backward"] == now["forward"]
    assert (packets, octets, ecn) == (None, 50_000, True)
    assert discipline is not None
    assert discipline.parameters["min_octets"] == 3_000
    assert discipline.parameters["max_octets"] == 30_000


def test_another_discipline_ends_the_settings_of_the_former(tmp_path: Path) -> None:
    packets, octets, discipline, ecn = queues("discipline: codel, packets: 7", tmp_path)["forward"]
    assert (packets, octets, ecn) == (7, 50_000, True)
    assert discipline == Law("codel", {"target_ns": 5_000_000, "interval_ns": 100_000_000})


def test_a_part_of_a_queue_is_checked_with_what_stays(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"set\.queue\.red_min: red_min must be below red_max"):
        queues("red_min: 20 kB", tmp_path)


def test_a_direction_has_a_queue_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(TWO % f"{RED}, backward: {{queue: {{size: 9 kB}}}}")
    (plan,) = check(path).plans
    (link,) = plan.links.values()
    assert link.forward.queue is not None
    assert link.backward.queue is not None
    assert (link.forward.queue.octets, link.backward.queue.octets) == (50_000, 9_000)
    assert link.forward.queue.discipline is not None
    assert link.backward.queue.discipline is None
