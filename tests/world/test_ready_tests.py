"""Ready tests over a link of known rate and delay."""

from __future__ import annotations

from pathlib import Path

import pytest

import airloom
from airloom import Scenario, report

pytestmark = pytest.mark.world


def scenario(*tests: dict[str, object]) -> Scenario:
    """Two nodes, 10 Mbit/s and 20 ms there and back."""
    ends = {"from": "client", "to": "server"}
    return Scenario.model_validate(
        {
            "name": "ready",
            "nodes": {"client": {}, "server": {}},
            "links": [{"ends": ["client", "server"], "rate": "10 Mbit/s", "delay": "10 ms"}],
            "measurements": [{"name": test["kind"], "test": {**ends, **test}} for test in tests],
        }
    )


def figure(result: airloom.RunResult, name: str, metric: str) -> float:
    (found,) = [one for one in result.result.measurements if (one.name, one.metric) == (name, metric)]
    assert found.mean is not None
    return found.mean


@pytest.mark.measures
def test_loads_a_call_and_a_page(tmp_path: Path) -> None:
    load = {"kind": "tcp_nup", "streams": 2, "duration": "2 s", "idle": "500 ms", "congestion": "cubic"}
    asked = scenario(
        load, {"kind": "voip", "duration": "1 s"}, {"kind": "web_page", "duration": "1 s", "objects": 3}
    )
    result = airloom.run(asked, out=tmp_path / "out")
    assert 5e6 < figure(result, "tcp_nup", "throughput") < 10e6
    assert figure(result, "tcp_nup", "rtt_idle") == pytest.approx(20.3e6, rel=0.1)
    # A queue of 1000 packets behind 10 Mbit/s fills.
    assert figure(result, "tcp_nup", "rtt_induced") > 20e6
    assert result.result.in_force["measurements[tcp_nup].congestion"] == "cubic"
    metrics = set(result.samples("tcp_nup")["metric"])
    assert {"cwnd.up_1", "srtt.up_2", "throughput.up_1", "rtt.ping"} <= metrics
    assert figure(result, "voip", "mos.up") > 4.3
    assert figure(result, "voip", "delay_mean.down") == pytest.approx(10.3e6, rel=0.1)
    # The document, and then its objects on connections of their own: two round trips each.
    assert figure(result, "web_page", "page_time_min") > 80e6
    assert figure(result, "web_page", "failures") == 0


@pytest.mark.measures
def test_rrul(tmp_path: Path) -> None:
    result = airloom.run(
        scenario({"kind": "rrul", "duration": "2 s", "idle": "200 ms"}), out=tmp_path / "out"
    )
    up, down = (figure(result, "rrul", f"throughput_{way}") for way in ("up", "down"))
    assert 3e6 < up < 10e6
    assert 3e6 < down < 10e6
    files = report.export(result.folder, tmp_path / "flent", ["flent"])
    assert [Path(file).name for file in files] == ["ready-rrul.flent.gz"]
