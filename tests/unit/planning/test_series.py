"""Links that follow a table of rate, delay, loss and jitter."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.errors import ScenarioError
from airloom.planning.gate import check
from airloom.planning.plan import Plan
from airloom.planning.timed_changes import link_changes

SCENARIO = "name: x\nduration: 10 s\nnodes: {{a: {{}}, b: {{}}}}\nlinks: [{{ends: [a, b], {0}}}]\n{1}"


def plan(tmp_path: Path, table: str, link: str = "series: path.txt", more: str = "") -> Plan:
    (tmp_path / "path.txt").write_text(table)
    (tmp_path / "x.yaml").write_text(SCENARIO.format(link, more))
    return check(tmp_path / "x.yaml").plans[0]


@pytest.mark.parametrize(
    "table",
    [
        "time [s], rate [Mbit/s], delay [ms], loss [%]\n0, 10, 20, 0\n0.5, 5.5, 30, 1\n2, , 40.25,\n",
        "# measured\ntime_s rate_kbit/s delay_us loss\n0 10000 20000 0\n0.5 5500 30000 0.01\n2 - 40250 -\n",
        "loss;delay;rate;time\n0 %;20 ms;10 Mbit/s;0 s\n1 %;30 ms;5.5 Mbit/s;500 ms\n;40.25 ms;;2 s\n",
        "time (ms)\trate\tdelay (s)\tloss\n0\t10 Mbit/s\t0.02\t0\n500\t5500 kbit/s\t30e-3\t1%\n"
        "2e3\t\t0.04025\t\n",
    ],
    ids=["commas", "blanks", "units", "tabs"],
)
def test_a_link_follows_its_table(table: str, tmp_path: Path) -> None:
    found = plan(tmp_path, table)
    first = found.links["a-b"].forward
    assert (first.rate, first.delay, first.loss) == (10_000_000, 20_000_000, 0)
    changes = [
        (one.at, one.direction, one.settings.rate, one.settings.delay, one.settings.loss)
        for one in link_changes(found)
        if one.settings is not None
    ]
    assert sorted(changes) == [
        (500_000_000, "backward", 5_500_000, 30_000_000, 0.01),
        (500_000_000, "forward", 5_500_000, 30_000_000, 0.01),
        (2_000_000_000, "backward", 5_500_000, 40_250_000, 0.01),
        (2_000_000_000, "forward", 5_500_000, 40_250_000, 0.01),
    ]
    assert found.notes == ("a-b: 3 rows of path.txt, of which the last holds from 2 s on",)


def test_one_direction_alone_can_follow_a_table_and_events_go_on_from_it(tmp_path: Path) -> None:
    events = "events: [{at: 1 s, link: a-b, set: {delay: 1 ms}}]\n"
    table = "time [s] delay [ms] jitter [ms]\n0.5 30 2\n1.5 50 0\n99 1 0\n"
    found = plan(tmp_path, table, "rate: 1 Mbit/s, backward: {series: path.txt}", events)
    changes = [
        (one.at / 1e9, one.direction, one.settings.delay / 1e6, one.settings.jitter is not None)
        for one in link_changes(found)
        if one.settings is not None
    ]
    assert changes == [
        (0.5, "backward", 30, True),
        (1.0, "forward", 1, False),
        (1.0, "backward", 1, True),
        (1.5, "backward", 50, False),
    ]
    assert all(one.settings.rate == 1_000_000 for one in link_changes(found) if one.settings is not None)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("0 10 20\n", "path.txt, line 1: it needs the column time and one more"),
        ("time [s], rtt [ms]\n0, 1\n", "path.txt, line 1: 'rtt [ms]' is no column, or stands twice"),
        ("time [s], rate [Mbps]\n0, 1\n", "path.txt, line 1: 'Mbps' is no unit of rate"),
        ("time, rate\n0 s, 5\n", "path.txt, line 2: the rate '5' has no unit"),
        ("time [s], rate [Mbit/s]\n0, 1\n0, 2\n", "path.txt, line 3: its time is not after that of the row"),
        ("time [s], rate [Mbit/s]\n0, 1, 2\n", "path.txt, line 2: 3 values stand under 2 columns"),
        ("time [s], rate [Mbit/s]\n0, 0\n", "path.txt, line 2: a rate of 0 lets nothing through for ever"),
        ("time [s], loss [%]\n0, 101\n", "path.txt, line 2: '101' is no loss"),
        ("time [s], rate [Tbit/s]\n0, 5\n", "path.txt, line 2: rate: "),
        ("time [s], delay [ms]\n", "path.txt has no row"),
        ("1\n2\n5\n", "the file is a mahimahi trace, which is not read here"),
        ("<graphml></graphml>", "the file is GraphML, which is not read here"),
    ],
)
def test_a_wrong_table_is_refused_with_its_line(table: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        plan(tmp_path, table)
    assert caught.value.message.startswith(message)
    assert caught.value.where is not None
    assert "links[0].series" in caught.value.where


def test_a_table_in_place_of_a_trace_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        plan(tmp_path, "time [s], rate [Mbit/s]\n0, 1\n", "trace: path.txt")
    assert caught.value.message == "the file is a table over time, which is not read here"
    assert "series" in (caught.value.cure or "")


def test_an_event_sets_no_table(tmp_path: Path) -> None:
    table = "time [s], rate [Mbit/s]\n0, 1\n"
    with pytest.raises(ScenarioError) as caught:
        plan(tmp_path, table, "rate: 1 Mbit/s", "events: [{at: 1 s, link: a-b, set: {series: path.txt}}]\n")
    assert caught.value.code == "link.series"
