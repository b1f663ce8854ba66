"""Values of running measurements: what their programs have written, and what has arrived at their nodes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from airloom.live.values import Values
from airloom.measure import Place, tool_for
from airloom.scenario.model import Measurement

LINE = "[1700000000.000001] 64 bytes from 10.0.0.2: icmp_seq={} ttl=64 time={} ms{}\n"


def measuring(folder: Path, state: str = "running", **tool: Any) -> Any:
    measurement = Measurement.model_validate({"name": "one", **tool})
    place = Place("one", {"h1": ["10.0.0.1"], "h2": ["10.0.0.2"]}, 5000, 1)
    return SimpleNamespace(name="one", tool=tool_for(measurement, place), folder=folder, state=state)


def test_a_pings_value_is_the_mean_of_the_new_whole_lines(tmp_path: Path) -> None:
    values, one = Values(), measuring(tmp_path, ping={"from": "h1", "to": "h2", "count": 9})
    assert values.of({"one": one}, {}, 1) == {}, "nothing is written yet"
    output = tmp_path / "client.out"
    output.write_text(LINE.format(1, "1.00", "") + LINE.format(2, "3.00", "") + LINE.format(3, "9", "")[:30])
    found = values.of({"one": one}, {}, 1)
    assert found == {"one": {"name": "round trip", "value": 2_000_000.0, "unit": "ns"}}
    assert values.of({"one": one}, {}, 1) == {}, "the last line is not whole"
    with output.open("a") as file:
        file.write(LINE.format(3, "9", "")[30:] + LINE.format(3, "50.0", " (DUP!)"))
    assert values.of({"one": one}, {}, 1)["one"]["value"] == 9_000_000.0


def test_other_tools_show_what_arrives_at_the_node(tmp_path: Path) -> None:
    values = Values()
    one = measuring(tmp_path, iperf3={"from": "h1", "to": "h2", "duration": "5 s", "reverse": True})
    ports = {"h1:eth0": {"delivered_octets": 1000}, "h1:eth1": {"delivered_octets": 0}}
    ports["h2:eth0"] = {"delivered_octets": 77}
    assert values.of({"one": one}, ports, 10**9) == {}, "there is no reading before"
    ports["h1:eth1"] = {"delivered_octets": 1_000_000}
    found = values.of({"one": one}, ports, 2 * 10**9)
    assert found == {"one": {"name": "arrives at h1", "value": 4e6, "unit": "bit/s"}}


def test_a_measurement_that_does_not_run_has_no_value(tmp_path: Path) -> None:
    (tmp_path / "client.out").write_text(LINE.format(1, "1.00", ""))
    one = measuring(tmp_path, "closing", ping={"from": "h1", "to": "h2", "count": 9})
    assert Values().of({"one": one}, {}, 1) == {}
