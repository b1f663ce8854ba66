"""Slices from the scenario to the engine: predicted disturbance, violations, airtime; no real time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airloom import _engine
from airloom.planning.gate import check
from airloom.planning.plan import Plan
from airloom.planning.radio.interference import disturbances, over_time
from airloom.runs import slice_monitor

MS = 1_000_000
SCENARIO = """
name: test
media: {{air: {{propagation: {{model: log-distance, loss: 46.7 dB}}, radio: {{rate: 36 Mbit/s}}}}}}
nodes:
  a: {{position: [0 m, 0 m], radios: {{wlan0: }}}}
  b: {{position: [2 m, 0 m], radios: {{wlan0: }}}}
  c: {{position: [{away} m, 0 m], radios: {{wlan0: }}}}
  d: {{position: [{beyond} m, 0 m], radios: {{wlan0: }}}}
slices:
  one: {{grant: {{nodes: [a, b], channels: [36], power: 10 dBm}}}}
  two: {{grant: {{nodes: [c, d], channels: [{channel}]}}, police: {police}}}
"""


def planned(folder: Path, *, away: int = 60, channel: str = "36", police: str = "watch") -> Plan:
    path = folder / "scenario.yaml"
    text = SCENARIO.format(away=away, beyond=away + 2, channel=channel, police=police)
    path.write_text(text, encoding="utf-8")
    return check(str(path)).plans[0]


def built(plan: Plan) -> _engine.Engine:
    engine = _engine.Engine(plan.seed)
    for medium in plan.media.values():
        engine.add_medium(medium.name, medium.settings)
        for radio in medium.radios:
            engine.add_memory_port(radio.port)
            engine.add_radio(medium.name, radio.port, radio.settings, radio.motion, radio.node)
            assert radio.grant is not None
            engine.police(radio.port, radio.grant.engine())
    return engine


def flow(engine: _engine.Engine, plan: Plan, sender: str, receiver: str, until: int) -> int:
    """Offers a frame each millisecond and returns how many arrived."""
    macs = {radio.port: bytes(radio.settings["mac"]) for radio in plan.media["air"].radios}
    for at in range(0, until, MS):
        engine.offer(sender, at, macs[receiver] + macs[sender] + b"\x08\x00" + bytes(1486))
    return sum(port == receiver for port, *_ in engine.step(until))


def test_the_predicted_power_is_that_of_the_propagation_model(tmp_path: Path) -> None:
    found = {one.source: one for one in disturbances(planned(tmp_path))}
    # Log-distance: 46.7 dB + 30 dB log10(58 m); slice one sends with 10 dBm, slice two with 16 dBm.
    assert found["one"].power_dbm == pytest.approx(10 - 46.7 - 52.90, abs=0.01)
    assert found["two"].power_dbm == pytest.approx(16 - 46.7 - 52.90, abs=0.01)
    assert (found["two"].sender, found["two"].receiver) == ("c-two:wlan0", "b-one:wlan0")
    # Over 2 m its own signal is 9.03 dB weaker than over 1 m; noise -94 dBm.
    assert found["two"].snr_db == pytest.approx(10 - 46.7 - 9.03 + 94, abs=0.01)
    # -83.60 dBm of interference and -94 dBm of noise are -83.22 dBm.
    assert found["two"].sinr_db == pytest.approx(10 - 46.7 - 9.03 + 83.22, abs=0.02)
    assert found["two"].effect == "interferes"


@pytest.mark.parametrize(("away", "effect"), [(4, "contends"), (60, "interferes"), (400, "none")])
def test_the_effect_falls_with_distance(tmp_path: Path, away: int, effect: str) -> None:
    assert {one.effect for one in disturbances(planned(tmp_path, away=away))} == {effect}


EVENTS = """
events:
  - {at: 2 s, slice: two, grant: {channels: [36], power: 6 dBm}}
  - {at: 3 s, slice: two, grant: {channels: [36, 44]}}
  - {at: 5 s, slice: one, grant: {channels: [48]}}
