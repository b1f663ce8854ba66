"""Roams of stations, from the samples of the radios."""

from __future__ import annotations

from types import SimpleNamespace

from airloom.runs.happenings import of_run
from airloom.runs.radio_monitor import RadioWatch


def watch(*points: str | None) -> RadioWatch:
    """A watch that has seen a station with these access points, one in each second."""
    found = RadioWatch(SimpleNamespace(plan=SimpleNamespace(media={})))  # type: ignore[arg-type]
    found._looks = [
        (at * 10**9, {"sta:wlan0": {"access_point": point}, "ap1:wlan0": {"access_point": None}})
        for at, point in enumerate(points)
    ]
    return found


def test_a_roam_a_loss_and_a_return() -> None:
    seen = watch(
        None, "ap1:wlan0", "ap1:wlan0", "ap2:wlan0", None, None, "ap2:wlan0", "ap2:wlan0", None, "ap1:wlan0"
    )
    assert [(at // 10**9, what) for at, what in seen.changes()] == [
        (3, "sta:wlan0 roams from ap1:wlan0 to ap2:wlan0"),
        (4, "sta:wlan0 loses its access point ap2:wlan0"),
        (6, "sta:wlan0 is back at ap2:wlan0"),
        (8, "sta:wlan0 loses its access point ap2:wlan0"),
        (9, "sta:wlan0 roams from ap2:wlan0 to ap1:wlan0"),
    ]


def test_the_first_association_is_no_event() -> None:
    assert list(watch(None, "ap1:wlan0", "ap1:wlan0").changes()) == []


def test_they_stand_among_the_events_of_the_run() -> None:
    runner = SimpleNamespace(happenings=[(10**9, "p started", "program"), (4 * 10**9, "p ended", "program")])
    found = of_run(runner, watch("ap1:wlan0", "ap1:wlan0", "ap1:wlan0", "ap2:wlan0"))  # type: ignore[arg-type]
    assert [one.kind for one in found] == ["program", "radio", "program"]
    assert of_run(runner, None) == (found[0], found[2])  # type: ignore[arg-type]
