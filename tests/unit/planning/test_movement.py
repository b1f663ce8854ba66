"""Movement files of other tools: places over time, and when radios are on, in the plan."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from airloom.errors import ScenarioError
from airloom.planning.gate import check
from airloom.planning.plan import Plan, RadioPlan
from airloom.planning.timed_changes import radio_changes
from airloom.scenario.topology.geography import great_circle
from helpers import REPOSITORY

MOVEMENTS = REPOSITORY / "tests" / "data" / "movements"


def plan(tmp_path: Path, nodes: dict[str, dict[str, Any]]) -> Plan:
    said = {name: ", ".join(f"{key}: {one}" for key, one in moves.items()) for name, moves in nodes.items()}
    lines = [f"  {name}: {{radios: {{wlan0: {{}}}}, mobility: {{{one}}}}}" for name, one in said.items()]
    text = "name: x\nduration: 20 s\nmedia: {air: {}}\nnodes:\n" + "\n".join(lines) + "\n"
    (tmp_path / "x.yaml").write_text(text)
    return check(tmp_path / "x.yaml").plans[0]


def radios(found: Plan) -> dict[str, RadioPlan]:
    return {radio.node: radio for radio in found.media["air"].radios}


def places(radio: RadioPlan) -> list[tuple[float, float, float]]:
    return [(at / 1e9, place["x"], place["y"]) for at, place in radio.motion["path"]]


def test_a_car_of_a_converters_trace_is_off_until_its_trip_begins(tmp_path: Path) -> None:
    file = str(MOVEMENTS / "city.mob")
    found = plan(tmp_path, {"a": {"model": "ns-2", "file": file}, "b": {"model": "ns-2", "file": file}})
    a, b = radios(found)["a"], radios(found)["b"]
    assert (a.up, a.switched) == (False, ((1_010_000_000, True), (9_000_000_000, False)))
    assert (b.up, b.switched) == (True, ())
    assert places(a)[-1] == (pytest.approx(11.01), 200, 50)
    assert places(b) == [(0, 110, 60)]
    assert [(change.at, change.port, change.change) for change in radio_changes(found)] == [
        (1_010_000_000, "a:wlan0", {"on": True}),
        (9_000_000_000, "a:wlan0", {"on": False}),
    ]


@pytest.mark.parametrize("packed", [False, True])
def test_vehicles_of_sumo_appear_move_leave_and_come_back(packed: bool, tmp_path: Path) -> None:
    octets = (MOVEMENTS / "fcd.xml").read_bytes()
    file = tmp_path / ("fcd.xml.gz" if packed else "fcd.xml")
    file.write_bytes(gzip.compress(octets) if packed else octets)
    moves = {"model": "sumo", "file": str(file)}
    found = plan(tmp_path, {"car": moves, "person": {**moves, "node": "walker"}})
    car, person = radios(found)["car"], radios(found)["person"]
    assert not car.up
    assert car.switched == ((1_000_000_000, True), (3_000_000_000, False), (4_000_000_000, True))
    assert places(car) == [(1, 0, 10), (2, 10, 10), (4, 10, 10), (4, 90, 10)]
    assert car.motion["path"][-1][1]["z"] == 2.5
    assert person.switched == ((2_000_000_000, True),)
    assert places(person) == [(2, 3, 0), (3, 3, 1.2), (4, 3, 2.4)]


def test_degrees_become_metres_and_a_note_says_so(tmp_path: Path) -> None:
    moves = {"model": "sumo", "file": str(MOVEMENTS / "fcd-geo.xml")}
    found = plan(tmp_path, {"a": moves, "b": moves})
    a, b = places(radios(found)["a"]), places(radios(found)["b"])
    assert a[1][1] == pytest.approx(great_circle((52.5, 13.4), (52.5, 13.401477)), rel=2e-3)
    assert a[1][1] == pytest.approx(100, rel=3e-3), "10 s at 10 m/s"
    assert b[0][2] - a[0][2] == pytest.approx(great_circle((52.5, 13.4), (52.51, 13.4)), rel=1e-6)
    assert found.notes == (
        "degrees of the movement are metres from its south-west corner, 52.5 north 13.4 east",
    )
    said = plan(tmp_path, {"a": {**moves, "geographic": "false"}})
    assert places(radios(said)["a"])[1][1] == 13.401477


def test_a_later_time_of_the_file_can_be_time_zero(tmp_path: Path) -> None:
    moves = {"file": str(MOVEMENTS / "city.mob"), "model": "ns-2", "start": "6010 ms"}
    car = radios(plan(tmp_path, {"a": moves}))["a"]
    assert (car.up, car.switched) == (True, ((2_990_000_000, False),))
    assert places(car) == [(0, pytest.approx(150), 50), (pytest.approx(5), 200, 50)]


def test_bonnmotion_packs_its_movements(tmp_path: Path) -> None:
    (tmp_path / "x.movements.gz").write_bytes(gzip.compress(b"0.0 0 0 10.0 100 0\n0 5 5 4 5 9\n"))
    (tmp_path / "x.params").write_text("model=RandomWaypoint\nx=500\ny=500\nduration=10\nnn=2\n")
    found = plan(tmp_path, {"a": {"model": "bonnmotion", "file": "x.movements.gz", "node": 1}})
    assert places(radios(found)["a"]) == [(0, 5, 5), (4, 5, 9)]
    with pytest.raises(ScenarioError) as caught:
        plan(tmp_path, {"a": {"model": "bonnmotion", "file": "x.params"}})
    assert "BonnMotion's parameters" in caught.value.message
    assert "x.movements" in (caught.value.cure or "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "<fcd-export>\n<timestep time='1'/>\n<timestep time='0'/></fcd-export>",
            "line 3: the time 0 is below",
        ),
        (
            "<fcd-export><timestep time='0'><vehicle x='1' y='2'/></timestep></fcd-export>",
            "line 1: a vehicle",
        ),
        (
            "<fcd-export><timestep time='0'><vehicle id='a' x='b' y='2'/></timestep></fcd-export>",
            "line 1: x is",
        ),
        ("<fcd-export><timestep time='0'>", "line 1: no element found"),
        ("<fcd-export></fcd-export>", "the file moves no vehicle"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><fcd-export/>", "line 1: an XML entity"),
    ],
)
def test_what_is_wrong_in_floating_car_data_has_its_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "fcd.xml").write_text(text)
    with pytest.raises(ScenarioError) as caught:
        plan(tmp_path, {"a": {"model": "sumo", "file": "fcd.xml"}})
    assert caught.value.message.startswith(message)
    assert caught.value.code == "movement.syntax"
