"""The air on a terminal: what two looks at made-up radios show."""

from __future__ import annotations

from typing import Any

from airloom.lab.radio_view import BAR, COLUMNS, ROWS, Look, view


def radio(name: str, x: float, y: float, **peers: tuple[int, int]) -> dict[str, Any]:
    met = {
        f"{other}:wlan0": {"attempts": attempts, "unanswered": unanswered, "rate": 54_000_000}
        for other, (attempts, unanswered) in peers.items()
    }
    return {"port": f"{name}:wlan0", "position": (x, y, 0.0), "peers": met}


def channel(busy: int, overlapped: int, frames: int) -> dict[str, Any]:
    own = {"medium": "air", "channel": 36, "mhz": 5180, "sent": busy}
    return {**own, "busy": busy, "overlapped": overlapped, "frames": frames}


def test_a_map_with_ways_channels_and_pairs() -> None:
    looks = [
        Look(0, [radio("a", 0, 0), radio("walker", 50, 0)], []),
        Look(10**9, [radio("a", 0, 0, walker=(10, 0)), radio("walker", 75, 50)], [channel(0, 0, 0)]),
        Look(
            2 * 10**9,
            [radio("a", 0, 0, walker=(110, 25)), radio("walker", 100, 100)],
            [channel(500_000_000, 250_000_000, 200)],
        ),
    ]
    lines = view(looks)
    assert lines[0] == "at 2.0 s; 0 to 100 m east, 0 to 100 m north"
    field = lines[1 : ROWS + 1]
    assert all(len(line) == COLUMNS + 2 for line in field)
    assert field[0].endswith("walker|")
    assert field[-1].startswith("|a")
    assert [line.count(".") for line in field].count(1) == 2, "where it was before"
    bar = "#" * (BAR // 4) + "x" * (BAR // 4) + "." * (BAR // 2)
    assert lines[ROWS + 2] == f"air channel 36  [{bar}] busy 50 %, overlapping 25 %, 200 frames/s"
    assert lines[-1] == "a:wlan0 > walker:wlan0: 54 Mbit/s, 100 frames/s, retries 25 %"


def test_radios_in_one_place_that_say_nothing() -> None:
    look = Look(0, [radio("a", 1, 1), radio("b", 1, 1)], [])
    lines = view([look, look])
    assert lines[-3:] == ["no channel was used", "", "no unicast frames"]