"""


def test_later_grants_are_predicted_with_their_times(tmp_path: Path) -> None:
    planned(tmp_path, channel="40")
    with (tmp_path / "scenario.yaml").open("a", encoding="utf-8") as file:
        file.write(EVENTS)
    found = over_time(check(str(tmp_path / "scenario.yaml")).plans[0])
    second = 1000 * MS
    assert [(one.source, one.victim, one.since_ns, one.until_ns) for one in found] == [
        ("one", "two", 2 * second, 5 * second),
        ("two", "one", 2 * second, 5 * second),
    ]
    # The later grant lowers the power of slice two from 16 to 6 dBm.
    assert found[1].power_dbm == pytest.approx(6 - 46.7 - 52.90, abs=0.01)


def test_grants_that_stay_are_predicted_once(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    assert over_time(plan) == disturbances(plan)


def test_orthogonal_channels_do_not_disturb(tmp_path: Path) -> None:
    assert disturbances(planned(tmp_path, away=4, channel="40, 44")) == []
    # A granted channel counts even if the radios start on another one.
    assert {one.channel for one in disturbances(planned(tmp_path, away=4, channel="40, 36"))} == {36}


@pytest.mark.parametrize(("police", "arrive"), [("watch", 100), ("enforce", 0), ("cut", 0)])
def test_a_change_behind_the_planner_is_found(tmp_path: Path, police: str, arrive: int) -> None:
    plan = planned(tmp_path, channel="44", police=police)
    engine = built(plan)
    for port in ("c-two:wlan0", "d-two:wlan0"):
        engine.set_radio(port, {"channel": 36})
    assert flow(engine, plan, "c-two:wlan0", "d-two:wlan0", 100 * MS) >= arrive - 1
    state: Any = engine.violations()
    first = state["found"][0]
    assert (first["slice"], first["what"], first["amount"]) == ("two", "channel", 40.0)
    assert (first["channel"], first["concerned"]) == (36, ["one"])
    assert first["frames"] == {"watch": 100, "enforce": 100, "cut": 10}[police]
    dropped = engine.ledger()["dropped"]
    assert dropped.get("outside-grant", 0) == {"watch": 0, "enforce": 100, "cut": 10}[police]
    assert dropped.get("radio-off", 0) == (90 if police == "cut" else 0)
    cut = {radio["port"] for radio in engine.radios() if radio["cut"]}
    assert cut == ({"c-two:wlan0"} if police == "cut" else set())
    sent = slice_monitor.totals(engine.radios())
    assert (("two", 36, 5180) in sent) == (police == "watch")


def test_airtime_over_time_is_that_of_frames_and_acknowledgments(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    engine = built(plan)
    looks = [(0, slice_monitor.totals(engine.radios()))]
    assert flow(engine, plan, "a-one:wlan0", "b-one:wlan0", 100 * MS) == 100
    looks.append((100 * MS, slice_monitor.totals(engine.radios())))
    engine.step(200 * MS)
    looks.append((200 * MS, slice_monitor.totals(engine.radios())))
    [(whose, times, shares)] = [one for one in slice_monitor.airtime(looks) if one[0] == "one:36"]
    assert (whose, times) == ("one:36", [100 * MS, 200 * MS])
    # 1486 octets of payload, 36 of headers and checks: 20 us + 85 symbols at 36 Mbit/s; and 28 us.
    frame = 20 + 4 * -(-(16 + 6 + 8 * (1486 + 8 + 28)) // 144)
    assert shares[0] == pytest.approx((frame + 28) / 1000, abs=0.004)
    assert shares[1] < 0.004  # beacons


def test_a_taken_name_is_refused_during_the_run(tmp_path: Path) -> None:
    engine = built(planned(tmp_path))
    with pytest.raises(_engine.EngineError, match="names that no other slice has"):
        engine.set_radio("a-one:wlan0", {"ssid": "two"})
